"""Registers: what the PTX needs and declares, and what ptxas made of it."""

from __future__ import annotations

import re

from phobos.analysis.register_pressure import register_pressure
from phobos.dialects import ptx
from phobos.explain.records import Machine, Mix, Registers
from phobos.targets.ptx.chips import Chip
from phobos.targets.ptx.occupancy import occupancy

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def registers(entry: ptx.EntryOp) -> Registers:
    """The registers that a kernel's values take in the order of the PTX, and what is declared."""
    declared: list[str] = []
    if entry.maxntid is not None:
        declared.append(f".maxntid {_number(entry.maxntid)}")
    if entry.minnctapersm is not None:
        declared.append(f".minnctapersm {_number(entry.minnctapersm)}")
    if entry.maxnreg is not None:
        declared.append(f".maxnreg {_number(entry.maxnreg)}")
    return Registers(register_pressure(entry).alive, ", ".join(declared) or None)


def _number(value: object) -> str:
    return str(value[0] if isinstance(value, tuple) else value)


def barriers(entry: ptx.EntryOp) -> int:
    """Barriers of the CTA in the text of a kernel."""
    return sum(
        isinstance(op, ptx.BarOp | ptx.BarrierOp) and not op.suffix.startswith("warp")
        for block in entry.body.blocks
        for op in block.ops
    )


def waits(entry: ptx.EntryOp) -> int:
    """Places in the text of a kernel where threads wait at an mbarrier."""
    return sum(
        isinstance(op, ptx.MbarrierOp) and op.suffix.startswith("try_wait")
        for block in entry.body.blocks
        for op in block.ops
    )


def machines(
    log: str,
    mixes: dict[str, tuple[Mix, ...]],
    launches: dict[str, tuple[int, int]],
    target: Chip,
) -> dict[str, Machine]:
    """What ptxas said of each kernel with `-v`.

    `launches` has the threads and the dynamic shared bytes of each kernel.
    """
    found: dict[str, Machine] = {}
    parts = _ENTRY.split(log)
    for name, said in zip(parts[1::2], parts[2::2], strict=True):
        threads, dynamic = launches.get(name, (0, 0))
        numbers = _SPILLS.search(said)
        stack, stores, loads = map(int, numbers.groups()) if numbers is not None else (0, 0, 0)
        shared = _first(_SHARED, said) + dynamic
        count = _first(_REGISTERS, said)
        if not threads:
            continue
        fits = occupancy(threads, count, shared, target)
        found[name] = Machine(
            count, stores, loads, stack, shared, fits.ctas, fits.share, fits.limit,
            mixes.get(name, ()),
        )  # fmt: skip
    return found


def _first(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return 0 if match is None else int(match[1])
