"""Products of warpgroups: issued now, done by the time that a warp of theirs waits for them.

The four warps of a warpgroup issue a product together, and each of them numbers its groups. When
the first of them waits for a product, it is computed for all four, in the order of issue; to each
warp its registers stay closed until it has waited itself. When the operands are read from shared
memory is open: by default at the wait, with a seed at the issue or at the wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Note
from phobos.emulator.checks.registers import HeldRegisters, RegisterWatch, WatchedRegisters
from phobos.emulator.errors import FindingKind
from phobos.emulator.tensor.descriptor import PIECE
from phobos.emulator.types import WARP, Selection, Value

if TYPE_CHECKING:
    from phobos.emulator.decode import Operands
    from phobos.emulator.memory.access import Access
    from phobos.emulator.wave import Wave

WARPS = 4
"""Warps of a warpgroup."""

WARPGROUP = WARPS * WARP
"""Threads of a warpgroup."""

IntArray = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class ProductSite(Protocol):
    """A decoded instruction that issues products.

    `held` are the registers that it holds, None where nobody watches them; `access` stands for
    its reads of shared memory, 16 bytes each.
    """

    operands: Operands
    held: HeldRegisters | None
    access: Access

    def a_rows(self) -> IntArray:
        """The first row of A of each piece of it in shared memory."""
        ...

    def read(self, wave: Wave, product: Product) -> None:
        """Take the operands that lie in shared memory, as they are now."""

    def finish(self, wave: Wave, product: Product, mask: Flags) -> None:
        """Compute the results of the warpgroups in `mask` into their registers."""


@dataclass(eq=False)
class Product:
    """One instruction of several warpgroups, from its issue to the last wait.

    Attributes:
        site: The instruction.
        serial: Counts issues; later ones have higher numbers.
        threads: The threads, shaped [warpgroup, 128].
        group: The open group of each warp at the issue, shaped [warpgroup, 4].
        accumulates: Whether each warpgroup adds to what its accumulators hold.
        a_registers: Registers of A, shaped [warp, lane, register], where A is held in them.
        pieces: Byte indices into shared memory of the pieces of A and of B, shaped
            [warpgroup, piece]; none for an operand in registers.
        factors: The operands, once they were read.
        is_open: The warps that have not waited, shaped [warpgroup, 4].
        is_done: The warpgroups whose result was computed.
    """

    site: ProductSite
    serial: int
    threads: npt.NDArray[np.intp]
    group: IntArray
    accumulates: Flags
    a_registers: npt.NDArray | None
    pieces: tuple[IntArray | None, IntArray]
    factors: tuple[npt.NDArray, npt.NDArray] | None = None
    is_open: Flags = field(init=False)
    is_done: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.is_open = np.ones((len(self.threads), WARPS), dtype=np.bool_)
        self.is_done = np.zeros(len(self.threads), dtype=np.bool_)

    @property
    def warps(self) -> IntArray:
        """The warps, shaped [warpgroup, 4]."""
        return self.threads[:, ::WARP] // WARP


class WarpgroupProducts:
    """The products of a wave that some warp has not waited for yet."""

    def __init__(
        self, wave: Wave, generator: np.random.Generator | None, watched: WatchedRegisters
    ) -> None:
        self._wave = wave
        self._generator = generator
        self._group = np.zeros(wave.size // WARP, dtype=np.int64)
        self._open: list[Product] = []
        self._serial = 0
        self._watches = watched.is_on
        self.registers = RegisterWatch(wave, watched)
        # How many products in flight read each piece of shared memory; None before the first.
        self._readers: npt.NDArray[np.int32] | None = None

    @property
    def are_reading(self) -> bool:
        """Whether a product in flight may read shared memory, and writes to it are looked at."""
        return bool(self._open) and self._watches

    def fence(self, sel: Selection) -> None:
        """The warps of the selected threads execute `wgmma.fence`."""
        if self._watches:
            self.registers.fence(sel)

    def next_serial(self) -> int:
        """The number of the next product."""
        return self._serial + 1

    def group_of(self, warps: IntArray) -> IntArray:
        """The open group of each warp."""
        return self._group[warps]

    def issue(self, product: Product) -> None:
        """Start a product."""
        wave = self._wave
        self._serial = product.serial
        if self._watches and product.site.held is not None:
            self.registers.hold(product.site.held, product)
        if wave.monitor is not None:
            wave.monitor.product_issued(wave, product)
        self._open.append(product)
        self._count_readers(product, np.ones(len(product.threads), dtype=np.bool_), 1)
        if self._generator is not None and self._generator.integers(2):
            product.site.read(self._wave, product)

    def commit(self, sel: Selection) -> None:
        """Close the open group of the warps of the selected threads."""
        self._group[self._warps(sel)] += 1

    def wait(self, sel: Selection, in_flight: int) -> None:
        """Finish all committed groups of the selected warps but the last `in_flight`."""
        if not self._open:
            return
        waiting = np.zeros(len(self._group), dtype=np.bool_)
        waiting[self._warps(sel)] = True
        limit = self._group - in_flight
        for product in self._open:
            warps = product.warps
            done = waiting[warps] & (product.group < limit[warps]) & product.is_open
            if done.any():
                self._close(product, done)
        self._open = [product for product in self._open if product.is_open.any()]

    def _close(self, product: Product, done: Flags) -> None:
        """Warps waited for a product; it is computed for the warpgroups where they are first."""
        product.is_open &= ~done
        if self._watches:
            self.registers.release(product, done)
        fresh = done.any(axis=1) & ~product.is_done
        if fresh.any():
            product.site.finish(self._wave, product, fresh)
            product.is_done |= fresh
            self._count_readers(product, fresh, -1)
        if self._wave.monitor is not None:
            self._wave.monitor.product_done(self._wave, product, fresh, done)

    # Shared memory that products read ------------------------------------------------------------

    def _count_readers(self, product: Product, mask: Flags, change: int) -> None:
        if not self._watches:
            return
        if self._readers is None:
            pieces = len(self._wave.memories.shared.store.bytes) // PIECE
            self._readers = np.zeros(pieces, dtype=np.int32)
        for pieces in product.pieces:
            if pieces is not None:
                np.add.at(self._readers, pieces[mask].reshape(-1) // PIECE, change)

    def check_write(
        self, wave: Wave, sel: Selection, address: Value, access: Access, index: Value
    ) -> None:
        """Raise if threads write to bytes of shared memory that a product in flight reads."""
        if self._readers is None:
            return
        piece = np.atleast_1d(index) // PIECE
        read = self._readers[piece] > 0
        if not read.any():
            return
        wanted = int(piece[int(np.argmax(read))]) * PIECE
        product = next(p for p in reversed(self._open) if _reads(p, wanted))
        reader = product.site.operands
        access.fault(
            FindingKind.RACE,
            wave,
            sel,
            address,
            read,
            "in shared memory, which a `wgmma` still reads",
            (Note(f"`{reader.instruction.mnemonic}` was issued here", reader.location),),
        )

    def _warps(self, sel: Selection) -> npt.NDArray[np.intp]:
        return np.unique(self._wave.selected(sel) // WARP)


def _reads(product: Product, index: int) -> bool:
    """Whether a product still reads the piece at a byte index."""
    waiting = ~product.is_done
    return any(
        pieces is not None and bool((pieces[waiting] == index).any()) for pieces in product.pieces
    )
