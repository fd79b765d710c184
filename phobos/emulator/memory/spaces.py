"""State spaces: how an address in each becomes an index into a byte store."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from phobos.emulator.errors import FindingKind
from phobos.emulator.memory.access import Access, extremes
from phobos.emulator.memory.buffers import GlobalMemory
from phobos.emulator.memory.layout import Layout, Region
from phobos.emulator.memory.regions import LOW_32
from phobos.emulator.memory.store import ByteStore
from phobos.emulator.types import Selection, Value
from phobos.emulator.wave import Wave

_STRIDE = 128


class Memories:
    """The memories that a wave sees: global memory for all, shared per CTA, local per thread."""

    def __init__(
        self, layout: Layout, buffers: GlobalMemory, ctas: int, threads: int, *, track: bool
    ) -> None:
        self.layout = layout
        self.buffers = buffers
        self.shared = PrivateMemory("shared", layout.shared, ctas, track=track)
        self.local = PrivateMemory("local", layout.local, threads, track=track)


class PrivateMemory:
    """One copy of a region for each of its holders: CTAs for shared memory, threads for local."""

    def __init__(self, space: str, region: Region, copies: int, *, track: bool) -> None:
        self.space = space
        self.region = region
        self.copies = copies
        self.stride = -(-region.size // _STRIDE) * _STRIDE
        self.store = ByteStore(self.stride * copies, track=track)
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


class GlobalSpace(Space):
    """Global, constant and parameter memory: one address space of buffers."""

    name = "global memory"

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


class LocalSpace(Space):
    """The thread's local memory."""

    name = "local memory"

    def locate(
        self, wave: Wave, sel: Selection, address: Value, access: Access
    ) -> tuple[ByteStore, Value]:
        """See `Space`."""
        memory = wave.memories.local
        return memory.store, memory.locate(wave, sel, address, access)


GLOBAL, SHARED, LOCAL = GlobalSpace(), SharedSpace(), LocalSpace()
