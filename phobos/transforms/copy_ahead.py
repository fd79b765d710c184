"""Loops whose operands the chip copies to stages of shared memory: what `ph-pipeline-loops` makes.

    scf.for %k .. {                                  // copies of the first iterations
      %a = tile.load %A[%m, %k]                      scf.for %k .., %stage .. {
      tile.store %a, %buffer[..]                       tile.async_wait stages - 2
      (barrier)                                  -->   (barrier)
      %d = tile.dot %buffer, ..                        scf.if (iteration + stages - 1 exists) {
    }                                                    tile.async_copy %A[%m, ..] to a free stage
                                                       }
                                                       tile.async_commit
                                                       %d = tile.dot (this stage), ..
                                                     }

A warpgroup starts its product before the copies, and waits for it behind them. If the loop only
sums, it waits for the product of the iteration before: the tensor cores have the next one when
one is done. Copies are an iteration less ahead then, as one more stage is read.

                                                     scf.for %k .., %stage .., %sum .. {
                                                       tile.async_wait stages - 3
                                                       (barrier)
                                                       %d = tile.dot (this stage), ..  in_flight
                                                       (copies)
                                                       %e = tile.await_products 1 of %d
                                                       scf.yield %e ..
                                                     }
                                                     %all = tile.await_products 0 of %sum
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp, can_be_in_flight
from phobos.dialects.elementwise import RoundTF32Op
from phobos.dialects.shaping import TransposeOp
from phobos.dialects.staging import AsyncCommitOp, AsyncCopyOp, AsyncWaitOp, AwaitProductsOp
from phobos.ir.rewrite import OpBuilder, carry_more, extend_yield
from phobos.record import Record, record
from phobos.transforms.loop_stages import (
    distance_of,
    first_iterations,
    index_ops,
    is_farther,
    lone_sum,
    multi_buffer,
    view_of,
)
from phobos.transforms.place_tiles import buffer_bytes
from phobos.transforms.turning_copies import suit_products

STAGES_TO_OVERLAP = 3
"""One that is copied to, and two that products read."""


@record
class Staged(Record):
    """A load of the loop, the store of its tile, and the buffer.

    `turn` is the transposition between load and store, if there is one, and `rounding` what rounds
    the elements on the way, which only tensor copies do.
    """

    load: tile.LoadOp
    rounding: RoundTF32Op | None
    turn: TransposeOp | None
    store: tile.StoreOp
    buffer: memref.AllocaOp

    @property
    def bytes(self) -> int:
        """The size of the buffer."""
        return buffer_bytes(self.buffer.memref)


def copy_ahead(loop: scf.ForOp, staged: Sequence[Staged], stages: int, overlap: int) -> None:
    """The rewrite of the module's docstring."""
    body = loop.body.block
    outside = loop.parent
    assert outside is not None
    behind = product_before_copies(body, staged)
    distance = stages - 1 - overlap
    head = OpBuilder(loop)
    for one in staged:
        suit_products(one.load, one.turn, one.buffer)
    buffers = [multi_buffer(head, one.buffer, stages) for one in staged]
    for stage, (place, exists) in enumerate(first_iterations(head, loop, distance)):
        head.put(only_if(_copies(loop, staged, buffers, place, head.constant(stage)), exists))
        head.put(AsyncCommitOp())
    ahead = distance_of(head, loop, distance)
    zero, one, count = head.constant(0), head.constant(1), head.constant(stages)
    last = head.constant(distance)
    outside.insert_ops_before(head.ops, loop)

    new_loop = carry_more(loop, [zero, last])
    body = new_loop.body.block
    read, write = body.args[-2], body.args[-1]
    variable = body.args[0]
    start = OpBuilder(new_loop)
    start.put(AsyncWaitOp(distance - 1))
    exists = is_farther(start, new_loop, variable, ahead)
    later = start.add(arith.AddiOp(variable, ahead))
    copies = start if behind is None else OpBuilder(new_loop)
    copies.put(only_if(_copies(new_loop, staged, buffers, later, write), exists))
    copies.put(AsyncCommitOp())
    views = [
        start.add(view_of(buffer, read, load.buffer))
        for buffer, load in zip(buffers, staged, strict=True)
    ]
    first = body.first_op
    assert first is not None
    body.insert_ops_before(start.ops, first)
    if behind is not None:
        _put_behind(copies.ops, behind)
    for load, view in zip(staged, views, strict=True):
        replace_buffer(load, view)
    end = OpBuilder(new_loop)
    following = [_next_stage(end, stage, one, count, zero) for stage in (read, write)]
    extend_yield(body, end.ops, following)
    drain = AsyncWaitOp(0)
    drain.location = new_loop.location
    outside.insert_op_after(drain, new_loop)
    if behind is not None and can_be_in_flight(behind):
        await_behind(behind, new_loop, copies.ops[-1], overlap)


def can_overlap(loop: scf.ForOp, staged: Sequence[Staged]) -> bool:
    """Whether a product may still run when the next one starts, if there are stages for it."""
    product = product_before_copies(loop.body.block, staged)
    if product is None or not can_be_in_flight(product):
        return False
    made_of = product.instruction
    assert made_of is not None
    # Packed sums would be unpacked by the loop that carries them; the fragments of a turned product
    # would be loaded to registers that it still reads.
    if made_of.data.accumulator == "f16" or made_of.data.turned:
        return False
    buffers = {one.buffer.memref for one in staged}
    has_stages = all(
        operand in buffers or (tile.is_shared(operand) and _is_from_outside(operand, loop))
        for operand in (product.a, product.b)
    )
    return has_stages and lone_sum(loop, product) is not None


def _is_from_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and not loop.is_ancestor(owner)


def await_behind(product: DotOp, loop: scf.ForOp, last: Operation, overlap: int) -> None:
    """Lets a product run until behind an op, and `overlap` products into the next iteration."""
    product.in_flight = UnitAttr()
    wait = AwaitProductsOp(product.result, overlap)
    wait.location = product.location
    product.result.replace_uses_with_if(wait.result, lambda use: use.operation is not wait)
    block, outside = loop.body.block, loop.parent
    assert outside is not None
    block.insert_op_after(wait, last)
    if not overlap:
        return
    assert isinstance(product.c, BlockArgument)
    total = loop.results[product.c.index - 1]
    rest = AwaitProductsOp(total, 0)
    rest.location = product.location
    total.replace_uses_with_if(rest.result, lambda use: use.operation is not rest)
    outside.insert_op_after(rest, loop)


def product_before_copies(body: Block, staged: Sequence[Staged]) -> DotOp | None:
    """The contraction behind which the copies go, the first of several; None at the start.

    ptxas moves no load of shared memory over a copy into it: so the first contraction has its
    operands early, and the copies start beside what is computed between the two, or beside the
    products of a warpgroup. Another contraction that is alone is left to `ph-prefetch-fragments`.
    """
    first, *others = (op for op in body.ops if isinstance(op, DotOp))
    buffers = {one.buffer.memref for one in staged}
    reads_stage = not buffers.isdisjoint((first.a, first.b))
    return first if reads_stage and (others or can_be_in_flight(first)) else None


def _put_behind(copies: Sequence[Operation], product: DotOp) -> None:
    """Puts copies behind a contraction that reads a stage."""
    body = product.parent
    assert body is not None
    for inner in (inner for op in copies for inner in op.walk()):
        if isinstance(inner, AsyncCopyOp):
            # The contraction waits at a barrier that the stage's last readers have all passed.
            inner.ordered = UnitAttr()
    body.insert_ops_after(copies, product)


def _copies(
    loop: scf.ForOp,
    staged: Sequence[Staged],
    buffers: Sequence[SSAValue],
    place: SSAValue,
    stage: SSAValue,
) -> list[Operation]:
    """The copies of the iteration whose loop variable is `place`, into a stage."""
    body = staged[0].load.parent
    assert isinstance(body, Block)
    mapping: dict[SSAValue, SSAValue] = {body.args[0]: place}
    ops: list[Operation] = []
    for one, buffer in zip(staged, buffers, strict=True):
        for op in index_ops(one.load.indices, body) or ():
            if op.results[0] not in mapping:
                ops.append(op.clone(value_mapper=mapping))
        view = view_of(buffer, stage, one.buffer)
        indices = [mapping.get(index, index) for index in one.load.indices]
        copy = AsyncCopyOp(one.load.mem, indices, view.result, one.load.result.type)
        for name in ("in_bounds", "vector"):
            if name in one.load.properties:
                copy.properties[name] = one.load.properties[name]
        if one.turn is not None:
            copy.transposed = UnitAttr()
        # The copy is the load's, for reports that name its line.
        view.location = copy.location = one.load.location
        ops += [view, copy]
    return ops


def only_if(ops: list[Operation], condition: SSAValue) -> scf.IfOp:
    """A conditional without results around ops."""
    return scf.IfOp(condition, [], Region(Block([*ops, scf.YieldOp()])))


def _next_stage(
    end: OpBuilder, stage: SSAValue, one: SSAValue, count: SSAValue, zero: SSAValue
) -> SSAValue:
    """(stage + 1) mod count."""
    following = end.add(arith.AddiOp(stage, one))
    wraps = end.add(arith.CmpiOp(following, count, "eq"))
    return end.add(arith.SelectOp(wraps, zero, following))


def replace_buffer(staged: Staged, view: SSAValue) -> None:
    """The contraction reads the stage; the load, its store and its buffer go."""
    for op in (staged.store, staged.rounding, staged.turn, staged.load):
        if op is not None:
            op.detach()
            op.erase()
    staged.buffer.memref.replace_all_uses_with(view)
    staged.buffer.detach()
    staged.buffer.erase()
