"""Races with the operands of warpgroup products, and writes that no proxy fence follows.

A product reads shared memory from its issue until a warp of its warpgroup has waited for it. What
it reads must have been written before the issue of every warp that needs it: of its own warp for
rows of A, of all four for B. The reads themselves are noted in the name of an agent, one for each
warpgroup, whose work is known to the warps that have waited: whoever writes there afterwards must
be ordered behind such a wait.

Products read through the asynchronous proxy. Bytes that a thread stored, or copied by `cp.async`,
are seen there after a `fence.proxy.async` of that thread behind the store or the copy's wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from phobos.diagnostics import Note
from phobos.emulator.checks.clocks import Clocks
from phobos.emulator.checks.history import (
    FIRST_READ,
    NOBODY,
    WRITE,
    Granules,
    History,
    Touch,
)
from phobos.emulator.checks.race import RaceMonitor
from phobos.emulator.errors import FindingKind
from phobos.emulator.monitor import Flags, Threads
from phobos.emulator.tensor.descriptor import PIECE
from phobos.emulator.types import Selection, Value
from phobos.emulator.warpgroup import WARPGROUP, WARPS, IntArray, Product
from phobos.emulator.wave import WARP, Geometry, Wave

if TYPE_CHECKING:
    from phobos.emulator.memory.access import Access

_A_ROWS_OF_A_WARP = 16


class ProductRaceMonitor(RaceMonitor):
    """The race check of programs with products of warpgroups."""

    def __init__(self, geometry: Geometry, granule: int) -> None:
        super().__init__(geometry, granule)
        # Times of writes and proxy fences, on a clock that ticks at proxy fences.
        self._time = 0
        self._written = np.zeros(0, dtype=np.int64)
        self._fenced_proxy = np.zeros(0, dtype=np.int64)

    def start(self, wave: Wave) -> None:
        """See `Monitor`."""
        super().start(wave)
        self._clocks = Clocks(wave, agents=int(wave.warpgroup[-1]) + 1)
        granules = (len(wave.memories.shared.store.bytes) >> self._shift) + 1
        self._time = 0
        self._written = np.zeros(granules, dtype=np.int64)
        self._fenced_proxy = np.zeros(wave.size, dtype=np.int64)

    def proxy_fence(self, wave: Wave, sel: Selection) -> None:
        """See `Monitor`."""
        self._time += 1
        self._fenced_proxy[wave.selected(sel)] = self._time

    def _check(
        self,
        wave: Wave,
        history: History,
        threads: Threads,
        granules: Granules,
        access: Access,
        is_shared: bool,
        values: Sequence[Value] | None,
    ) -> None:
        super()._check(wave, history, threads, granules, access, is_shared, values)
        if is_shared and access.is_write:
            self._written[granules] = self._time

    # Products ------------------------------------------------------------------------------------

    def product_issued(self, wave: Wave, product: Product) -> None:
        """See `Monitor`."""
        a_pieces, b_pieces = product.pieces
        if a_pieces is not None:
            warp = product.site.a_rows() // _A_ROWS_OF_A_WARP
            self._read(wave, product, product.threads[:, WARP * warp], a_pieces)
        for warp in range(WARPS):
            firsts = product.threads[:, WARP * warp, None]
            self._read(wave, product, firsts, b_pieces)

    def _read(self, wave: Wave, product: Product, threads: Threads, pieces: IntArray) -> None:
        """Compare reads with earlier writes; `threads` stand for the warps that read."""
        history = self._history(wave, wave.memories.shared.store, is_shared=True)
        granules = self._granules(pieces)
        readers = np.broadcast_to(threads[..., None], (*pieces.shape, granules.shape[-1]))
        readers, granules = readers.reshape(-1), granules.reshape(-1)
        written = history.touch(WRITE, granules)
        access = product.site.access
        self._compare(wave, readers, granules, access, True, WRITE, written)
        self._check_fenced(wave, readers, granules, access, written)

    def _check_fenced(
        self, wave: Wave, threads: Threads, granules: Granules, access: Access, written: Touch
    ) -> None:
        """Raise if threads see bytes by the asynchronous proxy that were stored without a fence."""
        stored = (written.threads != NOBODY) & (written.threads < wave.size)
        writers = np.where(stored, written.threads, 0)
        late = stored & (self._written[granules] >= self._fenced_proxy[writers])
        if not late.any():
            return
        place = int(np.argmax(late))
        write = self._sites[int(written.sites[place]) >> 1]
        who = self._who(wave, int(threads[place]), int(writers[place]))
        address = (int(granules[place]) << self._shift) % wave.memories.shared.stride
        access.operands.report(
            FindingKind.RACE,
            wave,
            int(threads[place]),
            f"{access.verb} {address:#x} in shared memory through the asynchronous proxy, which "
            f"{who} wrote without a `fence.proxy.async` behind it",
            address=address,
            notes=(Note(f"{who} wrote it here", write.operands.location),),
            help="put `fence.proxy.async.shared::cta` behind the write, before the barrier",
        )

    def product_done(self, wave: Wave, product: Product, fresh: Flags, done: Flags) -> None:
        """See `Monitor`."""
        agents = wave.warpgroup[product.threads[:, 0]]
        self._now.learn(
            product.warps[done], np.repeat(agents, WARPS)[done.reshape(-1)], product.serial
        )
        history = self._history(wave, wave.memories.shared.store, is_shared=True)
        site = 2 * self._site(product.site.access)
        first = WARP * np.argmax(done, axis=1)
        waiting = product.threads[np.arange(len(first)), first]
        for pieces in product.pieces:
            if pieces is None or not fresh.any():
                continue
            granules = self._granules(pieces[fresh])
            readers = np.broadcast_to(waiting[fresh, None, None], granules.shape).reshape(-1)
            names = wave.size + WARP * agents[fresh, None, None]
            names = np.broadcast_to(names, granules.shape).reshape(-1).astype(np.int32)
            granules = granules.reshape(-1)
            earlier = history.touch(FIRST_READ, granules)
            replaceable = self._ordered(wave, readers, earlier, True)
            ticks = np.full(len(granules), product.serial, dtype=np.int32)
            history.note_read(granules, names, ticks, site, replaceable)

    def _granules(self, pieces: IntArray) -> Granules:
        """The granules of pieces, shaped [..., granule]."""
        first = pieces[..., None] >> np.int64(self._shift)
        return first + np.arange(max(1, PIECE >> self._shift))

    def _thread_of(self, wave: Wave, name: int) -> int:
        """See `RaceMonitor`. An agent stands for the first thread of its warpgroup."""
        if name < wave.size:
            return name
        padded = self._geometry.padded
        slot, group = divmod((name - wave.size) // WARP, -(-padded // WARPGROUP))
        return slot * padded + group * WARPGROUP
