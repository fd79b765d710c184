"""Races with bulk copies, and the order that mbarriers and barriers of clusters make.

What threads did before they arrive at an mbarrier happens before what threads do that have seen
the phase end. A load into shared memory writes from its issue on, in the name of an agent of its
mbarrier whose ticks are phases: those who have seen the phase end know of it. Its issue must be
ordered behind all that touched the bytes before. A store reads from its issue until its thread
has waited, in the name of the thread. Global memory counts as touched at the issue.

Copies go through the asynchronous proxy: bytes that a thread stored, and mbarriers that it
initialised, need a fence of that thread behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Note
from phobos.emulator.bulk import BulkLoad, BulkStore
from phobos.emulator.checks.clocks import Ticks
from phobos.emulator.checks.history import FIRST_READ, LAST_READ, WRITE, Granules, Touch
from phobos.emulator.checks.product_race import ProductRaceMonitor
from phobos.emulator.errors import FindingKind
from phobos.emulator.mbarriers import MBARRIER_BYTES
from phobos.emulator.monitor import Numbers, Rows, Threads
from phobos.emulator.types import Selection
from phobos.emulator.wave import WARP, Geometry, Wave

if TYPE_CHECKING:
    from phobos.emulator.decode import Operands
    from phobos.emulator.memory.access import Access
    from phobos.emulator.memory.store import ByteStore


class Meeting:
    """What threads told at one kind of barrier: in phases that go on, and in those that ended."""

    def __init__(self) -> None:
        self._open: Ticks = np.zeros((0, 0), dtype=np.int32)
        self._ended: Ticks = np.zeros((0, 0), dtype=np.int32)

    def fit(self, barriers: int, columns: int) -> None:
        """Make room for so many barriers and clocks."""
        rows, width = self._open.shape
        if barriers > rows or columns > width:
            more = ((0, max(0, barriers - rows)), (0, max(0, columns - width)))
            self._open, self._ended = np.pad(self._open, more), np.pad(self._ended, more)

    def tell(self, barrier: int, row: Ticks) -> None:
        """Somebody arrives."""
        self._open[barrier] = np.maximum(self._open[barrier], row)

    def end(self, barriers: npt.NDArray[np.integer]) -> None:
        """Phases end."""
        self._ended[barriers] = np.maximum(self._ended[barriers], self._open[barriers])
        self._open[barriers] = 0

    def note(self, barriers: Numbers, columns: Numbers, ticks: Numbers) -> None:
        """Whoever sees the end of a phase knows of others' work, too."""
        self._ended[barriers, columns] = ticks

    def told(self, barriers: npt.NDArray[np.integer]) -> Ticks:
        """What those know who have seen the end of a phase."""
        return self._ended[barriers]


@dataclass(frozen=True)
class _Made:
    """Who initialised an mbarrier and when: by the clock of its warp, and by that of fences."""

    thread: int
    tick: int
    time: int
    operands: Operands


class BulkRaceMonitor(ProductRaceMonitor):
    """The race check of programs with bulk copies, mbarriers or clusters."""

    def __init__(self, geometry: Geometry, granule: int) -> None:
        super().__init__(geometry, granule)
        self._phases, self._clusters = Meeting(), Meeting()
        self._first_agent = 0
        self._loader: dict[int, int] = {}
        self._made: dict[int, _Made] = {}
        self._fenced_init: Numbers = np.zeros(0, dtype=np.int64)

    def start(self, wave: Wave) -> None:
        """See `Monitor`."""
        super().start(wave)
        self._phases, self._clusters = Meeting(), Meeting()
        self._first_agent = self._now.agents
        self._clusters.fit(len(wave.ctas) // wave.geometry.cluster_size, self._now.columns)
        self._loader.clear()
        self._made.clear()
        self._fenced_init = np.zeros(wave.size, dtype=np.int64)

    # Order ---------------------------------------------------------------------------------------

    def _tell(self, meeting: Meeting, barriers: npt.NDArray[np.integer], threads: Threads) -> None:
        for barrier in np.unique(barriers).tolist():
            warps = np.unique(threads[barriers == barrier] // WARP)
            meeting.tell(barrier, self._now.release_all(warps))

    def mbarrier_arrived(self, wave: Wave, threads: Threads, barriers: Numbers) -> None:
        """See `Monitor`."""
        self._tell(self._phases, barriers, threads)

    def phase_completed(self, wave: Wave, barriers: Numbers) -> None:
        """See `Monitor`."""
        self._phases.end(barriers)
        columns = len(self._now.now) + self._first_agent + barriers
        self._phases.note(barriers, columns, wave.mbarriers.completed[barriers])

    def phase_waited(self, wave: Wave, threads: Threads, barriers: Numbers) -> None:
        """See `Monitor`."""
        self._now.acquire_all(threads, self._phases.told(barriers))

    def cluster_arrived(self, wave: Wave, threads: Threads) -> None:
        """See `Monitor`."""
        self._clusters.fit(0, self._now.columns)
        self._tell(self._clusters, wave.slot[threads] // wave.geometry.cluster_size, threads)

    def cluster_completed(self, wave: Wave, clusters: Threads) -> None:
        """See `Monitor`."""
        self._clusters.end(clusters)

    def cluster_waited(self, wave: Wave, threads: Threads) -> None:
        """See `Monitor`."""
        clusters = wave.slot[threads] // wave.geometry.cluster_size
        self._now.acquire_all(threads, self._clusters.told(clusters))

    # Mbarriers -----------------------------------------------------------------------------------

    def mbarrier(
        self, wave: Wave, threads: Threads, store: ByteStore, index: Numbers, access: Access
    ) -> None:
        """See `Monitor`. Only their initialisation and end race with what others do there."""
        history = self._history(wave, store, is_shared=True)
        first = index >> np.int64(self._shift)
        for piece in range(max(1, MBARRIER_BYTES >> self._shift)):
            self._check(wave, history, threads, first + piece, access, True, None)
        if access.is_strong:
            self._check_ordered(wave, threads, wave.mbarriers.find(index), access)

    def _check_ordered(
        self, wave: Wave, threads: Threads, numbers: Numbers, access: Access
    ) -> None:
        """Raise if threads use mbarriers that were not initialised before."""
        for number in np.unique(numbers[numbers >= 0]).tolist():
            made = self._made[number]
            users = threads[numbers == number]
            makers = np.full(len(users), made.thread)
            late = ~self._now.ordered(users, makers, np.full(len(users), made.tick, np.int32))
            if late.any():
                user = int(users[int(np.argmax(late))])
                who = self._who(wave, user, made.thread)
                access.operands.report(
                    FindingKind.RACE,
                    wave,
                    user,
                    f"{access.verb} an mbarrier that {who} initialised with nothing to order the "
                    "two",
                    notes=(Note(f"{who} initialised it here", made.operands.location),),
                )

    def mbarrier_made(
        self, wave: Wave, threads: Threads, barriers: Numbers, operands: Operands
    ) -> None:
        """See `Monitor`."""
        self._now.add_agents(self._first_agent + wave.mbarriers.count)
        self._phases.fit(wave.mbarriers.count, self._now.columns)
        for thread, number in zip(threads.tolist(), barriers.tolist(), strict=True):
            tick = int(self._now.now[thread // WARP])
            self._made[number] = _Made(thread, tick, self._time, operands)

    def mbarrier_fence(self, wave: Wave, sel: Selection) -> None:
        """See `Monitor`."""
        self._time += 1
        self._fenced_init[wave.selected(sel)] = self._time

    def _check_made(self, wave: Wave, load: BulkLoad) -> None:
        made = self._made[load.barrier]
        fenced = max(self._fenced_init[made.thread], self._fenced_proxy[made.thread])
        if made.time < fenced:
            return
        who = self._who(wave, load.thread, made.thread)
        load.operands.report(
            FindingKind.RACE,
            wave,
            load.thread,
            f"copies with an mbarrier that {who} initialised without a fence behind it",
            notes=(Note(f"{who} initialised it here", made.operands.location),),
            help="put `fence.mbarrier_init.release.cluster` behind it, before the barrier",
        )

    # Copies --------------------------------------------------------------------------------------

    def load_issued(self, wave: Wave, load: BulkLoad) -> None:
        """See `Monitor`."""
        self._check_made(wave, load)
        history = self._history(wave, wave.memories.shared.store, is_shared=True)
        granules = self._span(load.start, load.size)
        threads = np.full(len(granules), load.thread, dtype=np.intp)
        access = load.access
        for which in (WRITE, FIRST_READ, LAST_READ):
            touch = history.touch(which, granules)
            self._compare(wave, threads, granules, access, True, which, touch)
        self._check_fenced(wave, threads, granules, access, history.touch(WRITE, granules))
        agent = self._first_agent + load.barrier
        self._loader[agent] = load.thread
        name = np.full(len(granules), wave.size + WARP * agent, dtype=np.int32)
        tick = np.full(len(granules), wave.mbarriers.completed[load.barrier] + 1, dtype=np.int32)
        history.note_write(granules, name, tick, 2 * self._site(access))

    def store_issued(self, wave: Wave, store: BulkStore) -> None:
        """See `Monitor`."""
        history = self._history(wave, wave.memories.shared.store, is_shared=True)
        granules = self._span(store.start, store.size)
        threads = np.full(len(granules), store.thread, dtype=np.intp)
        written = history.touch(WRITE, granules)
        self._compare(wave, threads, granules, store.access, True, WRITE, written)
        self._check_fenced(wave, threads, granules, store.access, written)

    def store_read(self, wave: Wave, store: BulkStore) -> None:
        """See `Monitor`."""
        history = self._history(wave, wave.memories.shared.store, is_shared=True)
        granules = self._span(store.start, store.size)
        threads = np.full(len(granules), store.thread, dtype=np.intp)
        replaceable = self._ordered(wave, threads, history.touch(FIRST_READ, granules), True)
        ticks = self._now.now[threads // WARP]
        names = threads.astype(np.int32)
        history.note_read(granules, names, ticks, 2 * self._site(store.access), replaceable)

    def bulk_copy(
        self, wave: Wave, thread: int, outside: Access, inside: Access, rows: Rows, size: int
    ) -> None:
        """See `Monitor`."""
        starts, length = rows
        if not length:
            return
        # Granules that rows share with their neighbours are left out.
        granule = 1 << self._shift
        first = -(-starts // granule)
        count = int((starts[0] + length) // granule - first[0])
        granules = np.unique(first[:, None] + np.arange(max(0, count)))
        threads = np.full(len(granules), thread, dtype=np.intp)
        history = self._history(wave, wave.memories.buffers.store, is_shared=False)
        self._check(wave, history, threads, granules, outside, False, None)

    # Ends ----------------------------------------------------------------------------------------

    def ctas_ended(self, wave: Wave, slots: Threads) -> None:
        """See `Monitor`. What other CTAs did to their memory must have been ordered before."""
        history = self._history(wave, wave.memories.shared.store, is_shared=True)
        stride, padded = wave.memories.shared.stride, wave.geometry.padded
        for slot in slots.tolist():
            granules = self._span(slot * stride, stride)
            known = self._now.known[slot * padded // WARP : (slot + 1) * padded // WARP].max(axis=0)
            for which in (WRITE, FIRST_READ, LAST_READ):
                touch = history.touch(which, granules)
                other = (touch.threads >= 0) & (touch.threads < wave.size)
                other &= touch.threads // padded != slot
                late = other & (touch.ticks > known[np.where(other, touch.threads, 0) // WARP])
                if late.any():
                    self._report_late(wave, slot, touch, int(np.argmax(late)))

    def _report_late(self, wave: Wave, slot: int, touch: Touch, place: int) -> NoReturn:
        access = self._sites[int(touch.sites[place]) >> 1]
        cta = wave.geometry.cta_index(int(wave.ctas[slot]))
        address = place << self._shift
        access.operands.report(
            FindingKind.RACE,
            wave,
            int(touch.threads[place]),
            f"{access.verb} {address:#x} in shared memory of CTA {cta}, which may have ended",
            address=address,
            help="let the cluster meet at `barrier.cluster` behind it",
        )

    def _span(self, start: int, size: int) -> Granules:
        return np.arange(start >> self._shift, (start + size) >> self._shift)

    def _thread_of(self, wave: Wave, name: int) -> int:
        """See `RaceMonitor`. The agent of an mbarrier stands for who copied last with it."""
        agent = (name - wave.size) // WARP
        return self._loader[agent] if agent in self._loader else super()._thread_of(wave, name)
