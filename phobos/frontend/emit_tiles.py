"""The IR of the built-ins that fold, move or make tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from phobos.diagnostics import Location
from phobos.dialects import cluster, tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.gathering import GatherOp, ScatterOp, ViewOp
from phobos.dialects.shaping import AxesAttr, IotaOp, ReshapeOp, TransposeOp, keeps_bits
from phobos.frontend.emit_elementwise import arithmetic, comparison, conversion
from phobos.frontend.emit_types import buffer_attr, type_attr
from phobos.frontend.emitter import Emitter
from phobos.frontend.operators import BinaryOp
from phobos.frontend.typed import Expr, Literal, Memory
from phobos.frontend.typed_tiles import (
    ClusterSum,
    Concatenation,
    Contraction,
    GatherRead,
    Iota,
    PaddedRead,
    Reshape,
    ScatterWrite,
    Transpose,
    Valid,
)
from phobos.frontend.types import BOOL, I32, INDEX, U8, U32, TileType, ValueType, element_of


def _transpose(emitter: Emitter, expr: Transpose) -> SSAValue:
    value = emitter.expression(expr.value)
    return emitter.value(TransposeOp, (value,), type_attr(expr.type), expr.place)


def _reshape(emitter: Emitter, expr: Reshape) -> SSAValue:
    value = emitter.expression(expr.value)
    before, after = expr.value.type, expr.type
    assert isinstance(before, TileType)
    assert isinstance(after, TileType)
    if before == after:
        return value
    if not keeps_bits(before.shape, after.shape):
        return _through_memory(emitter, value, before, after, expr.place)
    return emitter.value(ReshapeOp, (value,), type_attr(expr.type), expr.place)


def _through_memory(
    emitter: Emitter, value: SSAValue, before: TileType, after: TileType, place: Location
) -> SSAValue:
    """A reshape that no exchange of bits is: shared memory, read in the other shape."""
    buffer = emitter.buffer(before, place)
    zero = emitter.constant(0, INDEX, place)
    emitter.add(tile.StoreOp, (value, buffer, *([zero] * len(before.shape))), (), place)
    view = emitter.value(ViewOp, (buffer,), buffer_attr(after), place)
    operands = (view, *([zero] * len(after.shape)))
    return emitter.value(tile.LoadOp, operands, type_attr(after), place)


def _concatenation(emitter: Emitter, expr: Concatenation) -> SSAValue:
    """The parts side by side in shared memory, read as one tile."""
    assert isinstance(expr.type, TileType)
    place, rank = expr.place, len(expr.type.shape)
    parts = [emitter.expression(part) for part in expr.parts]
    buffer = emitter.buffer(expr.type, place)
    zero, start = emitter.constant(0, INDEX, place), 0
    for part, value in zip(expr.parts, parts, strict=True):
        assert isinstance(part.type, TileType)
        first = emitter.constant(start, INDEX, place)
        at = [first if axis == expr.axis else zero for axis in range(rank)]
        emitter.add(tile.StoreOp, (value, buffer, *at), (), place)
        start += part.type.shape[expr.axis]
    return emitter.value(tile.LoadOp, (buffer, *([zero] * rank)), type_attr(expr.type), place)


def _iota(emitter: Emitter, expr: Iota) -> SSAValue:
    return coordinates(emitter, expr.axis, expr.type, expr.place)


def coordinates(emitter: Emitter, axis: int, type_: ValueType, place: Location) -> SSAValue:
    """The coordinate along an axis of each element of a tile."""
    properties = {"axes": AxesAttr((axis,))}
    return emitter.value(IotaOp, (), type_attr(type_), place, properties)


def _contraction(emitter: Emitter, expr: Contraction) -> SSAValue:
    if expr.c is None:
        zero = 0.0 if element_of(expr.type).is_float else 0
        c = emitter.constant(zero, expr.type, expr.place)
    else:
        c = emitter.expression(expr.c)
    a, b = emitter.expression(expr.a), emitter.expression(expr.b)
    unsigned = {"unsigned_a": expr.a, "unsigned_b": expr.b}
    properties = {
        n: UnitAttr() for n, operand in unsigned.items() if element_of(operand.type) is U8
    }
    return emitter.value(DotOp, (a, b, c), type_attr(expr.type), expr.place, properties)


def _cluster_sum(emitter: Emitter, expr: ClusterSum) -> SSAValue:
    value = emitter.expression(expr.value)
    return emitter.value(cluster.SumOp, (value,), type_attr(expr.type), expr.place)


# Gathering ---------------------------------------------------------------------------------------


def _subscripts(
    emitter: Emitter, starts: Sequence[Expr], type_: TileType, place: Location
) -> list[SSAValue]:
    """The subscripts of a gather or scatter; tiles of them in the shape of what is moved."""
    values: list[SSAValue] = []
    for start in starts:
        value = emitter.expression(start)
        if isinstance(start.type, TileType):
            shape = TileType(start.type.element, type_.shape)
            if shape != start.type:
                value = emitter.value(tile.BroadcastOp, (value,), type_attr(shape), place)
        values.append(value)
    return values


def _gather(emitter: Emitter, expr: GatherRead) -> SSAValue:
    assert isinstance(expr.type, TileType)
    starts = _subscripts(emitter, expr.starts, expr.type, expr.place)
    operands = (emitter.memory(expr.tensor), *starts)
    return emitter.value(GatherOp, operands, type_attr(expr.type), expr.place)


def emit_scatter(emitter: Emitter, stmt: ScatterWrite) -> None:
    """The IR of a write to places that a tile of subscripts names."""
    value = emitter.expression(stmt.value)
    assert isinstance(stmt.value.type, TileType)
    starts = _subscripts(emitter, stmt.starts, stmt.value.type, stmt.place)
    emitter.add(ScatterOp, (value, emitter.memory(stmt.tensor), *starts), (), stmt.place)


# Masks -------------------------------------------------------------------------------------------


def _valid(emitter: Emitter, expr: Valid) -> SSAValue:
    return _mask(emitter, expr, [emitter.expression(start) for start in expr.starts])


def _padded_read(emitter: Emitter, expr: PaddedRead) -> SSAValue:
    starts = [emitter.expression(start) for start in expr.starts]
    operands = (emitter.memory(expr.tensor), *starts)
    type_, place = type_attr(expr.type), expr.place
    read = emitter.value(tile.LoadOp, operands, type_, place)
    inside = _mask(emitter, expr, starts)
    fill = emitter.spread(emitter.expression(expr.fill), expr.type, place)
    return emitter.value(tile.SelectOp, (inside, read, fill), type_, place)


def _mask(emitter: Emitter, expr: Valid | PaddedRead, starts: Sequence[SSAValue]) -> SSAValue:
    """Of each axis the coordinates from the first to the last inside; all axes together."""
    assert isinstance(expr.type, TileType)
    shape, place = expr.type.shape, expr.place
    type_ = TileType(BOOL, shape)
    total: SSAValue | None = None
    for axis, start in enumerate(starts):
        inside = _mask_axis(emitter, expr, axis, start)
        if inside is None:
            continue
        if _line(shape, axis) != shape:
            inside = emitter.value(tile.BroadcastOp, (inside,), type_attr(type_), place)
        total = (
            inside
            if total is None
            else emitter.value(arith.AndIOp, (total, inside), type_attr(type_), place)
        )
    return emitter.constant(True, type_, place) if total is None else total


def _line(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(extent if i == axis else 1 for i, extent in enumerate(shape))


def _mask_axis(
    emitter: Emitter, expr: Valid | PaddedRead, axis: int, begin: SSAValue
) -> SSAValue | None:
    """Which elements along an axis are inside; None if all are in every launch.

    `first` and `last` are the coordinates in the tile of the tensor's ends, both cut to the
    tile: first <= i < last, as one unsigned comparison of i - first.
    """
    assert isinstance(expr.type, TileType)
    place, length, start = expr.place, expr.type.shape[axis], expr.starts[axis]
    extent = expr.tensor.dims[axis].extent
    known = int(start.value) if isinstance(start, Literal) else None
    if known is not None and extent is not None and 0 <= known <= extent - length:
        return None
    size = _size(emitter, expr.tensor, axis, place)
    zero = emitter.constant(0, INDEX, place)

    def index(kind: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        return emitter.value(kind, (left, right), type_attr(INDEX), place)

    def cut(value: SSAValue) -> SSAValue:
        top = emitter.constant(length, INDEX, place)
        return index(arith.MinSIOp, index(arith.MaxSIOp, value, zero), top)

    line = TileType(U32, _line(expr.type.shape, axis))
    own = coordinates(emitter, axis, line, place)
    count = last = cut(index(arith.SubiOp, size, begin))
    if known is None or known < 0:
        first = cut(index(arith.SubiOp, zero, begin))
        count = index(arith.SubiOp, index(arith.MaxSIOp, last, first), first)
        first = conversion(emitter, first, INDEX, I32, place)
        spread = emitter.spread(first, line, place)
        own = arithmetic(emitter, BinaryOp.SUBTRACT, own, spread, line, place)
    count = emitter.spread(conversion(emitter, count, INDEX, I32, place), line, place)
    return comparison(emitter, BinaryOp.LESS, own, count, line, place)


def _size(emitter: Emitter, tensor: Memory, axis: int, place: Location) -> SSAValue:
    extent = tensor.dims[axis].extent
    if extent is not None:
        return emitter.constant(extent, INDEX, place)
    operands = (emitter.memory(tensor), emitter.constant(axis, INDEX, place))
    return emitter.value(memref.DimOp, operands, type_attr(INDEX), place)


TILE_RULES: dict[type[Expr], Callable[[Emitter, Any], SSAValue]] = {
    Transpose: _transpose,
    Reshape: _reshape,
    Concatenation: _concatenation,
    Iota: _iota,
    Contraction: _contraction,
    ClusterSum: _cluster_sum,
    Valid: _valid,
    PaddedRead: _padded_read,
    GatherRead: _gather,
}
"""How each expression of `typed_tiles` is emitted."""
