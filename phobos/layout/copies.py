"""Copies that turn a matrix on its way to shared memory, element by element.

A thread of the multiply-add path wants neighbours along M of A (along N of B) from one load: four
elements of one step along K, and not of four steps of which it needs one. Where neighbours in
memory are neighbours along K, that takes copies of single elements. Lanes then go along K as far
as a sector of memory does, and on across it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from phobos.layout import gf2
from phobos.layout.build import LANE, REGISTER, WARP, ceil_pow2, log2
from phobos.layout.contraction import stack_buffer, stack_steps
from phobos.layout.linear import LinearLayout
from phobos.layout.shared import LINE_BYTES, MAX_VECTOR_BYTES, offsets, swizzled

_Unit = tuple[int, int]


class TurningCopy(NamedTuple):
    """Which thread copies which element of a tile, and where the elements lie then."""

    tile: LinearLayout
    buffer: LinearLayout


@lru_cache(maxsize=64)
def turning_copy(
    shape: Sequence[int], element_bytes: int, lane_bits: int, warp_bits: int
) -> TurningCopy:
    """How to copy a tile whose rows are contiguous in memory so that its columns are in the buffer.

    The buffer exchanges groups of 16 bytes from one column to the next, so that neither lanes that
    copy along a row meet in a bank nor lanes that load such groups.

    Args: the tile's `shape`, of extents that are rounded up to powers of two; the size of an
    element, 4 or 8 bytes; what bits the number of a thread has.  Axes before the last two count
    matrices, which lie one behind the other.

    >>> tile, buffer = turning_copy((32, 8), 4, 5, 1)
    >>> tile.bases("lane")
    ((0, 1), (0, 2), (0, 4), (1, 0), (2, 0))
    >>> buffer.apply(offset=32), buffer.apply(offset=3 * 32)
    ((4, 1), (12, 3))
    """
    *batch, rows, columns = map(ceil_pow2, shape)
    groups = LINE_BYTES // MAX_VECTOR_BYTES
    matrix = swizzled((rows, columns), MAX_VECTOR_BYTES // element_bytes, 1, groups, (0, 1))
    near = min(log2(groups), log2(columns))
    down: list[_Unit] = [(1 << bit, 0) for bit in range(log2(rows))]
    along: list[_Unit] = [(0, 1 << bit) for bit in range(log2(columns))]
    lanes = _lanes([*along[:near], *down, *along[near:]], matrix, element_bytes)[:lane_bits]
    rest = [unit for unit in (*down, *along) if unit not in lanes]
    bases = {
        REGISTER: rest[warp_bits:],
        LANE: lanes + [(0, 0)] * (lane_bits - len(lanes)),
        WARP: rest[:warp_bits] + [(0, 0)] * (warp_bits - len(rest)),
    }
    one = LinearLayout.from_bases(bases, (rows, columns))
    return TurningCopy(_stacked(one, batch), stack_buffer(matrix, batch))


def _lanes(units: Sequence[_Unit], matrix: LinearLayout, element_bytes: int) -> list[_Unit]:
    """Units in the order that lanes take them: first those that lead to further banks."""
    layout = LinearLayout.from_bases({LANE: units}, matrix.shape)
    line = LINE_BYTES // element_bytes
    banks = [offset % line for offset in offsets(layout, matrix).packed(LANE)]
    span = gf2.Span()
    apart = [unit for unit, bank in zip(units, banks, strict=True) if not span.add(bank)]
    return apart + [unit for unit in units if unit not in apart]


def _stacked(one: LinearLayout, batch: Sequence[int]) -> LinearLayout:
    """The layout of a stack, of whose matrices a thread has its elements one after the other."""
    bases = {
        name: [(*(0 for _ in batch), *unit) for unit in one.bases(name)] for name in one.in_names
    }
    bases[REGISTER] += [(*step, 0, 0) for step in stack_steps(batch)]
    return LinearLayout.from_bases(bases, (*batch, *one.shape))
