"""What `ph-ptx-verify` asks of bulk copies, their barriers and registers that change hands.

The forms of these instructions say which registers they take; ptxas takes any value in them, and a
value that the hardware does not take hangs the kernel or stops it with an error that names no line.
So what is constant, or a parameter, is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from xdsl.ir import SSAValue

from phobos.diagnostics import Diagnostic
from phobos.dialects.ptx import (
    CpAsyncBulkOp,
    CpAsyncBulkTensorOp,
    CvtaOp,
    EntryOp,
    ImmOp,
    Instruction,
    MbarrierOp,
    ParamAddressOp,
    PrefetchOp,
    SetmaxnregOp,
)
from phobos.ir.locations import location_of
from phobos.targets.ptx.contract import MAP_ALIGNMENT, MAP_BYTES
from phobos.targets.ptx.legality import parameter_bytes

BULK_UNIT = 16
"""Bytes of which a bulk copy copies a multiple."""

MAX_COUNT = (1 << 20) - 1
"""Arrivals that a barrier can wait for, and bytes in one phase (PTX manual, mbarrier)."""

Check = Callable[[Instruction, EntryOp], Iterator[Diagnostic]]


def copy_violations(op: Instruction, entry: EntryOp) -> Iterator[Diagnostic]:
    """What an instruction is given that the hardware does not take."""
    check = _CHECKS.get(type(op))
    if check is not None:
        yield from check(op, entry)


def _constant(value: SSAValue) -> int | None:
    return value.owner.pattern if isinstance(value.owner, ImmOp) else None


def _bulk(op: Instruction, entry: EntryOp) -> Iterator[Diagnostic]:
    size = _constant(op.operands[2])
    if size is not None and (size == 0 or size % BULK_UNIT):
        yield _error(
            op, f"a bulk copy of {size} bytes", f"it copies multiples of {BULK_UNIT} bytes"
        )


def _barrier(op: Instruction, entry: EntryOp) -> Iterator[Diagnostic]:
    what = op.suffix.partition(".")[0]
    if op.own_count < 2 or what not in _COUNTED:
        return
    count = _constant(op.operands[1])
    kind, least = ("bytes", 0) if "expect_tx" in op.suffix.split(".") else ("arrivals", 1)
    if count is not None and not least <= count <= MAX_COUNT:
        limits = f"it can expect {least} to {MAX_COUNT}"
        yield _error(op, f"a barrier that expects {count} {kind}", limits)


_COUNTED = frozenset({"init", "arrive", "expect_tx"})
"""Forms of mbarrier whose second operand is a number of arrivals or bytes."""


def _tensor(op: Instruction, entry: EntryOp) -> Iterator[Diagnostic]:
    assert isinstance(op, CpAsyncBulkTensorOp)
    yield from _map(op, op.tensor_map, entry)


def _prefetch(op: Instruction, entry: EntryOp) -> Iterator[Diagnostic]:
    if op.suffix == "tensormap":
        yield from _map(op, op.operands[0], entry)


def _map(op: Instruction, address: SSAValue, entry: EntryOp) -> Iterator[Diagnostic]:
    """A map that is a parameter must be of the size and the alignment of one."""
    owner = address.owner
    if isinstance(owner, CvtaOp) and owner.suffix == "param.u64":
        owner = owner.operands[0].owner
    if not isinstance(owner, ParamAddressOp):
        return
    (index,) = owner.immediates
    parameter = entry.parameters[index] if index < len(entry.parameters) else None
    if parameter is None:
        return
    if parameter_bytes([parameter]) != MAP_BYTES or (parameter.align or 1) % MAP_ALIGNMENT:
        yield _error(
            op,
            f"the parameter `{parameter.name}` is no tensor map",
            f"a tensor map is `{parameter.name}: b8[{MAP_BYTES}] align {MAP_ALIGNMENT}`",
        )


def _setmaxnreg(op: Instruction, entry: EntryOp) -> Iterator[Diagnostic]:
    if entry.maxntid is None and entry.maxnreg is None:
        yield _error(
            op,
            f"ptxas would ignore this: how many registers `{entry.sym_name}` begins with is open",
            "give the kernel `maxntid` or `maxnreg`",
        )


_CHECKS: Mapping[type[Instruction], Check] = {
    CpAsyncBulkOp: _bulk,
    CpAsyncBulkTensorOp: _tensor,
    MbarrierOp: _barrier,
    PrefetchOp: _prefetch,
    SetmaxnregOp: _setmaxnreg,
}


def _error(op: Instruction, message: str, help: str) -> Diagnostic:
    return Diagnostic.error(message, location_of(op), help=help)
