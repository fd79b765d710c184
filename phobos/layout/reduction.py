"""How the elements of a tile that differ along some axes come together.

A reduction first combines registers of a thread, then lanes of a warp, then warps through shared
memory.  Copies of an element are never combined with each other, so sums count each once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from phobos.layout import gf2
from phobos.layout.algebra import slice_layout
from phobos.layout.build import LANE, REGISTER, WARP
from phobos.layout.linear import LinearLayout


class Exchange(NamedTuple):
    """One butterfly step: partners are at this XOR distance in register, lane and warp."""

    register: int = 0
    lane: int = 0
    warp: int = 0


class Reduction(NamedTuple):
    """The steps that reduce a tile along axes; each step halves the elements still to combine.

    `registers` are XOR masks within a thread, `lanes` exchanges within a warp (their `warp` is
    0), `warps` exchanges between warps.  After all steps every thread that took part holds the
    result, in the layout `result`.
    """

    registers: tuple[int, ...]
    lanes: tuple[Exchange, ...]
    warps: tuple[Exchange, ...]
    result: LinearLayout

    @property
    def lane_mask(self) -> int:
        """The lane bits of the partners, for the usual case that they keep the register."""
        return sum(step.lane for step in self.lanes)

    def register_groups(self) -> tuple[tuple[int, ...], ...]:
        """The registers of a thread that combine into one, each group ascending.

        The first of each group, in order, are the registers that the result needs.
        """
        size = self.result.in_size(REGISTER)
        rows = gf2.echelon(self.registers)
        groups: dict[int, list[int]] = {}
        for register in range(size):
            first, _ = gf2.coset_range(register, rows)
            groups.setdefault(first, []).append(register)
        return tuple(tuple(group) for group in groups.values())


@lru_cache(maxsize=1024)
def plan_reduction(layout: LinearLayout, axes: tuple[int, ...]) -> Reduction:
    """The steps that combine all elements that differ only along `axes`.

    >>> text = "register=[[0, 1]] lane=[[0, 2], [1, 0]] warp=[[0, 4]] -> [2, 8]"
    >>> layout = LinearLayout.parse(text)
    >>> plan = plan_reduction(layout, (1,))
    >>> plan.registers, plan.lanes
    ((1,), (Exchange(register=0, lane=1, warp=0),))
    >>> plan.warps
    (Exchange(register=0, lane=0, warp=1),)
    """
    result = slice_layout(layout, axes)
    # Steps along the axes only are what the sliced layout sends to 0; of those, steps between
    # copies are what the layout itself sends to 0.
    moves = gf2.Span()
    steps = [
        step
        for step in gf2.kernel(result.columns)
        if not moves.add(gf2.multiply(layout.columns, step))
    ]
    exchanges = [_exchange(layout, step) for step in steps]
    return Reduction(
        registers=tuple(e.register for e in exchanges if not e.lane and not e.warp),
        lanes=tuple(e for e in exchanges if e.lane and not e.warp),
        warps=tuple(e for e in exchanges if e.warp),
        result=result,
    )


def _exchange(layout: LinearLayout, step: int) -> Exchange:
    parts = layout.split_flat(step)
    return Exchange(parts.get(REGISTER, 0), parts.get(LANE, 0), parts.get(WARP, 0))
