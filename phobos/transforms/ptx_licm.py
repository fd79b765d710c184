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

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx.instruction import Effect
from phobos.ir.dominance import DominatorTree, successors_of
from phobos.ir.loops import Loop, find_loops
from phobos.ir.views import operands_of, operations


class PtxLicmPass(ModulePass):
    """Moves loop-invariant instructions out of the loops of every kernel."""

    name = "ph-ptx-licm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Hoist in every kernel."""
        for entry in ptx.entries_in(op):
            hoist_invariants(entry)


def hoist_invariants(entry: ptx.EntryOp) -> None:
    """Move the loop-invariant instructions of one kernel."""
    if not any(successors_of(block) for block in entry.body.blocks):
        return
    tree = DominatorTree(entry.body)
    loops = find_loops(tree)
    made: dict[int, Loop] = {}
    """The innermost loop that each value changes in, by its identity; none for invariants."""
    for block in tree.order:
        loop = loops.get(block)
        if loop is None:
            continue
        for argument in block.args:
            made[id(argument)] = loop
        for op in operations(block):
            home = _home(op, loop, made)
            if home is not loop:
                _hoist(op, _outermost(loop, home), tree)
            if home is not None:
                for result in op.results:
                    made[id(result)] = home


def _home(op: Operation, loop: Loop, made: dict[int, Loop]) -> Loop | None:
    """The innermost loop around an operation that it must stay in."""
    if getattr(op, "effect", None) is not Effect.NONE:
        return loop
    home: Loop | None = None
    for operand in operands_of(op):
        changing = made.get(id(operand))
        if changing is None or changing is home:
            continue
        if changing is loop:
            return loop
        # A value of a loop that has ended changes in the loops around it that go on.
        while changing is not None and loop.header not in changing.blocks:
            changing = changing.parent
        if changing is not None and (home is None or changing.depth > home.depth):
            home = changing
    return home


def _outermost(loop: Loop, home: Loop | None) -> Loop:
    """The loop around ``loop`` that is directly in ``home``."""
    while loop.parent is not home:
        assert loop.parent is not None
        loop = loop.parent
    return loop


def _hoist(op: Operation, loop: Loop, tree: DominatorTree) -> None:
    """Move an operation to the end of the block before a loop."""
    before = tree.parent[loop.header]
    assert before is not None, "the entry block is no loop header"
    last = before.last_op
    assert last is not None
    op.detach()
    before.insert_op_before(op, last)
