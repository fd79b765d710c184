"""Barriers of clusters: arrived at and waited for apart, one phase after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.emulator.barriers import BarrierSite
from phobos.emulator.errors import FindingKind

if TYPE_CHECKING:
    from phobos.emulator.wave import Wave

Threads = npt.NDArray[np.intp]
Released = list[tuple[int, Threads]]
"""Groups of threads that go on, with the blocks where they do."""


class ClusterBarriers:
    """The barrier of every cluster of a wave.

    A phase ends when every thread of the cluster has arrived; threads that have exited count as
    arrived.
    """

    def __init__(self, wave: Wave) -> None:
        self._wave = wave
        self._has_arrived = np.zeros(wave.size, dtype=np.bool_)
        # Threads that arrived at a phase, perhaps one that has ended, and have not waited for it.
        self._owes_wait = np.zeros(wave.size, dtype=np.bool_)
        self._waits_at = np.full(wave.size, -1, dtype=np.int64)
        self._sites: list[BarrierSite] = []

    @property
    def waiting(self) -> Threads:
        """The threads that wait."""
        return np.flatnonzero(self._waits_at >= 0)

    def site_of(self, thread: int) -> BarrierSite:
        """Where a thread waits."""
        return self._sites[int(self._waits_at[thread])]

    def arrive(self, site: BarrierSite, threads: Threads, *, releases: bool) -> Released:
        """Count threads; returns the groups that go on."""
        again = self._owes_wait[threads]
        if again.any():
            site.operands.report(
                FindingKind.DIVERGENCE,
                self._wave,
                int(threads[int(np.argmax(again))]),
                "arrives at the barrier of its cluster again without having waited there",
            )
        self._owes_wait[threads] = self._has_arrived[threads] = True
        if releases and self._wave.monitor is not None:
            self._wave.monitor.cluster_arrived(self._wave, threads)
        return self.release()

    def wait(self, site: BarrierSite, threads: Threads) -> Released:
        """Let threads wait for the phase that they arrived at; returns the groups that go on."""
        bad = ~self._owes_wait[threads]
        if bad.any():
            site.operands.report(
                FindingKind.DIVERGENCE,
                self._wave,
                int(threads[int(np.argmax(bad))]),
                "waits at the barrier of its cluster without having arrived there",
            )
        if site not in self._sites:
            self._sites.append(site)
        self._waits_at[threads] = self._sites.index(site)
        return self._go_on()

    def release(self) -> Released:
        """End phases where all have arrived; returns the groups that go on."""
        if not self._has_arrived.any():
            return []
        wave = self._wave
        clusters = len(wave.ctas) // wave.geometry.cluster_size
        missing = (wave.alive & ~self._has_arrived).reshape(clusters, -1).any(axis=1)
        done = ~missing & self._has_arrived.reshape(clusters, -1).any(axis=1)
        if not done.any():
            return []
        self._has_arrived.reshape(clusters, -1)[done] = False
        if wave.monitor is not None:
            wave.monitor.cluster_completed(wave, np.flatnonzero(done))
        return self._go_on()

    def _go_on(self) -> Released:
        """Take threads out of waiting whose phase has ended."""
        ready = np.flatnonzero((self._waits_at >= 0) & ~self._has_arrived)
        if not len(ready):
            return []
        sites = self._waits_at[ready]
        self._waits_at[ready] = -1
        self._owes_wait[ready] = False
        if self._wave.monitor is not None:
            self._wave.monitor.cluster_waited(self._wave, ready)
        return [(self._sites[n].resume, ready[sites == n]) for n in np.unique(sites).tolist()]
