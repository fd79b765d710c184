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

from collections.abc import Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.ir.views import operands_of, operations
from phobos.transforms.ptx_branches import edge_value, remove_arguments


class PtxDeadCodePass(ModulePass):
    """Removes dead instructions and block arguments from every kernel."""

    name = "ph-ptx-dead-code"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Clean every kernel."""
        for entry in ptx.entries_in(op):
            remove_dead_code(entry)


def remove_dead_code(entry: ptx.EntryOp) -> None:
    """Remove dead instructions and block arguments from one kernel."""
    needed = _needed(entry)
    dead_ops: list[Operation] = []
    dead_arguments: dict[Block, set[int]] = {}
    for block in entry.body.blocks:
        unneeded = {argument.index for argument in block.args if id(argument) not in needed}
        if unneeded:
            dead_arguments[block] = unneeded
        dead_ops += [op for op in operations(block) if id(op) not in needed]
    for op in dead_ops:
        op.operands = ()
    if dead_arguments:
        remove_arguments(dead_arguments)
    for op in dead_ops:
        op.detach()
        op.erase()


def _needed(entry: ptx.EntryOp) -> set[int]:
    """The identities of the operations and block arguments that matter for what a kernel does."""
    needed: set[int] = set()
    pending: list[SSAValue] = []
    for block in entry.body.blocks:
        for op in operations(block):
            if _is_root(op):
                needed.add(id(op))
                pending.extend(_operands_that_matter(op))
    while pending:
        value = pending.pop()
        owner = value.owner
        if type(value) is not BlockArgument:
            if id(owner) not in needed:
                assert isinstance(owner, Operation)
                needed.add(id(owner))
                pending.extend(operands_of(owner))
        elif id(value) not in needed:
            needed.add(id(value))
            for use in value.block.uses:
                pending.append(edge_value(use.operation, use.index, value.index))
    return needed


def _is_root(op: Operation) -> bool:
    """Whether an operation matters whoever uses its results."""
    if getattr(op, "effect", None) is None:
        return type(op) is not ptx.ImmOp and type(op) is not ptx.SymbolOp
    return cast(ptx.Instruction, op).has_side_effect


def _operands_that_matter(op: Operation) -> Sequence[SSAValue]:
    """The operands of a root; what a branch passes on matters only if the argument does."""
    if isinstance(op, ptx.CondBraOp):
        return (op.condition,)
    return () if op.successors else operands_of(op)
