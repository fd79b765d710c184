"""Folds of tiles within a warp, and coordinates.

A fold combines the registers of a thread pairwise, then exchanges with other lanes until
every thread that took part has the result. Elements of the layout outside the tile (its
extents need not be powers of two) count as the fold's neutral element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.collective import ReduceKind
from phobos.dialects.shaping import IotaOp, PartialReduceOp, ReduceOp, ReshapeOp, TransposeOp
from phobos.ir.locations import error_at
from phobos.layout import LinearLayout, slice_layout
from phobos.layout.overhang import Presence, TileLayout
from phobos.layout.queries import register_coordinates
from phobos.layout.reduction import plan_reduction
from phobos.transforms.lowering.addresses import thread_coordinates
from phobos.transforms.lowering.collectives import (
    combine,
    combine_pairs,
    half_suffix,
    member_mask,
    shuffle,
)
from phobos.transforms.lowering.elementwise import constant_bits
from phobos.transforms.lowering.registers import BOOL, I32, Kind
from phobos.transforms.lowering.state import Handler, Lowering

_NAN = float("nan")
_LEAST_IN_WORDS = 4
"""Numbers of a group from which on it pays to take their words apart at the end alone."""


def neutral(kind: ReduceKind, element: Kind) -> int:
    """The bit pattern that changes nothing in a fold."""
    bits = max(element.bits, 1)
    ones, sign = (1 << bits) - 1, 1 << (bits - 1)
    match kind:
        case ReduceKind.MUL:
            return constant_bits(1, element)
        case ReduceKind.MAX | ReduceKind.MIN if element.is_float:
            return constant_bits(_NAN, element)  # loses to all, so that NaN alone stays NaN
        case ReduceKind.MAX:
            return sign
        case ReduceKind.MIN:
            return sign - 1
        case ReduceKind.UMIN | ReduceKind.AND | ReduceKind.ALL:
            return ones
        case _:
            # -0.0 is the neutral element of addition, but +0.0 + -0.0 is +0.0 as well.
            return constant_bits(-0.0, element) if kind is ReduceKind.ADD else 0


def _layout(low: Lowering, value: SSAValue, op: Operation) -> LinearLayout:
    layout = tile.layout_of(value)
    if layout is None:
        raise error_at(op, f"`{op.name}` needs layouts: run ph-assign-layouts first")
    return layout


def _fold(low: Lowering, op: Operation) -> None:
    assert isinstance(op, ReduceOp | PartialReduceOp)
    source = _layout(low, op.value, op)
    plan = plan_reduction(source, op.axes.data)
    if plan.warps and isinstance(op, ReduceOp):
        raise error_at(op, "a fold across warps is expanded by ph-expand-exchanges first")
    known = low.scan_totals.get((op.parent, op.value, tuple(op.axes.data), op.kind.data))
    if known is not None:
        places = register_coordinates(_layout(low, op.result, op))
        low.set(op.result, *(known[_row(place, op.axes.data)] for place in places))
        return
    kind = low.kind(op.value.type, op)
    name = {ReduceKind.ANY: "or", ReduceKind.ALL: "and", ReduceKind.COUNT: "add"}.get(
        op.kind.data, op.kind.data.value
    )
    groups = plan.register_groups()
    folded = _in_words(low, op, name, kind, groups)
    if not folded:
        values = _inside(low, op, source, kind)
        if op.kind.data is ReduceKind.COUNT:
            values = {r: low.build.emit(ptx.SelpOp, "b32", 1, 0, v) for r, v in values.items()}
            kind = I32
        folded = {
            group[0]: _pairwise(
                lambda a, b: combine(low, op, name, kind, a, b), [values[r] for r in group]
            )
            for group in groups
        }
    first_of = {register: group[0] for group in groups for register in group}
    mask = member_mask(low)
    for step in plan.lanes:
        folded = {
            first: combine(
                low,
                op,
                name,
                kind,
                value,
                shuffle(
                    low, kind, "bfly", folded[first_of[first ^ step.register]], step.lane, mask
                ),
            )
            for first, value in folded.items()
        }
    result = _layout(low, op.result, op)
    low.set(op.result, *_spread(op, source, result, folded, first_of))


def _row(place: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(0 if i in axes else coordinate for i, coordinate in enumerate(place))


def _spread(
    op: ReduceOp | PartialReduceOp,
    source: LinearLayout,
    result: LinearLayout,
    folded: dict[int, SSAValue],
    first_of: dict[int, int],
) -> list[SSAValue]:
    """For each register of the result, the group that was folded to its place."""
    places = register_coordinates(slice_layout(source, op.axes.data))
    group_at = {place: first_of[register] for register, place in enumerate(places)}
    return [folded[group_at[place]] for place in register_coordinates(result)]


def _tile_layout(low: Lowering, op: ReduceOp | PartialReduceOp) -> TileLayout:
    assert isinstance(op.value.type, TensorType)
    return TileLayout(_layout(low, op.value, op), op.value.type.get_shape())


def _inside(
    low: Lowering, op: ReduceOp | PartialReduceOp, layout: LinearLayout, kind: Kind
) -> dict[int, SSAValue]:
    """The operand's registers, with the neutral element outside the tile."""
    elements = low.elements(op.value)
    whole = _tile_layout(low, op)
    if not whole.has_overhang:
        return dict(enumerate(elements))
    outside = low.build.imm(neutral(op.kind.data, kind), kind.register)
    thread = thread_coordinates(low, layout)
    places = register_coordinates(layout)
    result: dict[int, SSAValue] = {}
    for register, element in enumerate(elements):
        presence = whole.presence(register)
        if presence is Presence.PARTIAL:
            inside = _inside_predicate(low, whole, register, thread, places[register])
            element = choose(low, kind, inside, element, outside)
        result[register] = outside if presence is Presence.OUTSIDE else element
    return result


def choose(
    low: Lowering, kind: Kind, condition: SSAValue, value: SSAValue, other: SSAValue
) -> SSAValue:
    """One of two values of a kind, which may be a predicate."""
    if kind is not BOOL:
        return low.build.emit(ptx.SelpOp, kind.untyped, value, other, condition)
    inverse = low.build.emit(ptx.NotOp, "pred", condition)
    kept = low.build.emit(ptx.AndOp, "pred", value, condition)
    return low.build.emit(ptx.OrOp, "pred", kept, low.build.emit(ptx.AndOp, "pred", other, inverse))


def _inside_predicate(
    low: Lowering,
    whole: TileLayout,
    register: int,
    thread: Sequence[SSAValue | None],
    place: tuple[int, ...],
) -> SSAValue:
    total: SSAValue | None = None
    for axis in whole.axes_to_check(register):
        coordinate = thread[axis]
        assert coordinate is not None
        if place[axis]:
            coordinate = low.build.emit(ptx.XorOp, "b32", coordinate, place[axis])
        test = low.build.emit(ptx.SetpOp, "lt.u32", coordinate, whole.extents[axis])
        total = test if total is None else low.build.emit(ptx.AndOp, "pred", total, test)
    assert total is not None
    return total


def _in_words(
    low: Lowering,
    op: ReduceOp | PartialReduceOp,
    name: str,
    kind: Kind,
    groups: Sequence[Sequence[int]],
) -> dict[int, SSAValue]:
    """Largest and smallest 16-bit floats of groups, two at a time; nothing if that cannot be done.

    Sums are left alone: in another order they would be rounded in other places.
    """
    words = low.share(op.value).words
    suffix = half_suffix(low, name, kind) if kind.is_half and name in ("max", "min") else None
    is_whole = not _tile_layout(low, op).has_overhang
    if words is None or suffix is None or not is_whole or len(groups[0]) < _LEAST_IN_WORDS:
        return {}
    folded: dict[int, SSAValue] = {}
    halves: dict[tuple[int, ...], tuple[SSAValue, ...]] = {}
    for group in groups:
        places = tuple(sorted({register // 2 for register in group}))
        if places not in halves:
            word = _pairwise(
                lambda a, b: combine_pairs(low, name, suffix, a, b), [words[i] for i in places]
            )
            halves[places] = low.unpack([word], kind)
        low_half, high_half = halves[places]
        # A group has both halves of all its words, or the same half of each.
        has_both = len(group) == 2 * len(places)
        one = halves[places][group[0] % 2]
        folded[group[0]] = combine(low, op, name, kind, low_half, high_half) if has_both else one
    return folded


def _pairwise(
    fold: Callable[[SSAValue, SSAValue], SSAValue], values: Sequence[SSAValue]
) -> SSAValue:
    """Folds neighbours until one is left: log2(n) deep, so that the chain is short."""
    while len(values) > 1:
        pairs = zip(values[0::2], values[1::2], strict=False)
        folded = [fold(a, b) for a, b in pairs]
        values = folded + ([values[-1]] if len(values) % 2 else [])
    return values[0]


# ---- other axes


def _transpose(low: Lowering, op: Operation) -> None:
    """The result has the operand's layout with other axes: the registers are the same."""
    assert isinstance(op, TransposeOp | ReshapeOp)
    low.set_share(op.result, low.share(op.value))


def _iota(low: Lowering, op: Operation) -> None:
    assert isinstance(op, IotaOp)
    layout = _layout(low, op.result, op)
    (axis,) = op.axes.data
    thread = thread_coordinates(low, layout)[axis]
    zero = low.build.imm(0, ptx.B32)
    own = thread if thread is not None else zero
    done: dict[int, SSAValue] = {}
    values: list[SSAValue] = []
    for place in register_coordinates(layout):
        first = place[axis] & -op.group
        if first not in done:
            done[first] = low.build.emit(ptx.XorOp, "b32", own, first)
        values.append(done[first])
    low.set(op.result, *values)


HANDLERS: dict[type[Operation], Handler] = {
    ReduceOp: _fold,
    PartialReduceOp: _fold,
    TransposeOp: _transpose,
    ReshapeOp: _transpose,
    IotaOp: _iota,
}
