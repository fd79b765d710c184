"""State spaces: how an address in each becomes an index into a byte store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Note
from phobos.emulator.errors import FindingKind
from phobos.emulator.memory.access import Access, extremes
from phobos.emulator.memory.buffers import GlobalMemory
from phobos.emulator.memory.layout import Layout, Region
from phobos.emulator.memory.regions import IN_CTA, LOW_32, RANK_SHIFT
from phobos.emulator.memory.store import BARRIER, IN_FLIGHT, UNDEFINED, ByteStore
from phobos.emulator.types import Selection, Value
from phobos.emulator.wave import Wave

if TYPE_CHECKING:
    from phobos.emulator.asynchronous import Copy
    from phobos.emulator.bulk import BulkLoad

_STRIDE = 128
_WRITE_MARKS = IN_FLIGHT | BARRIER
_READ_MARKS = _WRITE_MARKS | UNDEFINED
"""Marks of bytes that may not be written, or read."""


class Memories:
    """The memories that a wave sees: global memory for all, shared per CTA, local per thread."""

    def __init__(
        self,
        layout: Layout,
        buffers: GlobalMemory,
        ctas: int,
        threads: int,
        *,
        check_init: bool,
        check_async: bool,
    ) -> None:
        self.layout = layout
        self.buffers = buffers
        shadowed = check_init or check_async
        self.shared = PrivateMemory(
            "shared", layout.shared, ctas, track=shadowed, undefined=check_init
        )
        self.local = PrivateMemory("local", layout.local, threads, track=check_init, undefined=True)


class PrivateMemory:
    """One copy of a region for each of its holders: CTAs for shared memory, threads for local."""

    def __init__(
        self, space: str, region: Region, copies: int, *, track: bool, undefined: bool
    ) -> None:
        self.space = space
        self.region = region
        self.copies = copies
        self.stride = -(-region.size // _STRIDE) * _STRIDE
        self.store = ByteStore(self.stride * copies, track=track, undefined=undefined)
        self._owners = region.owners()
        self._is_dense = len(region.names) == 1 and bool(self._owners.all())

    def locate(self, wave: Wave, sel: Selection, address: Value, access: Access) -> Value:
        """Byte indices into the store for addresses of the space (the low 32 bits count)."""
        if address.dtype == np.uint64:
            address = address & LOW_32
        access.check_alignment(wave, sel, address)
        _, high = extremes(address)
        if high + access.bytes > len(self._owners) or not self._is_dense:
            self._check_owners(wave, sel, address, access, high)
        offset = address.astype(np.int64)
        if self.copies == 1:
            return offset
        holder = wave.slot if self.space == "shared" else wave.indices
        return offset + (holder if sel is None else holder[sel]) * self.stride

    def locate_in_cluster(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> Value:
        """Like `locate`, for addresses that may lie in any CTA of the cluster."""
        address = (address & LOW_32 if address.dtype == np.uint64 else address).astype(np.int64)
        if extremes(address)[1] <= IN_CTA:
            return self.locate(wave, sel, address, access)
        access.check_alignment(wave, sel, address)
        threads = wave.selected(sel)
        owner = np.broadcast_to(address >> RANK_SHIFT, threads.shape)
        inside = np.array(np.broadcast_to(address & IN_CTA, threads.shape))
        slots = wave.slot_of_owner(threads, owner)
        if (slots < 0).any():
            size = wave.geometry.cluster_size
            explain = f"which names a CTA beyond the {size} of its cluster"
            access.fault(FindingKind.BOUNDS, wave, sel, address, slots < 0, explain)
        self._check_owners(wave, sel, inside, access, extremes(inside)[1])
        ended = ~wave.is_running[slots]
        if ended.any():
            slot = int(slots[int(np.argmax(ended))])
            cta = wave.geometry.cta_index(int(wave.ctas[slot]))
            explain = f"in shared memory of CTA {cta}, which has ended"
            access.fault(FindingKind.BOUNDS, wave, sel, inside, ended, explain)
        return inside + slots * self.stride

    def check_whole(self, wave: Wave, thread: int, address: int, access: Access) -> None:
        """Raise unless an access of any size at an address in some CTA lies in one variable."""
        one, where = np.array([thread]), np.array([address], dtype=np.int64)
        self._check_owners(wave, one, where, access, address)

    def _check_owners(
        self, wave: Wave, sel: Selection, address: Value, access: Access, high: int
    ) -> None:
        where = np.atleast_1d(address).astype(np.int64)
        inside = where + access.bytes <= len(self._owners)
        if high + access.bytes <= len(self._owners):
            first = self._owners[where]
            good = (first != 0) & (first == self._owners[where + (access.bytes - 1)])
        else:
            safe = np.where(inside, where, 0)
            last = np.where(inside, where + access.bytes - 1, 0)
            known = bool(len(self._owners))
            first = self._owners[safe] if known else np.zeros(len(where), dtype=np.uint16)
            good = inside & (first != 0)
            if known:
                good &= first == self._owners[last]
        if good.all():
            return
        bad = int(where[int(np.argmin(good))])
        explain = f"outside {self.region.describe(bad)} in {self.space} memory"
        access.fault(FindingKind.BOUNDS, wave, sel, address, ~good, explain)


class Space(ABC):
    """A state space as instructions use it."""

    name: str

    @abstractmethod
    def locate(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> tuple[ByteStore, Value]:
        """The store and the byte indices in it; raises for addresses that the space lacks."""

    def open(
        self,
        wave: Wave,
        sel: Selection,
        address: Value,
        access: Access,
        values: Sequence[Value] | None = None,
    ) -> tuple[ByteStore, Value]:
        """Like `locate`, but for an access that happens now: all checks look at it.

        `values` are the elements that a plain store is about to write.
        """
        store, index = self.examine(wave, sel, address, access)
        if wave.monitor is not None:
            wave.monitor.access(wave, sel, self, store, index, access, values)
        return store, index

    def examine(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> tuple[ByteStore, Value]:
        """Like `open`, but the monitor does not hear of the access."""
        store, index = self.locate(wave, sel, address, access)
        if store.shadow is not None and (access.is_read or wave.has_marks):
            bits = _READ_MARKS if access.is_read else _WRITE_MARKS
            marks = store.marked(index, access.unit, access.count, bits)
            if marks is not None:
                self._check_marks(wave, sel, address, access, store, index, marks)
        return store, index

    def _check_marks(
        self,
        wave: Wave,
        sel: Selection,
        address: Value,
        access: Access,
        store: ByteStore,
        index: Value,
        marks: npt.NDArray[np.bool_],
    ) -> None:
        """Report the first access to bytes that were never written or are in flight."""
        shadow = store.shadow
        assert shadow is not None
        for place in np.flatnonzero(marks).tolist():
            start = int(index if index.ndim == 0 else index[place])
            mine = shadow[start : start + access.bytes]
            bad = np.zeros(place + 1, dtype=np.bool_)
            bad[place] = True
            if wave.has_marks and (mine & IN_FLIGHT).any():
                byte = start + int(np.argmax(mine & IN_FLIGHT))
                found = wave.copies.find(store, byte) or wave.bulk.find(store, byte)
                if found is not None:
                    self._report_in_flight(wave, sel, address, access, bad, *found)
            if (mine & BARRIER).any():
                access.fault(
                    FindingKind.MBARRIER,
                    wave,
                    sel,
                    address,
                    bad,
                    f"in {self.name}, where an mbarrier is in use until `mbarrier.inval`",
                )
            if access.is_read and (mine & UNDEFINED).any():
                access.fault(
                    FindingKind.UNINITIALISED,
                    wave,
                    sel,
                    address,
                    bad,
                    f"in {self.name}, which nothing wrote before",
                )

    def _report_in_flight(
        self,
        wave: Wave,
        sel: Selection,
        address: Value,
        access: Access,
        bad: npt.NDArray[np.bool_],
        copy: Copy | BulkLoad,
        thread: int,
    ) -> None:
        geometry = wave.geometry
        owner = geometry.thread_index(thread % geometry.padded)
        note = Note(f"the copy was issued by thread {owner} here", copy.operands.location)
        access.fault(
            FindingKind.RACE,
            wave,
            sel,
            address,
            bad,
            f"in {self.name}, while an asynchronous copy to it was not waited for",
            (note,),
        )


class BufferSpace(Space):
    """Global, constant and parameter memory: one address space of buffers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def locate(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> tuple[ByteStore, Value]:
        """See `Space`."""
        buffers = wave.memories.buffers
        return buffers.store, buffers.locate(wave, sel, address, access)


class SharedSpace(Space):
    """The CTA's shared memory."""

    name = "shared memory"

    def locate(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> tuple[ByteStore, Value]:
        """See `Space`."""
        memory = wave.memories.shared
        return memory.store, memory.locate(wave, sel, address, access)

    def examine(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> tuple[ByteStore, Value]:
        """See `Space`."""
        store, index = super().examine(wave, sel, address, access)
        if access.is_write:
            if wave.products.are_reading:
                wave.products.check_write(wave, sel, address, access, index)
            if wave.bulk.are_storing:
                wave.bulk.check_write(wave, sel, address, access, index)
        return store, index

    def start_of(self, wave: Wave, thread: int, address: int, access: Access, size: int) -> int:
        """The byte index of an address, for `size` bytes that one thread asks for.

        `access` stands for the first of them.
        """
        where = np.array([address], dtype=np.uint32)
        _, index = self.locate(wave, np.array([thread]), where, access)
        wave.memories.shared.check_whole(wave, thread, address & IN_CTA, access.of_size(size))
        return int(index[0])


class ClusterSpace(SharedSpace):
    """The shared memory of all CTAs of the cluster."""

    def locate(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> tuple[ByteStore, Value]:
        """See `Space`."""
        memory = wave.memories.shared
        return memory.store, memory.locate_in_cluster(wave, sel, address, access)


class LocalSpace(Space):
    """The thread's local memory."""

    name = "local memory"

    def locate(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> tuple[ByteStore, Value]:
        """See `Space`."""
        memory = wave.memories.local
        return memory.store, memory.locate(wave, sel, address, access)


GLOBAL, CONSTANT = BufferSpace("global memory"), BufferSpace("constant memory")
SHARED, CLUSTER, LOCAL = SharedSpace(), ClusterSpace(), LocalSpace()
