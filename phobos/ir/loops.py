"""Natural loops of regions with several blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Block

from phobos.ir.dominance import DominatorTree


@dataclass(eq=False)
class Loop:
    """A natural loop: the blocks from which its header is reached again without leaving it."""

    header: Block
    blocks: set[Block]
    parent: Loop | None = None

    @property
    def depth(self) -> int:
        """How many loops this one is in, itself included."""
        return 1 if self.parent is None else 1 + self.parent.depth


def find_loops(tree: DominatorTree) -> dict[Block, Loop]:
    """The innermost loop of each block that is in one."""
    loops: list[Loop] = []
    for header in tree.order:
        latches = [p for p in tree.predecessors[header] if tree.dominates(header, p)]
        if latches:
            loops.append(Loop(header, _loop_blocks(tree, header, latches)))
    innermost: dict[Block, Loop] = {}
    # Headers come in reverse postorder, so a loop comes after those around it.
    for loop in loops:
        loop.parent = innermost.get(loop.header)
        for block in loop.blocks:
            innermost[block] = loop
    return innermost


def _loop_blocks(tree: DominatorTree, header: Block, latches: Iterable[Block]) -> set[Block]:
    blocks = {header}
    pending = list(latches)
    while pending:
        block = pending.pop()
        if block not in blocks:
            blocks.add(block)
            pending.extend(tree.predecessors[block])
    return blocks
