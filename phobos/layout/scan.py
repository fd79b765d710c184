"""How the elements of a tile along one axis are added up in order.

A scan goes through the bits of the axis's coordinate from the lowest to the highest. At each bit
neighbouring blocks of elements join: the upper one adds the total of the lower one. A bit is a
bit of the register, lane or warp number, which says how the total gets across.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from phobos.layout.build import LANE, REGISTER, WARP, ceil_pow2, log2, thread_bits
from phobos.layout.linear import LinearLayout


class Step(NamedTuple):
    """A bit of the coordinate: the input it comes from, and its mask there."""

    source: str
    mask: int


class Scan(NamedTuple):
    """The bits of an axis from the lowest: first those within a warp, then those of warps."""

    inside: tuple[Step, ...]
    warps: tuple[int, ...]
    """Masks of warp bits; a warp's place along the axis has a bit for each."""


@lru_cache(maxsize=1024)
def plan_scan(layout: LinearLayout, axis: int) -> Scan | None:
    """The steps of a scan along an axis, or None if the layout mixes bits or scatters warps.

    >>> text = "register=[[1], [8]] lane=[[2], [4]] warp=[[16]] -> [32]"
    >>> plan = plan_scan(LinearLayout.parse(text), 0)
    >>> [step.source for step in plan.inside], plan.warps
    (['register', 'lane', 'lane', 'register'], (1,))
    >>> plan_scan(LinearLayout.parse("register=[[2]] lane=[] warp=[[1]] -> [4]"), 0) is None
    True
    """
    bits = log2(layout.shape[axis])
    steps: list[Step | None] = [None] * bits
    for name in (REGISTER, LANE, WARP):
        for position, vector in enumerate(layout.bases(name)):
            along = vector[axis]
            if not along:
                continue
            only_here = sum(map(bool, vector)) == 1 and along & (along - 1) == 0
            if not only_here or steps[log2(along)] is not None:
                return None
            steps[log2(along)] = Step(name, 1 << position)
    known = [step for step in steps if step is not None]
    inside = [step for step in known if step.source != WARP]
    if len(known) < bits or any(step.source == WARP for step in known[: len(inside)]):
        return None
    return Scan(tuple(inside), tuple(step.mask for step in known[len(inside) :]))


def scan_layout(shape: Sequence[int], threads: int, vector: int, axis: int) -> LinearLayout:
    """A layout for tiles that are scanned along an axis, loaded and stored.

    As `elementwise_layout`, but warps take the highest bits, of other axes where there are such,
    so that each warp has whole pieces of the axis.

    >>> str(scan_layout((256,), threads=128, vector=1, axis=0))
    'register=[[32]] lane=[[1], [2], [4], [8], [16]] warp=[[64], [128]] -> [256]'
    >>> str(scan_layout((2, 64), threads=64, vector=1, axis=1))
    'register=[[0, 32]] lane=[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]] warp=[[1, 0]] -> [2, 64]'
    """
    sizes = tuple(map(ceil_pow2, shape))
    rank = len(sizes)
    walk = [(i, bit) for i in reversed(range(rank)) for bit in range(log2(sizes[i]))]
    vector_bits = min(log2(vector), log2(sizes[-1]))
    lanes, warps = thread_bits(threads)
    rest = walk[vector_bits + lanes :]
    # Bits of other axes first, then the highest of this one; ascending within the axis.
    by_need = sorted(rest, key=lambda step: (step[0] == axis, -step[1]))
    for_warps = sorted(by_need[:warps])
    registers = [step for step in rest if step not in for_warps]

    def unit(step: tuple[int, int]) -> tuple[int, ...]:
        return tuple(1 << step[1] if i == step[0] else 0 for i in range(rank))

    def padded(steps: Sequence[tuple[int, int]], count: int) -> list[tuple[int, ...]]:
        return [unit(step) for step in steps] + [(0,) * rank] * (count - len(steps))

    bases = {
        REGISTER: [unit(step) for step in (*walk[:vector_bits], *registers)],
        LANE: padded(walk[vector_bits : vector_bits + lanes], lanes),
        WARP: padded(for_warps, warps),
    }
    return LinearLayout.from_bases(bases, {f"dim{i}": size for i, size in enumerate(sizes)})
