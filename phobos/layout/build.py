"""Constructors of the common register layouts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from phobos.layout.linear import LinearLayout
from phobos.layout.text import LayoutError, default_names

REGISTER = "register"
LANE = "lane"
WARP = "warp"
OFFSET = "offset"

LANE_BITS = 5  # a warp has 32 lanes on every chip


def log2(value: int) -> int:
    """The exponent of a power of two; LayoutError for any other number."""
    if value < 1 or value & (value - 1):
        raise LayoutError(f"expected a power of two, got {value}")
    return value.bit_length() - 1


def ceil_pow2(extent: int) -> int:
    """The smallest power of two that is at least `extent`.

    >>> [ceil_pow2(n) for n in (1, 3, 64, 100)]
    [1, 4, 64, 128]
    """
    if extent < 1:
        raise LayoutError(f"expected an extent of at least 1, got {extent}")
    return 1 << (extent - 1).bit_length()


def floor_pow2(count: int) -> int:
    """The largest power of two that is at most `count`.

    >>> [floor_pow2(n) for n in (1, 3, 64, 100)]
    [1, 2, 64, 64]
    """
    if count < 1:
        raise LayoutError(f"expected a count of at least 1, got {count}")
    return 1 << (count.bit_length() - 1)


def thread_bits(threads: int) -> tuple[int, int]:
    """How many lane and warp bits a layout uses for a block of `threads` threads.

    The layout covers the largest power of two of them; the others are copies.

    >>> thread_bits(256), thread_bits(24), thread_bits(96)
    ((5, 3), (4, 0), (5, 1))
    """
    bits = log2(floor_pow2(threads))
    lanes = min(LANE_BITS, bits)
    return lanes, bits - lanes


def default_order(rank: int) -> tuple[int, ...]:
    """Axes from the fastest to the slowest in memory: the last one first."""
    return tuple(reversed(range(rank)))


def checked_order(order: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The given axis order, or the default; LayoutError if it is not a permutation."""
    if order is None:
        return default_order(rank)
    if sorted(order) != list(range(rank)):
        raise LayoutError(f"expected an order of the axes 0 to {rank - 1}, got {list(order)}")
    return tuple(order)


def elementwise_layout(
    shape: Sequence[int],
    threads: int,
    vector: int = 1,
    order: Sequence[int] | None = None,
) -> LinearLayout:
    """The layout of a tile that is loaded, computed on elementwise, and stored.

    The lowest register bits hold `vector` consecutive elements of the fastest axis (clamped to
    its extent); then the lanes go along the fastest axis and on to the next, then the warps, and
    what remains of the tile are further registers.  Threads beyond need hold copies.

    Args: any rank and extents >= 1 (rounded up to powers of two), any `threads` >= 1, `vector` a
    power of two, `order` the axes from fastest to slowest (default: last axis fastest).

    >>> str(elementwise_layout((8,), threads=4, vector=1))
    'register=[[4]] lane=[[1], [2]] warp=[] -> [8]'
    >>> str(elementwise_layout((2, 6), threads=4, vector=4))
    'register=[[0, 1], [0, 2]] lane=[[0, 4], [1, 0]] warp=[] -> [2, 8]'
    """
    axes = checked_order(order, len(shape))
    return _elementwise_layout(tuple(map(ceil_pow2, shape)), threads, vector, axes)


@lru_cache(maxsize=1024)
def _elementwise_layout(
    sizes: tuple[int, ...], threads: int, vector: int, order: tuple[int, ...]
) -> LinearLayout:
    walk = _walk(sizes, order)
    vector_bits = min(log2(vector), log2(sizes[order[0]])) if order else 0
    lanes, warps = thread_bits(threads)
    lane_end = vector_bits + lanes
    warp_end = lane_end + warps
    lane_bases = walk[vector_bits:lane_end]
    warp_bases = walk[lane_end:warp_end]
    inputs = (
        (REGISTER, (*walk[:vector_bits], *walk[warp_end:])),
        (LANE, (*lane_bases, *[0] * (lanes - len(lane_bases)))),
        (WARP, (*warp_bases, *[0] * (warps - len(warp_bases)))),
    )
    return LinearLayout(inputs, tuple(zip(default_names(len(sizes)), sizes, strict=True)))


def _walk(sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """The packed unit vectors of a tile, from the fastest axis of `order` to the slowest."""
    walk: list[int] = []
    for axis in order:
        step = 1
        for size in sizes[axis + 1 :]:
            step *= size
        walk.extend(step << bit for bit in range(log2(sizes[axis])))
    return walk
