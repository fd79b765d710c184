"""`ph-ptx-dead-code`: remove what nobody needs.

    ^loop(%i: !ptx.reg<b32>, %n: !ptx.reg<b32>):      ^loop(%i: !ptx.reg<b32>):
      %n1 = ptx.add s32 %n, %one                -->     %i1 = ptx.add s32 %i, %one
      %i1 = ptx.add s32 %i, %one                        ...
      ...

An instruction is needed if it writes memory, orders it or changes control, or if a needed one uses
its results; a block argument is needed if its value is. So a value that a loop only carries along
goes too. Cost: linear, about 2 us an instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx.instruction import Effect
from phobos.transforms.ptx_branches import edge_values, remove_arguments


@dataclass(frozen=True)
class PtxDeadCodePass(ModulePass):
    """Removes dead instructions and block arguments from every kernel."""

    name = "ph-ptx-dead-code"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Clean every kernel."""
        for entry in op.walk():
            if isinstance(entry, ptx.EntryOp):
                remove_dead_code(entry)


def remove_dead_code(entry: ptx.EntryOp) -> None:
    """Remove dead instructions and block arguments from one kernel."""
    needed_ops, needed_arguments = _needed(entry)
    dead_ops: list[Operation] = []
    dead_arguments: dict[Block, set[int]] = {}
    for block in entry.body.blocks:
        unneeded = {a.index for a in block.args if a not in needed_arguments}
        if unneeded:
            dead_arguments[block] = unneeded
        dead_ops.extend(op for op in block.ops if op not in needed_ops)
    for op in dead_ops:
        op.operands = ()
    if dead_arguments:
        remove_arguments(dead_arguments)
    for op in dead_ops:
        op.detach()
        op.erase()


def _needed(entry: ptx.EntryOp) -> tuple[set[Operation], set[BlockArgument]]:
    """The operations and block arguments that matter for what the kernel does."""
    ops: set[Operation] = set()
    arguments: set[BlockArgument] = set()
    pending: list[SSAValue] = []
    for block in entry.body.blocks:
        for op in block.ops:
            if isinstance(op, ptx.CondBraOp):
                ops.add(op)
                pending.append(op.condition)
            elif _is_root(op):
                ops.add(op)
                if not op.successors:
                    pending.extend(op.operands)
    while pending:
        value = pending.pop()
        if isinstance(value, BlockArgument):
            if value not in arguments:
                arguments.add(value)
                pending.extend(
                    edge_values(use.operation, use.index)[value.index] for use in value.block.uses
                )
            continue
        owner = value.owner
        assert isinstance(owner, Operation)
        if owner not in ops:
            ops.add(owner)
            pending.extend(owner.operands)
    return ops, arguments


def _is_root(op: Operation) -> bool:
    """Whether an operation matters whoever uses its results."""
    if isinstance(op, ptx.Instruction):
        return op.effect is Effect.WRITE
    return not isinstance(op, ptx.ImmOp | ptx.SymbolOp)
