"""Exchanges inside a warp: shuffles, votes, matches, reductions, elections."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from phobos.emulator.arithmetic import floats
from phobos.emulator.decode import Operands, Step
from phobos.emulator.errors import FindingKind
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.instructions.shape import last_type
from phobos.emulator.types import B32, PRED, U32, ScalarType, Selection, Value
from phobos.emulator.wave import WARP, Wave, warp_bits
from phobos.targets.ptx.parse.records import Operand, Pair, Sink

_LANES = np.arange(WARP, dtype=np.uint32)


def _pair(ops: Operands) -> tuple[Operand, Operand]:
    """The two results of `d|p`; the second is a sink if only `d` is there."""
    target = ops.operand(0)
    return (target.first, target.second) if isinstance(target, Pair) else (target, Sink())


# Shuffles ----------------------------------------------------------------------------------------


def _source_lane(
    mode: str, lane: npt.NDArray[np.int64], b: Value, c: Value
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The lane that each lane reads from, and whether it is within its segment."""
    distance = (b & np.uint32(31)).astype(np.int64)
    clamp = (c & np.uint32(31)).astype(np.int64)
    segment = (c >> np.uint32(8) & np.uint32(31)).astype(np.int64)
    limit = (lane & segment) | (clamp & ~segment)
    base = lane & segment
    if mode == "up":
        source = lane - distance
        return source, source >= limit
    source = {
        "down": lane + distance,
        "bfly": lane ^ distance,
        "idx": base | (distance & ~segment),
    }[mode]
    return source, source <= limit


@decodes("shfl")
def _shfl(ops: Operands) -> Step:
    ops.expect_count(5)
    suffix = ops.instruction.suffix
    if len(suffix) != 3 or suffix[1] not in ("up", "down", "bfly", "idx") or suffix[2] != "b32":
        ops.refuse("takes the form shfl.sync.{up,down,bfly,idx}.b32")
    mode = suffix[1]
    first, second = _pair(ops)
    write_d, write_p = ops.writer(first, B32), ops.writer(second, PRED)
    read_a, read_b, read_c = (ops.read(index, U32) for index in (1, 2, 3))

    def step(wave: Wave, sel: Selection) -> None:
        value = read_a(wave, sel)
        threads = wave.selected(sel)
        lane = threads % WARP
        source, inside = _source_lane(mode, lane, read_b(wave, sel), read_c(wave, sel))
        inside = np.broadcast_to(inside, threads.shape)
        partner = np.where(inside, threads - lane + source, threads)
        if sel is not None:
            _check_partners(ops, wave, sel, partner)
        write_d(wave, sel, wave.spread(sel, value)[partner])
        write_p(wave, sel, inside.copy())

    return step


def _check_partners(
    ops: Operands, wave: Wave, sel: npt.NDArray[np.intp], partner: npt.NDArray[np.intp]
) -> None:
    present = wave.flags(sel)[partner]
    if present.all():
        return
    place = int(np.argmin(present))
    ops.report(
        FindingKind.DIVERGENCE,
        wave,
        int(sel[place]),
        f"shuffles from lane {int(partner[place]) % WARP}, which does not take part",
    )


# Votes and matches -------------------------------------------------------------------------------


@decodes("vote")
def _vote(ops: Operands) -> Step:
    ops.expect_count(3)
    mode = ops.part(1)
    if mode not in ("all", "any", "uni", "ballot"):
        ops.refuse(f"unknown mode `.{mode}`")
    write = ops.write(0, U32 if mode == "ballot" else PRED)
    read, mask_of = ops.read(1, PRED), ops.read(2, U32)

    def step(wave: Wave, sel: Selection) -> None:
        warps = wave.selected(sel) // WARP
        members = mask_of(wave, sel) & warp_bits(wave.flags(sel))[warps]
        votes = warp_bits(wave.spread(sel, read(wave, sel)))[warps] & members
        if mode == "ballot":
            write(wave, sel, votes)
        elif mode == "any":
            write(wave, sel, votes != 0)
        elif mode == "all":
            write(wave, sel, votes == members)
        else:
            write(wave, sel, (votes == 0) | (votes == members))

    return step


@decodes("activemask")
def _activemask(ops: Operands) -> Step:
    ops.expect_count(1)
    write = ops.write(0, U32)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, warp_bits(wave.flags(sel))[wave.selected(sel) // WARP])

    return step


def _members(wave: Wave, sel: Selection, mask: Value) -> npt.NDArray[np.bool_]:
    """For each selected thread, which lanes of its warp are in its mask and take part."""
    warps = wave.selected(sel) // WARP
    bits = np.broadcast_to(mask & warp_bits(wave.flags(sel))[warps], warps.shape)
    return ((bits[:, None] >> _LANES) & np.uint32(1)) != 0


def _warp_values(wave: Wave, sel: Selection, value: Value) -> npt.NDArray:
    """For each selected thread, the values of all lanes of its warp."""
    return wave.spread(sel, value).reshape(-1, WARP)[wave.selected(sel) // WARP]


@decodes("match")
def _match(ops: Operands) -> Step:
    ops.expect_count(3)
    mode, kind = ops.part(0), last_type(ops)
    if mode not in ("any", "all"):
        ops.refuse(f"unknown mode `.{mode}`")
    first, second = _pair(ops)
    write_d, write_p = ops.writer(first, U32), ops.writer(second, PRED)
    read, mask_of = ops.read(1, kind), ops.read(2, U32)

    def step(wave: Wave, sel: Selection) -> None:
        value = np.broadcast_to(read(wave, sel), (wave.count(sel),))
        members = _members(wave, sel, mask_of(wave, sel))
        equal = (_warp_values(wave, sel, value) == value[:, None]) & members
        if mode == "any":
            write_d(wave, sel, _row_bits(equal))
            return
        agree = (equal == members).all(axis=1)
        write_d(wave, sel, np.where(agree, _row_bits(members), np.uint32(0)))
        write_p(wave, sel, agree)

    return step


def _row_bits(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    return np.packbits(flags, axis=1, bitorder="little").view(np.uint32)[:, 0]


# Reductions --------------------------------------------------------------------------------------


def _reducer(ops: Operands, operation: str, kind: ScalarType) -> Callable[..., Value]:
    integer: Mapping[str, tuple[np.ufunc, int]] = {
        "add": (np.add, 0),
        "and": (np.bitwise_and, -1),
        "or": (np.bitwise_or, 0),
        "xor": (np.bitwise_xor, 0),
    }
    if operation in integer:
        ufunc, identity = integer[operation]
        start = np.array(identity).astype(kind.dtype)[()]
    elif operation in ("min", "max"):
        ufunc = np.minimum if operation == "min" else np.maximum
        info = np.iinfo(kind.dtype)
        start = kind.dtype.type(info.max if operation == "min" else info.min)
    else:
        ops.refuse(f"unknown operation `.{operation}`")

    def reduce(values: npt.NDArray, members: npt.NDArray[np.bool_]) -> Value:
        return ufunc.reduce(np.where(members, values, start), axis=1, dtype=kind.dtype)

    return reduce


def _float_reducer(ops: Operands, suffix: tuple[str, ...]) -> Callable[..., Value]:
    extreme = {"min": floats.minimum, "max": floats.maximum}.get(suffix[1])
    if extreme is None:
        ops.refuse(f"unknown operation `.{suffix[1]}` on .f32")
    magnitude, propagate = "abs" in suffix, "NaN" in suffix

    def reduce(values: npt.NDArray, members: npt.NDArray[np.bool_]) -> Value:
        own = np.abs(values) if magnitude else values
        # A lane that takes part stands in for those that do not: min and max do not count.
        first = np.take_along_axis(own, np.argmax(members, axis=1)[:, None], axis=1)
        own = np.where(members, own, first)
        result = own[:, 0]
        for lane in range(1, WARP):
            result = extreme(result, own[:, lane], propagate_nan=propagate)
        return result

    return reduce


@decodes("redux")
def _redux(ops: Operands) -> Step:
    ops.expect_count(3)
    suffix, kind = ops.instruction.suffix, last_type(ops)
    reduce = _float_reducer(ops, suffix) if kind.is_float else _reducer(ops, ops.part(1), kind)
    write, read, mask_of = ops.write(0, kind), ops.read(1, kind), ops.read(2, U32)

    def step(wave: Wave, sel: Selection) -> None:
        members = _members(wave, sel, mask_of(wave, sel))
        write(wave, sel, reduce(_warp_values(wave, sel, read(wave, sel)), members))

    return step


@decodes("elect")
def _elect(ops: Operands) -> Step:
    ops.expect_count(2)
    first, second = _pair(ops)
    write_d, write_p = ops.writer(first, U32), ops.writer(second, PRED)
    mask_of = ops.read(1, U32)

    def step(wave: Wave, sel: Selection) -> None:
        leader = np.argmax(_members(wave, sel, mask_of(wave, sel)), axis=1)
        write_d(wave, sel, leader.astype(np.uint32))
        write_p(wave, sel, leader == wave.selected(sel) % WARP)

    return step


@decodes("bar")
def _bar_warp(ops: Operands) -> Step:
    """`bar.warp.sync`: its gate does the waiting."""
    ops.expect_count(1)
    mask_of = ops.read(0, U32)

    def step(wave: Wave, sel: Selection) -> None:
        if wave.monitor is not None:
            wave.monitor.warp_sync(wave, sel, mask_of(wave, sel))

    return step
