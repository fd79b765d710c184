"""The scheduler: runs the groups of threads of a wave until all have exited.

The group with the lowest block goes first, so that groups which split meet again where their
paths join. A group at the end of a loop that may wait for other threads steps back until all
others had a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Note
from phobos.emulator.barriers import Barriers
from phobos.emulator.blocks import Block
from phobos.emulator.calls import ReturnBlocks
from phobos.emulator.clusters import ClusterBarriers
from phobos.emulator.errors import FindingKind
from phobos.emulator.profiling.counts import Profile
from phobos.emulator.types import Selection, Value
from phobos.emulator.warpgroup import WARPGROUP
from phobos.emulator.wave import WARP, Wave

_LOOK_EVERY = 64
_IDLE_ROUNDS = 200_000
"""Rounds in which every group only spins and memory stays as it is.

Now and then two rounds are compared: if no register differs either, nothing ever will. Loops that
count their rounds or look at a clock differ for ever and are given up after many.
"""


_PATIENCE = 100_000
"""Rounds of plain loops before a group steps back: it may wait for memory in a plain load."""

_MOST_GANGS = 4
_SWITCH_PROBABILITY = 0.25
"""How often a gang's turn ends behind a block, where turns are drawn."""


_EAGERNESS = (0.0, 0.7, 0.95)
"""From side by side with all others to some twenty rounds ahead of them."""


class _Gang:
    """Warps that are scheduled together, and where their threads stand.

    `eagerness` is how often they go on in a loop that may wait for others, and changed memory.
    """

    def __init__(self, pending: dict[int, Selection], eagerness: float = 0.0) -> None:
        self.pending = pending
        self.eagerness = eagerness
        self.parked: dict[int, npt.NDArray[np.intp]] = {}
        self.deferred: set[int] = set()

    @property
    def is_ready(self) -> bool:
        """Whether a group can go on that has not stepped back."""
        return len(self.pending) > len(self.deferred & self.pending.keys())

    def take(self) -> tuple[int, Selection]:
        """The group with the lowest block, those that stepped back last."""
        ready = self.pending.keys() - self.deferred if self.deferred else self.pending
        number = min(ready)
        return number, self.pending.pop(number)


class Scheduler:
    """Runs one wave.

    With a generator, the warps are dealt to a few gangs whose turns are drawn by it; without one
    they all go together, which is fastest.
    """

    def __init__(
        self,
        wave: Wave,
        blocks: Sequence[Block],
        barriers: Barriers,
        waiting_ctas: int = 0,
        generator: np.random.Generator | None = None,
        profile: Profile | None = None,
    ) -> None:
        self.wave = wave
        self._profile = profile
        self.barriers = barriers
        self.cluster_barriers = ClusterBarriers(wave)
        self.calls = ReturnBlocks(wave)
        self._blocks = blocks
        self._waiting_ctas = waiting_ctas
        self._generator = generator
        self._idle_rounds = 0
        self._round_version = -1
        self._patience = _PATIENCE
        self._loop_version = -1
        self._picture: list[Value | None] | None = None
        self._gangs = [_Gang({0: wave.everyone})]
        self._gang_of: npt.NDArray[np.intp] | None = None
        # Warps can only meet at a gate if they are in one gang.
        self._keeps_warpgroups = any(
            block.gate is not None and block.gate.width == WARPGROUP for block in blocks
        )
        if generator is not None and wave.size > WARP:
            self._deal(generator)

    def _deal(self, generator: np.random.Generator) -> None:
        count = int(generator.integers(2, _MOST_GANGS + 1))
        if self._keeps_warpgroups:
            of_group = generator.integers(0, count, int(self.wave.warpgroup[-1]) + 1)
            self._gang_of = of_group[self.wave.warpgroup]
        else:
            of_warp = generator.integers(0, count, self.wave.size // WARP)
            self._gang_of = np.repeat(of_warp, WARP)
        everyone = self.wave.selected(self.wave.everyone)
        members = [everyone[self._gang_of[everyone] == gang] for gang in range(count)]
        self._gangs = [
            _Gang(
                {0: self.wave.normalised(threads)} if len(threads) else {},
                float(generator.choice(_EAGERNESS)),
            )
            for threads in members
        ]

    def run(self) -> None:
        """Run every thread of the wave from block 0 to its exit."""
        gang = self._next_gang()
        while gang is not None:
            number, sel = gang.take()
            self._run_from(gang, number, sel)
            gang = self._next_gang()
        if any(gang.parked for gang in self._gangs):
            self._report_parked()
        if self.barriers.waiting:
            self._report_barrier()
        if len(self.cluster_barriers.waiting):
            self._report_cluster_barrier()

    def _next_gang(self) -> _Gang | None:
        ready = [gang for gang in self._gangs if gang.is_ready]
        if not ready:
            if not any(gang.pending for gang in self._gangs):
                return None
            self._start_round()
            ready = [gang for gang in self._gangs if gang.pending]
        if self._generator is None or len(ready) == 1:
            return ready[0]
        return ready[int(self._generator.integers(len(ready)))]

    def _start_round(self) -> None:
        """All groups have stepped back: give each another turn, if there is any hope."""
        for gang in self._gangs:
            gang.deferred.clear()
        if self.wave.memory_version != self._round_version:
            self._round_version = self.wave.memory_version
            self._idle_rounds = 0
            return
        if self.wave.bulk.land_all():
            return
        self._idle_rounds += 1
        if self._idle_rounds % _LOOK_EVERY == 0:
            self._picture = self._state()
        elif self._idle_rounds % _LOOK_EVERY == 1 and self._is_stuck():
            self._report_spinning()
        if self._idle_rounds > _IDLE_ROUNDS:
            self._report_spinning()

    def _state(self) -> list[Value | None]:
        """A copy of all registers."""
        return [None if value is None else value.copy() for value in self.wave.registers]

    def _is_stuck(self) -> bool:
        """Whether a round left every register as it was."""
        picture = self._picture
        if picture is None:
            return False
        pairs = zip(picture, self.wave.registers, strict=True)
        return all(
            np.array_equal(np.asarray(before), np.asarray(after))
            for before, after in pairs
            if before is not None and after is not None
        )

    def _run_from(self, gang: _Gang, number: int, sel: Selection) -> None:
        wave, blocks, pending = self.wave, self._blocks, gang.pending
        while True:
            block = blocks[number]
            if block.gate is not None:
                sel, held = block.gate.split(wave, sel)
                if held is not None:
                    gang.parked[number] = held
                    if sel is not None and not len(sel):
                        return
            if self._profile is not None:
                self._profile.block(number, block, wave, sel)
            for step in block.steps:
                step(wave, sel)
            onward = block.terminator(self, sel)
            if onward is None:
                return
            following, sel = onward
            if following <= number and self._must_step_back(gang, block):
                self._put(gang, following, sel)
                gang.deferred.add(following)
                return
            number = following
            if number in gang.parked or (pending and number >= min(pending)):
                self._put(gang, number, sel)
                return
            if len(self._gangs) > 1 and self._is_turn_over():
                self._put(gang, number, sel)
                return

    def _must_step_back(self, gang: _Gang, block: Block) -> bool:
        """Whether a group at the end of a loop lets others go first.

        It does if the loop may wait for them; any other loop does so once in a long while. Where
        turns are drawn, a loop that may wait but changed memory may get ahead of the others.
        """
        self._patience -= 1
        if block.is_spin and self._generator is not None:
            has_changed = self.wave.memory_version != self._loop_version
            self._loop_version = self.wave.memory_version
            if has_changed and self._patience > 0:
                return self._generator.random() > gang.eagerness
        if not block.is_spin and self._patience > 0:
            return False
        self._patience = _PATIENCE
        return True

    def _is_turn_over(self) -> bool:
        return self._generator is not None and self._generator.random() < _SWITCH_PROBABILITY

    # Groups --------------------------------------------------------------------------------------

    def add(self, number: int, sel: Selection) -> None:
        """Put threads at the start of a block, with those that are there already."""
        if self._gang_of is None:
            self._put(self._gangs[0], number, sel)
            return
        threads = self.wave.selected(sel)
        owners = self._gang_of[threads]
        for owner in np.unique(owners).tolist():
            mine = self.wave.normalised(threads[owners == owner])
            self._put(self._gangs[owner], number, mine)

    def _put(self, gang: _Gang, number: int, sel: Selection) -> None:
        held = gang.parked.pop(number, None)
        if held is not None:
            sel = self._union(sel, held)
        if number in gang.pending:
            sel = self._union(sel, gang.pending[number])
        gang.pending[number] = sel

    def _union(self, first: Selection, second: Selection) -> Selection:
        assert first is not None
        assert second is not None
        return self.wave.normalised(np.sort(np.concatenate((first, second))))

    def exit(self, sel: Selection) -> None:
        """End threads. Others may have waited for them, so the held ones get a new look."""
        threads = self.wave.selected(sel)
        self.wave.alive[threads] = False
        self._check_copies(threads)
        for gang in self._gangs:
            for number in list(gang.parked):
                threads = gang.parked.pop(number)
                self._put(gang, number, threads)
        self.resume(self.barriers.release())
        self.resume(self.cluster_barriers.release())

    def _check_copies(self, exited: npt.NDArray[np.intp]) -> None:
        """What others still do to the shared memory of CTAs that have ended is a finding."""
        wave = self.wave
        is_shared = wave.geometry.cluster_size > 1 and wave.monitor is not None
        if not (is_shared or wave.bulk.are_loading or wave.bulk.are_storing):
            return
        ended = np.setdiff1d(wave.slot[exited], wave.slot[wave.alive])
        wave.bulk.check_ended(ended)
        if is_shared and wave.monitor is not None:
            wave.monitor.ctas_ended(wave, ended)

    def resume(self, groups: list[tuple[int, npt.NDArray[np.intp]]]) -> None:
        """Put groups that a barrier released at their blocks."""
        for number, threads in groups:
            self.add(number, self.wave.normalised(threads))

    # Threads that never get on -------------------------------------------------------------------

    def _report_parked(self) -> NoReturn:
        held = (item for gang in self._gangs for item in gang.parked.items())
        number, threads = next(held)
        thread = int(threads[0])
        operands, gate = self._blocks[number].operands, self._blocks[number].gate
        assert gate is not None
        padded, own = self.wave.geometry.padded, thread % self.wave.geometry.padded
        first = thread - own % gate.width
        mates = range(first, min(first + gate.width, thread - own + padded))
        missing = [t for t in mates if self.wave.alive[t] and t not in threads]
        notes, who = [], ""
        if missing:
            absent = missing[0] % padded
            name = f"lane {absent % WARP}"
            if gate.width > WARP:
                name += f" of warp {absent // WARP}"
            who = f"; {name} is elsewhere"
            notes = self._whereabouts(missing[0])
        operands.report(
            FindingKind.DIVERGENCE,
            self.wave,
            thread,
            f"waits at `{operands.instruction.mnemonic}` for {gate.members} that never come{who}",
            notes=tuple(notes),
        )

    def _whereabouts(self, thread: int) -> list[Note]:
        for number, threads in (i for gang in self._gangs for i in gang.parked.items()):
            if thread in threads:
                operands = self._blocks[number].operands
                name = operands.instruction.mnemonic
                return [Note(f"that lane waits at `{name}` here", operands.location)]
        found = self.barriers.first_waiting()
        if found is not None:
            operands = found[1].operands
            return [Note("other threads wait at this barrier", operands.location)]
        return []

    def _report_barrier(self) -> NoReturn:
        found = self.barriers.first_waiting()
        assert found is not None
        thread, site, barrier = found
        site.operands.report(
            FindingKind.DEADLOCK,
            self.wave,
            thread,
            f"waits at barrier {barrier} for threads that never come",
        )

    def _report_cluster_barrier(self) -> NoReturn:
        wave, thread = self.wave, int(self.cluster_barriers.waiting[0])
        self.cluster_barriers.site_of(thread).operands.report(
            FindingKind.DEADLOCK,
            wave,
            thread,
            "waits at the barrier of its cluster for threads that never come",
        )

    def _report_spinning(self) -> NoReturn:
        gang = next(gang for gang in self._gangs if gang.pending)
        number, sel = gang.take()
        threads = self.wave.selected(sel)
        operands = self._blocks[number].operands
        help_line = None
        if self._waiting_ctas:
            help_line = (
                f"{self._waiting_ctas} CTAs of the grid have not started: only "
                f"{len(self.wave.ctas)} are resident at once; see the option `resident`"
            )
        waiting = [
            threads,
            *(self.wave.selected(s) for g in self._gangs for s in g.pending.values()),
        ]
        self.wave.mbarriers.report_deadlock(np.sort(np.concatenate(waiting)), help_line)
        operands.report(
            FindingKind.DEADLOCK,
            self.wave,
            int(threads[0]),
            "waits in a loop for something that no thread does any more",
            help=help_line,
        )
