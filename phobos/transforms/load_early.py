"""`ph-load-early`: load before a fold what is needed behind it, if it fits into registers.

    %x = tile.load %X[%r, %c0]              %x = tile.load %X[%r, %c0]
    %m = tile.reduce add [1] %x       -->   %g = tile.load %G[%c0]
    %g = tile.load %G[%c0]                  %m = tile.reduce add [1] %x

A fold over warps waits at a barrier, which ptxas moves no load across, so a load behind it would
start when all before it is done: a second trip to memory for each CTA. In front of the fold, next
to the loads that are there, it takes place meanwhile.

Only kernels that say how many CTAs a multiprocessor shall have room for (`@launch(threads, ctas)`)
are touched, as this says how many registers a thread has; and only the code that every thread runs
once. A load moves over nothing that may write memory. What is alive at one time is counted tile by
tile; a value with one use is taken to be computed there, element by element.

Precondition: `ph-assign-layouts`, whose layouts tell the registers of a tile. Cost: quadratic in
the ops of a kernel's body if it has loads behind folds, else one walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from phobos.analysis.occupancy import registers_of
from phobos.dialects import tile
from phobos.dialects.gathering import GatherOp
from phobos.dialects.scanning import ScanOp
from phobos.dialects.shaping import IotaOp, ReduceOp
from phobos.ir.kernel import kernels, launch_bound
from phobos.layout.build import REGISTER
from phobos.transforms.lowering.registers import WORD_BITS

_OTHERS = 24
"""Registers for what is no tile: addresses, sizes, and what one instruction gives the next."""

_FREE = (tile.BroadcastOp, tile.SplatOp, IotaOp)
"""Their tiles are registers of others, or computed where they are used."""


class LoadEarlyPass(ModulePass):
    """Moves loads in front of folds where registers are left for them."""

    name = "ph-load-early"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            if launch_bound(kernel, "min_ctas") is not None:
                for block in kernel.body.blocks:
                    load_early(block, registers_of(kernel) - _OTHERS)


def load_early(block: Block, limit: int) -> None:
    """Moves the loads of a block that fit, `limit` being the registers for tiles."""
    for load in [op for op in block.ops if _is_load(op)]:
        ops = list(block.ops)
        for target in _targets(ops, ops.index(load)):
            if _fits(ops, target, load, limit):
                load.detach()
                block.insert_op_before(load, ops[target])
                break


def _is_load(op: Operation) -> bool:
    return isinstance(op, tile.LoadOp) and not tile.is_shared(op.mem)


def _targets(ops: Sequence[Operation], place: int) -> Iterator[int]:
    """The ops in front of which the load at a place may go to be before a fold, first ones first.

    Each is the one behind the last load in front of a fold.
    """
    first = place
    needed = {value.owner for value in ops[place].operands}
    while first > 0 and ops[first - 1] not in needed and _changes_nothing(ops[first - 1]):
        first -= 1
    target = first
    for index in range(first, place):
        if _is_load(ops[index]):
            target = index + 1
        elif isinstance(ops[index], ReduceOp | ScanOp):
            yield target


def _changes_nothing(op: Operation) -> bool:
    return not op.regions and (isinstance(op, tile.LoadOp | GatherOp) or is_side_effect_free(op))


def _fits(ops: Sequence[Operation], target: int, load: Operation, limit: int) -> bool:
    """Whether the tile of a load has room from a place to where it is loaded now."""
    own = _words(load.results[0])
    place = {op: index for index, op in enumerate(ops)}
    now = place[load]
    alive = [own] * (now - target)
    for op in ops[:now]:
        for result in op.results:
            size = _words(result)
            if size:
                end = _end(result, place)
                for index in range(max(place[op], target), min(end, now)):
                    alive[index - target] += size
    return max(alive, default=0) <= limit


def _words(value: SSAValue) -> int:
    """The registers that a thread has for a tile while it is alive, 0 for other values."""
    type_, owner = value.type, value.owner
    if not isinstance(type_, TensorType) or isinstance(owner, _FREE):
        return 0
    element = type_.element_type
    if not isinstance(element, FixedBitwidthType) or not isinstance(
        type_.encoding, tile.LayoutAttr
    ):
        return 0
    if not isinstance(owner, tile.LoadOp) and _is_passed_on(value):
        return 0
    # Words are loaded; what is computed has a register an element, or two.
    bits = element.bitwidth if isinstance(owner, tile.LoadOp) else max(element.bitwidth, WORD_BITS)
    count = 1 << sum(map(bool, type_.encoding.data.packed(REGISTER)))
    return -(-count * bits // WORD_BITS)


def _is_passed_on(value: SSAValue) -> bool:
    """Whether a value has one use, where its elements are computed one by one."""
    owner = value.owner
    return isinstance(owner, Operation) and (isinstance(owner, _FREE) or value.has_one_use())


def _end(value: SSAValue, place: dict[Operation, int]) -> int:
    """The place of the last op that needs a value, itself or through values passed on."""
    end, waiting = 0, [value]
    while waiting:
        for use in waiting.pop().uses:
            user = use.operation
            while user not in place:
                parent = user.parent_op()
                if parent is None:
                    return len(place)
                user = parent
            end = max(end, place[user])
            is_fold = isinstance(user, ReduceOp | ScanOp)
            if not is_fold:
                waiting += [result for result in user.results if _is_passed_on(result)]
    return end
