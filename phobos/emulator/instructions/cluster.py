"""What CTAs of a cluster, and warps of a CTA, share out: addresses and registers."""

from __future__ import annotations

import numpy as np

from phobos.emulator.decode import Operands, Step
from phobos.emulator.errors import FindingKind
from phobos.emulator.instructions.memory import do_nothing
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.memory.regions import IN_CTA, RANK_SHIFT
from phobos.emulator.types import U32, U64, Selection
from phobos.emulator.wave import Wave

_REGISTER_COUNTS = range(24, 257, 8)
_ADDRESSES = {"u32": U32, "u64": U64}


@decodes("mapa")
def _mapa(ops: Operands) -> Step:
    """`mapa`: the address of the same variable in the CTA of a given rank."""
    ops.expect_count(3)
    kind = _ADDRESSES.get(ops.part(-1))
    if kind is None or ops.instruction.suffix[:-1] not in ((), ("shared::cluster",)):
        ops.refuse("takes the form mapa{.shared::cluster}.{u32,u64}")
    write, read, rank_of = ops.write(0, kind), ops.read(1, kind), ops.read(2, U32)
    kept = kind.dtype.type(~(0xFF << RANK_SHIFT) & ((1 << kind.bits) - 1))

    def step(wave: Wave, sel: Selection) -> None:
        threads = wave.selected(sel)
        rank = np.broadcast_to(rank_of(wave, sel), threads.shape)
        size = wave.geometry.cluster_size
        if (rank >= size).any():
            place = int(np.argmax(rank >= size))
            ops.report(
                FindingKind.BOUNDS,
                wave,
                int(threads[place]),
                f"asks for CTA {int(rank[place])} of a cluster of {size}",
            )
        owner = (rank.astype(kind.dtype) + kind.dtype.type(1)) << kind.dtype.type(RANK_SHIFT)
        write(wave, sel, (read(wave, sel) & kept) | owner)

    return step


@decodes("getctarank")
def _getctarank(ops: Operands) -> Step:
    """`getctarank`: the rank of the CTA that a shared address belongs to."""
    ops.expect_count(2)
    kind = _ADDRESSES.get(ops.part(-1))
    if kind is None or ops.instruction.suffix[:-1] not in ((), ("shared::cluster",)):
        ops.refuse("takes the form getctarank{.shared::cluster}.{u32,u64}")
    write, read = ops.write(0, U32), ops.read(1, kind)

    def step(wave: Wave, sel: Selection) -> None:
        threads = wave.selected(sel)
        address = np.broadcast_to(read(wave, sel), threads.shape).astype(np.int64)
        owner = (address & ~IN_CTA & 0xFFFFFFFF) >> RANK_SHIFT
        slots = wave.slot_of_owner(threads, owner)
        write(wave, sel, (slots % wave.geometry.cluster_size).astype(np.uint32))

    return step


@decodes("setmaxnreg")
def _setmaxnreg(ops: Operands) -> Step:
    """Registers are dealt by the assembler; the emulator only looks at the number."""
    ops.expect_count(1)
    suffix = ops.instruction.suffix
    if suffix not in (("inc", "sync", "aligned", "u32"), ("dec", "sync", "aligned", "u32")):
        ops.refuse("takes the form setmaxnreg.{inc,dec}.sync.aligned.u32")
    count = ops.immediate(0, "the number of registers")
    if count not in _REGISTER_COUNTS:
        ops.refuse(f"takes multiples of 8 from 24 to 256, got {count}")
    return do_nothing
