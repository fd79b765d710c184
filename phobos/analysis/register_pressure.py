"""How many registers the values of a PTX kernel take that are alive at one time.

The count follows the order of the text. ptxas may put instructions in another order, but not
values that are needed behind a store, a barrier or a branch. Predicates have registers of their
own, and constants are mostly part of an instruction, so neither counts; a 64-bit value takes two
registers. What follows from constants, parameters and special registers alone, as most addresses
do, need not stay in a register either: ptxas computes it again where that is cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx.instruction import Effect
from phobos.ir.dominance import successors_of

REGISTER_BITS = 32


@dataclass(frozen=True)
class Pressure:
    """The most 32-bit registers that are alive at one time.

    `alive` is what the order of the text needs, `kept` what any order does: the most that are
    alive where an instruction stays in its place, and that cannot be computed again.
    """

    alive: int
    kept: int


def register_pressure(entry: ptx.EntryOp) -> Pressure:
    """The pressure of a kernel.

    Cost: two walks over the kernel, about 2 us an instruction, and a fixpoint over blocks.
    """
    found = pressure_by_block(entry).values()
    return Pressure(max(one.alive for one in found), max(one.kept for one in found))


def pressure_by_block(entry: ptx.EntryOp) -> dict[Block, Pressure]:
    """The pressure of each block of a kernel."""
    blocks = list(entry.body.blocks)
    alive = _alive_at_start({block: _uses_of(block) for block in blocks})
    cheap = _computed_from_nothing(blocks)
    return {block: _largest(block, alive, cheap) for block in blocks}


def _registers(value: SSAValue) -> int:
    """The 32-bit registers that hold a value."""
    if isinstance(value.owner, ptx.ImmOp):
        return 0
    assert isinstance(value.type, ptx.RegisterType)
    bits = value.type.bits
    return 0 if bits == 1 else -(-bits // REGISTER_BITS)


def _computed_from_nothing(blocks: list[Block]) -> set[SSAValue]:
    """The values that can be computed again at any place, as no memory and no loop is in them."""
    found: set[SSAValue] = set()
    for block in blocks:
        for op in block.ops:
            is_pure = not isinstance(op, ptx.Instruction) or op.effect is Effect.NONE
            if is_pure and found.issuperset(op.operands):
                found.update(op.results)
    return found


@dataclass(frozen=True)
class _Uses:
    """What a block reads that it does not make, and what it makes."""

    read: set[SSAValue]
    made: set[SSAValue]


def _uses_of(block: Block) -> _Uses:
    made: set[SSAValue] = set(block.args)
    read: set[SSAValue] = set()
    for op in block.ops:
        read.update(op.operands)
        made.update(op.results)
    return _Uses(read - made, made)


def _alive_at_start(uses: dict[Block, _Uses]) -> dict[Block, set[SSAValue]]:
    """The values that each block or one behind it still needs, its own arguments aside."""
    alive: dict[Block, set[SSAValue]] = {block: set(found.read) for block, found in uses.items()}
    changed = True
    while changed:
        changed = False
        for block in reversed(alive):
            before = len(alive[block])
            for successor in successors_of(block):
                alive[block] |= alive[successor] - uses[block].made
            changed = changed or len(alive[block]) != before
    return alive


class _Count:
    """The values that are alive at a place, and the registers that they take."""

    def __init__(self, cheap: set[SSAValue]) -> None:
        self.cheap = cheap
        self.values: set[SSAValue] = set()
        self.total = self.dear = 0

    def add(self, value: SSAValue) -> None:
        """Count a value, once."""
        if value not in self.values:
            self.values.add(value)
            self._change(value, 1)

    def remove(self, value: SSAValue) -> None:
        """Count a value no more."""
        if value in self.values:
            self.values.remove(value)
            self._change(value, -1)

    def _change(self, value: SSAValue, sign: int) -> None:
        registers = sign * _registers(value)
        self.total += registers
        if value not in self.cheap:
            self.dear += registers


def _largest(block: Block, alive: dict[Block, set[SSAValue]], cheap: set[SSAValue]) -> Pressure:
    """The pressure of a block, from its end to its start."""
    now = _Count(cheap)
    for successor in successors_of(block):
        for value in alive[successor]:
            now.add(value)
    largest, kept = now.total, now.dear
    for op in reversed(list(block.ops)):
        for result in op.results:
            now.remove(result)
        for operand in op.operands:
            now.add(operand)
        largest = max(largest, now.total)
        if isinstance(op, ptx.Instruction) and op.effect is Effect.WRITE:
            kept = max(kept, now.dear)
    unused = (argument for argument in block.args if argument not in now.values)
    return Pressure(max(largest, now.total + sum(map(_registers, unused))), max(kept, now.dear))
