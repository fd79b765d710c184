"""Barriers in shared memory: `mbarrier` objects, their phases and who waits for them.

A phase ends when no arrival is pending and the bytes that were expected have come; the next one
starts at once. Phases count from 0; a wait names one by its parity or by the state that an
arrival gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Note
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import WARP

if TYPE_CHECKING:
    from phobos.emulator.decode import Operands
    from phobos.emulator.wave import Wave

MBARRIER_BYTES = 8
MAX_COUNT = 2**20 - 1
"""The largest count of arrivals, and of bytes that a phase may wait for."""

_PENDING_BITS = 20
_NOBODY = -1
_MOST_NOTES = 3

IntArray = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Threads = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Arrival:
    """What an arrival does: how it counts, and whether it lowers the count of later phases.

    `may_complete` is false where the kernel promises that the phase goes on.
    """

    drops: bool = False
    may_complete: bool = True


class Mbarriers:
    """The mbarriers of all CTAs of a wave, numbered in the order of their initialisation.

    They are named by their byte index in the store of shared memory. An mbarrier that is
    initialised again keeps its number.
    """

    def __init__(self, wave: Wave) -> None:
        self._wave = wave
        # Byte indices in order, and the number of the mbarrier at each.
        self._places: IntArray = np.zeros(0, dtype=np.int64)
        self._numbers: IntArray = np.zeros(0, dtype=np.int64)
        self._index: IntArray = np.zeros(0, dtype=np.int64)
        self._expected: IntArray = np.zeros(0, dtype=np.int64)
        self._pending: IntArray = np.zeros(0, dtype=np.int64)
        self._bytes: IntArray = np.zeros(0, dtype=np.int64)
        self._is_live: Flags = np.zeros(0, dtype=np.bool_)
        self._made: list[Operands] = []
        self._waits_at: npt.NDArray[np.int32] | None = None
        self._wait_sites: dict[int, Operands] = {}
        self.phase: IntArray = np.zeros(0, dtype=np.int64)
        # Phases that ended, over all lives of an mbarrier.
        self.completed: IntArray = np.zeros(0, dtype=np.int64)

    @property
    def count(self) -> int:
        """How many mbarriers there are or were."""
        return len(self._index)

    @property
    def are_live(self) -> bool:
        """Whether any place in shared memory is an mbarrier."""
        return bool(self._is_live.any())

    def slot(self, number: int) -> int:
        """The CTA slot of an mbarrier."""
        return int(self._index[number]) // self._wave.memories.shared.stride

    # Life ----------------------------------------------------------------------------------------

    def init(self, ops: Operands, threads: Threads, index: IntArray, counts: IntArray) -> IntArray:
        """Make mbarriers; returns their numbers."""
        for place, count in enumerate(counts.tolist()):
            if not 1 <= count <= MAX_COUNT:
                self._fault(
                    ops,
                    threads,
                    index,
                    place,
                    "initialises",
                    f"with a count of {count}",
                    f"counts go from 1 to {MAX_COUNT}",
                )
        known = self.find(index)
        again = (known >= 0) & self._is_live[np.maximum(known, 0)] if self.count else known >= 0
        _, first = np.unique(index, return_index=True)
        again |= ~np.isin(np.arange(len(index)), first)
        if again.any():
            self._report_again(ops, threads, index, int(np.argmax(again)), known)
        fresh = np.flatnonzero(known < 0)
        known[fresh] = self.count + np.arange(len(fresh))
        self._add(index[fresh])
        self._made += [ops] * len(fresh)
        for number in known.tolist():
            self._made[number] = ops
        self._expected[known] = self._pending[known] = counts
        self._bytes[known] = 0
        self.phase[known] = 0
        self._is_live[known] = True
        self._mark(index, is_live=True)
        self._wave.memory_version += 1
        if self._wave.monitor is not None:
            self._wave.monitor.mbarrier_made(self._wave, threads, known, ops)
        return known

    def _add(self, index: IntArray) -> None:
        extra = np.zeros(len(index), dtype=np.int64)
        self._index = np.concatenate((self._index, index))
        self._expected = np.concatenate((self._expected, extra))
        self._pending = np.concatenate((self._pending, extra))
        self._bytes = np.concatenate((self._bytes, extra))
        self.phase = np.concatenate((self.phase, extra))
        self.completed = np.concatenate((self.completed, extra))
        self._is_live = np.concatenate((self._is_live, extra != 0))
        self._numbers = np.argsort(self._index, kind="stable")
        self._places = self._index[self._numbers]

    def invalidate(self, ops: Operands, threads: Threads, index: IntArray) -> None:
        """End mbarriers; their memory is free for other use."""
        numbers = self.named(ops, threads, index, "invalidates")
        self._is_live[numbers] = False
        self._mark(index, is_live=False)
        self._wave.memory_version += 1

    def _mark(self, index: IntArray, *, is_live: bool) -> None:
        store = self._wave.memories.shared.store
        store.mark_barriers(index[:, None] + np.arange(MBARRIER_BYTES), is_live=is_live)

    def find(self, index: IntArray) -> IntArray:
        """The numbers of the mbarriers at byte indices; -1 where there never was one."""
        if not self.count:
            return np.full(len(index), _NOBODY, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._places, index), self.count - 1)
        return np.where(self._places[at] == index, self._numbers[at], _NOBODY)

    def named(self, ops: Operands, threads: Threads, index: IntArray, verb: str) -> IntArray:
        """The numbers of live mbarriers; raises where there is none.

        `verb` says what the threads do, as in "arrives at".
        """
        numbers = self.find(index)
        bad = numbers < 0
        if self.count:
            bad |= ~self._is_live[np.maximum(numbers, 0)]
        if bad.any():
            place = int(np.argmax(bad))
            reason = "nothing initialised" if numbers[place] < 0 else "was invalidated"
            address = self._address(int(index[place]))
            ops.report(
                FindingKind.UNINITIALISED,
                self._wave,
                int(threads[place]),
                f"{verb} {self._name(int(index[place]))}, which {reason}",
                address=address,
            )
        return numbers

    # Arrivals and bytes --------------------------------------------------------------------------

    def arrive(
        self, ops: Operands, threads: Threads, numbers: IntArray, counts: IntArray, kind: Arrival
    ) -> npt.NDArray[np.uint64]:
        """Count arrivals; returns the state of each mbarrier as each thread found it."""
        if not counts.all():
            place = int(np.argmin(counts != 0))
            self._complain(
                ops, threads, numbers, place, "arrives at", "with a count of 0",
                f"counts go from 1 to {MAX_COUNT}",
            )  # fmt: skip
        states = self._states(numbers, counts)
        # The arrivals of a warp come as one; those of different warps one after the other.
        keys, turn = np.unique(numbers * self._wave.size + threads // WARP, return_inverse=True)
        which = keys // self._wave.size
        sums = np.bincount(turn, weights=counts, minlength=len(keys)).astype(np.int64)
        totals = np.bincount(which, weights=sums, minlength=self.count).astype(np.int64)
        if not kind.may_complete and (totals >= self._pending)[which].any():
            place = int(np.argmax((totals >= self._pending)[numbers]))
            self._complain(
                ops, threads, numbers, place, "arrives at", "by `.noComplete`",
                "this would complete its phase",
            )  # fmt: skip
        if (totals <= self._pending).all():
            self._count(np.unique(which), totals[np.unique(which)], kind)
        else:
            for number, amount in zip(which.tolist(), sums.tolist(), strict=True):
                if amount > self._pending[number]:
                    self._report_too_many(ops, threads, numbers, number, amount)
                self._count(np.array([number]), np.array([amount]), kind)
        self._wave.memory_version += 1
        return states

    def _count(self, which: IntArray, amounts: IntArray, kind: Arrival) -> None:
        self._pending[which] -= amounts
        if kind.drops:
            self._expected[which] -= amounts
        self._complete(which)

    def _states(self, numbers: IntArray, counts: IntArray) -> npt.NDArray[np.uint64]:
        """Phase and pending arrivals that each thread finds, if they come one after the other."""
        order = np.argsort(numbers, kind="stable")
        sums = np.cumsum(counts[order]) - counts[order]
        starts = np.append(True, np.diff(numbers[order]) != 0)
        sums -= np.maximum.accumulate(np.where(starts, sums, 0))
        before = np.empty_like(sums)
        before[order] = sums
        pending, expected = self._pending[numbers], np.maximum(self._expected[numbers], 1)
        later = before - pending
        phase = self.phase[numbers] + np.where(later < 0, 0, 1 + later // expected)
        left = np.where(later < 0, -later, expected - later % expected)
        return ((phase << _PENDING_BITS) | left).astype(np.uint64)

    def expect(self, ops: Operands, threads: Threads, numbers: IntArray, sizes: IntArray) -> None:
        """Let the open phase wait for bytes."""
        np.add.at(self._bytes, numbers, sizes)
        self._check_bytes(ops, threads, numbers)
        self._wave.memory_version += 1

    def receive(self, ops: Operands, threads: Threads, numbers: IntArray, sizes: IntArray) -> None:
        """Bytes have come; the phase may end."""
        np.subtract.at(self._bytes, numbers, sizes)
        self._check_bytes(ops, threads, numbers)
        self._complete(np.unique(numbers))
        self._wave.memory_version += 1

    def _check_bytes(self, ops: Operands, threads: Threads, numbers: IntArray) -> None:
        beyond = np.abs(self._bytes[numbers]) > MAX_COUNT
        if beyond.any():
            place = int(np.argmax(beyond))
            number = int(numbers[place])
            self._complain(
                ops,
                threads,
                numbers,
                place,
                "changes the bytes that",
                "waits for",
                f"they would be {int(self._bytes[number])}, and the count goes to {MAX_COUNT}",
            )

    def _complete(self, which: IntArray) -> None:
        """End the phases that wait for nothing more."""
        done = which[(self._pending[which] == 0) & (self._bytes[which] == 0)]
        if not len(done):
            return
        self.phase[done] += 1
        self.completed[done] += 1
        self._pending[done] = self._expected[done]
        if self._wave.monitor is not None:
            self._wave.monitor.phase_completed(self._wave, done)

    # Waiting -------------------------------------------------------------------------------------

    def wait_parity(
        self, ops: Operands, threads: Threads, numbers: IntArray, parity: IntArray
    ) -> Flags:
        """Whether the last phase of a parity has ended."""
        odd = np.flatnonzero((parity != 0) & (parity != 1))
        if len(odd):
            place = int(odd[0])
            self._complain(
                ops,
                threads,
                numbers,
                place,
                "waits at",
                f"for parity {int(parity[place])}",
                "a parity is 0 or 1",
            )
        return self._wait(ops, threads, numbers, lambda: (self.phase[numbers] & 1) != parity)

    def wait_state(
        self, ops: Operands, threads: Threads, numbers: IntArray, states: npt.NDArray[np.uint64]
    ) -> Flags:
        """Whether the phase that a state names has ended."""
        wanted = (states >> np.uint64(_PENDING_BITS)).astype(np.int64)
        ready = self._wait(ops, threads, numbers, lambda: wanted < self.phase[numbers])
        phase = self.phase[numbers]
        wrong = (wanted > phase) | (wanted < phase - 1)
        if wrong.any():
            place = int(np.argmax(wrong))
            self._complain(
                ops,
                threads,
                numbers,
                place,
                "waits at",
                f"for phase {int(wanted[place])}",
                f"it is in phase {int(phase[place])}, and a wait knows that and the one before",
            )
        return ready

    def _wait(
        self, ops: Operands, threads: Threads, numbers: IntArray, test: Callable[[], Flags]
    ) -> Flags:
        """Test phases; those that have not ended get what copies in flight bring."""
        wave = self._wave
        ready = test()
        if not ready.all() and wave.bulk.land_for(numbers[~ready]):
            ready = test()
        if self._waits_at is None:
            self._waits_at = np.full(wave.size, _NOBODY, dtype=np.int32)
        self._waits_at[threads] = np.where(ready, _NOBODY, numbers)
        for number in np.unique(numbers[~ready]).tolist():
            self._wait_sites[number] = ops
        if ready.any():
            wave.bulk.close(numbers[ready])
        return ready

    # Reports -------------------------------------------------------------------------------------

    def _address(self, index: int) -> int:
        return index % self._wave.memories.shared.stride

    def _name(self, index: int) -> str:
        """An mbarrier in words, with its CTA where there are clusters."""
        wave = self._wave
        found = f"the mbarrier at {self._address(index):#x}"
        if wave.geometry.cluster_size == 1:
            return found
        cta = int(wave.ctas[index // wave.memories.shared.stride])
        return f"{found} of CTA {wave.geometry.cta_index(cta)}"

    def _fault(
        self, ops: Operands, threads: Threads, index: IntArray, place: int, *parts: str,
        notes: Sequence[Note] = (),
    ) -> NoReturn:  # fmt: skip
        """Report what is wrong: verb, what follows the mbarrier's name, and the rule."""
        verb, what, rule = parts
        address = self._address(int(index[place]))
        middle = f" {what}" if what else ""
        ops.report(
            FindingKind.MBARRIER,
            self._wave,
            int(threads[place]),
            f"{verb} {self._name(int(index[place]))}{middle}; {rule}",
            address=address,
            notes=tuple(notes),
        )

    def _complain(
        self, ops: Operands, threads: Threads, numbers: IntArray, place: int, *parts: str
    ) -> NoReturn:
        """Like `_fault`, for mbarriers that there are."""
        note = self._origin(int(numbers[place]))
        self._fault(ops, threads, self._index[numbers], place, *parts, notes=(note,))

    def _origin(self, number: int) -> Note:
        return Note("the mbarrier was initialised here", self._made[number].location)

    def _report_again(
        self, ops: Operands, threads: Threads, index: IntArray, place: int, known: IntArray
    ) -> NoReturn:
        notes = [] if known[place] < 0 else [self._origin(int(known[place]))]
        rule = "it is in use until `mbarrier.inval`" if notes else "another thread does so, too"
        self._fault(ops, threads, index, place, "initialises", "again", rule, notes=notes)

    def _report_too_many(
        self, ops: Operands, threads: Threads, numbers: IntArray, number: int, amount: int
    ) -> NoReturn:
        place = int(np.flatnonzero(numbers == number)[-1])
        expected, pending = int(self._expected[number]), int(self._pending[number])
        phase, missing = int(self.phase[number]), int(self._bytes[number])
        if pending:
            what = f"with its warp, {amount} times at once, in phase {phase}"
            rule = f"it waits for {pending} of its {expected} arrivals"
        else:
            what = f"in phase {phase}, which has all of its {expected} arrivals"
            rule = f"it lacks {self._missing_bytes(missing)}"
        self._complain(ops, threads, numbers, place, "arrives at", what, rule)

    def _missing_bytes(self, missing: int) -> str:
        if missing >= 0:
            return f"{missing} more bytes"
        return f"the expectation of {-missing} bytes"

    def report_deadlock(self, threads: Threads, help: str | None) -> None:
        """Report threads, if any wait here, for phases that nothing will end.

        The first is one whose phase has all arrivals: no other that waits can end it.
        """
        if self._waits_at is None:
            return
        waiting = threads[self._waits_at[threads] >= 0]
        numbers, first = np.unique(self._waits_at[waiting], return_index=True)
        if not len(numbers):
            return
        order = np.argsort(self._pending[numbers] > 0, kind="stable")
        (number, thread), *others = zip(
            numbers[order].tolist(), waiting[first[order]].tolist(), strict=True
        )
        notes = [self._origin(number)]
        for other, waiter in others[:_MOST_NOTES]:
            index = self._wave.geometry.thread_index(waiter % self._wave.geometry.padded)
            text = f"thread {index} waits at {self._waited_for(other)}, here"
            notes.append(Note(text, self._wait_sites[other].location))
        self._wait_sites[number].report(
            FindingKind.DEADLOCK,
            self._wave,
            thread,
            f"waits at {self._waited_for(number)} that never come",
            address=self._address(int(self._index[number])),
            notes=tuple(notes),
            help=help,
        )

    def _waited_for(self, number: int) -> str:
        """An mbarrier, its phase and what that lacks."""
        pending, missing = int(self._pending[number]), int(self._bytes[number])
        lacks = [f"{pending} of {int(self._expected[number])} arrivals"] if pending else []
        lacks += [self._missing_bytes(missing)] if missing else []
        phase = int(self.phase[number])
        return (
            f"{self._name(int(self._index[number]))} for phase {phase} (parity {phase & 1}), which "
            f"lacks {' and '.join(lacks)}"
        )
