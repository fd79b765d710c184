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
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import Selection
from phobos.emulator.wave import WARP, Wave

_IDLE_ROUNDS = 5000
"""Rounds in which every group only spins and memory stays as it is, before it is a deadlock.

Loops that poll with a time-out count rounds too, so the limit is generous.
"""


class Scheduler:
    """Runs one wave."""

    def __init__(
        self, wave: Wave, blocks: Sequence[Block], barriers: Barriers, waiting_ctas: int = 0
    ) -> None:
        self.wave = wave
        self.barriers = barriers
        self.calls = ReturnBlocks(wave)
        self._blocks = blocks
        self._waiting_ctas = waiting_ctas
        self._pending: dict[int, Selection] = {}
        self._parked: dict[int, npt.NDArray[np.intp]] = {}
        self._deferred: set[int] = set()
        self._idle_rounds = 0
        self._round_version = -1

    def run(self) -> None:
        """Run every thread of the wave from block 0 to its exit."""
        self._pending = {0: self.wave.everyone}
        while self._pending:
            number = self._choose()
            self._run_from(number, self._pending.pop(number))
        if self._parked:
            self._report_parked()
        if self.barriers.waiting:
            self._report_barrier()

    def _choose(self) -> int:
        if not self._deferred:
            return min(self._pending)
        ready = self._pending.keys() - self._deferred
        if not ready:
            self._start_round()
            ready = self._pending.keys()
        return min(ready)

    def _start_round(self) -> None:
        """All groups have stepped back: give each another turn, if there is any hope."""
        self._deferred.clear()
        if self.wave.memory_version != self._round_version:
            self._round_version = self.wave.memory_version
            self._idle_rounds = 0
            return
        self._idle_rounds += 1
        if self._idle_rounds > _IDLE_ROUNDS:
            self._report_spinning()

    def _run_from(self, number: int, sel: Selection) -> None:
        wave, blocks, pending = self.wave, self._blocks, self._pending
        while True:
            block = blocks[number]
            if block.gate is not None:
                sel, held = block.gate.split(wave, sel)
                if held is not None:
                    self._park(number, held)
                    if sel is not None and not len(sel):
                        return
            for step in block.steps:
                step(wave, sel)
            onward = block.terminator(self, sel)
            if onward is None:
                return
            following, sel = onward
            if block.is_spin and following <= number:
                self.add(following, sel)
                self._deferred.add(following)
                return
            number = following
            if number in self._parked or (pending and number >= min(pending)):
                self.add(number, sel)
                return

    # Groups --------------------------------------------------------------------------------------

    def add(self, number: int, sel: Selection) -> None:
        """Put threads at the start of a block, with those that are there already."""
        held = self._parked.pop(number, None)
        if held is not None:
            sel = self._union(sel, held)
        if number in self._pending:
            sel = self._union(sel, self._pending[number])
        self._pending[number] = sel

    def _union(self, first: Selection, second: Selection) -> Selection:
        assert first is not None
        assert second is not None
        return self.wave.normalised(np.sort(np.concatenate((first, second))))

    def _park(self, number: int, threads: npt.NDArray[np.intp]) -> None:
        self._parked[number] = threads

    def exit(self, sel: Selection) -> None:
        """End threads. Others may have waited for them, so the held ones get a new look."""
        self.wave.alive[self.wave.selected(sel)] = False
        for number in list(self._parked):
            threads = self._parked.pop(number)
            self.add(number, threads)
        self.resume(self.barriers.release())

    def resume(self, groups: list[tuple[int, npt.NDArray[np.intp]]]) -> None:
        """Put groups that a barrier released at their blocks."""
        for number, threads in groups:
            self.add(number, self.wave.normalised(threads))

    # Threads that never get on -------------------------------------------------------------------

    def _report_parked(self) -> NoReturn:
        number, threads = next(iter(self._parked.items()))
        thread = int(threads[0])
        operands = self._blocks[number].operands
        warp = thread // WARP
        mates = np.arange(warp * WARP, (warp + 1) * WARP)
        missing = [int(t) for t in mates if self.wave.alive[t] and t not in threads]
        notes, who = [], ""
        if missing:
            lane = missing[0] % WARP
            who = f"; lane {lane} is elsewhere"
            notes = self._whereabouts(missing[0])
        operands.report(
            FindingKind.DIVERGENCE,
            self.wave,
            thread,
            f"waits at `{operands.instruction.mnemonic}` for lanes of its warp that never come"
            f"{who}",
            notes=tuple(notes),
        )

    def _whereabouts(self, thread: int) -> list[Note]:
        for number, threads in self._parked.items():
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

    def _report_spinning(self) -> NoReturn:
        number = min(self._pending)
        threads = self.wave.selected(self._pending[number])
        operands = self._blocks[number].operands
        help_line = None
        if self._waiting_ctas:
            help_line = (
                f"{self._waiting_ctas} CTAs of the grid have not started: only "
                f"{len(self.wave.ctas)} are resident at once; see the option `resident`"
            )
        operands.report(
            FindingKind.DEADLOCK,
            self.wave,
            int(threads[0]),
            "waits in a loop for something that no thread does any more",
            help=help_line,
        )
