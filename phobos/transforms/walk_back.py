"""`ph-walk-back`: walk rows backwards where a loop has just read them forwards.

    scf.for %k = %c0 to %n step %c4096 {               scf.for (as before)
      .. tile.load %X[%r, %k] ..                         .. tile.load %X[%r, %k] ..
    }                                                  }
    scf.for %k = %c0 to %n step %c4096 {               %sum = (the last counter) + %c0
      %x = tile.load %X[%r, %k]                 -->    scf.for %k = %c0 to %n step %c4096 {
      tile.store .., %Y[%r, %k]                          %back = %sum - %k
    }                                                    %x = tile.load %X[%r, %back]
                                                         tile.store .., %Y[%r, %back]
                                                       }

Rows that do not fit into registers are read once for their sums and once more for what is written.
All CTAs together read more than the caches hold, so that a second walk from the start would find
nothing of the first one. From the end it finds what was read last.

Only loops whose iterations may take any order: they carry nothing but their own place, and write
to other tensors than they read, or just where they read, each iteration to a place of its own.

Precondition: `ph-mask-slices`; what it proved of a loop's accesses holds, as the counter takes the
same values. Cost: one walk, and for each such loop one over the loads of those before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from phobos.dialects import tile
from phobos.ir.kernel import kernels
from phobos.ir.rewrite import OpBuilder, insert_before

_Place = tuple[SSAValue, tuple[SSAValue | None, ...]]
"""A tensor and the subscripts of a tile in it; None stands for the counter of the loop."""


class WalkBackPass(ModulePass):
    """Turns round the loops that read again what a loop before them has read."""

    name = "ph-walk-back"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            for block in list(kernel.walk_blocks()):
                walk_back(block)


def walk_back(block: Block) -> None:
    """Turns round loops of one block."""
    read: set[tuple[SSAValue, SSAValue, _Place]] = set()
    for loop in [op for op in block.ops if isinstance(op, scf.ForOp)]:
        here = {(loop.lb, loop.step, place) for place in _places_read(loop)}
        if here & read and _takes_any_order(loop):
            _turn_round(loop)
        else:
            read |= here


def _places_read(loop: scf.ForOp) -> Iterator[_Place]:
    """Where an iteration reads tiles of tensors that move with the counter."""
    counter = loop.body.block.args[0]
    for op in loop.body.block.ops:
        if isinstance(op, tile.LoadOp) and isinstance(op.mem, BlockArgument):
            place = _place(op, counter)
            if None in place[1]:
                yield place


def _place(op: tile.LoadOp | tile.StoreOp, counter: SSAValue) -> _Place:
    return op.mem, tuple(None if index is counter else index for index in op.indices)


def _takes_any_order(loop: scf.ForOp) -> bool:
    """Whether an iteration neither needs what another one leaves nor overwrites it."""
    body = loop.body.block
    counter = body.args[0]
    if not isinstance(counter.type, IndexType) or not _carries_its_place_alone(loop):
        return False
    loads, stores = list[tile.LoadOp](), list[tile.StoreOp]()
    for op in body.ops:
        if isinstance(op, tile.LoadOp):
            loads.append(op)
        elif isinstance(op, tile.StoreOp):
            stores.append(op)
        elif op.regions or not (is_side_effect_free(op) or isinstance(op, scf.YieldOp)):
            return False
    written = {store.mem: store for store in stores}
    return len(written) == len(stores) and all(
        _has_its_own_place(store, loop)
        and all(
            _place(load, counter) == _place(store, counter) and load.result.type == store.value.type
            for load in loads
            if load.mem is store.mem
        )
        for store in stores
    )


def _carries_its_place_alone(loop: scf.ForOp) -> bool:
    """Whether all that goes to the next iteration is where that starts, as split loops need it."""
    body = loop.body.block
    yielded = body.last_op
    assert isinstance(yielded, scf.YieldOp)
    return all(_is_next(value, loop) for value in yielded.operands) and all(
        argument.first_use is None for argument in body.args[1:]
    )


def _is_next(value: SSAValue, loop: scf.ForOp) -> bool:
    op = value.owner
    counter = loop.body.block.args[0]
    is_sum = isinstance(op, arith.AddiOp) and op.lhs is counter and op.rhs is loop.step
    return is_sum and value.has_one_use()


def _has_its_own_place(store: tile.StoreOp, loop: scf.ForOp) -> bool:
    """Whether a step takes a store past all that it wrote, along one axis."""
    step, type_ = loop.step.owner, store.value.type
    if not isinstance(store.mem.type, MemRefType) or not isinstance(store.mem, BlockArgument):
        return False
    if not isinstance(step, arith.ConstantOp) or not isinstance(step.value, IntegerAttr):
        return False
    assert isinstance(type_, TensorType)
    distance = step.value.value.data
    counter = loop.body.block.args[0]
    return any(
        index is counter and length <= distance
        for index, length in zip(store.indices, type_.get_shape(), strict=True)
    )


def _turn_round(loop: scf.ForOp) -> None:
    """Lets the counter's place be taken by the last value minus how far the counter has come.

    Before a loop that does not run at all the last value means nothing, and nobody asks for it.
    """
    body = loop.body.block
    counter = body.args[0]
    uses = [use for use in counter.uses if not _passes_on(use.operation, loop)]
    before = OpBuilder(loop)
    length = before.add(arith.SubiOp(loop.ub, loop.lb))
    ahead = before.add(arith.SubiOp(length, before.constant(1)))
    beyond = before.add(arith.RemUIOp(ahead, loop.step))
    total = before.add(arith.AddiOp(loop.lb, before.add(arith.SubiOp(ahead, beyond))))
    total = before.add(arith.AddiOp(total, loop.lb))
    insert_before(loop, before.ops)
    back = arith.SubiOp(total, counter)
    first = body.first_op
    assert first is not None
    insert_before(first, [back])
    back.result.name_hint = counter.name_hint
    for use in uses:
        use.operation.operands[use.index] = back.result


def _passes_on(op: Operation, loop: scf.ForOp) -> bool:
    """Whether an op counts on for what follows the loop, which goes on after the last tile."""
    yielded = loop.body.block.last_op
    return yielded is not None and any(value.owner is op for value in yielded.operands)
