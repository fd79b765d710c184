"""Loops whose operands tensor copies bring to stages: what `ph-pipeline-loops` makes.

    scf.for %k .. {                     tile.open_ring %ring
      %a = tile.load %A[%m, %k]         (fill the first stages)
      tile.store %a, %buffer[..]        scf.for %k .., %read, %phase, %write, %after .. {
      (barrier)                           tile.await_stage %ring[%read] phase %phase
      %d = tile.dot %buffer, ..    -->    %d = tile.dot (stage %read), ..  in_flight
    }                                     scf.if (iteration + stages - 1 exists) {
                                            tile.fill_stage %ring[%write] after %after {
                                              tile.tensor_copy %A[%m, ..] to (stage %write)
                                            }
                                          }
                                          %e = tile.await_products 0 of %d
                                          tile.release_stage %ring[%read]
                                        }
                                        tile.close_ring %ring

One thread starts the copies, the threads wait for a stage at its barrier, and say there when they
have read it: no barrier of the CTA is left in the loop. An iteration fills the stage that the one
before has read. If the loop only sums, it is in the next iteration that a product is waited for,
while that one's own runs, and its stage is released and filled:

                                        scf.for %k .., %read, %phase, %write .. {
                                          %d = tile.dot (stage %read), ..  in_flight
                                          %e = tile.await_products 1 of %d
                                          tile.release_stage %ring[%write]
                                          (fill stage %write after %phase)
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    MemRefType,
    NoneAttr,
    TensorType,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp, by_warpgroups, can_be_in_flight
from phobos.dialects.elements import element_bytes
from phobos.dialects.tensor_copies import (
    TF32,
    AwaitStageOp,
    CloseRingOp,
    FillStageOp,
    OpenRingOp,
    ReleaseStageOp,
    TensorCopyOp,
)
from phobos.ir.rewrite import OpBuilder, carry_more, extend_yield
from phobos.layout.boxes import swizzle_of_boxes
from phobos.transforms.assign_layouts import turned
from phobos.transforms.copied_operands import Obstacle, called, obstacle_to, obstacle_to_copies
from phobos.transforms.copy_ahead import (
    Staged,
    await_behind,
    only_if,
    product_before_copies,
    replace_buffer,
)
from phobos.transforms.loop_stages import (
    distance_of,
    first_iterations,
    index_ops,
    is_farther,
    multi_buffer,
    view_of,
)


def tensor_copy_ahead(loop: scf.ForOp, staged: Sequence[Staged], stages: int, overlap: int) -> None:
    """The rewrite of the module's docstring."""
    outside = loop.parent
    assert outside is not None
    product = product_before_copies(loop.body.block, staged)
    head = OpBuilder(loop)
    buffers = [multi_buffer(head, one.buffer, stages) for one in staged]
    ring = _open_ring(head, stages)
    filling = _Filling(loop, staged, buffers, ring)
    distance = stages - 1
    for stage, (place, exists) in enumerate(first_iterations(head, loop, distance)):
        head.put(only_if([filling.of(place, head.constant(stage), None)], exists))
    ahead = distance_of(head, loop, distance)
    zero, one, count = head.constant(0), head.constant(1), head.constant(stages)
    first = [zero, zero, head.constant(distance), *(() if overlap else (one,))]
    outside.insert_ops_before(head.ops, loop)

    new_loop = carry_more(loop, first)
    body = new_loop.body.block
    read, phase, write = body.args[-len(first) :][:3]
    after = phase if overlap else body.args[-1]
    start, refill, end = OpBuilder(new_loop), OpBuilder(new_loop), OpBuilder(new_loop)
    start.put(AwaitStageOp(ring, read, phase))
    views = [
        start.add(view_of(buffer, read, load.buffer))
        for buffer, load in zip(buffers, staged, strict=True)
    ]
    if overlap:
        refill.put(ReleaseStageOp(ring, write))
    else:
        end.put(ReleaseStageOp(ring, read))
    exists = is_farther(refill, new_loop, body.args[0], ahead)
    later = refill.add(arith.AddiOp(body.args[0], ahead))
    refill.put(only_if([filling.of(later, write, after)], exists))
    following = _next_use(end, read, phase, (zero, one, count))
    first_op = body.first_op
    assert first_op is not None
    body.insert_ops_before([*start.ops, *(() if product else refill.ops)], first_op)
    for load, view in zip(staged, views, strict=True):
        replace_buffer(load, view)
    extend_yield(body, end.ops, [*following, read, *(() if overlap else (phase,))])
    close = CloseRingOp(ring)
    close.location = new_loop.location
    outside.insert_op_after(close, new_loop)
    if product is not None:
        body.insert_ops_after(refill.ops, product)
        if can_be_in_flight(product):
            await_behind(product, new_loop, product if overlap else refill.ops[-1], overlap)


def _next_use(
    end: OpBuilder, stage: SSAValue, phase: SSAValue, numbers: tuple[SSAValue, SSAValue, SSAValue]
) -> tuple[SSAValue, SSAValue]:
    """The stage behind one, and its phase: the other one where stages begin anew.

    The numbers are 0, 1 and the count of stages.
    """
    zero, one, count = numbers
    following = end.add(arith.AddiOp(stage, one))
    wraps = end.add(arith.CmpiOp(following, count, "eq"))
    other = end.add(arith.SubiOp(one, phase))
    return (
        end.add(arith.SelectOp(wraps, zero, following)),
        end.add(arith.SelectOp(wraps, other, phase)),
    )


def _open_ring(head: OpBuilder, stages: int) -> SSAValue:
    """Two barriers a stage."""
    type_ = MemRefType(i64, [2 * stages], NoneAttr(), tile.SHARED)
    ring = head.add(memref.AllocaOp.build(operands=[[], []], result_types=[type_], properties={}))
    head.put(OpenRingOp(ring))
    return ring


class _Filling:
    """The copies of one iteration of a loop into a stage, as often as they are wanted."""

    def __init__(
        self,
        loop: scf.ForOp,
        staged: Sequence[Staged],
        buffers: Sequence[SSAValue],
        ring: SSAValue,
    ):
        body = loop.body.block
        self._ring, self._variable, self._location = ring, body.args[0], loop.location
        self._parts = [
            (one, buffer, index_ops(one.load.indices, body) or (), _swizzle(one))
            for one, buffer in zip(staged, buffers, strict=True)
        ]

    def of(self, place: SSAValue, stage: SSAValue, after: SSAValue | None) -> FillStageOp:
        """The copies for the iteration whose loop variable is `place`."""
        mapping: dict[SSAValue, SSAValue] = {self._variable: place}
        ops: list[Operation] = []
        moved = 0
        for one, buffer, index, swizzle in self._parts:
            assert swizzle is not None
            for op in index:
                if op.results[0] not in mapping:
                    ops.append(op.clone(value_mapper=mapping))
            view = view_of(buffer, stage, one.buffer)
            copy = TensorCopyOp(
                one.load.mem,
                [mapping.get(i, i) for i in one.load.indices],
                view.result,
                swizzle,
                transposed=one.turn is not None,
                rounded=None if one.rounding is None else TF32,
            )
            # The copy is the load's, for reports that name its line.
            view.location = copy.location = one.load.location
            moved += copy.moved_bytes
            ops += [view, copy]
        fill = FillStageOp(self._ring, stage, after, moved, Region(Block(ops)))
        fill.location = self._location
        return fill


def obstacle_to_tensor_copies(
    loop: scf.ForOp, kernel: gpu.FuncOp, loads: Sequence[tile.LoadOp], staged: Sequence[Staged]
) -> Obstacle | None:
    """Why tensor copies cannot bring all that a loop loads for products; None if they can.

    Products read the stages by themselves then, and nothing else does.
    """
    direct = {one.load for one in staged}
    for load in loads:
        if load not in direct:
            name = called(load, kernel)
            return Obstacle(f"what is loaded of {name} does not go straight to a product")
    buffers = {one.buffer.memref for one in staged}
    for op in loop.body.block.ops:
        reads = isinstance(op, DotOp) and not buffers.isdisjoint((op.a, op.b))
        if reads and not by_warpgroups(op):
            return Obstacle("they are made for products by wgmma alone")
    found = (obstacle_to(one.load, kernel) or _obstacle_to_boxes(one, kernel) for one in staged)
    return obstacle_to_copies(kernel) or next((one for one in found if one is not None), None)


def _obstacle_to_boxes(staged: Staged, kernel: gpu.FuncOp) -> Obstacle | None:
    """Why no boxes of a tensor fill the buffer of a tile."""
    if _swizzle(staged) is not None:
        return None
    value = staged.load.result.type
    assert isinstance(value, TensorType)
    shape = value.get_shape()
    tile_of = f"a tile of {' x '.join(map(str, shape))} of {called(staged.load, kernel)}"
    if any(extent & (extent - 1) for extent in shape):
        return Obstacle(f"{tile_of} has an extent that is no power of two")
    return Obstacle(f"{tile_of} lies in shared memory in an order that they do not write")


def _swizzle(staged: Staged) -> int | None:
    """The bytes of a swizzled row of what a tile is copied to; None if no boxes fill it."""
    value = staged.load.result.type
    assert isinstance(value, TensorType)
    shared = tile.shared_layout_of(staged.buffer.memref)
    in_tensor = shared if staged.turn is None else turned(shared)
    return swizzle_of_boxes(in_tensor, value.get_shape(), element_bytes(value))
