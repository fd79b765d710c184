"""Who touched each granule of a memory last: one writer and two readers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

WRITE, FIRST_READ, LAST_READ = range(3)
NOBODY = -1

Granules = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(eq=False)
class Touch:
    """A column of the history at some granules."""

    threads: npt.NDArray[np.int32]
    ticks: npt.NDArray[np.int32]
    sites: npt.NDArray[np.int32]

    @property
    def strong(self) -> Flags:
        """Whether the access was an atomic or otherwise synchronising one."""
        return (self.sites & 1) != 0


class History:
    """The last accesses to every granule.

    A site is the number of an access instruction times two, plus one for a strong access. Two
    readers are kept, different ones where there are several: the one that touched the granule
    first since it was ordered, and the last.
    """

    def __init__(self, granules: int) -> None:
        # Threads are stored plus one: zeroed memory costs nothing until it is touched.
        self._threads = np.zeros((3, granules), dtype=np.int32)
        self._ticks = np.zeros((3, granules), dtype=np.int32)
        self._sites = np.zeros((3, granules), dtype=np.int32)

    def touch(self, which: int, granules: Granules) -> Touch:
        """Who did `which` to each granule last."""
        return Touch(
            self._threads[which, granules] - 1,
            self._ticks[which, granules],
            self._sites[which, granules],
        )

    def note_write(
        self,
        granules: Granules,
        threads: npt.NDArray[np.int32],
        ticks: npt.NDArray[np.int32],
        site: int,
    ) -> None:
        """Threads wrote granules; earlier reads need not be kept."""
        self._set(WRITE, granules, threads, ticks, site)
        self._threads[FIRST_READ, granules] = 0
        self._threads[LAST_READ, granules] = 0

    def note_read(
        self,
        granules: Granules,
        threads: npt.NDArray[np.int32],
        ticks: npt.NDArray[np.int32],
        site: int,
        replaceable: Flags,
    ) -> None:
        """Threads read granules; `replaceable` says where the first reader may be forgotten."""
        self._set(LAST_READ, granules, threads, ticks, site)
        # Backwards, so that of several readers in one instruction the first one stays.
        back = np.flatnonzero(replaceable)[::-1]
        self._set(FIRST_READ, granules[back], threads[back], ticks[back], site)

    def _set(
        self,
        which: int,
        granules: Granules,
        threads: npt.NDArray[np.int32],
        ticks: npt.NDArray[np.int32],
        site: int,
    ) -> None:
        self._threads[which, granules] = threads + 1
        self._ticks[which, granules] = ticks
        self._sites[which, granules] = site
