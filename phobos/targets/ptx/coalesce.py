"""Which values may share a register, so that block arguments and tied operands need no moves.

A loop that adds up carries its sum as an argument of its block; the printer would copy the new sum
into the old one's register on the way back. Values that are never alive at the same time can have
one register from the start, and the copy disappears::

    ^loop(%sum: b32):                  $L_loop:
      %next = add f32 %sum, %x   -->     add.f32 %r1, %r1, %r2;
      cond_bra %p, ^loop(%next)          @%p1 bra $L_loop;

ptxas would find that out itself; this is for readers, and for the emulator, which runs every
instruction. It matters for a tied operand, which is in the register of a result: a move of an
accumulator between two products of a warpgroup makes the second wait for the first. So ties come
before block arguments. Two values interfere if one is alive where the other is made. Liveness is
computed for these values only, and classes of values are merged smaller into larger, so the cost
is small and close to linear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import inf

from xdsl.ir import Block, BlockArgument, SSAValue

from phobos.dialects.ptx.control import BraOp, CondBraOp
from phobos.dialects.ptx.instruction import Instruction
from phobos.ir.views import operations

_ENTRY = -2
"""The position at which the arguments of a block are made; instructions follow at 0, 4, ...

An instruction reads at its position and makes its results one behind it. What it does first, such
as the moves for tied operands, it does one before it.
"""

_STEP = 4

_BEFORE = -3
"""Where what is alive at the beginning of a block was made: before it."""


Range = tuple[int, float]
"""From where a value is made to its last use, as positions in a block."""


def coalesce(blocks: Iterable[Block]) -> dict[int, SSAValue]:
    """For values that share a register with others, the one that stands for all of them.

    Keys are the identities of the values.
    """
    blocks = list(blocks)
    pairs: list[tuple[SSAValue, SSAValue]] = [pair for block in blocks for pair in _ties(block)]
    pairs += [pair for block in blocks for pair in _copies(block)]
    if not pairs:
        return {}
    liveness = _Liveness(blocks)
    classes: dict[int, _Class] = {}
    for pair in pairs:
        for value in pair:
            if id(value) not in classes:
                classes[id(value)] = _Class(value, liveness.ranges(value))
    for target, value in pairs:
        left, right = classes[id(target)], classes[id(value)]
        if left is right:
            continue
        if len(left.members) < len(right.members):
            left, right = right, left
        if not left.interferes(right):
            left.absorb(right)
            for member in right.members:
                classes[id(member)] = left
    return {key: found.members[0] for key, found in classes.items() if len(found.members) > 1}


class _Class:
    """Values that have one register, and where any of them is alive."""

    def __init__(self, value: SSAValue, ranges: dict[Block, Range]) -> None:
        self.members = [value]
        self.ranges = {block: [found] for block, found in ranges.items()}

    def interferes(self, other: _Class) -> bool:
        """Whether a value of one class is made where one of the other is alive."""
        for block, theirs in other.ranges.items():
            for ours in self.ranges.get(block, ()):
                if any(_overlap(ours, found) for found in theirs):
                    return True
        return False

    def absorb(self, other: _Class) -> None:
        """Take in the values of another class."""
        self.members.extend(other.members)
        for block, theirs in other.ranges.items():
            ours = self.ranges.setdefault(block, [])
            for found in theirs:
                _add(ours, found)


def _add(ranges: list[Range], new: Range) -> None:
    """Add a range; one that goes on where another ends is joined to it, so that chains stay short.

    What is alive in either is alive in both together, and so is what is made in either, if there
    is anything behind the place where they meet.
    """
    if new[0] < new[1]:
        for index, (start, end) in enumerate(ranges):
            if end == new[0]:
                ranges[index] = start, new[1]
                return
            if new[1] == start < end:
                ranges[index] = new[0], end
                return
    ranges.append(new)


def _overlap(left: Range, right: Range) -> bool:
    """Whether one value is made while the other is alive, or both at once."""
    return left[0] <= right[0] < left[1] or right[0] <= left[0] < right[1] or left[0] == right[0]


def _ties(block: Block) -> Iterable[tuple[SSAValue, SSAValue]]:
    """The results of a block that an operand in a register is tied to, and that operand."""
    for op in operations(block):
        if not getattr(op, "has_ties", False):
            continue
        assert isinstance(op, Instruction)
        operands, results = tuple(op.operands), op.results
        for operand, result in op.ties:
            value = operands[operand]
            if isinstance(value, BlockArgument) or isinstance(value.owner, Instruction):
                yield results[result], value


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
    """Where values are alive."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._positions: dict[int, int] = {}
        self._predecessors: dict[Block, list[Block]] = defaultdict(list)
        self._ties: dict[int, frozenset[int]] = {}
        """The tied operands of an operation, by its identity."""
        for block in blocks:
            position = 0
            for op in operations(block):
                self._positions[id(op)] = position
                if getattr(op, "has_ties", False):
                    assert isinstance(op, Instruction)
                    self._ties[id(op)] = frozenset(operand for operand, _ in op.ties)
                position += _STEP
            for successor in block.last_op.successors if block.last_op else ():
                self._predecessors[successor].append(block)

    def ranges(self, value: SSAValue) -> dict[Block, Range]:
        """For each block in which a value is alive, from which position to which."""
        home, made = self._definition(value)
        last_use: dict[Block, int] = {}
        for use in value.uses:
            block = use.operation.parent
            assert block is not None
            key = id(use.operation)
            position = self._positions[key]
            if use.index in self._ties.get(key, ()):
                position -= 1
            last_use[block] = max(position, last_use.get(block, position))
        if last_use.keys() <= {home}:
            return {home: (made, last_use.get(home, made))}
        live_out: set[Block] = set()
        entered: set[Block] = set()
        pending = [block for block in last_use if block is not home]
        while pending:
            block = pending.pop()
            if block in entered:
                continue
            entered.add(block)
            for predecessor in self._predecessors[block]:
                live_out.add(predecessor)
                if predecessor is not home:
                    pending.append(predecessor)
        ranges: dict[Block, Range] = {home: (made, last_use.get(home, made))}
        for block in entered:
            ranges[block] = (_BEFORE, last_use.get(block, _BEFORE))
        for block in live_out:
            ranges[block] = (ranges[block][0], inf)
        return ranges

    def _definition(self, value: SSAValue) -> tuple[Block, int]:
        """The block in which a value is made and the position after which it is there."""
        owner = value.owner
        if isinstance(owner, Block):
            return owner, _ENTRY
        assert owner.parent is not None
        # A guarded instruction gets its alternatives first, before it reads its operands, and a
        # tied one what it is tied to.
        is_early = "guard" in owner.properties or bool(self._ties.get(id(owner)))
        return owner.parent, self._positions[id(owner)] + (-1 if is_early else 1)
