"""How many registers the values of a PTX kernel take that are alive at one time.

The count follows the order of the text. ptxas may put instructions in another order, but not
values that are needed behind a store, a barrier or a branch. Predicates have registers of their
own, and constants are mostly part of an instruction, so neither counts; a 64-bit value takes two
registers. What follows from constants, parameters and special registers alone, as most addresses
do, need not stay in a register either: ptxas computes it again where that is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx.instruction import Effect
from phobos.ir.dominance import successors_of
from phobos.ir.views import operands_of, operations

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
    return PressureCount(entry).largest


class _Step(NamedTuple):
    """An operation as far as it matters here; values are identities, those of no size left out."""

    reads: list[int]
    makes: list[int]
    stays: bool


class PressureCount:
    """Counts the registers of a kernel's blocks.

    What is alive between blocks is found once, so a block that is put into another order can be
    counted again by itself. Sets of values are sets of their identities: xDSL hashes a value by a
    call, which costs more than all else here.

    Attributes:
        by_block: the pressure of each block.
    """

    def __init__(self, entry: ptx.EntryOp) -> None:
        self._blocks = list(entry.body.blocks)
        self._registers: dict[int, int] = {}
        """The 32-bit registers that hold a value, if there are any."""
        self._find_sizes()
        self._steps = {
            block: {id(op): self._step(op) for op in operations(block)} for block in self._blocks
        }
        self._dear = self._registers.keys() - self._computed_from_nothing()
        self._alive = self._alive_at_start()
        self.by_block = {block: self._count(block) for block in self._blocks}

    @property
    def largest(self) -> Pressure:
        """The pressure of the kernel."""
        found = self.by_block.values()
        return Pressure(max(one.alive for one in found), max(one.kept for one in found))

    def count_again(self, block: Block) -> Pressure:
        """Count a block whose operations are in another order than before, and no others."""
        self.by_block[block] = self._count(block)
        return self.by_block[block]

    def _count(self, block: Block) -> Pressure:
        registers, dear_values = self._registers, self._dear
        alive: set[int] = set()
        alive.update(*(self._alive[successor] for successor in successors_of(block)))
        total = sum(registers[value] for value in alive)
        dear = sum(registers[value] for value in alive & dear_values)
        most, kept = total, dear
        steps = self._steps[block]
        for op in reversed(list(operations(block))):
            step = steps[id(op)]
            for value in step.makes:
                if value in alive:
                    alive.remove(value)
                    total -= registers[value]
                    if value in dear_values:
                        dear -= registers[value]
            for value in step.reads:
                if value not in alive:
                    alive.add(value)
                    total += registers[value]
                    if value in dear_values:
                        dear += registers[value]
            if total > most:
                most = total
            if step.stays and dear > kept:
                kept = dear
        arguments = registers.keys() & map(id, block.args)
        unused = sum(registers[value] for value in arguments - alive)
        return Pressure(max(most, total + unused), max(kept, dear))

    def _find_sizes(self) -> None:
        for block in self._blocks:
            self._note_sizes(block.args)
            for op in operations(block):
                if type(op) is not ptx.ImmOp:
                    self._note_sizes(op.results)

    def _note_sizes(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            kind = value.type
            assert isinstance(kind, ptx.RegisterType)
            if kind.bits != 1:
                self._registers[id(value)] = -(-kind.bits // REGISTER_BITS)

    def _step(self, op: Operation) -> _Step:
        sized = self._registers
        return _Step(
            [value for value in map(id, operands_of(op)) if value in sized],
            [value for value in map(id, op.results) if value in sized],
            getattr(op, "effect", None) is Effect.WRITE,
        )

    def _computed_from_nothing(self) -> set[int]:
        """What can be computed again at any place, as no memory and no loop is in it."""
        found: set[int] = set()
        for block in self._blocks:
            for op in operations(block):
                is_pure = getattr(op, "effect", Effect.NONE) is Effect.NONE
                if is_pure and found.issuperset(map(id, operands_of(op))):
                    found.update(map(id, op.results))
        return found

    def _alive_at_start(self) -> dict[Block, set[int]]:
        """What each block or one behind it still needs, its own arguments aside."""
        made: dict[Block, set[int]] = {}
        alive: dict[Block, set[int]] = {}
        for block, steps in self._steps.items():
            made[block] = set(map(id, block.args))
            made[block].update(*(step.makes for step in steps.values()))
            alive[block] = set().union(*(step.reads for step in steps.values())) - made[block]
        changed = True
        while changed:
            changed = False
            for block in reversed(alive):
                before = len(alive[block])
                for successor in successors_of(block):
                    alive[block] |= alive[successor] - made[block]
                changed = changed or len(alive[block]) != before
        return alive
