"""Which values may share a register, so that block arguments need no moves.

A loop that adds up carries its sum as an argument of its block; the printer would copy the new sum
into the old one's register on the way back. Values that are never alive at the same time can have
one register from the start, and the copy disappears::

    ^loop(%sum: b32):                  $L_loop:
      %next = add f32 %sum, %x   -->     add.f32 %r1, %r1, %r2;
      cond_bra %p, ^loop(%next)          @%p1 bra $L_loop;

ptxas would find that out itself; this is for readers, and for the emulator, which runs every
instruction. Two values interfere if one is alive where the other is made. Liveness is computed for
block arguments and what is passed to them only, so the cost is that of a few values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from phobos.dialects.ptx.control import BraOp, CondBraOp
from phobos.dialects.ptx.instruction import Instruction

_ENTRY = -1
"""The position at which the arguments of a block are made."""


def coalesce(blocks: Iterable[Block]) -> dict[int, SSAValue]:
    """For values that share a register with others, the one that stands for all of them.

    Keys are the identities of the values.
    """
    blocks = list(blocks)
    pairs = [pair for block in blocks for pair in _copies(block)]
    if not pairs:
        return {}
    liveness = _Liveness(blocks, dict.fromkeys(value for pair in pairs for value in pair))
    classes: dict[SSAValue, list[SSAValue]] = {value: [value] for pair in pairs for value in pair}
    for argument, value in pairs:
        left, right = classes[argument], classes[value]
        if left is right or any(liveness.interfere(x, y) for x in left for y in right):
            continue
        left.extend(right)
        for member in right:
            classes[member] = left
    return {id(value): members[0] for value, members in classes.items() if len(members) > 1}


def _copies(block: Block) -> Iterable[tuple[BlockArgument, SSAValue]]:
    """The arguments that the branch at the end of a block sets from registers."""
    branch = block.last_op
    match branch:
        case BraOp():
            edges = ((branch.target, branch.operands),)
        case CondBraOp():
            edges = (
                (branch.then_block, branch.then_values),
                (branch.else_block, branch.else_values),
            )
        case _:
            return
    for target, values in edges:
        for argument, value in zip(target.args, values, strict=True):
            if isinstance(value, BlockArgument) or isinstance(value.owner, Instruction):
                yield argument, value


class _Liveness:
    """Where each of some values is alive."""

    def __init__(self, blocks: Iterable[Block], values: Iterable[SSAValue]) -> None:
        self._positions: dict[Operation, int] = {}
        self._predecessors: dict[Block, list[Block]] = defaultdict(list)
        for block in blocks:
            for index, op in enumerate(block.ops):
                self._positions[op] = 2 * index
            for successor in block.last_op.successors if block.last_op else ():
                self._predecessors[successor].append(block)
        self._made = {value: self._definition(value) for value in values}
        self._live_out: dict[SSAValue, set[Block]] = {}
        self._last_use: dict[SSAValue, dict[Block, int]] = {}
        for value in self._made:
            self._trace(value)

    def _definition(self, value: SSAValue) -> tuple[Block, int]:
        """The block in which a value is made and the position after which it is there."""
        owner = value.owner
        if isinstance(owner, Block):
            return owner, _ENTRY
        assert owner.parent is not None
        # A guarded instruction gets its alternatives first, before it reads its operands.
        is_early = "guard" in owner.properties
        return owner.parent, self._positions[owner] + (-1 if is_early else 1)

    def _trace(self, value: SSAValue) -> None:
        """Follow a value backwards from its uses to where it is made."""
        home = self._made[value][0]
        live_out: set[Block] = set()
        last_use: dict[Block, int] = {}
        pending: list[Block] = []
        for use in value.uses:
            block = use.operation.parent
            assert block is not None
            position = self._positions[use.operation]
            last_use[block] = max(position, last_use.get(block, position))
            if block is not home:
                pending.append(block)
        entered: set[Block] = set()
        while pending:
            block = pending.pop()
            if block in entered:
                continue
            entered.add(block)
            for predecessor in self._predecessors[block]:
                live_out.add(predecessor)
                if predecessor is not home:
                    pending.append(predecessor)
        self._live_out[value] = live_out
        self._last_use[value] = last_use

    def interfere(self, left: SSAValue, right: SSAValue) -> bool:
        """Whether two values need registers of their own."""
        if self._made[left] == self._made[right]:
            return left is not right
        return self._alive(left, *self._made[right]) or self._alive(right, *self._made[left])

    def _alive(self, value: SSAValue, block: Block, position: int) -> bool:
        home, made = self._made[value]
        if home is block and made > position:
            return False
        return block in self._live_out[value] or self._last_use[value].get(block, _ENTRY) > position
