"""Folds over the lanes of a warp, shuffles, ballots and barriers.

All lanes of a full warp fold by exchanging with lane ^ 16, ^ 8, ..., so that every lane has
the result. In a CTA whose last warp is not full that warp folds downwards over the lanes
that exist and reads lane 0.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from phobos.dialects import collective, ptx
from phobos.dialects.collective import ReduceKind, Scope, ShuffleMode
from phobos.dialects.ctx import LANES_PER_WARP
from phobos.dialects.ptx import B16, B32
from phobos.ir.locations import error_at
from phobos.transforms.lowering.conversions import clean, narrow_to_half, widen_half
from phobos.transforms.lowering.registers import BF16, F32, Kind
from phobos.transforms.lowering.state import Handler, Lowering

ALL_LANES = 0xFFFFFFFF
_CLAMP = LANES_PER_WARP - 1
_OPS: dict[str, type[ptx.Instruction]] = {
    "add": ptx.AddOp,
    "mul": ptx.MulOp,
    "max": ptx.MaxOp,
    "min": ptx.MinOp,
    "umax": ptx.MaxOp,
    "umin": ptx.MinOp,
    "and": ptx.AndOp,
    "or": ptx.OrOp,
    "xor": ptx.XorOp,
}
_BITWISE = frozenset({"and", "or", "xor"})
_HALVES: dict[str, tuple[str, str | None, str]] = {
    **dict.fromkeys(("add", "mul"), ("rn.", None, "has_bf16_arithmetic")),
    **dict.fromkeys(("max", "min"), ("", "has_half_minmax", "has_bf16")),
}
"""How the instructions on 16-bit floats begin, and what f16 and bf16 ask of the chip for them."""
_REDUX = frozenset({"add", "max", "min", "umax", "umin", "and", "or", "xor"})


def combine(
    low: Lowering, op: Operation, name: str, kind: Kind, a: SSAValue, b: SSAValue
) -> SSAValue:
    """Folds two values; narrow integers must be clean for max and min."""
    emit = low.build.emit
    if kind.is_half:
        native = half_suffix(low, name, kind)
        if native is not None:
            return emit(_OPS[name], native, a, b)
        # One operation in f32, rounded, is what the operation of 16 bits gives.
        wide = combine(low, op, name, F32, widen_half(low, a, kind), widen_half(low, b, kind))
        return narrow_to_half(low, wide, kind)
    if name in _BITWISE:
        return emit(_OPS[name], kind.untyped, a, b)
    if kind.bits == 1:
        raise error_at(op, f"booleans are not folded by `{name}`")
    if kind.is_float:
        return emit(_OPS[name], kind.name, a, b)
    signed = not name.startswith("u")
    type_ = f"{'s' if signed else 'u'}{max(32, kind.bits)}"
    if name in ("max", "min", "umax", "umin"):
        a, b = (clean(low, value, kind, signed=signed) for value in (a, b))
    return emit(_OPS[name], f"lo.{type_}" if name == "mul" else type_, a, b)


def half_suffix(low: Lowering, name: str, kind: Kind) -> str | None:
    """The suffix of the chip's instruction that folds two 16-bit floats; None if it has none."""
    start, f16_needs, bf16_needs = _HALVES[name]
    return (
        f"{start}{kind.name}" if low.chip.has(bf16_needs if kind is BF16 else f16_needs) else None
    )


def combine_pairs(low: Lowering, name: str, suffix: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """Folds words of two 16-bit floats by the instruction of that suffix, each half for itself."""
    return low.build.emit(_OPS[name], f"{suffix}x2", a, b)


# ---- shuffles of any register


def shuffle(
    low: Lowering, kind: Kind, mode: str, value: SSAValue, amount: SSAValue | int, mask: SSAValue
) -> SSAValue:
    """`value` as another lane of the warp has it; its own where there is no such lane."""
    clamp = 0 if mode == "up" else _last_lane(low)
    return _by_words(
        low,
        kind,
        value,
        lambda word: low.build.emit(ptx.ShflOp, f"sync.{mode}.b32", word, amount, clamp, mask),
    )


def _by_words(
    low: Lowering, kind: Kind, value: SSAValue, move: Callable[[SSAValue], SSAValue]
) -> SSAValue:
    """Applies a function of 32-bit registers to a value of any width."""
    build = low.build
    if kind.bits == 1:
        moved = move(build.emit(ptx.SelpOp, "b32", 1, 0, value))
        return build.emit(ptx.SetpOp, "ne.b32", moved, 0)
    if kind.bits == 64:
        halves = build.emit_multi(ptx.UnpackOp, "b64", value, results=(B32, B32))
        return build.emit(ptx.PackOp, "b64", *(move(half) for half in halves))
    if kind.is_half:
        moved = move(build.emit(ptx.CvtOp, "u32.u16", value))
        return build.emit(ptx.CvtOp, "u16.u32", moved, result=B16)
    return move(value)


def _last_lane(low: Lowering) -> SSAValue | int:
    """The number of the last lane of this warp that exists."""
    remainder = low.threads % LANES_PER_WARP
    if remainder == 0:
        return _CLAMP
    if low.threads < LANES_PER_WARP:
        return remainder - 1
    build = low.build
    is_last = build.emit(ptx.SetpOp, "eq.b32", low.warp, low.threads // LANES_PER_WARP)
    return build.emit(ptx.SelpOp, "b32", remainder - 1, _CLAMP, is_last)


def member_mask(low: Lowering) -> SSAValue:
    """The lanes of this warp that exist."""
    remainder = low.threads % LANES_PER_WARP
    build = low.build
    if remainder == 0:
        return build.imm(ALL_LANES, B32)
    partial = (1 << remainder) - 1
    if low.threads < LANES_PER_WARP:
        return build.imm(partial, B32)
    is_last = build.emit(ptx.SetpOp, "eq.b32", low.warp, low.threads // LANES_PER_WARP)
    return build.emit(ptx.SelpOp, "b32", partial, ALL_LANES, is_last)


# ---- folds over a warp


def _reduce(low: Lowering, op: Operation) -> None:
    assert isinstance(op, collective.ReduceOp)
    if op.scope.data is not Scope.LANE:
        raise error_at(op, "a fold over the CTA is expanded by ph-expand-collectives first")
    kind = low.kind(op.value.type, op)
    value, name = low.scalar(op.value), op.kind.data.value
    mask = member_mask(low)
    if op.kind.data in (ReduceKind.ANY, ReduceKind.ALL):
        low.set(op.result, low.build.emit(ptx.VoteOp, f"sync.{name}.pred", value, mask))
    elif op.kind.data is ReduceKind.COUNT:
        ballot = low.build.emit(ptx.VoteOp, "sync.ballot.b32", value, mask)
        low.set(op.result, low.build.emit(ptx.PopcOp, "b32", ballot))
    elif low.chip.has_redux and not kind.is_float and kind.bits == 32 and name in _REDUX:
        low.set(op.result, low.build.emit(ptx.ReduxOp, _redux_suffix(name), value, mask))
    elif low.threads % LANES_PER_WARP == 0:
        low.set(op.result, _butterfly(low, op, name, kind, value, mask))
    else:
        low.set(op.result, _downwards(low, op, name, kind, value, mask))


def _redux_suffix(name: str) -> str:
    if name in _BITWISE:
        return f"sync.{name}.b32"
    return f"sync.{name.removeprefix('u')}.{'u32' if name.startswith('u') else 's32'}"


def _steps() -> list[int]:
    return [LANES_PER_WARP >> shift for shift in range(1, LANES_PER_WARP.bit_length())]


def _butterfly(
    low: Lowering, op: Operation, name: str, kind: Kind, value: SSAValue, mask: SSAValue
) -> SSAValue:
    for distance in _steps():
        other = shuffle(low, kind, "bfly", value, distance, mask)
        value = combine(low, op, name, kind, value, other)
    return value


def _downwards(
    low: Lowering, op: Operation, name: str, kind: Kind, value: SSAValue, mask: SSAValue
) -> SSAValue:
    """Folds lane + distance into lane where that lane exists, then spreads lane 0."""
    build = low.build
    if kind.bits == 1:
        raise error_at(op, f"booleans are not folded by `{name}`")
    for distance in _steps():
        other = shuffle(low, kind, "down", value, distance, mask)
        folded = combine(low, op, name, kind, value, other)
        source = build.emit(ptx.AddOp, "s32", low.lane, distance)
        bit = build.emit(ptx.ShrOp, "u32", mask, source)
        exists = build.emit(ptx.SetpOp, "ne.b32", build.emit(ptx.AndOp, "b32", bit, 1), 0)
        value = build.emit(ptx.SelpOp, kind.untyped, folded, value, exists)
    return shuffle(low, kind, "idx", value, 0, mask)


_MODES = {
    ShuffleMode.IDX: "idx",
    ShuffleMode.XOR: "bfly",
    ShuffleMode.UP: "up",
    ShuffleMode.DOWN: "down",
}


def _shuffle(low: Lowering, op: Operation) -> None:
    assert isinstance(op, collective.ShuffleOp)
    kind = low.kind(op.value.type, op)
    amount, mask = low.scalar(op.amount), member_mask(low)
    mode = _MODES[op.mode.data]
    low.set(op.result, shuffle(low, kind, mode, low.scalar(op.value), amount, mask))


def _ballot(low: Lowering, op: Operation) -> None:
    assert isinstance(op, collective.BallotOp)
    predicate = low.scalar(op.predicate)
    low.set(op.result, low.build.emit(ptx.VoteOp, "sync.ballot.b32", predicate, member_mask(low)))


def _barrier(low: Lowering, op: Operation) -> None:
    low.build.emit_multi(ptx.BarOp, "sync", imm=0, results=())


def _proxy_fence(low: Lowering, op: Operation) -> None:
    low.build.emit_multi(ptx.FenceOp, "proxy.async.shared::cta", results=())


HANDLERS: dict[type[Operation], Handler] = {
    collective.ReduceOp: _reduce,
    collective.ShuffleOp: _shuffle,
    collective.BallotOp: _ballot,
    collective.BarrierOp: _barrier,
    collective.ProxyFenceOp: _proxy_fence,
}
