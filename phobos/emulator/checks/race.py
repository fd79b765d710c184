"""Data races: two threads touch the same bytes, one of them writes, and nothing orders them.

Within a CTA, barriers and `bar.warp.sync` order; between any threads, so do releases and acquires
through memory: a release is an access with that order, or any strong write after a fence; an
acquire is one with that order, or any strong read before a fence, which acquires what was released
at their places. Two strong accesses never race.
Different CTAs are ordered by nothing else, even if they do not run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Note
from phobos.emulator.checks.clocks import Clocks, Ticks
from phobos.emulator.checks.history import (
    FIRST_READ,
    LAST_READ,
    NOBODY,
    WRITE,
    Flags,
    Granules,
    History,
    Touch,
)
from phobos.emulator.errors import FindingKind
from phobos.emulator.memory.spaces import CONSTANT, LOCAL, SharedSpace
from phobos.emulator.monitor import Monitor, Threads
from phobos.emulator.types import Selection, Value
from phobos.emulator.wave import WARP, Geometry, Wave

if TYPE_CHECKING:
    from phobos.emulator.asynchronous import Copy
    from phobos.emulator.memory.access import Access
    from phobos.emulator.memory.spaces import Space
    from phobos.emulator.memory.store import ByteStore

_RELEASING = frozenset({"release", "acq_rel", "sc"})
_ACQUIRING = frozenset({"acquire", "acq_rel", "sc"})

Released = tuple[Ticks | None, Flags | None]
"""What was released at a place: by warps of this wave, and by which CTAs of earlier ones."""


class RaceMonitor(Monitor):
    """Looks for races in shared and global memory over all waves of a launch.

    `granule` is the smallest number of bytes that any instruction of the program accesses.
    """

    def __init__(self, geometry: Geometry, granule: int) -> None:
        self._geometry = geometry
        self._shift = granule.bit_length() - 1
        self._sites: list[Access] = []
        self._numbers: dict[int, int] = {}
        self._global: History | None = None
        self._shared: History | None = None
        self._clocks: Clocks | None = None
        self._fenced: Flags = np.zeros(0, dtype=np.bool_)
        self._slot_of: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._released: dict[tuple[bool, int], Ticks] = {}
        self._released_before: dict[tuple[bool, int], Flags] = {}
        self._knows_before: dict[int, Flags] = {}
        self._seen: dict[int, dict[tuple[bool, int], Released]] = {}
        """For each thread the places that it read relaxed since its last fence."""

    # Waves ---------------------------------------------------------------------------------------

    def start(self, wave: Wave) -> None:
        """See `Monitor`."""
        self._clocks = Clocks(wave)
        self._shared = None
        self._fenced = np.zeros(wave.size, dtype=np.bool_)
        self._slot_of = np.full(self._geometry.ctas, NOBODY, dtype=np.int32)
        self._slot_of[wave.ctas] = np.arange(len(wave.ctas))

    def finish(self, wave: Wave) -> None:
        """See `Monitor`. What was released stays known by CTA, as clocks end with the wave."""
        per_cta = self._geometry.padded // WARP
        for key, row in self._released.items():
            slots = np.flatnonzero(row[: len(wave.ctas) * per_cta].reshape(-1, per_cta).any(axis=1))
            before = self._released_before.setdefault(
                key, np.zeros(self._geometry.ctas, dtype=np.bool_)
            )
            before[wave.ctas[slots]] = True
        self._released.clear()
        self._knows_before.clear()
        self._seen.clear()

    @property
    def _now(self) -> Clocks:
        assert self._clocks is not None
        return self._clocks

    # Synchronisation -----------------------------------------------------------------------------

    def barrier(self, wave: Wave, slots: Threads, threads: Threads, barrier: int) -> None:
        """See `Monitor`."""
        self._now.barrier(slots, threads, barrier)
        self._fenced[threads] = False

    def arrived(self, wave: Wave, threads: Threads, barrier: Value) -> None:
        """See `Monitor`."""
        self._now.arrived(threads, np.broadcast_to(barrier, threads.shape).astype(np.int64))

    def warp_sync(self, wave: Wave, sel: Selection, mask: Value) -> None:
        """See `Monitor`."""
        threads = wave.selected(sel)
        bits = np.broadcast_to(mask, threads.shape)
        members = ((bits[:, None] >> np.arange(WARP, dtype=np.uint32)) & np.uint32(1)) != 0
        self._now.warp_sync(threads, members)

    def fence(self, wave: Wave, sel: Selection) -> None:
        """See `Monitor`."""
        threads = wave.selected(sel)
        self._fenced[threads] = True
        if self._seen:
            for thread in threads.tolist():
                for released in self._seen.pop(thread, {}).values():
                    self._acquire(thread, released)

    def _acquire(self, thread: int, released: Released) -> None:
        row, before = released
        if row is not None:
            self._now.acquire(thread, row)
        if before is not None:
            known = self._knows_before.get(thread // WARP)
            self._knows_before[thread // WARP] = before if known is None else known | before

    def _synchronise(
        self, wave: Wave, threads: Threads, granules: Granules, access: Access, is_shared: bool
    ) -> None:
        """Strong accesses may acquire what was released at their place, now or at the next fence,
        and may release there.
        """
        releases = self._fenced[threads] & access.is_write
        if access.is_write and access.order in _RELEASING:
            releases = np.ones(len(threads), dtype=np.bool_)
        if not self._released and not self._released_before and not releases.any():
            return
        clocks = self._now
        for thread, granule, gives in zip(
            threads.tolist(), granules.tolist(), releases.tolist(), strict=True
        ):
            # Shared memory exists once a CTA, and its indices differ from CTA to CTA.
            key = (is_shared, granule)
            row = self._released.get(key)
            released = (row, None if is_shared else self._released_before.get(key))
            if access.is_read and not (released[0] is None and released[1] is None):
                if access.order in _ACQUIRING:
                    self._acquire(thread, released)
                else:
                    self._seen.setdefault(thread, {})[key] = released
            if gives:
                own = clocks.release(thread // WARP)
                self._released[key] = own if row is None else clocks.merged(row, own)

    # Accesses ------------------------------------------------------------------------------------

    def access(
        self,
        wave: Wave,
        sel: Selection,
        space: Space,
        store: ByteStore,
        index: Value,
        access: Access,
        values: Sequence[Value] | None,
    ) -> None:
        """See `Monitor`."""
        if space is LOCAL or space is CONSTANT:
            return
        threads = wave.selected(sel)
        first = np.broadcast_to(index >> np.int64(self._shift), threads.shape)
        is_shared = isinstance(space, SharedSpace)
        history = self._history(wave, store, is_shared=is_shared)
        for piece in range(max(1, access.bytes >> self._shift)):
            self._check(wave, history, threads, first + piece, access, is_shared, values)
        if access.is_strong:
            self._synchronise(wave, threads, first, access, is_shared)
        elif access.is_write:
            self._fenced[threads] = False

    def landed(self, wave: Wave, copy: Copy, done: npt.NDArray[np.bool_]) -> None:
        """See `Monitor`. The data counts as written by its thread at the wait."""
        threads = copy.threads[done]
        first = copy.target_index[done] >> np.int64(self._shift)
        history = self._history(wave, copy.target, is_shared=True)
        for piece in range(max(1, copy.size >> self._shift)):
            self._check(wave, history, threads, first + piece, copy.access, True, None)

    def _history(self, wave: Wave, store: ByteStore, *, is_shared: bool) -> History:
        granules = (len(store.bytes) >> self._shift) + 1
        if is_shared:
            if self._shared is None:
                self._shared = History(granules)
            return self._shared
        if self._global is None:
            self._global = History(granules)
        return self._global

    def _check(
        self,
        wave: Wave,
        history: History,
        threads: Threads,
        granules: Granules,
        access: Access,
        is_shared: bool,
        values: Sequence[Value] | None,
    ) -> None:
        clocks = self._now
        ticks = clocks.now[threads // WARP]
        names = threads if is_shared else self._names(wave, threads)
        names = names.astype(np.int32)
        site = 2 * self._site(access) + access.is_strong
        columns = (WRITE, FIRST_READ, LAST_READ) if access.is_write else (WRITE,)
        for which in columns:
            touch = history.touch(which, granules)
            self._compare(wave, threads, granules, access, is_shared, which, touch)
        if not access.is_write:
            first = history.touch(FIRST_READ, granules)
            replaceable = self._ordered(wave, threads, first, is_shared)
            history.note_read(granules, names, ticks, site, replaceable)
            return
        history.note_write(granules, names, ticks, site)
        if not access.is_strong:
            winners = history.touch(WRITE, granules).threads
            self._check_collisions(wave, threads, granules, access, winners != names, values)

    def _names(self, wave: Wave, threads: Threads) -> npt.NDArray[np.int64]:
        """Threads numbered through the whole grid."""
        return wave.ctas[wave.slot[threads]] * self._geometry.padded + wave.in_cta[threads]

    def _site(self, access: Access) -> int:
        number = self._numbers.setdefault(id(access), len(self._sites))
        if number == len(self._sites):
            self._sites.append(access)
        return number

    def _ordered(self, wave: Wave, threads: Threads, touch: Touch, is_shared: bool) -> Flags:
        """Whether earlier touches, if any, happened before what the threads do now."""
        nobody = touch.threads == NOBODY
        others = np.where(nobody, 0, touch.threads).astype(np.int64)
        if is_shared:
            return nobody | self._now.ordered(threads, others, touch.ticks)
        padded = self._geometry.padded
        cta = others // padded
        slot = self._slot_of[cta]
        resident = slot >= 0
        here = np.where(resident, slot * padded + others % padded, 0)
        ordered = self._now.ordered(threads, here, touch.ticks)
        if not resident.all():
            ordered = np.where(resident, ordered, self._knew(threads, cta))
        return nobody | ordered

    def _knew(self, threads: Threads, cta: npt.NDArray[np.int64]) -> Flags:
        """Whether threads acquired what CTAs of earlier waves released."""
        if not self._knows_before:
            return np.zeros(len(threads), dtype=np.bool_)
        nothing = np.zeros(self._geometry.ctas, dtype=np.bool_)
        return np.array(
            [
                self._knows_before.get(warp, nothing)[number]
                for warp, number in zip((threads // WARP).tolist(), cta.tolist(), strict=True)
            ]
        )

    # Reports -------------------------------------------------------------------------------------

    def _compare(
        self,
        wave: Wave,
        threads: Threads,
        granules: Granules,
        access: Access,
        is_shared: bool,
        which: int,
        touch: Touch,
    ) -> None:
        racing = ~self._ordered(wave, threads, touch, is_shared)
        if access.is_strong:
            racing &= ~touch.strong
        if not racing.any():
            return
        place = int(np.argmax(racing))
        other = self._sites[int(touch.sites[place]) >> 1]
        self._report(
            wave,
            int(threads[place]),
            int(granules[place]),
            access,
            is_shared,
            other,
            int(touch.threads[place]),
            is_write=which == WRITE,
        )

    def _report(
        self,
        wave: Wave,
        thread: int,
        granule: int,
        access: Access,
        is_shared: bool,
        other: Access,
        other_thread: int,
        *,
        is_write: bool,
    ) -> NoReturn:
        geometry = self._geometry
        own_cta = int(wave.ctas[thread // geometry.padded])
        if is_shared:
            other_thread = self._thread_of(wave, other_thread)
            cta = int(wave.ctas[other_thread // geometry.padded])
            place = granule << self._shift
            address = place % wave.memories.shared.stride
            where = f"{address:#x} in shared memory"
        else:
            cta = other_thread // geometry.padded
            start = granule << self._shift
            buffer = wave.memories.buffers.buffer_of_index(start)
            address = buffer.address + start - buffer.start
            where = f"byte {start - buffer.start} of {buffer.name}"
        who = self._named(own_cta, cta, other_thread)
        did = "writes" if is_write else "reads"
        access.operands.report(
            FindingKind.RACE,
            wave,
            thread,
            f"{access.verb} {where}, which {who} {did} with nothing to order the two",
            address=address,
            notes=(Note(f"{who} {did} it here", other.operands.location),),
        )

    def _named(self, own_cta: int, cta: int, thread: int) -> str:
        """A thread in words, with its CTA if that is another."""
        geometry = self._geometry
        who = f"thread {geometry.thread_index(thread % geometry.padded)}"
        return who if cta == own_cta else f"CTA {geometry.cta_index(cta)}, {who}"

    def _who(self, wave: Wave, thread: int, other: int) -> str:
        """Another thread of the wave in words, as seen from one."""
        own, its = (int(wave.ctas[t // self._geometry.padded]) for t in (thread, other))
        return self._named(own, its, other)

    def _thread_of(self, wave: Wave, name: int) -> int:
        """The thread of the wave that a name in the history of shared memory stands for."""
        return name

    def _check_collisions(
        self,
        wave: Wave,
        threads: Threads,
        granules: Granules,
        access: Access,
        lost: Flags,
        values: Sequence[Value] | None,
    ) -> None:
        """Threads that write one place in one instruction race, unless they write the same."""
        if not lost.any():
            return
        order = np.argsort(granules, kind="stable")
        places = granules[order]
        same_place = places[1:] == places[:-1]
        differs = np.ones(len(same_place), dtype=np.bool_)
        if values is not None:
            differs[:] = False
            for value in values:
                spread = np.broadcast_to(value, threads.shape)[order]
                raw = np.ascontiguousarray(spread).view(f"u{spread.dtype.itemsize}")
                differs |= raw[1:] != raw[:-1]
        bad = np.flatnonzero(same_place & differs)
        if not len(bad):
            return
        first, second = int(order[bad[0]]), int(order[bad[0] + 1])
        self._report_collision(wave, access, int(threads[second]), int(threads[first]))

    def _report_collision(self, wave: Wave, access: Access, thread: int, other: int) -> NoReturn:
        geometry = self._geometry
        cta = geometry.cta_index(int(wave.ctas[other // geometry.padded]))
        index = geometry.thread_index(other % geometry.padded)
        access.operands.report(
            FindingKind.RACE,
            wave,
            thread,
            f"{access.verb} the same place as CTA {cta}, thread {index} in the same instruction, "
            "but another value",
        )
