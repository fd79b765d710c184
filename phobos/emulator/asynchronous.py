"""Asynchronous copies: issued now, landed by the time their thread waits for them.

Every thread numbers its groups; `commit` closes the open one. The bytes that a copy is going to
write count as in flight from its issue to the wait of its thread, and whoever touches them in
between is reported. When the data itself moves is open: by default at the wait, with a seed at
the issue or at the wait, copy by copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.emulator.memory.store import ByteStore
from phobos.emulator.types import Selection

if TYPE_CHECKING:
    from phobos.emulator.decode import Operands
    from phobos.emulator.memory.access import Access
    from phobos.emulator.wave import Wave

IntArray = npt.NDArray[np.int64]


@dataclass(eq=False)
class Copy:
    """One `cp.async` of many threads. Indices are bytes of the two stores.

    `length` is how many bytes each thread really reads; the rest up to `size` becomes zero.
    """

    operands: Operands
    access: Access
    threads: npt.NDArray[np.intp]
    group: IntArray
    source: ByteStore
    source_index: IntArray
    target: ByteStore
    target_index: IntArray
    length: IntArray
    size: int
    has_landed: npt.NDArray[np.bool_] = field(init=False)
    is_open: npt.NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.has_landed = np.zeros(len(self.threads), dtype=np.bool_)
        self.is_open = np.ones(len(self.threads), dtype=np.bool_)

    def land(self, mask: npt.NDArray[np.bool_]) -> None:
        """Move the data of the threads in `mask` that did not land yet."""
        mask = mask & ~self.has_landed
        self.has_landed |= mask
        offsets = np.arange(self.size)
        valid = offsets < self.length[mask, None]
        origin = np.where(valid, self.source_index[mask, None] + offsets, 0)
        goal = self.target_index[mask, None] + offsets
        self.target.bytes[goal] = np.where(valid, self.source.bytes[origin], 0)
        self.target.mark_written(goal)

    def close(self, mask: npt.NDArray[np.bool_]) -> None:
        """Let the threads in `mask` see what they copied."""
        mask = mask & self.is_open
        self.is_open &= ~mask
        goal = self.target_index[mask, None] + np.arange(self.size)
        self.target.end_flight(goal)

    def covers(self, index: int) -> int | None:
        """The thread whose open copy writes a byte of the target, or None."""
        hits = self.is_open & (self.target_index <= index)
        hits &= index < self.target_index + self.size
        places = np.flatnonzero(hits)
        return int(self.threads[places[0]]) if len(places) else None


class AsyncCopies:
    """The copies of a wave that no thread has waited for yet."""

    def __init__(self, wave: Wave, generator: np.random.Generator | None) -> None:
        self._wave = wave
        self._generator = generator
        self._group = np.zeros(wave.size, dtype=np.int64)
        self._open: list[Copy] = []

    @property
    def are_pending(self) -> bool:
        """Whether any copy is in flight."""
        return bool(self._open)

    def group_of(self, threads: npt.NDArray[np.intp]) -> IntArray:
        """The open group of each thread."""
        return self._group[threads]

    def issue(self, copy: Copy) -> None:
        """Start a copy."""
        goal = copy.target_index[:, None] + np.arange(copy.size)
        copy.target.start_flight(goal)
        self._open.append(copy)
        if self._generator is not None and self._generator.integers(2):
            copy.land(np.ones(len(copy.threads), dtype=np.bool_))

    def commit(self, sel: Selection) -> None:
        """Close the open group of the selected threads."""
        self._group[self._wave.selected(sel)] += 1

    def wait(self, sel: Selection, in_flight: int) -> None:
        """Finish all committed groups of the selected threads but the last `in_flight`."""
        limit = self._group - in_flight
        self._finish(sel, limit)

    def wait_all(self, sel: Selection) -> None:
        """Finish every copy of the selected threads, committed or not."""
        self._finish(sel, self._group + 1)

    def _finish(self, sel: Selection, limit: IntArray) -> None:
        if not self._open:
            return
        waiting = self._wave.flags(sel)
        remaining: list[Copy] = []
        for copy in self._open:
            done = waiting[copy.threads] & (copy.group < limit[copy.threads]) & copy.is_open
            if done.any():
                copy.land(done)
                if self._wave.monitor is not None:
                    self._wave.monitor.landed(self._wave, copy, done)
                copy.close(done)
                self._wave.memory_version += 1
            if copy.is_open.any():
                remaining.append(copy)
        self._open = remaining

    def find(self, store: ByteStore, index: int) -> tuple[Copy, int] | None:
        """The open copy that writes a byte of a store, and its thread."""
        for copy in self._open:
            if copy.target is store:
                thread = copy.covers(index)
                if thread is not None:
                    return copy, thread
        return None
