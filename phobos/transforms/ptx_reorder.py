"""`ph-ptx-reorder`: compute values next to where they are needed, if they do not fit otherwise.

    %a = ptx.ld ...                         %a = ptx.ld ...
    %b = ptx.ld ...                         %e = ptx.ex2 approx.ftz.f32 %a
    %e = ptx.ex2 approx.ftz.f32 %a    -->   %b = ptx.ld ...
    %f = ptx.ex2 approx.ftz.f32 %b          %f = ptx.ex2 approx.ftz.f32 %b
    %s = ptx.add f32 %e, %f                 %s = ptx.add f32 %e, %f

Kernels have their loads first and compute step by step on whole tiles, so that loads overlap. For
a large tile that is more values than a thread has registers, and ptxas, which keeps that order by
and large, spills them. Only blocks for which this is so are touched, and only where it helps; none
with matrix instructions, whose operands are loaded ahead on purpose.

Nothing moves over an instruction that writes memory or orders threads, and instructions that work
with other lanes stay in their order. Between two such places every value that is needed behind
them is computed in turn, operands first, those of the longest chain before the others; this is
close to the fewest registers for expressions (Sethi and Ullman, "The Generation of Optimal Code
for Arithmetic Expressions"). Precondition: `ph-ptx-canonicalize`. Cost: that of
`register_pressure`, and linear in the blocks touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from phobos.analysis.occupancy import MAX_REGISTERS
from phobos.analysis.register_pressure import PressureCount
from phobos.dialects import ptx
from phobos.dialects.ptx.instruction import Effect
from phobos.ir.views import operations

_MATRIX = (ptx.MmaOp, ptx.WmmaMmaOp, ptx.WgmmaMmaAsyncOp)


class PtxReorderPass(ModulePass):
    """Reorders the blocks of every kernel that need more registers than a thread can have."""

    name = "ph-ptx-reorder"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Reorder every kernel."""
        for entry in ptx.entries_in(op):
            reorder_blocks(PressureCount(entry), entry.maxnreg or MAX_REGISTERS)


def reorder_blocks(count: PressureCount, limit: int) -> None:
    """Reorder the blocks of a kernel that need more registers than `limit`, where that helps.

    `count` is of the kernel as it is, and of the kernel in its new order then.
    """
    for block, before in list(count.by_block.items()):
        if before.alive > limit and not has_matrix_instruction(block):
            ops = list(block.ops)
            _put(block, _reordered(ops))
            if count.count_again(block).alive >= before.alive:
                _put(block, ops)
                count.by_block[block] = before


def has_matrix_instruction(block: Block) -> bool:
    """Whether a block has products of the tensor cores."""
    return any(type(op) in _MATRIX for op in operations(block))


def _put(block: Block, ops: Sequence[Operation]) -> None:
    """Gives a block its operations in another order."""
    for op in ops:
        op.detach()
    block.add_ops(ops)


def _reordered(ops: Sequence[Operation]) -> list[Operation]:
    order: list[Operation] = []
    segment: list[Operation] = []
    for op in ops:
        if _stays(op):
            order += _scheduled(segment)
            order.append(op)
            segment = []
        else:
            segment.append(op)
    return order + _scheduled(segment)


def _stays(op: Operation) -> bool:
    if not isinstance(op, ptx.Instruction):
        return not isinstance(op, ptx.ImmOp | ptx.SymbolOp)
    return op.has_side_effect


def _scheduled(segment: Sequence[Operation]) -> list[Operation]:
    """The operations of a segment, each behind what it needs and as late as that allows."""
    needs = _needs(segment)
    depth: dict[Operation, int] = {}
    for op in segment:
        depth[op] = 1 + max((depth[other] for other in needs[op]), default=0)
    order: list[Operation] = []
    done: set[Operation] = set()
    for root in segment:
        uses = [use.operation for result in root.results for use in result.uses]
        # What is used here alone comes with its use.
        if not uses or any(user not in needs for user in uses):
            _visit(root, needs, depth, done, order)
    return order


def _needs(segment: Sequence[Operation]) -> dict[Operation, list[Operation]]:
    """For each operation those of the segment that come before it."""
    needs: dict[Operation, list[Operation]] = {}
    last: Operation | None = None
    for op in segment:
        before = dict.fromkeys(
            value.owner
            for value in op.operands
            if isinstance(value.owner, Operation) and value.owner in needs
        )
        if isinstance(op, ptx.Instruction) and op.effect is Effect.CONVERGENT:
            if last is not None:
                before[last] = None
            last = op
        needs[op] = list(before)
    return needs


def _visit(
    root: Operation,
    needs: dict[Operation, list[Operation]],
    depth: dict[Operation, int],
    done: set[Operation],
    order: list[Operation],
) -> None:
    """Puts an operation behind all it needs, without recursion: chains are as long as tiles."""
    waiting: list[tuple[Operation, Iterable[Operation]]] = []

    def enter(op: Operation) -> None:
        if op not in done:
            done.add(op)
            deepest_first = sorted(needs[op], key=lambda other: -depth[other])
            waiting.append((op, iter(deepest_first)))

    enter(root)
    while waiting:
        op, rest = waiting[-1]
        following = next(iter(rest), None)
        if following is None:
            waiting.pop()
            order.append(op)
        else:
            enter(following)
