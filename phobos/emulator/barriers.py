"""CTA barriers: who waits where, and when everybody has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phobos.emulator.decode import Operands
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import Value
from phobos.emulator.wave import WARP, Wave

BARRIERS = 16
"""Barriers of a CTA."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BarrierSite:
    """A barrier instruction: where its threads go on, and what they get.

    `finish`, for `bar.red`, is called with the wave, the released threads of one CTA and their
    predicates.
    """

    operands: Operands
    resume: int
    finish: Callable[[Wave, npt.NDArray[np.intp], npt.NDArray[np.bool_]], None] | None = None


class Barriers:
    """The sixteen barriers of every CTA of a wave.

    Arrivals are counted in whole warps: a warp has arrived when all its threads that still run
    wait at the barrier.
    """

    def __init__(self, wave: Wave, *, check_exited: bool) -> None:
        self._wave = wave
        self._check_exited = check_exited
        ctas = len(wave.ctas)
        self._waits_at = np.full(wave.size, -1, dtype=np.int16)
        self._site = np.full(wave.size, -1, dtype=np.int64)
        self._predicate = np.zeros(wave.size, dtype=np.bool_)
        self._expected = np.zeros((ctas, BARRIERS), dtype=np.int64)
        self._arrived_only = np.zeros((ctas, BARRIERS), dtype=np.int64)
        self._sites: list[BarrierSite] = []
        self._site_numbers: dict[int, int] = {}
        self.waiting = 0
        self.epoch = np.zeros(ctas, dtype=np.int64)

    def _number_of(self, site: BarrierSite) -> int:
        number = self._site_numbers.setdefault(id(site), len(self._sites))
        if number == len(self._sites):
            self._sites.append(site)
        return number

    def wait(
        self,
        site: BarrierSite,
        threads: npt.NDArray[np.intp],
        barrier: Value,
        count: Value | None,
        predicate: Value | None = None,
    ) -> list[tuple[int, npt.NDArray[np.intp]]]:
        """Let threads wait; returns the groups that are released, with their blocks.

        `count` is the number of threads that take part, None for all of the CTA.
        """
        self._check_number(site.operands, threads, barrier)
        self._waits_at[threads] = barrier
        self._site[threads] = self._number_of(site)
        self._predicate[threads] = False if predicate is None else predicate
        self.waiting += len(threads)
        self._expect(threads, barrier, count)
        return self.release()

    def pass_all(self, site: BarrierSite, barrier: Value) -> None:
        """The common case: every thread of the wave arrives together and goes on at once."""
        everyone = self._wave.indices
        self._check_number(site.operands, everyone, barrier)
        self.epoch += 1
        if self._wave.monitor is not None:
            slots = np.arange(len(self._wave.ctas))
            self._wave.monitor.barrier(self._wave, slots, everyone, int(barrier))

    def arrive(
        self, site: BarrierSite, threads: npt.NDArray[np.intp], barrier: Value, count: Value
    ) -> list[tuple[int, npt.NDArray[np.intp]]]:
        """Count the warps of `threads` without letting them wait; returns released groups."""
        self._check_number(site.operands, threads, barrier)
        leaders = threads[np.append(True, np.diff(threads // WARP) != 0)]
        barrier = np.broadcast_to(barrier, threads.shape)[np.searchsorted(threads, leaders)]
        slots = self._wave.slot[leaders]
        np.add.at(self._arrived_only, (slots, barrier), WARP)
        if self._wave.monitor is not None:
            self._wave.monitor.arrived(self._wave, leaders, barrier)
        self._expect(threads, barrier[0], count)
        return self.release()

    def _check_number(
        self, operands: Operands, threads: npt.NDArray[np.intp], barrier: Value
    ) -> None:
        bad = np.broadcast_to(barrier >= BARRIERS, threads.shape)
        if bad.any():
            operands.report(
                FindingKind.DIVERGENCE,
                self._wave,
                int(threads[int(np.argmax(bad))]),
                f"names a barrier beyond the {BARRIERS} that a CTA has",
            )

    def _expect(self, threads: npt.NDArray[np.intp], barrier: Value, count: Value | None) -> None:
        if count is not None:
            self._expected[self._wave.slot[threads], barrier] = count

    def release(self) -> list[tuple[int, npt.NDArray[np.intp]]]:
        """The groups whose barriers are complete, taken out of waiting."""
        released: list[tuple[int, npt.NDArray[np.intp]]] = []
        if not self.waiting:
            return released
        wave = self._wave
        shape = (len(wave.ctas), -1, WARP)
        alive = wave.alive.reshape(shape)
        has_threads = alive.any(axis=2)
        everyone = has_threads.sum(axis=1) * WARP
        for barrier in np.unique(self._waits_at[self._waits_at >= 0]).tolist():
            at_barrier = self._waits_at.reshape(shape) == barrier
            warps = ((at_barrier | ~alive).all(axis=2) & has_threads).sum(axis=1) * WARP
            expected = self._expected[:, barrier]
            by_count = expected > 0
            needed = np.where(by_count, expected, everyone)
            arrived = warps + self._arrived_only[:, barrier]
            complete = (arrived >= needed) & at_barrier.any(axis=(1, 2))
            if complete.any():
                self._release_barrier(barrier, complete, by_count, released)
        return released

    def _release_barrier(
        self,
        barrier: int,
        complete: npt.NDArray[np.bool_],
        by_count: npt.NDArray[np.bool_],
        released: list[tuple[int, npt.NDArray[np.intp]]],
    ) -> None:
        wave = self._wave
        going = (self._waits_at == barrier) & complete[wave.slot]
        threads = np.flatnonzero(going)
        self._report_exited(threads, complete & ~by_count)
        self._waits_at[threads] = -1
        self.waiting -= len(threads)
        self._expected[complete, barrier] = 0
        self._arrived_only[complete, barrier] = 0
        self.epoch[complete] += 1
        if wave.monitor is not None:
            wave.monitor.barrier(wave, np.flatnonzero(complete), threads, barrier)
        for number in np.unique(self._site[threads]).tolist():
            site = self._sites[number]
            members = threads[self._site[threads] == number]
            if site.finish is not None:
                for slot in np.unique(wave.slot[members]):
                    same = members[wave.slot[members] == slot]
                    whole = threads[wave.slot[threads] == slot]
                    site.finish(wave, same, self._predicate[whole])
            released.append((site.resume, members))

    def _report_exited(
        self, threads: npt.NDArray[np.intp], complete: npt.NDArray[np.bool_]
    ) -> None:
        """A barrier of the whole CTA that some threads left out by exiting is a finding."""
        if not self._check_exited:
            return
        wave = self._wave
        gone = np.flatnonzero(wave.exists & ~wave.alive & complete[wave.slot])
        if not len(gone):
            return
        slot = wave.slot[gone[0]]
        thread = int(threads[wave.slot[threads] == slot][0])
        other = wave.geometry.thread_index(int(gone[0]) % wave.geometry.padded)
        self._sites[int(self._site[thread])].operands.report(
            FindingKind.DIVERGENCE,
            wave,
            thread,
            f"waits at a barrier of the whole CTA, which thread {other} left out by exiting",
        )

    def first_waiting(self) -> tuple[int, BarrierSite, int] | None:
        """A waiting thread, its barrier instruction and barrier, or None if nobody waits."""
        threads = np.flatnonzero(self._waits_at >= 0)
        if not len(threads):
            return None
        thread = int(threads[0])
        return thread, self._sites[int(self._site[thread])], int(self._waits_at[thread])
