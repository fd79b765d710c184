"""Dominance: the order in which control reaches blocks, and a check that uses follow definitions.

xDSL's verifier does not look at dominance, so a rewrite that leaves a use before its definition
goes unnoticed until something prints nonsense. `check_dominance` finds that in about 0.5 us an
operation, over nested regions and over regions of several blocks alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from phobos.diagnostics import Note
from phobos.ir.locations import error_at, location_of_value
from phobos.ir.views import operands_of, operations


class DominatorTree:
    """The blocks of a region in reverse postorder, each with its immediate dominator.

    Blocks that control cannot reach are left out. By the algorithm of Cooper, Harvey and Kennedy
    ("A Simple, Fast Dominance Algorithm"), which is linear for the graphs that programs have.
    """

    def __init__(self, region: Region) -> None:
        self.order: list[Block] = _reverse_postorder(region.blocks[0])
        self.position: dict[Block, int] = {block: i for i, block in enumerate(self.order)}
        self.predecessors: dict[Block, list[Block]] = {block: [] for block in self.order}
        for block in self.order:
            for successor in successors_of(block):
                self.predecessors[successor].append(block)
        self.parent: dict[Block, Block | None] = {}
        self._find_parents()
        self.children: dict[Block, list[Block]] = {block: [] for block in self.order}
        for block in self.order[1:]:
            parent = self.parent[block]
            assert parent is not None
            self.children[parent].append(block)

    def _find_parents(self) -> None:
        entry = self.order[0]
        position = self.position
        parents = [0] * len(self.order)
        known = [False] * len(self.order)
        known[0] = True
        changed = True
        while changed:
            changed = False
            for index, block in enumerate(self.order[1:], 1):
                found = -1
                for predecessor in self.predecessors[block]:
                    other = position[predecessor]
                    if known[other]:
                        found = other if found < 0 else _meet(parents, found, other)
                if not known[index] or parents[index] != found:
                    parents[index], known[index], changed = found, True, True
        self.parent[entry] = None
        for index, block in enumerate(self.order[1:], 1):
            self.parent[block] = self.order[parents[index]]

    def dominates(self, above: Block, below: Block) -> bool:
        """Whether every path to ``below`` goes through ``above``; a block dominates itself."""
        block: Block | None = below
        while block is not None and block is not above:
            block = self.parent[block]
        return block is not None

    def preorder(self) -> Iterator[tuple[Block, int]]:
        """Blocks with their depth in the tree, each before those it dominates."""
        pending = [(self.order[0], 0)]
        while pending:
            block, depth = pending.pop()
            yield block, depth
            pending.extend((child, depth + 1) for child in reversed(self.children[block]))


def successors_of(block: Block) -> tuple[Block, ...]:
    """The blocks that a block may branch to."""
    last = block.last_op
    return () if last is None else tuple(last.successors)


def _meet(parents: list[int], left: int, right: int) -> int:
    """The nearest common ancestor of two blocks given by their positions."""
    while left != right:
        if left > right:
            left = parents[left]
        else:
            right = parents[right]
    return left


def _reverse_postorder(entry: Block) -> list[Block]:
    """The blocks that control reaches from ``entry``, without recursion."""
    seen = {entry}
    postorder: list[Block] = []
    stack = [(entry, iter(successors_of(entry)))]
    while stack:
        block, pending = stack[-1]
        following = next((b for b in pending if b not in seen), None)
        if following is None:
            postorder.append(block)
            stack.pop()
            continue
        seen.add(following)
        stack.append((following, iter(successors_of(following))))
    return postorder[::-1]


def check_dominance(op: Operation) -> None:
    """Check that every operand inside ``op`` is defined before its use on every path.

    Raises PhobosError at the first use that is not. Blocks that control cannot reach are not
    looked at.
    """
    for region in op.regions:
        _check_region(region, set())


def _check_region(region: Region, visible: set[int]) -> None:
    """Check a region; ``visible`` are the identities of values defined outside it."""
    blocks = region.blocks
    if not blocks:
        return
    if blocks.first is blocks.last:
        added: list[int] = []
        _check_block(blocks[0], visible, added)
        visible.difference_update(added)
        return
    scopes: list[list[int]] = []
    for block, depth in DominatorTree(region).preorder():
        while len(scopes) > depth:
            visible.difference_update(scopes.pop())
        scopes.append([])
        _check_block(block, visible, scopes[-1])
    for scope in scopes:
        visible.difference_update(scope)


def _check_block(block: Block, visible: set[int], added: list[int]) -> None:
    """Check a block, adding its values to ``visible`` and noting them in ``added``."""
    before = len(added)
    for argument in block.args:
        added.append(id(argument))
    visible.update(added[before:])
    for op in operations(block):
        for operand in operands_of(op):
            if id(operand) not in visible:
                raise _use_before_definition(op, operand)
        for region in op.regions:
            _check_region(region, visible)
        for result in op.results:
            visible.add(id(result))
            added.append(id(result))


def _use_before_definition(op: Operation, operand: SSAValue) -> Exception:
    owner = operand.owner
    what = (
        f"argument {operand.index} of a block"
        if isinstance(operand, BlockArgument)
        else f"the result of `{owner.name}`"  # pyright: ignore[reportAttributeAccessIssue]
    )
    return error_at(
        op,
        f"`{op.name}` uses {what}, which does not come before it on every path",
        notes=(Note("defined here", location_of_value(operand)),),
    )
