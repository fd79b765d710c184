"""Tiles whose extents are no powers of two, and blocks whose thread count is none.

A layout covers the next power of two of each extent; the elements past the true extents are the
overhang.  Much of it is known statically: some registers never hold a real element and are never
computed, others always do, and only the rest needs a check at run time.  Likewise a layout uses
the largest power of two of the threads; threads beyond it hold copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from phobos.layout import gf2
from phobos.layout.build import LANE_BITS, REGISTER, ceil_pow2, floor_pow2
from phobos.layout.linear import LinearLayout
from phobos.layout.queries import contiguous_vector, register_coordinates, thread_layout
from phobos.layout.text import LayoutError


class Presence(Enum):
    """Whether what a register holds, over all threads, is part of the tile."""

    INSIDE = auto()
    """In every thread."""
    PARTIAL = auto()
    """In some threads perhaps, which a check at run time must decide."""
    OUTSIDE = auto()
    """In no thread."""


@dataclass(frozen=True, slots=True)
class TileLayout:
    """A layout together with the true extents of the tile it holds.

    >>> tile = TileLayout(LinearLayout.parse("register=[[4]] lane=[[1], [2]] -> [8]"), (5,))
    >>> tile.presence(0), tile.presence(1)
    (<Presence.INSIDE: 1>, <Presence.PARTIAL: 2>)
    """

    layout: LinearLayout
    extents: tuple[int, ...]

    def __post_init__(self) -> None:
        covered = self.layout.shape
        if len(self.extents) != len(covered):
            raise LayoutError(
                f"a tile of rank {len(self.extents)} does not fit a layout of rank {len(covered)}"
            )
        for extent, size in zip(self.extents, covered, strict=True):
            if ceil_pow2(extent) != size:
                raise LayoutError(
                    f"an extent of {extent} needs a layout of size {ceil_pow2(extent)}, got {size}"
                )

    @property
    def has_overhang(self) -> bool:
        """True if the layout covers more than the tile."""
        return self.extents != self.layout.shape

    def axis_range(self, register: int, axis: int) -> tuple[int, int]:
        """The lowest and the highest coordinate a register has along an axis in any thread."""
        return _ranges(self.layout)[register][axis]

    def presence(self, register: int) -> Presence:
        """Whether a register holds elements of the tile in all, some or no threads.

        The answer looks at one axis at a time, so PARTIAL may turn out to be no thread.
        """
        ranges = _ranges(self.layout)[register]
        pairs = tuple(zip(ranges, self.extents, strict=True))
        if any(lowest >= extent for (lowest, _), extent in pairs):
            return Presence.OUTSIDE
        if all(highest < extent for (_, highest), extent in pairs):
            return Presence.INSIDE
        return Presence.PARTIAL

    def axes_to_check(self, register: int) -> tuple[int, ...]:
        """The axes along which some thread may be past the extent in this register."""
        ranges = _ranges(self.layout)[register]
        return tuple(axis for axis, extent in enumerate(self.extents) if ranges[axis][1] >= extent)

    def live_registers(self) -> tuple[int, ...]:
        """The registers that hold an element of the tile in some thread, ascending.

        >>> layout = LinearLayout.parse("register=[[4], [8]] lane=[[1], [2]] -> [16]")
        >>> TileLayout(layout, (9,)).live_registers()
        (0, 1, 2)
        """
        registers = range(self.layout.in_size(REGISTER))
        if not self.has_overhang:
            return tuple(registers)
        return tuple(r for r in registers if self.presence(r) is not Presence.OUTSIDE)

    def whole_vector(self, axis: int) -> int:
        """The widest register vector along the axis that is wholly inside or wholly outside.

        >>> TileLayout(LinearLayout.parse("register=[[1], [2], [4]] -> [8]"), (6,)).whole_vector(0)
        2
        """
        extent = self.extents[axis]
        return min(contiguous_vector(self.layout, axis), extent & -extent)


@lru_cache(maxsize=1024)
def _ranges(layout: LinearLayout) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each register and axis the lowest and the highest coordinate in any thread."""
    names = [name for name in layout.in_names if name != REGISTER]
    steps = [vector for name in names for vector in layout.bases(name)]
    rows = [gf2.echelon(vector[axis] for vector in steps) for axis in range(layout.rank)]
    return tuple(
        tuple(gf2.coset_range(value, row) for value, row in zip(at, rows, strict=True))
        for at in register_coordinates(layout)
    )


def covers(layout: LinearLayout, extents: Sequence[int]) -> bool:
    """True if the layout has the sizes that a tile of these extents needs."""
    return layout.shape == tuple(map(ceil_pow2, extents))


@lru_cache(maxsize=1024)
def owner_mask(layout: LinearLayout, threads: int) -> int:
    """The bits of the thread index that are 0 exactly in the threads that own elements.

    A side effect that must happen once an element is done by the threads with
    `thread & mask == 0` (and for registers without free bits, see `LinearLayout.free_mask`).
    The mask is 0 where every thread is an owner.

    >>> layout = LinearLayout.parse("lane=[[1], [2], [0]] -> [4]")
    >>> bin(owner_mask(layout, 8)), bin(owner_mask(layout, 12))
    ('0b100', '0b1100')
    """
    flat = thread_layout(layout)
    used = flat.in_size("thread")
    if threads < used:
        raise LayoutError(f"the layout needs {used} threads, the block has {threads}")
    beyond = (ceil_pow2(threads) - 1) & ~(used - 1)
    return flat.free_mask("thread") | beyond


def has_whole_warps(threads: int) -> bool:
    """True if in each warp of the block all lanes exist that a layout of it uses.

    Otherwise the last warp holds copies in some lanes only, and shuffles that read the others are
    undefined there: such copies must get their values in another way.

    >>> [has_whole_warps(threads) for threads in (8, 24, 32, 96, 100)]
    [True, False, True, True, False]
    """
    return threads % (1 << LANE_BITS) == 0 or threads == floor_pow2(threads)
