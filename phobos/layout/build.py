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
    warp_order: Sequence[int] | None = None,
) -> LinearLayout:
    """The layout of a tile that is loaded, computed on elementwise, and stored.

    The lowest register bits hold `vector` consecutive elements of the fastest axis (clamped to
    its extent); then the lanes go along the fastest axis and on to the next, then the warps, and
    what remains of the tile are further registers.  Threads beyond need hold copies.

    Args: any rank and extents >= 1 (rounded up to powers of two), any `threads` >= 1, `vector` a
    power of two, `order` the axes from fastest to slowest (default: last axis fastest),
    `warp_order` the axes that warps go along, first to last, where that is another order.

    >>> str(elementwise_layout((8,), threads=4, vector=1))
    'register=[[4]] lane=[[1], [2]] warp=[] -> [8]'
    >>> str(elementwise_layout((2, 6), threads=4, vector=4))
    'register=[[0, 1], [0, 2]] lane=[[0, 4], [1, 0]] warp=[] -> [2, 8]'
    >>> str(elementwise_layout((2, 64), threads=64, warp_order=(0, 1)))
    'register=[[0, 32]] lane=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]] warp=[[1, 0]] -> [2, 64]'
    """
    axes = checked_order(order, len(shape))
    for_warps = axes if warp_order is None else checked_order(warp_order, len(shape))
    return _elementwise_layout(tuple(map(ceil_pow2, shape)), threads, vector, axes, for_warps)


@lru_cache(maxsize=1024)
def _elementwise_layout(
    sizes: tuple[int, ...],
    threads: int,
    vector: int,
    order: tuple[int, ...],
    warp_order: tuple[int, ...],
) -> LinearLayout:
    walk = _walk(sizes, order)
    vector_bits = min(log2(vector), log2(sizes[order[0]])) if order else 0
    lanes, warps = thread_bits(threads)
    lane_end = vector_bits + lanes
    lane_bases = [unit for _, unit in walk[vector_bits:lane_end]]
    rest = walk[lane_end:]
    for_warps = sorted(rest, key=lambda step: warp_order.index(step[0]))[:warps]
    taken = {unit for _, unit in for_warps}
    registers = (unit for _, unit in (*walk[:vector_bits], *rest) if unit not in taken)
    inputs = (
        (REGISTER, tuple(registers)),
        (LANE, (*lane_bases, *[0] * (lanes - len(lane_bases)))),
        (WARP, (*(unit for _, unit in for_warps), *[0] * (warps - len(for_warps)))),
    )
    return LinearLayout(inputs, tuple(zip(default_names(len(sizes)), sizes, strict=True)))


def _walk(sizes: Sequence[int], order: Sequence[int]) -> list[tuple[int, int]]:
    """(axis, packed unit vector) for each bit, from the fastest axis of `order` on."""
    walk: list[tuple[int, int]] = []
    for axis in order:
        step = 1
        for size in sizes[axis + 1 :]:
            step *= size
        walk.extend((axis, step << bit) for bit in range(log2(sizes[axis])))
    return walk


def identity(name: str, size: int, axis: str = "dim0") -> LinearLayout:
    """Value i of the input `name` holds element i of `axis`.

    >>> str(identity("lane", 4))
    'lane=[[1], [2]] -> [4]'
    """
    return strided(name, size, 1, axis)


def strided(name: str, size: int, stride: int, axis: str = "dim0") -> LinearLayout:
    """Value i of the input `name` holds element i * stride of `axis`.

    >>> str(strided("register", 2, 4))
    'register=[[4]] -> [8]'
    """
    step = log2(stride)
    bases = tuple(1 << (bit + step) for bit in range(log2(size)))
    return LinearLayout(((name, bases),), ((axis, size * stride),))


def zeros(name: str, size: int, axis: str = "dim0") -> LinearLayout:
    """All values of the input `name` hold copies of one element.

    >>> str(zeros("warp", 4))
    'warp=[[0], [0]] -> [1]'
    """
    return LinearLayout(((name, (0,) * log2(size)),), ((axis, 1),))


def cover(
    piece: LinearLayout,
    shape: Sequence[int],
    warps: Sequence[tuple[int | None, int]] = (),
    order: Sequence[int] | None = None,
) -> LinearLayout:
    """Repeat a piece so that it covers a tile: first side by side over warps, then in registers.

    `warps` says, lowest warp bits first, along which axis how many warps go; None as the axis
    makes copies, as do warps that find the axis full.  Registers repeat along the axes of
    `order`, fastest first (default: the last axis).  Where the piece is larger than the tile its
    elements past the end become copies.

    >>> piece = LinearLayout.parse("lane=[[0, 1], [1, 0]] -> [2, 2]")
    >>> str(cover(piece, (8, 4), warps=[(0, 2), (None, 2)]))
    'register=[[0, 2], [4, 0]] lane=[[0, 1], [1, 0]] warp=[[2, 0], [0, 0]] -> [8, 4]'
    """
    axes = checked_order(order, len(shape))
    if piece.rank != len(shape):
        raise LayoutError(f"cannot cover a tile of rank {len(shape)} with rank {piece.rank}")
    sizes = tuple(map(ceil_pow2, shape))
    bases = {
        name: [tuple(x % size for x, size in zip(v, sizes, strict=True)) for v in piece.bases(name)]
        for name in dict.fromkeys((REGISTER, LANE, WARP, *piece.in_names))
    }
    reached = [min(have, size) for have, size in zip(piece.shape, sizes, strict=True)]

    def grow(axis: int | None) -> tuple[int, ...]:
        if axis is None or reached[axis] == sizes[axis]:
            return (0,) * len(sizes)
        reached[axis] *= 2
        return tuple(reached[axis] // 2 if i == axis else 0 for i in range(len(sizes)))

    across = [grow(axis) for axis, count in warps for _ in range(log2(count))]
    for axis in axes:
        while reached[axis] < sizes[axis]:
            bases[REGISTER].append(grow(axis))
    bases[WARP].extend(across)
    return LinearLayout.from_bases(bases, dict(zip(piece.out_names, sizes, strict=True)))


def blocked(
    shape: Sequence[int],
    per_thread: Sequence[int],
    lanes: Sequence[int],
    warps: Sequence[int],
    order: Sequence[int] | None = None,
) -> LinearLayout:
    """Give every thread a block of elements, then tile lanes, warps and registers.

    All arguments have one power of two an axis: the extents of the block of one thread, the
    lanes and the warps side by side; the rest of the tile repeats in registers.

    >>> str(blocked((4, 8), per_thread=(1, 2), lanes=(2, 2), warps=(2, 1)))
    'register=[[0, 1], [0, 4]] lane=[[0, 2], [1, 0]] warp=[[2, 0]] -> [4, 8]'
    """
    axes = checked_order(order, len(shape))
    names = default_names(len(shape))
    start = [1] * len(shape)
    bases: dict[str, list[tuple[int, ...]]] = {REGISTER: [], LANE: []}
    for name, counts in ((REGISTER, per_thread), (LANE, lanes)):
        for axis in axes:
            for _ in range(log2(counts[axis])):
                bases[name].append(tuple(x if i == axis else 0 for i, x in enumerate(start)))
                start[axis] *= 2
    # The vectors were made for a tile of just this piece's size, which `start` has grown to.
    piece = LinearLayout.from_bases(bases, dict(zip(names, start, strict=True)))
    return cover(piece, shape, [(axis, warps[axis]) for axis in axes], axes)
