"""Global memory: buffers far apart in the address space, close together in one byte store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phobos.emulator.errors import FindingKind
from phobos.emulator.memory.access import Access, extremes
from phobos.emulator.memory.regions import (
    BUFFER_ALIGNMENT,
    GLOBAL_BASE,
    SLOT_BYTES,
    SLOT_LEAD,
    SLOT_SHIFT,
)
from phobos.emulator.memory.store import ByteStore
from phobos.emulator.types import Selection, Value
from phobos.emulator.wave import Wave


@dataclass
class Buffer:
    """A piece of global memory. `address` is what kernels see, `start` its place in the store."""

    name: str
    size: int
    address: int
    start: int
    is_writable: bool = True
    is_written: bool = False


class GlobalMemory:
    """All buffers: kernel arguments, module variables, constants and the parameter block.

    Buffers are first all reserved, then `allocate` makes the store behind them.
    """

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.store = ByteStore(0, track=False)
        self._size = 0
        self._slots = 0
        self._owner: list[Buffer] = []
        self._low: npt.NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
        self._high: npt.NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)

    def reserve(self, name: str, size: int, *, is_writable: bool = True) -> Buffer:
        """A new buffer; its address is final, its bytes exist after `allocate`."""
        address = GLOBAL_BASE + (self._slots << SLOT_SHIFT) + SLOT_LEAD
        buffer = Buffer(name, size, address, self._size, is_writable)
        self.buffers.append(buffer)
        slots = -(-(size + 2 * SLOT_LEAD) // SLOT_BYTES)
        self._owner += [buffer] * slots
        self._slots += slots
        self._size += -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
        return buffer

    def allocate(self) -> None:
        """Make the byte store, zeroed."""
        self.store = ByteStore(self._size, track=False)
        self._low = np.array([b.address for b in self._owner], dtype=np.uint64)
        self._high = np.array([b.address + b.size for b in self._owner], dtype=np.uint64)

    def bytes_of(self, buffer: Buffer) -> npt.NDArray[np.uint8]:
        """The bytes of a buffer, writable."""
        return self.store.bytes[buffer.start : buffer.start + buffer.size]

    def poison(self, buffer: Buffer) -> None:
        """Make every byte of the buffer count as never written, and hold a NaN pattern."""
        if self.store.shadow is None:
            self.store.track(undefined=False)
        assert self.store.shadow is not None
        self.store.shadow[buffer.start : buffer.start + buffer.size] = 1
        self.bytes_of(buffer)[:] = 0xFF

    def locate(self, wave: Wave, sel: Selection, address: Value, access: Access) -> Value:
        """Byte indices into the store for 64-bit addresses; raises where they hit no buffer."""
        access.check_alignment(wave, sel, address)
        low, high = extremes(address)
        slot = (low - GLOBAL_BASE) >> SLOT_SHIFT
        if 0 <= slot < self._slots:
            buffer = self._owner[slot]
            if buffer.address <= low and high + access.bytes <= buffer.address + buffer.size:
                if access.is_write:
                    self._note_write(wave, sel, address, buffer, access)
                return (address - np.uint64(buffer.address - buffer.start)).view(np.int64)
        return self._locate_apart(wave, sel, address, access)

    def _locate_apart(self, wave: Wave, sel: Selection, address: Value, access: Access) -> Value:
        """The general case: the threads' addresses lie in several buffers, or in none."""
        address = np.atleast_1d(address)
        slots = (address.view(np.int64) - GLOBAL_BASE) >> SLOT_SHIFT
        known = (slots >= 0) & (slots < self._slots)
        safe = np.where(known, slots, 0)
        if self._slots:
            inside = (address >= self._low[safe]) & (
                address + np.uint64(access.bytes) <= self._high[safe]
            )
            known &= inside
        if not known.all():
            first = int(np.argmin(known))
            explain = self._explain(int(address[first]), access.bytes)
            access.fault(FindingKind.BOUNDS, wave, sel, address, ~known, explain)
        index = np.empty(len(address), dtype=np.int64)
        for slot in np.unique(slots):
            buffer = self._owner[int(slot)]
            mine = slots == slot
            if access.is_write:
                threads = wave.narrow(sel, mine) if len(mine) > 1 else sel
                self._note_write(wave, threads, address[mine], buffer, access)
            index[mine] = address[mine].view(np.int64) - (buffer.address - buffer.start)
        return index

    def locate_span(self, wave: Wave, sel: Selection, low: int, high: int, access: Access) -> int:
        """The byte index of `low`; raises unless all bytes up to `high` lie in one buffer.

        `access` is as wide as they are.
        """
        buffer = self.buffer_at(low)
        address = np.array([low], dtype=np.uint64)
        if buffer is None or low < buffer.address or high > buffer.address + buffer.size:
            explain = self._explain(low, high - low)
            access.fault(FindingKind.BOUNDS, wave, sel, address, np.ones(1, np.bool_), explain)
        if access.is_write:
            self._note_write(wave, sel, address, buffer, access)
        return low - buffer.address + buffer.start

    def _note_write(
        self, wave: Wave, sel: Selection, address: Value, buffer: Buffer, access: Access
    ) -> None:
        if not buffer.is_writable:
            access.fault(
                FindingKind.BOUNDS,
                wave,
                sel,
                address,
                np.ones(1, dtype=np.bool_),
                f"in {buffer.name}, which is read-only",
            )
        buffer.is_written = True

    def buffer_at(self, address: int) -> Buffer | None:
        """The buffer in whose slot an address lies, though perhaps outside its bytes."""
        slot = (address - GLOBAL_BASE) >> SLOT_SHIFT
        return self._owner[slot] if 0 <= slot < self._slots else None

    def buffer_of_index(self, index: int) -> Buffer:
        """The buffer that a byte index of the store belongs to."""
        return next(b for b in self.buffers if b.start <= index < b.start + max(b.size, 1))

    def _explain(self, address: int, size: int) -> str:
        buffer = self.buffer_at(address)
        if buffer is None:
            return "which belongs to no buffer"
        whole = f"{buffer.name} of {buffer.size} bytes"
        if address < buffer.address:
            return f"{buffer.address - address} bytes before {whole}"
        over = address + size - (buffer.address + buffer.size)
        return f"{over} byte{'s' if over > 1 else ''} past the end of {whole}"
