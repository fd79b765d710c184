"""The layouts of a contraction's operands and result, from the instruction it is made of.

All three share one way of spreading the result tile over warps: `along_n` warps along N in the
low bits of the warp number, then `along_m` along M. Warps along N hold copies of A, warps along
M copies of B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from phobos.layout.algebra import permute_bits, transpose
from phobos.layout.build import LANE, LANE_BITS, OFFSET, REGISTER, WARP, ceil_pow2, cover, log2
from phobos.layout.fragments import WARPGROUP_WARPS, mma_a, mma_b, mma_c, wgmma_a, wgmma_c
from phobos.layout.linear import LinearLayout

MAX_PIECE_VECTOR = 4
SIDE_BY_SIDE = 2
"""Doublings of an `mma`'s columns that a warp holds before the next warp's: 32 columns, so that a
warp's rows of halves or bytes are whole sectors of memory."""
THREAD_EDGE = 4
"""Elements along M and along N that a thread of the multiply-add path holds side by side."""


class Contraction(NamedTuple):
    """The layouts of A (M, K), B (K, N) and C (M, N)."""

    a: LinearLayout
    b: LinearLayout
    c: LinearLayout


def split_warps(m: int, n: int, warps: int, piece: tuple[int, int]) -> tuple[int, int]:
    """How many warps along M and along N: what makes a warp's share most nearly square.

    A share that is nearly square needs the fewest operand elements. No warp gets less than
    `piece` unless there are more warps than pieces.

    >>> split_warps(128, 128, 8, (16, 8)), split_warps(16, 256, 4, (16, 8))
    ((2, 4), (1, 4))
    """
    rows, columns = max(1, ceil_pow2(m) // piece[0]), max(1, ceil_pow2(n) // piece[1])
    options = [
        (along_m, warps // along_m)
        for along_m in (1 << bit for bit in range(log2(warps) + 1))
        if along_m <= rows and warps // along_m <= columns
    ]
    if not options:
        along_m = min(rows, warps)
        return along_m, warps // along_m
    return min(options, key=lambda o: (ceil_pow2(m) / o[0] + ceil_pow2(n) / o[1], o[0]))


@lru_cache(maxsize=256)
def mma_contraction(
    sizes: tuple[int, int, int],
    shape: tuple[int, int, int],
    packed: int,
    warps: tuple[int, int],
) -> Contraction:
    """Layouts for `mma` of `shape` (M, N, K) with `packed` operand elements a register.

    >>> str(mma_contraction((16, 64, 16), (16, 8, 16), 2, (1, 2)).c).split(" lane")[0]
    'register=[[0, 1], [8, 0], [0, 8], [0, 16]]'
    """
    (m, n, k), (piece_m, piece_n, piece_k) = sizes, shape
    along_m, along_n = warps
    # Along N first, so that what is loaded at once is of one step along K.
    b = cover(mma_b(piece_k, packed), (k, n), [(1, along_n), (None, along_m)])
    c = cover(mma_c(piece_m), (m, n), [(1, along_n), (0, along_m)])
    return Contraction(
        a=cover(mma_a(piece_m, piece_k, packed), (m, k), [(None, along_n), (0, along_m)]),
        b=_spread_warps(b, piece_n, along_n),
        c=_spread_warps(c, piece_n, along_n),
    )


def _spread_warps(layout: LinearLayout, piece: int, warps: int) -> LinearLayout:
    """A layout with some of each warp's columns below the bits that tell the warps apart."""
    bits = log2(layout.shape[-1])
    first = min(bits, log2(piece))
    end = min(bits, first + log2(warps))
    near = min(SIDE_BY_SIDE, bits - end)
    warp_bits, near_bits = range(first + near, end + near), range(first, first + near)
    places = (*range(first), *warp_bits, *near_bits, *range(end + near, bits))
    return permute_bits(layout, layout.rank - 1, places)


@lru_cache(maxsize=256)
def wmma_contraction(
    sizes: tuple[int, int, int], shape: tuple[int, int, int], warps: tuple[int, int]
) -> Contraction:
    """Layouts for `wmma` of `shape`: of A and B where each piece starts, of C all elements.

    Which lane holds what of a piece is not known: C is as `wmma_piece` reads it back.

    >>> str(wmma_contraction((32, 32, 16), (16, 16, 16), (1, 2)).b)
    'register=[] lane=[[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]] warp=[[0, 16]] -> [16, 32]'
    """
    (m, n, k), (piece_m, piece_n, piece_k) = sizes, shape
    along_m, along_n = warps

    def start(rows: int, columns: int) -> LinearLayout:
        nowhere = [(0, 0)] * LANE_BITS
        return LinearLayout.from_bases({REGISTER: [], LANE: nowhere}, (rows, columns))

    return Contraction(
        a=cover(start(piece_m, piece_k), (m, k), [(None, along_n), (0, along_m)]),
        b=cover(start(piece_k, piece_n), (k, n), [(1, along_n), (None, along_m)], (0, 1)),
        c=cover(wmma_piece(piece_m, piece_n), (m, n), [(1, along_n), (0, along_m)]),
    )


@lru_cache(maxsize=256)
def wgmma_contraction(
    sizes: tuple[int, int, int],
    shape: tuple[int, int, int],
    packed: int,
    warps: tuple[int, int],
    *,
    turned: bool = False,
) -> Contraction:
    """Layouts for `wgmma` of `shape` (M = 64, N, K): of A as registers hold it, of C.

    The four warps of a warpgroup are one below the other. B is only read from shared memory: its
    layout says where each piece starts.

    If `turned`, `shape` and `warps` are those of C^T = B^T A^T: B is held in registers and A only
    read from shared memory. Columns are in another order (`turned_columns`), and so are registers
    of the sum (`instruction_order`), those of a row one after the other.

    >>> layouts = wgmma_contraction((128, 32, 32), (64, 32, 16), 2, (8, 1))
    >>> str(layouts.c).split(" lane")[0], str(layouts.c).split(" warp")[1]
    ('register=[[0, 1], [8, 0], [0, 8], [0, 16]]', '=[[16, 0], [32, 0], [64, 0]] -> [128, 32]')
    >>> str(layouts.b).split(" lane")[0]
    'register=[[16, 0]]'
    >>> layouts = wgmma_contraction((32, 64, 8), (64, 32, 8), 1, (4, 1), turned=True)
    >>> str(layouts.c).split(" lane")[0]
    'register=[[0, 1], [1, 0], [8, 0], [16, 0]]'
    >>> str(layouts.b).split(" warp")[0]
    'register=[[0, 1], [4, 0]] lane=[[1, 0], [2, 0], [0, 16], [0, 2], [0, 4]]'
    """
    (m, n, k), (_, piece_n, piece_k) = sizes, shape
    if turned:
        straight = wgmma_contraction((n, m, k), shape, packed, warps)
        return Contraction(
            a=transpose(straight.b, (1, 0)),
            b=turned_columns(straight.a),
            c=along_rows(turned_columns(straight.c)),
        )
    groups = _across_groups(warps)
    whole_a = [(None, groups[1][1]), groups[0]]
    return Contraction(
        a=cover(wgmma_a(piece_k, packed), (m, k), whole_a),
        b=_piece_starts((piece_k, piece_n), (k, n), [groups[1], (None, groups[0][1])]),
        c=cover(wgmma_c(piece_n), (m, n), [groups[1], groups[0]]),
    )


_COLUMN_OF_ROW = (4, 1, 2, 0, 3)
"""Bit of a fragment's row in a warpgroup -> bit of the column that is this row in `turned`."""


def turned_columns(fragments: LinearLayout) -> LinearLayout:
    """The layout of fragments of B^T or C^T, (N, ..), as one of B or C, (.., N).

    The rows of a fragment are columns in another order, so that B comes from rows along N in
    shared memory, swizzled over 128 bytes, without a bank conflict: what a thread holds 8 rows
    apart are neighbours, and of the lanes that load 8 bytes at once, of four rows along K by four
    columns, each has other bits of the chunk (whose low ones the rows exchange) or half of it.
    """
    bits = log2(fragments.shape[0])
    places = (*_COLUMN_OF_ROW, *range(len(_COLUMN_OF_ROW), bits))
    return transpose(permute_bits(fragments, 0, places), (1, 0))


def along_rows(layout: LinearLayout) -> LinearLayout:
    """A layout of two axes in whose order of registers those along the last axis are first."""
    bases = {name: list(layout.bases(name)) for name in layout.in_names}
    bases[REGISTER].sort(key=lambda unit: unit[-1] == 0)
    return LinearLayout.from_bases(bases, dict(layout.outputs))


def instruction_order(turned: LinearLayout) -> list[int]:
    """The registers of a turned sum, whose layout has rows first, as the instruction numbers them.

    >>> layouts = wgmma_contraction((8, 128, 8), (64, 8, 8), 1, (4, 1), turned=True)
    >>> str(layouts.c).split(" lane")[0], instruction_order(layouts.c)
    ('register=[[0, 1], [0, 64], [1, 0]]', [0, 4, 1, 5, 2, 6, 3, 7])
    """
    units = list(enumerate(turned.bases(REGISTER)))
    (column, *columns), (row, *rows) = (
        [bit for bit, unit in units if unit[axis]] for axis in (-1, -2)
    )
    bits = (row, column, *rows, *columns)
    return [
        sum((number >> place & 1) << bit for place, bit in enumerate(bits))
        for number in range(1 << len(bits))
    ]


def _across_groups(warps: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The axis and the number of warpgroups along M and along N."""
    return (0, warps[0] // WARPGROUP_WARPS), (1, warps[1])


def wgmma_starts(
    sizes: tuple[int, int], shape: tuple[int, int, int], warps: tuple[int, int]
) -> LinearLayout:
    """Where the pieces of A, (M, K), start that a warpgroup reads from shared memory.

    >>> str(wgmma_starts((128, 32), (64, 32, 16), (8, 1))).replace("[0, 0], ", "")
    'register=[[0, 16]] lane=[[0, 0]] warp=[[64, 0]] -> [128, 32]'
    """
    rows, _, depth = shape
    (_, along_m), (_, along_n) = _across_groups(warps)
    return _piece_starts((rows, depth), sizes, [(None, along_n), (0, along_m)])


def _piece_starts(
    piece: tuple[int, int], sizes: tuple[int, int], groups: Sequence[tuple[int | None, int]]
) -> LinearLayout:
    """Where pieces start: the same place for all threads of a warpgroup."""
    nowhere = (0, 0)
    start = {
        REGISTER: [],
        LANE: [nowhere] * LANE_BITS,
        WARP: [nowhere] * log2(WARPGROUP_WARPS),
    }
    return cover(LinearLayout.from_bases(start, piece), sizes, groups)


def wmma_piece(m: int, n: int) -> LinearLayout:
    """Which lane takes what of a piece that lies in shared memory row by row: (M, N).

    A lane has vectors of up to four, and neighbouring lanes neighbouring vectors.

    >>> str(wmma_piece(8, 8))
    'register=[[0, 1]] lane=[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]] -> [8, 8]'
    """
    numbers = range(log2(m * n))
    places = [(0, 1 << i) if 1 << i < n else ((1 << i) // n, 0) for i in numbers]
    near = min(log2(MAX_PIECE_VECTOR), len(places) - LANE_BITS)
    far = near + LANE_BITS
    registers = places[:near] + places[far:]
    return LinearLayout.from_bases({REGISTER: registers, LANE: places[near:far]}, (m, n))


def wmma_buffer(
    shape: tuple[int, int], piece: tuple[int, int], *, transposed: bool
) -> LinearLayout:
    """The shared layout of an operand that `wmma` loads: panels as wide as one piece.

    Rows of a panel follow each other without a gap, so that a piece is one block of memory. Rows
    run along the last axis, along the first one if `transposed`.

    >>> str(wmma_buffer((2, 4), (2, 2), transposed=False))
    'offset=[[0, 1], [1, 0], [0, 2]] -> [2, 4]'
    """
    sizes = tuple(ceil_pow2(extent) for extent in shape)
    along = 0 if transposed else 1

    def unit(axis: int, bit: int) -> tuple[int, int]:
        return (1 << bit, 0) if axis == 0 else (0, 1 << bit)

    width = log2(min(piece[along], sizes[along]))
    inside = [unit(along, bit) for bit in range(width)]
    across = [unit(1 - along, bit) for bit in range(log2(sizes[1 - along]))]
    panels = [unit(along, bit) for bit in range(width, log2(sizes[along]))]
    return LinearLayout.from_bases({OFFSET: inside + across + panels}, sizes)


@lru_cache(maxsize=256)
def fma_contraction(
    sizes: tuple[int, int, int], lane_bits: int, warps: tuple[int, int]
) -> Contraction:
    """Layouts for multiply-adds: a thread holds blocks of 4 x 4 results.

    Lanes 2i and 2i + 1 hold one above the other, so that of any four lanes in a row two read the
    same part of A, and two the same part of B. Shared memory serves the 16-byte loads of half a
    warp at once then; of lanes that are all beside each other it takes eight at a time.

    >>> str(fma_contraction((16, 32, 1), 5, (1, 1)).a)
    'register=[[1, 0], [2, 0]] lane=[[4, 0], [0, 0], [8, 0], [0, 0], [0, 0]] warp=[] -> [16, 1]'
    """
    m, n, k = (ceil_pow2(size) for size in sizes)
    edge_m, edge_n = min(THREAD_EDGE, m), min(THREAD_EDGE, n)
    lanes_n = min(lane_bits - lane_bits // 2, log2(n // edge_n))
    lanes_m = min(lane_bits - lanes_n, log2(m // edge_m))
    lanes_n = min(lane_bits - lanes_m, log2(n // edge_n))
    along_rows = [(edge_m << bit, 0) for bit in range(lanes_m)]
    along_columns = [(0, edge_n << bit) for bit in range(lanes_n)]
    lane = along_rows[:1] + along_columns[:1] + along_rows[1:] + along_columns[1:]
    lane += [(0, 0)] * (lane_bits - len(lane))
    block = [(0, 1 << bit) for bit in range(log2(edge_n))]
    block += [(1 << bit, 0) for bit in range(log2(edge_m))]
    extent = {"dim0": edge_m << lanes_m, "dim1": edge_n << lanes_n}
    piece = LinearLayout.from_bases({REGISTER: block, LANE: lane}, extent)
    along_m, along_n = warps
    c = cover(piece, (m, n), [(1, along_n), (0, along_m)])
    return Contraction(_operand(c, 0, k), _operand(c, 1, k), c)


def _operand(c: LinearLayout, kept: int, k: int) -> LinearLayout:
    """What a thread needs of an operand: all of K for each row (column) of its results."""
    held = [v[kept] for v in c.bases(REGISTER) if v[kept]]
    near, far = held[: log2(THREAD_EDGE)], held[log2(THREAD_EDGE) :]

    def place(value: int, along_k: int = 0) -> tuple[int, int]:
        return (value, along_k) if kept == 0 else (along_k, value)

    steps = [place(0, 1 << bit) for bit in range(log2(k))]
    bases = {
        REGISTER: [*map(place, near), *steps, *map(place, far)],
        LANE: [place(v[kept]) for v in c.bases(LANE)],
        WARP: [place(v[kept]) for v in c.bases(WARP)],
    }
    sizes = (c.shape[0], k) if kept == 0 else (k, c.shape[1])
    return LinearLayout.from_bases(bases, sizes)


@lru_cache(maxsize=256)
def batched(layouts: Contraction, batch: tuple[int, ...]) -> Contraction:
    """The layouts of a stack of products, of extents `batch`, from those of one.

    Warps and lanes that would all do the same take a product each; a thread holds the rest one
    after the other.

    >>> one = mma_contraction((16, 8, 16), (16, 8, 16), 2, (1, 2))
    >>> str(batched(one, (4,)).c).split(" warp")[1]
    '=[[1, 0, 0]] -> [4, 16, 8]'
    >>> str(batched(one, (4,)).c).split(" lane")[0]
    'register=[[0, 0, 1], [0, 8, 0], [2, 0, 0]]'
    """
    sizes = tuple(map(ceil_pow2, batch))
    steps = stack_steps(sizes)
    idle = [
        (name, bit)
        for name in (WARP, LANE)
        for bit in range(layouts.c.in_bits(name))
        if _is_idle(layouts, name, bit)
    ][: len(steps)]
    moved = dict(zip(idle, steps, strict=False))
    further = steps[len(idle) :]
    return Contraction(*(_stacked(layout, sizes, moved, further) for layout in layouts))


def stack_steps(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The bits of the number of a product in a stack, the last axis lowest."""
    return [
        tuple(1 << bit if i == axis else 0 for i in range(len(sizes)))
        for axis in reversed(range(len(sizes)))
        for bit in range(log2(sizes[axis]))
    ]


def _is_idle(layouts: Contraction, name: str, bit: int) -> bool:
    """Whether threads that differ in a bit would all hold the same."""
    return not any(layout.packed(name)[bit] for layout in layouts)


def _stacked(
    layout: LinearLayout,
    sizes: tuple[int, ...],
    moved: Mapping[tuple[str, int], tuple[int, ...]],
    further: Sequence[tuple[int, ...]],
) -> LinearLayout:
    whole = (0,) * len(sizes)
    bases = {
        name: [(*moved.get((name, bit), whole), *v) for bit, v in enumerate(layout.bases(name))]
        for name in layout.in_names
    }
    bases[REGISTER] += [(*step, 0, 0) for step in further]
    return LinearLayout.from_bases(bases, (*sizes, *layout.shape))


def stack_buffer(matrix: LinearLayout, batch: Sequence[int]) -> LinearLayout:
    """The shared layout of a stack of matrices, one behind the other.

    >>> str(stack_buffer(LinearLayout.parse("offset=[[0, 1], [1, 0]] -> [2, 2]"), (2,)))
    'offset=[[0, 0, 1], [0, 1, 0], [1, 0, 0]] -> [2, 2, 2]'
    """
    sizes = tuple(map(ceil_pow2, batch))
    inner = [(*(0 for _ in sizes), *v) for v in matrix.bases(OFFSET)]
    outer = [(*step, 0, 0) for step in stack_steps(sizes)]
    return LinearLayout.from_bases({OFFSET: inner + outer}, (*sizes, *matrix.shape))


def flat(layout: LinearLayout) -> LinearLayout:
    """The layout of one matrix: without the axes before the last two."""
    bases = {name: [v[-2:] for v in layout.bases(name)] for name in layout.in_names}
    return LinearLayout.from_bases(bases, layout.shape[-2:])


def add_units(layout: LinearLayout, count: int) -> LinearLayout:
    """A layout with so many axes of extent 1 in front: what `drop_units` drops."""
    units = (0,) * count
    bases = {name: [(*units, *v) for v in layout.bases(name)] for name in layout.in_names}
    return LinearLayout.from_bases(bases, (*(1,) * count, *layout.shape))


def drop_units(layout: LinearLayout) -> LinearLayout:
    """A layout without the axes before its last two if all of them have extent 1."""
    return flat(layout) if all(size == 1 for size in layout.shape[:-2]) else layout
