"""The shared-memory layout of a tile whose parts are read by other CTAs of a cluster.

What goes from one multiprocessor to another goes in pieces of lines of shared memory, so that the
lanes of a warp should read whole lines. Within its lines a warp's elements may lie in any order,
which is what keeps the stores of the tile, by the CTA that has it, free of bank conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations

from phobos.layout import gf2
from phobos.layout.build import LANE, OFFSET, REGISTER, log2
from phobos.layout.linear import LinearLayout
from phobos.layout.shared import BANK_BYTES, LINE_BYTES, MAX_VECTOR_BYTES


@lru_cache(maxsize=64)
def cluster_buffer(source: LinearLayout, part: LinearLayout, element_bytes: int) -> LinearLayout:
    """The shared layout to store a tile from `source` into, and load parts of as `part` from.

    `part` is the layout of the first part, in a tile of the extents of `source`.

    >>> whole = LinearLayout.parse("register=[[0, 1], [1, 0]] lane=[[0, 2], [0, 4]] -> [2, 8]")
    >>> first = LinearLayout.parse("register=[[0, 1], [0, 2]] lane=[[0, 4]] -> [2, 8]")
    >>> str(cluster_buffer(whole, first, element_bytes=4))
    'offset=[[0, 1], [0, 2], [0, 4], [1, 0]] -> [2, 8]'
    """
    units = [1 << bit for bit in range(log2(source.elements))]
    held, lanes = source.packed(REGISTER), part.packed(LANE)
    low = _vector(part.packed(REGISTER), held, lanes, element_bytes)
    region = gf2.independent((*low, *lanes))
    in_line = log2(LINE_BYTES // element_bytes)
    stored = _width(low, held, element_bytes)
    reaches = [
        (*low[:stored], *source.packed(LANE)[: in_line - stored]),
        (*low, *lanes[: max(0, in_line - len(low))]),
    ]
    lines = _apart(_sums(region), len(region) - in_line, low, reaches, ())
    # What is stored at once and lies in several lines is told apart by the banks of the region.
    others = (unit ^ mixed for unit in units for mixed in (0, *region))
    lines = _apart(others, len(units) - in_line, region, reaches, lines)
    banks = gf2.independent((*lanes, *units), beyond=(*low, *lines))
    return LinearLayout(((OFFSET, (*low, *banks, *lines)),), source.outputs)


def _vector(
    registers: Sequence[int], held: Sequence[int], lanes: Sequence[int], element_bytes: int
) -> tuple[int, ...]:
    """What a thread loads at once, first what it stores at once too; at least a word."""
    common = gf2.Span(held)
    first = [vector for vector in registers if vector in common]
    vector = gf2.independent((*first, *registers))[: log2(MAX_VECTOR_BYTES // element_bytes)]
    word_bits = log2(max(1, BANK_BYTES // element_bytes))
    return gf2.independent((*vector, *lanes))[: max(len(vector), word_bits)]


def _width(low: Sequence[int], held: Sequence[int], element_bytes: int) -> int:
    """How many of the low offset bits one store of registers `held` fills, or shares a word by."""
    span = gf2.Span(held)
    width = 0
    while width < len(low) and low[width] in span:
        width += 1
    return max(width, log2(max(1, BANK_BYTES // element_bytes)))


def _sums(vectors: Sequence[int]) -> Iterable[int]:
    """The vectors, and the sums of any two and three of them."""
    yield from vectors
    yield from (one ^ other for one, other in combinations(vectors, 2))
    yield from (a ^ b ^ c for a, b, c in combinations(vectors, 3))


def _apart(
    candidates: Iterable[int],
    count: int,
    beyond: Sequence[int],
    reaches: Sequence[Sequence[int]],
    lines: tuple[int, ...],
) -> tuple[int, ...]:
    """`lines` and further vectors, `count` in all, that no two lanes at once differ by.

    They are independent of `beyond`. If there are not enough, lanes collide.
    """
    tried = list(candidates)
    for is_apart in (True, False):
        for vector in tried:
            if len(lines) >= count:
                return lines
            if vector in gf2.Span((*beyond, *lines)):
                continue
            if not is_apart or not any(vector in gf2.Span((*r, *lines)) for r in reaches):
                lines = (*lines, vector)
    return lines
