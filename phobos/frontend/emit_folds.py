"""The IR of folds, the places of what they find, and scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from phobos.diagnostics import Location
from phobos.dialects import collective, ctx, tile
from phobos.dialects.collective import ReduceKind, ReduceKindAttr, Scope, ScopeAttr
from phobos.dialects.scanning import ScanOp
from phobos.dialects.shaping import AxesAttr, ReduceOp
from phobos.frontend.emit_elementwise import comparison, conversion
from phobos.frontend.emit_tiles import coordinates
from phobos.frontend.emit_types import type_attr
from phobos.frontend.emitter import Emitter
from phobos.frontend.operators import BinaryOp
from phobos.frontend.typed import Collective, Expr
from phobos.frontend.typed_tiles import (
    ThreadPosition,
    ThreadScan,
    TileFold,
    TilePosition,
    TileScan,
)
from phobos.frontend.types import I32, INDEX, TileType, ValueType, element_of

_KINDS = {kind.value: ReduceKindAttr(kind) for kind in ReduceKind}
_SCOPES = {scope.value: ScopeAttr(scope) for scope in Scope}
_NUMBERS: dict[str, type[Operation]] = {
    "lane": ctx.LaneOp,
    "warp": ctx.WarpOp,
    "thread": ctx.ThreadOp,
}
_FIRST = "min"
_MOST_THREADS = 1024


def _reduce(
    emitter: Emitter,
    kind: str,
    axes: tuple[int, ...],
    value: SSAValue,
    type_: ValueType,
    place: Location,
) -> SSAValue:
    properties = {"kind": _KINDS[kind], "axes": AxesAttr(axes)}
    return emitter.value(ReduceOp, (value,), type_attr(type_), place, properties)


def _fold(emitter: Emitter, expr: TileFold) -> SSAValue:
    value = emitter.expression(expr.value)
    return _reduce(emitter, expr.kind, expr.axes, value, expr.type, expr.place)


def _scan(emitter: Emitter, expr: TileScan) -> SSAValue:
    value = emitter.expression(expr.value)
    properties = {"kind": _KINDS[expr.kind], "axes": AxesAttr((expr.axis,))}
    return emitter.value(ScanOp, (value,), type_attr(expr.type), expr.place, properties)


def _position(emitter: Emitter, expr: TilePosition) -> SSAValue:
    """The least coordinate at which the tile equals what the fold finds."""
    type_, place = expr.value.type, expr.place
    assert isinstance(type_, TileType)
    assert isinstance(expr.type, TileType)
    value = emitter.expression(expr.value)
    folded = TileType(type_.element, expr.type.shape)
    found = _reduce(emitter, expr.kind, (expr.axis,), value, folded, place)
    found = emitter.value(tile.BroadcastOp, (found,), type_attr(type_), place)
    is_there = comparison(emitter, BinaryOp.EQUAL, value, found, type_, place)
    numbers = TileType(I32, type_.shape)
    line = TileType(I32, tuple(n if axis == expr.axis else 1 for axis, n in enumerate(type_.shape)))
    own = coordinates(emitter, expr.axis, line, place)
    if line != numbers:
        own = emitter.value(tile.BroadcastOp, (own,), type_attr(numbers), place)
    beyond = type_.shape[expr.axis]
    nowhere = emitter.constant(beyond, numbers, place)
    places = emitter.value(tile.SelectOp, (is_there, own, nowhere), type_attr(numbers), place)
    first = _reduce(emitter, _FIRST, (expr.axis,), places, expr.type, place)
    return _or_zero(emitter, first, beyond, expr, tile.SelectOp)


def _or_zero(
    emitter: Emitter,
    first: SSAValue,
    beyond: int,
    expr: TilePosition | ThreadPosition,
    select: type[Operation],
) -> SSAValue:
    """The place, or 0 where there is none: among floats that are all NaN."""
    if not element_of(expr.value.type).is_float:
        return first
    place, type_ = expr.place, expr.type
    nowhere = emitter.constant(beyond, type_, place)
    is_none = comparison(emitter, BinaryOp.EQUAL, first, nowhere, type_, place)
    zero = emitter.constant(0, type_, place)
    return emitter.value(select, (is_none, zero, first), type_attr(type_), place)


# Over threads ------------------------------------------------------------------------------------


def _over_threads(
    emitter: Emitter, kind: str, scope: str, value: SSAValue, type_: ValueType, place: Location
) -> SSAValue:
    properties = {"kind": _KINDS[kind], "scope": _SCOPES[scope]}
    return emitter.value(collective.ReduceOp, (value,), type_attr(type_), place, properties)


def _collective(emitter: Emitter, expr: Collective) -> SSAValue:
    value = emitter.expression(expr.value)
    return _over_threads(emitter, expr.kind, expr.scope, value, expr.type, expr.place)


def _thread_position(emitter: Emitter, expr: ThreadPosition) -> SSAValue:
    type_, place = expr.value.type, expr.place
    value = emitter.expression(expr.value)
    found = _over_threads(emitter, expr.kind, expr.scope, value, type_, place)
    is_there = comparison(emitter, BinaryOp.EQUAL, value, found, type_, place)
    own = emitter.value(_NUMBERS[expr.scope], (), type_attr(INDEX), place)
    own = conversion(emitter, own, INDEX, I32, place)
    nowhere = emitter.constant(_MOST_THREADS, I32, place)
    number = emitter.value(arith.SelectOp, (is_there, own, nowhere), type_attr(I32), place)
    first = _over_threads(emitter, _FIRST, expr.scope, number, I32, place)
    return _or_zero(emitter, first, _MOST_THREADS, expr, arith.SelectOp)


def _thread_scan(emitter: Emitter, expr: ThreadScan) -> SSAValue:
    value = emitter.expression(expr.value)
    properties = {"scope": _SCOPES[expr.scope]}
    return emitter.value(collective.ScanOp, (value,), type_attr(expr.type), expr.place, properties)


FOLD_RULES: dict[type[Expr], Callable[[Emitter, Any], SSAValue]] = {
    TileFold: _fold,
    TilePosition: _position,
    TileScan: _scan,
    Collective: _collective,
    ThreadPosition: _thread_position,
    ThreadScan: _thread_scan,
}
"""How folds and scans are emitted."""
