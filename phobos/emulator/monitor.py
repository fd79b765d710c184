"""Monitors: what watches the memory accesses and the synchronisation of a wave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.emulator.types import Selection, Value

if TYPE_CHECKING:
    from phobos.emulator.asynchronous import Copy
    from phobos.emulator.bulk import BulkLoad, BulkStore
    from phobos.emulator.decode import Operands
    from phobos.emulator.memory.access import Access
    from phobos.emulator.memory.spaces import Space
    from phobos.emulator.memory.store import ByteStore
    from phobos.emulator.warpgroup import Product
    from phobos.emulator.wave import Wave

Threads = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Rows = tuple[Numbers, int]
"""Byte indices where rows of global memory start, and the bytes of each."""


class Monitor:
    """Sees everything that the threads of a wave do to memory, and does nothing about it."""

    def start(self, wave: Wave) -> None:
        """A wave begins."""

    def finish(self, wave: Wave) -> None:
        """A wave has come to its end."""

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
        """The selected threads access `access.bytes` bytes at byte indices of `store`.

        The access is valid. `values` are the elements that a plain store is about to write.
        """

    def landed(self, wave: Wave, copy: Copy, done: npt.NDArray[np.bool_]) -> None:
        """The threads of an asynchronous copy at `done` have waited for it."""

    def barrier(self, wave: Wave, slots: Threads, threads: Threads, barrier: int) -> None:
        """A barrier released `threads`, which belong to the CTAs at `slots`."""

    def arrived(self, wave: Wave, threads: Threads, barrier: Value) -> None:
        """Threads arrived at a barrier without waiting at it."""

    def warp_sync(self, wave: Wave, sel: Selection, mask: Value) -> None:
        """The selected threads met the lanes of their mask at `bar.warp.sync`."""

    def fence(self, wave: Wave, sel: Selection) -> None:
        """The selected threads executed a memory fence."""

    def proxy_fence(self, wave: Wave, sel: Selection) -> None:
        """The selected threads fenced shared memory between ordinary and asynchronous accesses."""

    def product_issued(self, wave: Wave, product: Product) -> None:
        """Warpgroups issued a product, which reads shared memory from now on."""

    def product_done(self, wave: Wave, product: Product, fresh: Flags, done: Flags) -> None:
        """Warps, `done` by warpgroup, waited for a product; it ended for those in `fresh`."""

    def mbarrier(
        self,
        wave: Wave,
        threads: Threads,
        store: ByteStore,
        index: Numbers,
        access: Access,
    ) -> None:
        """Threads are about to use mbarriers at byte indices of the store."""

    def mbarrier_made(
        self, wave: Wave, threads: Threads, barriers: Numbers, operands: Operands
    ) -> None:
        """Threads have initialised mbarriers."""

    def mbarrier_fence(self, wave: Wave, sel: Selection) -> None:
        """The selected threads fenced what they initialised."""

    def mbarrier_arrived(self, wave: Wave, threads: Threads, barriers: Numbers) -> None:
        """Threads are about to arrive at mbarriers, given by their numbers."""

    def phase_completed(self, wave: Wave, barriers: Numbers) -> None:
        """The phases of mbarriers have ended."""

    def phase_waited(self, wave: Wave, threads: Threads, barriers: Numbers) -> None:
        """Threads have seen that a phase of their mbarriers has ended."""

    def cluster_arrived(self, wave: Wave, threads: Threads) -> None:
        """Threads arrive at the barrier of their cluster and release what they know."""

    def cluster_completed(self, wave: Wave, clusters: Threads) -> None:
        """All threads of clusters, by the order of their slots, have arrived."""

    def cluster_waited(self, wave: Wave, threads: Threads) -> None:
        """Threads have waited at the barrier of their cluster."""

    def ctas_ended(self, wave: Wave, slots: Threads) -> None:
        """All threads of some CTAs of clusters have exited."""

    def bulk_copy(
        self, wave: Wave, thread: int, outside: Access, inside: Access, rows: Rows, size: int
    ) -> None:
        """A thread copies rows of global memory, and `size` bytes of shared memory.

        The two accesses are those of global and of shared memory.
        """

    def load_issued(self, wave: Wave, load: BulkLoad) -> None:
        """A copy writes shared memory from now on."""

    def store_issued(self, wave: Wave, store: BulkStore) -> None:
        """A copy reads shared memory from now on."""

    def store_read(self, wave: Wave, store: BulkStore) -> None:
        """The thread of a copy has waited until it read shared memory."""


class Monitors(Monitor):
    """Several monitors as one."""

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self._monitors = tuple(monitors)

    def start(self, wave: Wave) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.start(wave)

    def finish(self, wave: Wave) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.finish(wave)

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
        for monitor in self._monitors:
            monitor.access(wave, sel, space, store, index, access, values)

    def landed(self, wave: Wave, copy: Copy, done: npt.NDArray[np.bool_]) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.landed(wave, copy, done)

    def barrier(self, wave: Wave, slots: Threads, threads: Threads, barrier: int) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.barrier(wave, slots, threads, barrier)

    def arrived(self, wave: Wave, threads: Threads, barrier: Value) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.arrived(wave, threads, barrier)

    def warp_sync(self, wave: Wave, sel: Selection, mask: Value) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.warp_sync(wave, sel, mask)

    def fence(self, wave: Wave, sel: Selection) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.fence(wave, sel)

    def proxy_fence(self, wave: Wave, sel: Selection) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.proxy_fence(wave, sel)

    def product_issued(self, wave: Wave, product: Product) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.product_issued(wave, product)

    def product_done(self, wave: Wave, product: Product, fresh: Flags, done: Flags) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.product_done(wave, product, fresh, done)

    def mbarrier(
        self,
        wave: Wave,
        threads: Threads,
        store: ByteStore,
        index: Numbers,
        access: Access,
    ) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.mbarrier(wave, threads, store, index, access)

    def mbarrier_made(
        self, wave: Wave, threads: Threads, barriers: Numbers, operands: Operands
    ) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.mbarrier_made(wave, threads, barriers, operands)

    def mbarrier_fence(self, wave: Wave, sel: Selection) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.mbarrier_fence(wave, sel)

    def mbarrier_arrived(self, wave: Wave, threads: Threads, barriers: Numbers) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.mbarrier_arrived(wave, threads, barriers)

    def phase_completed(self, wave: Wave, barriers: Numbers) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.phase_completed(wave, barriers)

    def phase_waited(self, wave: Wave, threads: Threads, barriers: Numbers) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.phase_waited(wave, threads, barriers)

    def cluster_arrived(self, wave: Wave, threads: Threads) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.cluster_arrived(wave, threads)

    def cluster_completed(self, wave: Wave, clusters: Threads) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.cluster_completed(wave, clusters)

    def cluster_waited(self, wave: Wave, threads: Threads) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.cluster_waited(wave, threads)

    def ctas_ended(self, wave: Wave, slots: Threads) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.ctas_ended(wave, slots)

    def bulk_copy(
        self, wave: Wave, thread: int, outside: Access, inside: Access, rows: Rows, size: int
    ) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.bulk_copy(wave, thread, outside, inside, rows, size)

    def load_issued(self, wave: Wave, load: BulkLoad) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.load_issued(wave, load)

    def store_issued(self, wave: Wave, store: BulkStore) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.store_issued(wave, store)

    def store_read(self, wave: Wave, store: BulkStore) -> None:
        """See `Monitor`."""
        for monitor in self._monitors:
            monitor.store_read(wave, store)
