"""Splitting loops over tiles at the last tile that is inside its tensors; see `ph-mask-slices`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Block, BlockArgument, SSAValue

from phobos.analysis.ranges import Ranges, analyze
from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.ir.kernel import extent_multiple_of, index_bits_of
from phobos.ir.rewrite import index_constant
from phobos.transforms.analyze_extents import vector_width
from phobos.transforms.loop_parts import (
    LoopWriter,
    copy_iteration,
    end_body,
    go_on_after,
    start_of_body,
)

UNROLL = "phobos.unroll"
_MAX_BODY_OPS = 256


@dataclass(frozen=True)
class _Slice:
    """An axis of an access that is masked and moves with the loop's counter."""

    access: tile.LoadOp | tile.StoreOp
    mem: SSAValue
    axis: int
    reach: int
    """How far past the counter it goes."""


def split_loops(kernel: gpu.FuncOp) -> None:
    """Splits every innermost loop of a kernel that walks a launch extent in masked tiles.

    Loops with contractions are left alone: they copy tiles with masks at no cost.
    """
    found = {
        loop: slices
        for loop in kernel.walk()
        if isinstance(loop, scf.ForOp) and _may_split(loop) and (slices := list(_slices(loop)))
    }
    if not found:
        return
    ranges = analyze(kernel, index_bits_of(kernel), extent_multiple_of(kernel))
    for loop, slices in found.items():
        _split(loop, slices, ranges)


def _may_split(loop: scf.ForOp) -> bool:
    body = list(loop.body.block.walk())
    return (
        isinstance(loop.lb.type, IndexType)
        and len(body) <= _MAX_BODY_OPS
        and not any(isinstance(op, scf.ForOp | scf.WhileOp | DotOp) for op in body)
    )


def _slices(loop: scf.ForOp) -> Iterator[_Slice]:
    counter = loop.body.block.args[0]
    for op in loop.body.block.ops:
        if not isinstance(op, tile.LoadOp | tile.StoreOp) or op.in_bounds is None:
            continue
        if not isinstance(op.mem, BlockArgument):
            continue
        type_ = op.result.type if isinstance(op, tile.LoadOp) else op.value.type
        assert isinstance(op.mem.type, MemRefType)
        assert isinstance(type_, TensorType)
        for axis, (start, length) in enumerate(zip(op.indices, type_.get_shape(), strict=True)):
            is_masked = not op.in_bounds.data[axis].value.data
            ahead = _ahead(start, counter)
            if is_masked and ahead is not None and op.mem.type.get_shape()[axis] == DYNAMIC_INDEX:
                yield _Slice(op, op.mem, axis, ahead + length)


def _ahead(start: SSAValue, counter: SSAValue) -> int | None:
    """By how much a subscript is ahead of the counter; None if that is no constant from 0 on."""
    if start is counter:
        return 0
    match start.owner:
        case arith.AddiOp(lhs=base, rhs=SSAValue(owner=arith.ConstantOp(value=IntegerAttr() as c))):
            return c.value.data if base is counter and c.value.data >= 0 else None
        case _:
            return None


def _split(loop: scf.ForOp, slices: list[_Slice], ranges: Ranges) -> None:
    """Whole tiles first, then the loop itself for what is left."""
    writer = LoopWriter(loop, ranges)
    bound = loop.ub
    reach: dict[tuple[SSAValue, int], int] = {}
    for one in slices:
        key = (one.mem, one.axis)
        reach[key] = max(reach.get(key, 0), one.reach)
    for (mem, axis), distance in reach.items():
        extent = writer.add(memref.DimOp(mem, writer.add(index_constant(axis, loop))))
        last = writer.add(arith.SubiOp(extent, writer.constant(distance - 1)))
        bound = writer.add(arith.MinSIOp(bound, last))
    if ranges.of(loop.lb).low < 0:
        # Below 0 is outside too: then nothing is done without masks.
        starts_inside = writer.add(arith.CmpiOp(loop.lb, writer.constant(0), "sge"))
        bound = writer.add(arith.SelectOp(starts_inside, bound, loop.lb))
    first = scf.ForOp(
        loop.lb, bound, loop.step, [*loop.iter_args, loop.lb], _whole_tiles(loop, slices, ranges)
    )
    first.attributes.update(loop.attributes)
    writer.add(first)
    go_on_after(writer, first)
    loop.attributes[UNROLL] = IntegerAttr(1, i32)


def _whole_tiles(loop: scf.ForOp, slices: list[_Slice], ranges: Ranges) -> Block:
    """The body, its slices marked as being inside along the axes that the loop walks."""
    widths = {id(one.access): _width(one, slices, ranges) for one in slices}
    body = start_of_body(loop, keeps_place=True)
    given = loop.body.block
    carried = body.args[1 : len(given.args)]
    values = copy_iteration(loop, body, {given.args[0]: body.args[0]}, carried)
    for old, new in zip(given.ops, body.ops, strict=False):
        axes = {one.axis for one in slices if one.access is old}
        if axes and isinstance(new, tile.LoadOp | tile.StoreOp):
            assert new.in_bounds is not None
            flags = [
                axis in axes or bool(flag.value.data) for axis, flag in enumerate(new.in_bounds)
            ]
            new.properties["in_bounds"] = tile.bounds_array(flags)
            new.properties["vector"] = IntegerAttr(widths[id(old)], i64)
    end_body(loop, body, values, loop.step)
    return body


def _width(one: _Slice, slices: list[_Slice], ranges: Ranges) -> int:
    """How many elements an access may move at a time once its slices are inside."""
    access = one.access
    type_ = access.result.type if isinstance(access, tile.LoadOp) else access.value.type
    assert isinstance(type_, TensorType)
    assert access.in_bounds is not None
    last = len(type_.get_shape()) - 1
    is_inside = access.in_bounds.data[last].value.data or any(
        other.axis == last for other in slices if other.access is access
    )
    return vector_width(
        access.mem, access.indices, type_.get_shape()[last], ranges, masked=not is_inside
    )
