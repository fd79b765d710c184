"""Bulk copies: issued by one thread, landed by the time that somebody waits for them.

A load writes shared memory and then counts its bytes at an mbarrier. The bytes that it is going to
write count as in flight until a wait for the phase that counted them succeeds. A store reads
shared memory until its thread has waited for its group, with `.read` or without, and writes global
memory until a wait without. When the data really moves is open: by default as late as can be,
with a seed at any time between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Note
from phobos.emulator.errors import FindingKind
from phobos.emulator.memory.store import BARRIER, IN_FLIGHT, ByteStore
from phobos.emulator.types import Selection, Value

if TYPE_CHECKING:
    from phobos.emulator.decode import Operands
    from phobos.emulator.memory.access import Access
    from phobos.emulator.wave import Wave

Bytes = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_NOT_LANDED = -1


@dataclass(eq=False)
class BulkLoad:
    """A copy into the shared memory of one CTA.

    Attributes:
        operands: The instruction.
        access: Its writes to shared memory.
        thread: Who issued it.
        start: The first byte of the target in the store of shared memory.
        size: Bytes of the target.
        barrier: The number of the mbarrier that counts them.
        read: Takes the bytes from where they come, as they are now.
        phase: The phase of the mbarrier that counted the bytes, once they have landed.
    """

    operands: Operands
    access: Access
    thread: int
    start: int
    size: int
    barrier: int
    read: Callable[[], Bytes]
    phase: int = _NOT_LANDED

    @property
    def has_landed(self) -> bool:
        """Whether the data has moved."""
        return self.phase != _NOT_LANDED


@dataclass(eq=False)
class BulkStore:
    """A copy out of shared memory, as `BulkLoad`.

    `write` puts the bytes where they go; `content` are the bytes once they were read.
    """

    operands: Operands
    access: Access
    thread: int
    start: int
    size: int
    group: int
    write: Callable[[Bytes], None]
    content: Bytes | None = None
    is_reading: bool = True
    is_written: bool = False


class BulkCopies:
    """The bulk copies of a wave that nobody has waited for yet."""

    def __init__(self, wave: Wave, generator: np.random.Generator | None) -> None:
        self._wave = wave
        self._generator = generator
        self._loads: list[BulkLoad] = []
        self._stores: list[BulkStore] = []
        self._group: dict[int, int] = {}

    @property
    def are_loading(self) -> bool:
        """Whether shared memory may be written by a copy in flight."""
        return bool(self._loads)

    @property
    def are_storing(self) -> bool:
        """Whether shared memory may be read by a copy in flight."""
        return bool(self._stores)

    def _is_drawn(self) -> bool:
        return self._generator is not None and bool(self._generator.integers(2))

    @property
    def _store(self) -> ByteStore:
        return self._wave.memories.shared.store

    # Loads ---------------------------------------------------------------------------------------

    def issue_load(self, load: BulkLoad) -> None:
        """Start a load; raises where it disturbs what is in flight."""
        self._check_target(load)
        shadow = self._store.shadow
        if shadow is not None:
            shadow[load.start : load.start + load.size] |= IN_FLIGHT
        if self._wave.monitor is not None:
            self._wave.monitor.load_issued(self._wave, load)
        self._loads.append(load)
        if self._is_drawn():
            self._land(load)

    def _check_target(self, load: BulkLoad) -> None:
        """Nothing else in flight may touch what the load writes."""
        wave = self._wave
        places = np.arange(load.start, load.start + load.size, 16)
        threads = np.full(len(places), load.thread, dtype=np.intp)
        address = (places % wave.memories.shared.stride).astype(np.uint32)
        access = load.access
        if wave.products.are_reading:
            wave.products.check_write(wave, threads, address, access, places)
        if self._stores:
            self.check_write(wave, threads, address, access, places)
        shadow = self._store.shadow
        if shadow is None:
            return
        marks = shadow[load.start : load.start + load.size]
        if (marks & BARRIER).any():
            access.fault(
                FindingKind.MBARRIER,
                wave,
                threads,
                address,
                np.asarray((marks.reshape(-1, 16) & BARRIER).any(axis=1)),
                "in shared memory, where an mbarrier is in use until `mbarrier.inval`",
            )
        busy = marks & IN_FLIGHT != 0
        if busy.any():
            place = int(np.argmax(busy))
            byte = load.start + place
            found = self.find(self._store, byte) or wave.copies.find(self._store, byte)
            notes = (
                () if found is None else (Note("it was issued here", found[0].operands.location),)
            )
            access.fault(
                FindingKind.RACE,
                wave,
                threads[:1],
                address[:1],
                np.ones(1, dtype=np.bool_),
                "in shared memory, while an asynchronous copy to it was not waited for",
                notes,
            )

    def _land(self, load: BulkLoad) -> None:
        wave, barriers = self._wave, self._wave.mbarriers
        store, end = self._store, load.start + load.size
        store.bytes[load.start : end] = load.read()
        store.mark_written(slice(load.start, end))
        load.phase = int(barriers.phase[load.barrier])
        barriers.receive(
            load.operands,
            np.array([load.thread]),
            np.array([load.barrier]),
            np.array([load.size]),
        )
        wave.memory_version += 1

    def land_for(self, barriers: IntArray) -> bool:
        """Land loads that mbarriers wait for, or some of them; returns whether any did."""
        wanted = set(barriers.tolist())
        return self._land_all(
            load
            for load in self._loads
            if load.barrier in wanted and (self._generator is None or self._is_drawn())
        )

    def land_all(self) -> bool:
        """Land every load; returns whether there was any."""
        return self._land_all(self._loads)

    def _land_all(self, loads: Iterable[BulkLoad]) -> bool:
        waiting = [load for load in loads if not load.has_landed]
        for load in waiting:
            self._land(load)
        return bool(waiting)

    def close(self, barriers: IntArray) -> None:
        """Waits at mbarriers have succeeded: loads that their past phases counted are over."""
        if not self._loads:
            return
        which, phases = set(barriers.tolist()), self._wave.mbarriers.phase
        remaining: list[BulkLoad] = []
        shadow = self._store.shadow
        for load in self._loads:
            over = load.barrier in which and load.has_landed and load.phase < phases[load.barrier]
            if not over:
                remaining.append(load)
            elif shadow is not None:
                shadow[load.start : load.start + load.size] &= ~IN_FLIGHT
        self._loads = remaining

    def find(self, store: ByteStore, index: int) -> tuple[BulkLoad, int] | None:
        """The load in flight that writes a byte of a store, and its thread."""
        if store is not self._store:
            return None
        for load in self._loads:
            if load.start <= index < load.start + load.size:
                return load, load.thread
        return None

    # Stores --------------------------------------------------------------------------------------

    def issue_store(self, store: BulkStore) -> None:
        """Start a store."""
        if self._wave.monitor is not None:
            self._wave.monitor.store_issued(self._wave, store)
        self._stores.append(store)
        if self._is_drawn():
            self._take(store)
            if self._is_drawn():
                self._put(store)

    def group_of(self, thread: int) -> int:
        """The open group of a thread."""
        return self._group.get(thread, 0)

    def commit(self, sel: Selection) -> None:
        """Close the open group of the selected threads."""
        for thread in self._wave.selected(sel).tolist():
            self._group[thread] = self.group_of(thread) + 1

    def wait(self, sel: Selection, in_flight: int, *, only_read: bool) -> None:
        """Finish the groups of the selected threads but the last `in_flight`, or their reading."""
        if not self._stores:
            return
        limit = {t: self.group_of(t) - in_flight for t in self._wave.selected(sel).tolist()}
        remaining: list[BulkStore] = []
        for store in self._stores:
            is_over = store.group < limit.get(store.thread, 0)
            if is_over:
                self._finish(store, only_read=only_read)
            if not is_over or only_read:
                remaining.append(store)
        self._stores = remaining

    def _finish(self, store: BulkStore, *, only_read: bool) -> None:
        self._take(store)
        if store.is_reading:
            store.is_reading = False
            if self._wave.monitor is not None:
                self._wave.monitor.store_read(self._wave, store)
        if not only_read:
            self._put(store)

    def _take(self, store: BulkStore) -> None:
        if store.content is None:
            store.content = self._store.bytes[store.start : store.start + store.size].copy()

    def _put(self, store: BulkStore) -> None:
        assert store.content is not None
        if not store.is_written:
            store.is_written = True
            store.write(store.content)
            self._wave.memory_version += 1

    def check_write(
        self, wave: Wave, sel: Selection, address: Value, access: Access, index: Value
    ) -> None:
        """Raise if threads write to bytes of shared memory that a store in flight reads."""
        where = np.atleast_1d(index)
        for store in self._stores:
            if not store.is_reading:
                continue
            hits = (where < store.start + store.size) & (store.start < where + access.bytes)
            if hits.any():
                access.fault(
                    FindingKind.RACE,
                    wave,
                    sel,
                    address,
                    hits,
                    "in shared memory, which a bulk copy still reads",
                    (Note("the copy was issued here", store.operands.location),),
                )

    # Ends ----------------------------------------------------------------------------------------

    def check_ended(self, slots: npt.NDArray[np.intp]) -> None:
        """Raise if a copy is in flight to or from the shared memory of CTAs that have ended."""
        stride = self._wave.memories.shared.stride
        ended = set(slots.tolist())
        for load in self._loads:
            if load.start // stride in ended:
                self._report_ended(load.operands, load.thread, "to")
        for store in self._stores:
            if store.is_reading and store.start // stride in ended:
                self._report_ended(store.operands, store.thread, "from")

    def _report_ended(self, operands: Operands, thread: int, direction: str) -> None:
        operands.report(
            FindingKind.RACE,
            self._wave,
            thread,
            f"copies {direction} shared memory, and its CTA ended without waiting for the copy",
        )

    def finish(self) -> None:
        """The wave is over: what was not waited for has happened."""
        for store in self._stores:
            self._take(store)
            self._put(store)
        self._stores = []
