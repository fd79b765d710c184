"""Who knows of whose work: clocks of warps, after the vector clocks of race detectors.

Every warp has a clock, which ticks when it synchronises. `known[w, v]` is the last tick of warp v
whose work happened before what warp w does now. Inside a warp, `lanes[t, l]` is the same for
thread t and lane l of its own warp, since lanes are ordered by nothing but synchronisation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phobos.emulator.wave import WARP, Wave

Threads = npt.NDArray[np.intp]
Ticks = npt.NDArray[np.int32]


class Clocks:
    """The clocks of one wave.

    `agents` are others than warps whose work warps may know of: they are numbered behind the
    warps, and whoever tells of their work says when it was (see `learn`).
    """

    def __init__(self, wave: Wave, agents: int = 0) -> None:
        warps = wave.size // WARP
        self._per_cta = wave.geometry.padded // WARP
        self._ctas = len(wave.ctas)
        self.now: Ticks = np.ones(warps, dtype=np.int32)
        self.known: Ticks = np.zeros((warps, warps + agents), dtype=np.int32)
        self.lanes: Ticks = np.zeros((wave.size, WARP), dtype=np.int32)
        self._arrived: dict[tuple[int, int], Ticks] = {}

    @property
    def columns(self) -> int:
        """Warps and agents."""
        return self.known.shape[1]

    @property
    def agents(self) -> int:
        """Agents."""
        return self.columns - len(self.now)

    def add_agents(self, agents: int) -> None:
        """Make it so many agents, if there are fewer."""
        if agents > self.agents:
            self.known = np.pad(self.known, ((0, 0), (0, agents - self.agents)))

    def _fitting(self, row: Ticks) -> Ticks:
        """What somebody told before the last agents came."""
        return np.pad(row, (0, self.columns - len(row)))

    def merged(self, row: Ticks, other: Ticks) -> Ticks:
        """What two told together."""
        return np.maximum(self._fitting(row), self._fitting(other))

    def ordered(self, threads: Threads, others: Threads, ticks: Ticks) -> npt.NDArray[np.bool_]:
        """Whether what `others` did at `ticks` happened before what `threads` do now."""
        mine, theirs = threads // WARP, others // WARP
        limit = np.where(
            mine == theirs, self.lanes[threads, others % WARP], self.known[mine, theirs]
        )
        return (threads == others) | (ticks <= limit)

    def barrier(self, slots: Threads, threads: Threads, barrier: int) -> None:
        """The warps of `threads` met, CTA by CTA; those that only arrived told what they knew."""
        taking_part = np.zeros(len(self.now), dtype=np.bool_)
        taking_part[threads // WARP] = True
        shape = (self._ctas, self._per_cta)
        groups = taking_part.reshape(shape)
        rows = self.known.reshape(*shape, -1)
        merged = np.where(groups[..., None], rows, 0).max(axis=1)
        own = np.where(taking_part, self.now, 0).reshape(shape)
        for slot in slots.tolist():
            columns = slice(slot * self._per_cta, (slot + 1) * self._per_cta)
            merged[slot, columns] = np.maximum(merged[slot, columns], own[slot])
            told = self._arrived.pop((slot, barrier), None)
            if told is not None:
                merged[slot] = self.merged(merged[slot], told)
        warps = np.flatnonzero(taking_part)
        self.known[warps] = merged[warps // self._per_cta]
        self.lanes.reshape(-1, WARP * WARP)[warps] = self.now[warps, None]
        self.now[warps] += 1

    def arrived(self, threads: Threads, barriers: npt.NDArray[np.int64]) -> None:
        """Warps that go on without waiting leave what they know for those that wait."""
        warps, first = np.unique(threads // WARP, return_index=True)
        for warp, place in zip(warps.tolist(), first.tolist(), strict=True):
            key = (warp // self._per_cta, int(barriers[place]))
            row = self.release(warp)
            told = self._arrived.get(key)
            self._arrived[key] = row if told is None else self.merged(told, row)

    def warp_sync(self, threads: Threads, members: npt.NDArray[np.bool_]) -> None:
        """Threads met the lanes of their warp in `members`, which is shaped [thread, lane]."""
        warps = threads // WARP
        now = self.now[warps, None]
        lanes = self.lanes.reshape(-1, WARP, WARP)[warps]
        told = np.where(members[:, :, None], lanes, 0).max(axis=1)
        self.lanes[threads] = np.maximum(told, np.where(members, now, self.lanes[threads]))
        self.now[np.unique(warps)] += 1

    def release(self, warp: int) -> Ticks:
        """What a warp knows, its own work included; work that it does later is not in it."""
        row = self.known[warp].copy()
        row[warp] = self.now[warp]
        self.now[warp] += 1
        return row

    def acquire(self, thread: int, row: Ticks) -> None:
        """The warp of a thread learns what another released, and the thread what its own did."""
        warp = thread // WARP
        self.known[warp] = self.merged(self.known[warp], row)
        self.lanes[thread] = np.maximum(self.lanes[thread], row[warp])

    def release_all(self, warps: Threads) -> Ticks:
        """What some warps know together; see `release`."""
        row = self.known[warps].max(axis=0)
        row[warps] = np.maximum(row[warps], self.now[warps])
        self.now[warps] += 1
        return row

    def acquire_all(self, threads: Threads, rows: Ticks) -> None:
        """Threads learn what is in the row beside each of them; see `acquire`."""
        warps = threads // WARP
        own = np.take_along_axis(rows, warps[:, None], axis=1)
        self.lanes[threads] = np.maximum(self.lanes[threads], own)
        for warp in np.unique(warps).tolist():
            told = rows[warps == warp].max(axis=0)
            self.known[warp] = self.merged(self.known[warp], told)

    def learn(self, warps: Threads, agents: Threads, tick: int) -> None:
        """Warps come to know what the agent beside each of them did up to a tick."""
        self.known[warps, len(self.now) + agents] = tick
