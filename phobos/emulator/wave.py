"""A wave: the CTAs that run at once, with the registers of all their threads.

Threads are numbered through the wave. Every CTA is padded to whole warps, so that warp `w` holds
threads `32 * w` to `32 * w + 31`; padding threads never run. A register is one array over all
threads, or a scalar while every thread holds the same value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.emulator.asynchronous import AsyncCopies
from phobos.emulator.bulk import BulkCopies
from phobos.emulator.checks.registers import WatchedRegisters
from phobos.emulator.mbarriers import Mbarriers
from phobos.emulator.types import WARP, Selection, Value, scalar
from phobos.emulator.warpgroup import WARPGROUP, WarpgroupProducts

if TYPE_CHECKING:
    from phobos.emulator.memory.spaces import Memories
    from phobos.emulator.monitor import Monitor

_POISON = {
    1: np.bool_(False),
    8: np.uint8(0xA5),
    16: np.uint16(0x7EAD),
    32: np.uint32(0x7FFDEAD5),
    64: np.uint64(0x7FFDEAD57FFDEAD5),
    128: np.void(bytes.fromhex("d5eafd7f") * 4),
}
"""What an unwritten register holds where such reads are not reported: a NaN in every format."""

Dim3 = tuple[int, int, int]


def warp_bits(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """One word a warp from one flag a thread: bit `l` for lane `l`."""
    return np.packbits(flags.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32)[:, 0]


@dataclass(frozen=True)
class Geometry:
    """Grid, block and cluster of a launch; the grid is a multiple of the cluster."""

    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)

    @cached_property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def padded(self) -> int:
        """Threads of a CTA, rounded up to whole warps."""
        return -(-self.threads // WARP) * WARP

    @cached_property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @cached_property
    def cluster_size(self) -> int:
        """CTAs of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    def ctas_by_cluster(self) -> npt.NDArray[np.int64]:
        """The numbers of all CTAs, shaped [cluster, rank]."""
        x, y, z = self.cluster
        numbers = np.arange(self.ctas, dtype=np.int64).reshape(
            self.grid[2] // z, z, self.grid[1] // y, y, self.grid[0] // x, x
        )
        return numbers.transpose(0, 2, 4, 1, 3, 5).reshape(-1, self.cluster_size)

    def cta_index(self, number: int) -> Dim3:
        """The three-dimensional index of a CTA from its number (x fastest)."""
        x, y, _ = self.grid
        return (number % x, number // x % y, number // (x * y))

    def thread_index(self, number: int) -> Dim3:
        """The three-dimensional index of a thread from its number in the CTA."""
        x, y, _ = self.block
        return (number % x, number // x % y, number // (x * y))


class Wave:
    """The state of the CTAs that are resident together.

    `ctas` holds the grid-wide numbers of the CTAs, in the order of their slots. The CTAs of a
    cluster have slots side by side, in the order of their ranks.
    """

    def __init__(
        self,
        geometry: Geometry,
        ctas: npt.NDArray[np.int64],
        register_bits: list[int],
        memories: Memories,
        monitor: Monitor | None = None,
        generator: np.random.Generator | None = None,
        output: Callable[[str], object] = sys.stdout.write,
        watched: WatchedRegisters | None = None,
    ) -> None:
        self.geometry = geometry
        self.ctas = ctas
        self.memories = memories
        self.monitor = monitor
        self.output = output
        self.size = len(ctas) * geometry.padded
        self.registers: list[Value | None] = [None] * len(register_bits)
        self.undefined: dict[int, npt.NDArray[np.bool_]] = {}
        self.register_bits = register_bits
        in_cta = np.arange(self.size) % geometry.padded
        self.exists: npt.NDArray[np.bool_] = in_cta < geometry.threads
        self.alive = self.exists.copy()
        self.everyone: Selection = (
            None if geometry.padded == geometry.threads else np.flatnonzero(self.exists)
        )
        self.copies = AsyncCopies(self, generator)
        self.bulk = BulkCopies(self, generator)
        self.mbarriers = Mbarriers(self)
        self.products = WarpgroupProducts(self, generator, watched or WatchedRegisters())
        self.memory_version = 0
        self.clock = 0
        self._carry = scalar(np.bool_(False))

    @property
    def has_marks(self) -> bool:
        """Whether copies in flight or mbarriers may forbid writes to shared memory."""
        return self.copies.are_pending or self.bulk.are_loading or self.mbarriers.are_live

    # Threads -------------------------------------------------------------------------------------

    @cached_property
    def indices(self) -> npt.NDArray[np.intp]:
        """All thread numbers of the wave."""
        return np.arange(self.size, dtype=np.intp)

    @cached_property
    def slot(self) -> npt.NDArray[np.intp]:
        """The CTA slot of every thread."""
        return self.indices // self.geometry.padded

    @cached_property
    def in_cta(self) -> npt.NDArray[np.intp]:
        """The number of every thread in its CTA."""
        return self.indices % self.geometry.padded

    @cached_property
    def warpgroup(self) -> npt.NDArray[np.intp]:
        """The warpgroup of every thread, counted through the wave; the last of a CTA may lack
        warps.
        """
        per_cta = -(-self.geometry.padded // WARPGROUP)
        return self.slot * per_cta + self.in_cta // WARPGROUP

    @property
    def is_running(self) -> npt.NDArray[np.bool_]:
        """Whether each CTA has threads that have not exited, by slot."""
        return np.asarray(self.alive.reshape(len(self.ctas), -1).any(axis=1))

    def slot_of_owner(
        self, threads: npt.NDArray[np.intp], owner: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """The slots of the CTAs that shared addresses name, seen from threads; -1 if there is none.

        `owner` is 0 for the CTA of the thread, else the rank in its cluster plus one.
        """
        own, size = self.slot[threads], self.geometry.cluster_size
        slots = np.where(owner == 0, own, own - own % size + owner - 1)
        return np.where(owner <= size, slots, -1)

    def selected(self, selection: Selection) -> npt.NDArray[np.intp]:
        """The thread numbers of a selection."""
        return self.indices if selection is None else selection

    def count(self, selection: Selection) -> int:
        """How many threads a selection has."""
        return self.size if selection is None else len(selection)

    def narrow(self, selection: Selection, mask: npt.NDArray[np.bool_]) -> Selection:
        """The threads of `selection` where `mask` holds."""
        chosen = np.flatnonzero(mask)
        return chosen if selection is None else selection[chosen]

    def normalised(self, threads: npt.NDArray[np.intp]) -> Selection:
        """A selection from sorted thread numbers; None if they are all."""
        return None if len(threads) == self.size else threads

    def flags(self, selection: Selection) -> npt.NDArray[np.bool_]:
        """One flag a thread of the wave: whether it is selected."""
        if selection is None:
            return np.ones(self.size, dtype=np.bool_)
        flags = np.zeros(self.size, dtype=np.bool_)
        flags[selection] = True
        return flags

    def spread(self, selection: Selection, value: Value) -> npt.NDArray:
        """Values of the selected threads, placed in an array over the whole wave."""
        if selection is None:
            return np.broadcast_to(value, (self.size,))
        whole = np.zeros(self.size, dtype=value.dtype)
        whole[selection] = value
        return whole

    # Registers -----------------------------------------------------------------------------------

    def write_some(self, index: int, selection: npt.NDArray[np.intp], value: Value) -> None:
        """Write a register in some threads, keeping the others."""
        current = self.registers[index]
        if current is None:
            poison = _POISON[self.register_bits[index]]
            current = np.full(self.size, poison)
            self.undefined[index] = np.ones(self.size, dtype=np.bool_)
        elif current.ndim == 0:
            current = np.full(self.size, current)
        assert isinstance(current, np.ndarray)
        current[selection] = value
        self.registers[index] = current
        mask = self.undefined.get(index)
        if mask is not None:
            mask[selection] = False

    def read_carry(self, selection: Selection) -> Value:
        """The carry flag of the selected threads; clear where nothing set it."""
        value = self._carry
        return value if selection is None or value.ndim == 0 else value[selection]

    def write_carry(self, selection: Selection, value: Value) -> None:
        """Set the carry flag of the selected threads."""
        if selection is None:
            self._carry = value
            return
        current = np.array(np.broadcast_to(self._carry, (self.size,)))
        current[selection] = value
        self._carry = current

    def undefined_in(self, index: int, selection: Selection) -> npt.NDArray[np.bool_] | None:
        """Which of the selected threads never wrote the register; None if all did."""
        if self.registers[index] is None:
            return np.ones(self.count(selection), dtype=np.bool_)
        mask = self.undefined.get(index)
        if mask is None:
            return None
        chosen = mask if selection is None else mask[selection]
        return chosen if chosen.any() else None

    def poisoned(self, index: int) -> Value:
        """The register's value, with the poison pattern where nothing was ever written."""
        value = self.registers[index]
        return _POISON[self.register_bits[index]] if value is None else value

    def make_undefined(self, index: int, selection: Selection) -> None:
        """Forget what the register holds in the selected threads."""
        if selection is None:
            self.registers[index] = None
            self.undefined.pop(index, None)
            return
        if self.registers[index] is None:
            return
        mask = self.undefined.setdefault(index, np.zeros(self.size, dtype=np.bool_))
        mask[selection] = True
