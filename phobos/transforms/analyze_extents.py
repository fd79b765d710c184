"""`ph-analyze-extents`: prove what a memory access may rely on, and write it on the access.

    @aligned(N = 64), base = ctx.block.x * 64
    tile.load %x[%base] : memref<?xf32> -> tensor<64xf32>
    -->
    tile.load %x[%base] in_bounds [true] vector 4 : memref<?xf32> -> tensor<64xf32>

`in_bounds`: an axis needs no mask if `@aligned` promises whole tiles of it and the slice
starts at a multiple of its length; if its extent is a constant and every start that the
analysis allows leaves the slice inside; or if a loop takes the slice along the axis by its
length, up to an end such as `N / 64 * 64` that whole tiles reach.

`vector`: so many consecutive elements are aligned as a whole (at most 16 bytes) and all
inside or all outside. A run (`vector.load`, `vector.store`) gets it as the attribute
`tile.vector`.

A comparison that asks whether coordinates are below a number, as `valid` does, has the same answer
for all elements of such a group if its size divides the number:

    %i = tile.iota [0] : tensor<64xi32>
    %below = tile.cmpi ult, %i, %n
    -->
    %i = tile.iota [0] within 4 : tensor<64xi32>
    %below = tile.cmpi ult, %i, %n

Precondition: tile-level IR. Cost: one range analysis (about 3 us an op) and a walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FixedBitwidthType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    TensorType,
    VectorType,
    i64,
)
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.ranges import Ranges, analyze
from phobos.dialects import tile
from phobos.dialects.elementwise import CmpIOp
from phobos.dialects.gathering import GatherOp, ScatterOp
from phobos.dialects.shaping import IotaOp
from phobos.ir.kernel import dim_name_of, extent_multiple_of, index_bits_of, kernels

VECTOR = "tile.vector"
MAX_VECTOR_BYTES = 16
_BELOW = (2, 6)
"""The predicates slt and ult of arith.cmpi."""
_ACCESSES = (tile.LoadOp, tile.StoreOp, GatherOp, ScatterOp, vector.LoadOp, vector.StoreOp)


class AnalyzeExtentsPass(ModulePass):
    """Annotates tile and run accesses with what is proven of their bounds and alignment."""

    name = "ph-analyze-extents"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Annotates every kernel of the module."""
        for kernel in kernels(op):
            found = [one for one in kernel.walk() if isinstance(one, _ACCESSES) or _is_below(one)]
            if not found:
                continue
            ranges = analyze(kernel, index_bits_of(kernel), extent_multiple_of(kernel))
            for one in found:
                if isinstance(one, CmpIOp):
                    _group_coordinates(one, ranges)
                else:
                    _annotate(one, ranges)


def _is_below(op: Operation) -> bool:
    """Whether it asks if the coordinates along an axis are below a number."""
    return (
        isinstance(op, CmpIOp)
        and op.predicate.value.data in _BELOW
        and isinstance(op.lhs.owner, IotaOp)
        and isinstance(op.rhs.owner, tile.SplatOp)
    )


def _group_coordinates(comparison: CmpIOp, ranges: Ranges) -> None:
    """Lets the elements of a group compare the coordinate of one of them."""
    iota, limit = comparison.lhs.owner, comparison.rhs.owner
    assert isinstance(iota, IotaOp)
    assert isinstance(limit, tile.SplatOp)
    divisor = ranges.of(limit.value).divisor
    group = min(divisor & -divisor or MAX_VECTOR_BYTES, MAX_VECTOR_BYTES)
    if group <= iota.group:
        return
    (axis,) = iota.axes.data
    result = iota.result.type
    assert isinstance(result, TensorType)
    grouped = IotaOp(axis, result, within=group)
    grouped.location = iota.location
    assert comparison.parent is not None
    comparison.parent.insert_op_before(grouped, comparison)
    comparison.operands[0] = grouped.result
    if not iota.result.first_use:
        iota.detach()
        iota.erase()


def _annotate(access: Operation, ranges: Ranges) -> None:
    match access:
        case tile.LoadOp():
            mem, indices, shape = access.mem, access.indices, access.result.type
        case tile.StoreOp():
            mem, indices, shape = access.mem, access.indices, access.value.type
        case GatherOp() | ScatterOp():
            _annotate_gather(access, ranges)
            return
        case vector.LoadOp():
            mem, indices, shape = access.base, access.indices, access.result.type
        case vector.StoreOp():
            mem, indices, shape = access.base, access.indices, access.vector.type
        case _:
            return
    if isinstance(shape, TensorType):
        lengths = shape.get_shape()
        flags = [
            stays_inside(mem, axis, start, length, ranges)
            for axis, (start, length) in enumerate(zip(indices, lengths, strict=True))
        ]
        width = vector_width(mem, indices, lengths[-1], ranges, masked=not flags[-1])
        access.properties["in_bounds"] = tile.bounds_array(flags)
        access.properties["vector"] = IntegerAttr(width, i64)
    else:
        assert isinstance(shape, VectorType)
        width = vector_width(mem, indices, shape.get_shape()[-1], ranges, masked=False)
        access.attributes[VECTOR] = IntegerAttr(width, i64)


def _annotate_gather(access: GatherOp | ScatterOp, ranges: Ranges) -> None:
    """A span as for a slice; an axis with a tile of subscripts is masked.

    Elements are moved as a vector only if their subscripts are repeated along the last axis.
    """
    moved = access.result.type if isinstance(access, GatherOp) else access.value.type
    assert isinstance(moved, TensorType)
    lengths, mem, indices = moved.get_shape(), access.mem, access.indices
    is_span = [not isinstance(index.type, TensorType) for index in indices]
    flags = [
        span and stays_inside(mem, axis, start, length, ranges)
        for axis, (start, length, span) in enumerate(zip(indices, lengths, is_span, strict=True))
    ]
    width = 1
    if is_span[-1] and all(_is_repeated(index) for index in indices[:-1]):
        width = vector_width(mem, indices, lengths[-1], ranges, masked=not flags[-1])
    access.properties["in_bounds"] = tile.bounds_array(flags)
    access.properties["vector"] = IntegerAttr(width, i64)


def _is_repeated(subscript: SSAValue) -> bool:
    """Whether a subscript is the same for all elements that differ in the last axis alone."""
    if not isinstance(subscript.type, TensorType):
        return True
    made = subscript.owner
    if not isinstance(made, tile.BroadcastOp) or not isinstance(made.value.type, TensorType):
        return False
    return made.value.type.get_shape()[-1] == 1


def stays_inside(mem: SSAValue, axis: int, start: SSAValue, length: int, ranges: Ranges) -> bool:
    """Whether `length` elements from `start` are proven to lie inside an axis of a tensor."""
    assert isinstance(mem.type, MemRefType)
    facts = ranges.of(start)
    extent = mem.type.get_shape()[axis]
    if extent != DYNAMIC_INDEX:
        return facts.low >= 0 and facts.high + length <= extent
    promise = ranges.aligned.get(dim_name_of(mem, axis) or "")
    # Whole tiles: a slice that starts at a multiple of its length is inside or is nowhere.
    if promise is not None and promise % length == 0 and facts.divisible_by(length):
        return True
    return _is_walked_whole(mem, axis, start, length, ranges)


def _is_walked_whole(
    mem: SSAValue, axis: int, start: SSAValue, length: int, ranges: Ranges
) -> bool:
    """Whether `start` counts multiples of `length` up to one that the extent reaches."""
    if not isinstance(start, BlockArgument) or start.index != 0:
        return False
    loop = start.block.parent_op()
    if not isinstance(loop, scf.ForOp) or ranges.of(loop.lb).low < 0:
        return False
    steps = (loop.lb, loop.ub, loop.step)
    if not all(ranges.of(value).divisible_by(length) for value in steps):
        return False
    return _is_at_most_extent(loop.ub, mem, axis, ranges)


def _is_at_most_extent(value: SSAValue, mem: SSAValue, axis: int, ranges: Ranges) -> bool:
    """Whether a value is proven to be at most the extent of an axis."""
    if ranges.of(value).high <= 0:
        return True
    match value.owner:
        case memref.DimOp(source=source, index=index):
            return source is mem and ranges.of(index).constant == axis
        case arith.MinSIOp(lhs=lhs, rhs=rhs):
            return any(_is_at_most_extent(side, mem, axis, ranges) for side in (lhs, rhs))
        case arith.MaxSIOp(lhs=lhs, rhs=rhs):
            return all(_is_at_most_extent(side, mem, axis, ranges) for side in (lhs, rhs))
        case arith.MuliOp(lhs=quotient, rhs=times) if isinstance(quotient.owner, arith.DivSIOp):
            # Rounded down to a multiple.
            whole, by = quotient.owner.lhs, ranges.of(quotient.owner.rhs).constant
            rounds = by is not None and by > 0 and ranges.of(times).constant == by
            return (
                rounds
                and ranges.of(whole).low >= 0
                and _is_at_most_extent(whole, mem, axis, ranges)
            )
        case _:
            return False


class WidthLimit(StrEnum):
    """What bounds the elements that one access may move."""

    BYTES = "bytes"
    """An instruction moves 16 bytes."""
    LENGTH = "length"
    """The slice is so long."""
    START = "start"
    """So much is proven of the alignment of where it starts."""
    EXTENT = "extent"
    """So much is proven of what divides the length of a row."""


def width_limits(
    mem: SSAValue, indices: Sequence[SSAValue], length: int, ranges: Ranges, *, masked: bool
) -> dict[WidthLimit, int]:
    """The powers of two that bound an access along the last axis; see `vector_width`."""
    assert isinstance(mem.type, MemRefType)
    element = mem.type.element_type
    assert isinstance(element, FixedBitwidthType)
    last = len(indices) - 1
    numbers = {
        WidthLimit.BYTES: MAX_VECTOR_BYTES // element.size,
        WidthLimit.LENGTH: length,
        WidthLimit.START: ranges.of(indices[last]).divisor,
    }
    if masked or last > 0:
        numbers[WidthLimit.EXTENT] = ranges.extent(mem, last).divisor
    return {limit: number & -number for limit, number in numbers.items() if number}


def vector_width(
    mem: SSAValue, indices: Sequence[SSAValue], length: int, ranges: Ranges, *, masked: bool
) -> int:
    """How many consecutive elements along the last axis one aligned access may move.

    The result is a power of two that divides `length`. Tensors start at an address that is
    a multiple of 16 bytes and are dense and row-major, so the start within a row and, with
    more than one row, the row's length decide the alignment. With a mask the extent must be
    a multiple of the width too, so that no access is cut by the tensor's end.
    """
    return min(width_limits(mem, indices, length, ranges, masked=masked).values())
