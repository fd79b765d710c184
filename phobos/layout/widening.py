"""Register layouts for wide accesses: what of a warp's tile each lane should hold to move it.

The accumulators of `mma` leave each lane two neighbours of a row. A lane can have more of them if
it gives what else it holds to the lanes that have the rest: a bit of the lane's number changes
place with a bit of the register's.
"""

from __future__ import annotations

from functools import lru_cache

from phobos.layout.build import LANE, REGISTER, log2
from phobos.layout.linear import LinearLayout
from phobos.layout.queries import axis_bits, coalescing, contiguous_vector


@lru_cache(maxsize=256)
def widened(layout: LinearLayout, vector: int) -> LinearLayout | None:
    """The layout in which each lane holds `vector` neighbours along the last axis.

    Each warp holds what it held. The lanes that give a neighbour away get what is next along the
    axis if the warp holds it, so that they stay side by side. None where a neighbour is in another
    warp, or a lane has too little to give.

    >>> from phobos.layout.fragments import mma_c
    >>> str(widened(mma_c(8, 32), 8))
    'register=[[0, 1], [0, 2], [0, 4]] lane=[[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]] -> [8, 32]'
    """
    registers, lanes = list(layout.packed(REGISTER)), list(layout.packed(LANE))
    row = 1 << axis_bits(layout, layout.rank - 1)
    wanted = [1 << bit for bit in range(log2(vector))]
    spare = sorted((held for held in registers if held not in wanted), key=lambda v: (v >= row, v))
    for neighbour in wanted:
        if neighbour in registers:
            registers.remove(neighbour)
        elif neighbour in lanes and spare and spare[0]:
            given = spare.pop(0)
            registers.remove(given)
            lanes[lanes.index(neighbour)] = given
        else:
            return None
    moved = {REGISTER: (*wanted, *registers), LANE: tuple(lanes)}
    inputs = tuple((name, moved.get(name, vectors)) for name, vectors in layout.inputs)
    result = LinearLayout(inputs, layout.outputs)
    return result if contiguous_vector(result, result.rank - 1) >= vector else None


def for_access(layout: LinearLayout, element_bytes: int, proven: int) -> LinearLayout:
    """The layout in which a tile is best moved, in vectors of up to `proven` elements.

    The widest of those for which a warp touches the fewest sectors of global memory; the
    layout itself if no other one does better.

    >>> from phobos.layout.fragments import mma_c
    >>> for_access(mma_c(8, 32), 2, 8) == widened(mma_c(8, 32), 8)
    True
    >>> for_access(mma_c(8, 32), 4, 4) == mma_c(8, 32)
    True
    """
    best = layout
    least = _sectors(layout, element_bytes, proven)
    width = contiguous_vector(layout, layout.rank - 1) * 2
    while width <= proven:
        other = widened(layout, width)
        if other is None:
            break
        sectors = _sectors(other, element_bytes, proven)
        if sectors < least or (best is not layout and sectors == least):
            best, least = other, sectors
        width *= 2
    return best


def _sectors(layout: LinearLayout, element_bytes: int, proven: int) -> float:
    """Sectors that a warp touches for each element of a lane, in the widest accesses."""
    width = min(proven, contiguous_vector(layout, layout.rank - 1))
    return coalescing(layout, element_bytes, width).sectors / width
