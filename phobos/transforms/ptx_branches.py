"""`ph-ptx-simplify-branches`: the fewest blocks and edges that do the same.

    ptx.cond_bra %true, ^a, ^b          ptx.bra ^c(%x : b32)
  ^a:                                 ^c(%y: !ptx.reg<b32>):
    ptx.bra ^c(%x : b32)        -->     ...
  ^b: ...

Branches on constants and on negations are settled, branches to blocks that only branch on go there
at once, blocks that nothing reaches are removed, a block that only one branch reaches is joined to
it, and a block argument that every edge gives the same value becomes that value. Postcondition:
every block is reachable. Cost: linear in blocks and their arguments, repeated while it changes
something (rarely more than three times).
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.ir.dominance import DominatorTree


class PtxSimplifyBranchesPass(ModulePass):
    """Simplifies the control flow of every kernel."""

    name = "ph-ptx-simplify-branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Simplify every kernel."""
        for entry in ptx.entries_in(op):
            simplify_branches(entry)


def simplify_branches(entry: ptx.EntryOp) -> bool:
    """Simplify one kernel; whether that changed anything."""
    changed_ever = False
    changed = True
    while changed:
        changed = False
        for block in tuple(entry.body.blocks):
            changed |= _settle_branch(block)
        changed |= _remove_unreachable(entry)
        for block in entry.body.blocks:
            changed |= _drop_common_arguments(block)
        changed |= _join_blocks(entry)
        changed_ever |= changed
    return changed_ever


# Edges -------------------------------------------------------------------------------------------


def edge_values(branch: Operation, index: int) -> list[SSAValue]:
    """The values that a terminator passes to its successor with this index."""
    if isinstance(branch, ptx.CondBraOp):
        return list(branch.then_values if index == 0 else branch.else_values)
    return list(branch.operands)


def edge_value(branch: Operation, index: int, argument: int) -> SSAValue:
    """One of the values that a terminator passes to its successor with this index."""
    if isinstance(branch, ptx.CondBraOp):
        argument += 1 if index == 0 else 1 + len(branch.then_block.args)
    return branch.operands[argument]


def _settle_branch(block: Block) -> bool:
    """Simplify the branch at the end of a block; whether that changed it."""
    branch = block.last_op
    if isinstance(branch, ptx.BraOp):
        target, values = _forwarded(branch.target, list(branch.operands))
        if target is branch.target:
            return False
        _branch_to(branch, target, values)
        return True
    if isinstance(branch, ptx.CondBraOp):
        return _settle_conditional(branch)
    return False


def _settle_conditional(branch: ptx.CondBraOp) -> bool:
    condition = branch.condition
    then_edge = _forwarded(branch.then_block, list(branch.then_values))
    else_edge = _forwarded(branch.else_block, list(branch.else_values))
    if isinstance(condition.owner, ptx.ImmOp):
        _branch_to(branch, *(then_edge if condition.owner.pattern else else_edge))
        return True
    if then_edge == else_edge:
        _branch_to(branch, *then_edge)
        return True
    if isinstance(condition.owner, ptx.NotOp):
        condition = condition.owner.operands[0]
        then_edge, else_edge = else_edge, then_edge
    if condition is branch.condition and (then_edge[0], else_edge[0]) == tuple(branch.successors):
        return False
    branch.operands = (condition, *then_edge[1], *else_edge[1])
    branch.successors = (then_edge[0], else_edge[0])
    return True


def _branch_to(branch: Operation, target: Block, values: list[SSAValue]) -> None:
    """Put an unconditional branch in the place of a branch."""
    block = branch.parent
    assert block is not None
    made = ptx.BraOp.create(operands=values, successors=(target,), location=branch.location)
    block.detach_op(branch)
    branch.erase()
    block.add_op(made)


def _forwarded(target: Block, values: list[SSAValue]) -> tuple[Block, list[SSAValue]]:
    """Where an edge leads in the end, past blocks that hold nothing but a branch."""
    seen: set[Block] = set()
    while target not in seen:
        seen.add(target)
        branch = target.first_op
        if not isinstance(branch, ptx.BraOp) or _is_used_elsewhere(target, branch):
            break
        passed: dict[SSAValue, SSAValue] = dict(zip(target.args, values, strict=True))
        values = [passed.get(value, value) for value in branch.operands]
        target = branch.target
    return target, values


def _is_used_elsewhere(block: Block, branch: Operation) -> bool:
    """Whether an argument of a block is used by more than the branch at its end."""
    return any(use.operation is not branch for argument in block.args for use in argument.uses)


# Blocks ------------------------------------------------------------------------------------------


def _remove_unreachable(entry: ptx.EntryOp) -> bool:
    reachable = set(DominatorTree(entry.body).order)
    dead = [block for block in entry.body.blocks if block not in reachable]
    for block in dead:
        for op in block.ops:
            op.operands = ()
            op.successors = ()
    for block in dead:
        entry.body.erase_block(block)
    return bool(dead)


def _drop_common_arguments(block: Block) -> bool:
    """Replace arguments to which all edges pass one value; whether there were any."""
    if not block.args:
        return False
    incoming: dict[BlockArgument, SSAValue | None] = {}
    edges = [edge_values(use.operation, use.index) for use in block.uses]
    for argument in block.args:
        values = {values[argument.index] for values in edges}
        values.discard(argument)
        incoming[argument] = next(iter(values)) if len(values) == 1 else None
    dropped = [argument for argument, value in incoming.items() if value is not None]
    if not dropped:
        return False
    for argument in dropped:
        value = incoming[argument]
        while isinstance(value, BlockArgument) and incoming.get(value) is not None:
            value = incoming[value]
        assert value is not None
        argument.replace_all_uses_with(value)
    remove_arguments({block: {argument.index for argument in dropped}})
    return True


def remove_arguments(dropped: Mapping[Block, set[int]]) -> None:
    """Remove arguments of blocks by their indices, and the values passed to them.

    Nothing but the edges to these arguments may use them any more.
    """
    branches = {use.operation: None for block in dropped for use in block.uses}
    for branch in branches:
        kept: list[SSAValue] = [branch.operands[0]] if isinstance(branch, ptx.CondBraOp) else []
        for index, successor in enumerate(branch.successors):
            indices = dropped.get(successor, ())
            values = edge_values(branch, index)
            kept.extend(v for i, v in enumerate(values) if i not in indices)
        branch.operands = kept
    for block, indices in dropped.items():
        for argument in [argument for argument in block.args if argument.index in indices]:
            block.erase_arg(argument)


def append_argument(block: Block, values: Mapping[Block, SSAValue]) -> None:
    """Pass the value for the block's last argument, which is new, from each predecessor."""
    for branch in {use.operation: None for use in block.uses}:
        assert branch.parent is not None
        value = values[branch.parent]
        if isinstance(branch, ptx.CondBraOp):
            # The operands do not have the new value yet, so count without it.
            _append_to_conditional(branch, block, value)
        else:
            branch.operands = (*branch.operands, value)


def _append_to_conditional(branch: ptx.CondBraOp, block: Block, value: SSAValue) -> None:
    count = len(block.args) - 1 if branch.then_block is block else len(branch.then_block.args)
    operands = list(branch.operands)
    condition, then_values, else_values = (
        operands[0],
        operands[1 : 1 + count],
        operands[1 + count :],
    )
    if branch.then_block is block:
        then_values.append(value)
    if branch.else_block is block:
        else_values.append(value)
    branch.operands = (condition, *then_values, *else_values)


def _join_blocks(entry: ptx.EntryOp) -> bool:
    """Append each block that only one unconditional branch reaches to the block before it."""
    changed = False
    block: Block | None = entry.body.blocks[0]
    while block is not None:
        branch = block.last_op
        if isinstance(branch, ptx.BraOp) and _can_join(block, branch.target):
            _join(entry, block, branch)
            changed = True
        else:
            block = block.next_block
    return changed


def _can_join(block: Block, target: Block) -> bool:
    """Whether a block is reached by the branch at the end of another one only."""
    return target is not block and target.prev_block is not None and target.has_one_use()


def _join(entry: ptx.EntryOp, block: Block, branch: ptx.BraOp) -> None:
    target = branch.target
    values = tuple(branch.operands)
    block.detach_op(branch)
    branch.erase()
    for argument, value in zip(target.args, values, strict=True):
        argument.replace_all_uses_with(value)
    for op in tuple(target.ops):
        target.detach_op(op)
        block.add_op(op)
    entry.body.detach_block(target)
