"""`ph-ptx-licm`: compute once before a loop what every iteration computes alike.

      ptx.bra ^loop                           %o = ptx.mul wide.u32 %row, %pitch
    ^loop:                              -->   ptx.bra ^loop
      %o = ptx.mul wide.u32 %row, %pitch    ^loop:
      %p = ptx.add u64 %o, %k                 %p = ptx.add u64 %o, %k

An instruction that only computes moves to the end of the block before the outermost loop in which
none of its operands is made. It may then run where it did not before (a loop that is not entered,
a branch not taken), which is harmless, as it has no effect and cannot fault. Loads stay.
Precondition: no unreachable blocks. Cost: linear in instructions times their depth in loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx.instruction import Effect
from phobos.ir.dominance import DominatorTree, successors_of
from phobos.ir.loops import Loop, find_loops


@dataclass(frozen=True)
class PtxLicmPass(ModulePass):
    """Moves loop-invariant instructions out of the loops of every kernel."""

    name = "ph-ptx-licm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Hoist in every kernel."""
        for entry in op.walk():
            if isinstance(entry, ptx.EntryOp):
                hoist_invariants(entry)


def hoist_invariants(entry: ptx.EntryOp) -> None:
    """Move the loop-invariant instructions of one kernel."""
    if not any(successors_of(block) for block in entry.body.blocks):
        return
    tree = DominatorTree(entry.body)
    loops = find_loops(tree)
    if not loops:
        return
    for block in tree.order:
        loop = loops.get(block)
        if loop is None:
            continue
        for op in tuple(block.ops):
            if isinstance(op, ptx.Instruction) and op.effect is Effect.NONE:
                _hoist(op, loop, tree)


def _hoist(op: Operation, loop: Loop, tree: DominatorTree) -> None:
    target: Loop | None = None
    around: Loop | None = loop
    while around is not None and not any(_is_made_in(v, around) for v in op.operands):
        target, around = around, around.parent
    if target is None:
        return
    before = tree.parent[target.header]
    assert before is not None, "the entry block is no loop header"
    last = before.last_op
    assert last is not None
    op.detach()
    before.insert_op_before(op, last)


def _is_made_in(value: SSAValue, loop: Loop) -> bool:
    """Whether a value is made in a loop, by an instruction or as an argument of a block."""
    if isinstance(value, BlockArgument):
        return value.block in loop.blocks
    owner = value.owner
    assert isinstance(owner, Operation)
    return owner.parent in loop.blocks
