"""The shared layout of an operand that `mma` reads: of a family of swizzles the one that suits.

`ldmatrix` takes rows of 16 bytes and wants neighbouring rows to differ in their chunk of 16
bytes.  Where it cannot serve (elements of 8 bytes; turned operands of other than 2 bytes), each
lane loads its own elements, and lanes that go at once spread along the rows too: the swizzle has
to exchange groups as wide as that spread, or two lanes meet in a bank.  Groups are never narrower
than 16 bytes, so that copies move 16 bytes at a time whatever is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from phobos.layout import gf2
from phobos.layout.algebra import transpose
from phobos.layout.build import REGISTER, ceil_pow2
from phobos.layout.exchange import best_access
from phobos.layout.linear import LinearLayout
from phobos.layout.matrix_access import plan_matrix_access
from phobos.layout.shared import CHUNK_BYTES, HARDWARE_PHASES, LINE_BYTES, in_panels, row_major

MAX_ROWS_A_PHASE = 8
"""Rows of one line that may be stored alike, as those are that a lane packs into one register."""


class _Cost(NamedTuple):
    """What a layout costs a warp; less is better, the first field first."""

    by_elements: bool
    """Whether `ldmatrix` cannot load the operand."""
    wavefronts: float
    """Of the store and the load of the whole tile."""
    conflicts: bool


@lru_cache(maxsize=256)
def operand_buffer(
    source: LinearLayout, target: LinearLayout, element_bytes: int, *, transposed: bool
) -> LinearLayout:
    """The shared layout through which an operand goes from `source` to the `target` of `mma`.

    Elements along the last axis are neighbours, along the first one if `transposed`; groups of 16
    bytes or more are swizzled within rows of up to 128 bytes.  Both layouts have two axes.

    >>> from phobos.layout.build import cover, elementwise_layout
    >>> from phobos.layout.fragments import mma_a, mma_b
    >>> rows = elementwise_layout((8, 64), 32, 8)
    >>> halves = operand_buffer(rows, mma_a(8, 64, 2), 2, transposed=False)
    >>> halves.apply(offset=64)  # `ldmatrix`: row 1 starts with chunk 1
    (1, 8)
    >>> rows = elementwise_layout((8, 32), 32, 4)
    >>> words = operand_buffer(rows, cover(mma_b(8, 1), (8, 32)), 4, transposed=False)
    >>> words.apply(offset=32)  # 8 lanes go side by side in each of 4 rows
    (1, 8)
    """
    best: LinearLayout | None = None
    least: _Cost | None = None
    for layout in _swizzles(target.shape, element_bytes, transposed=transposed):
        cost = _cost(source, target, layout, element_bytes)
        if least is None or cost < least:
            best, least = layout, cost
        if not least.conflicts:
            break
    assert best is not None
    return best


def _swizzles(
    shape: tuple[int, ...], element_bytes: int, *, transposed: bool
) -> Iterator[LinearLayout]:
    """The layouts to choose from, the one of hardware swizzles and of `ldmatrix` first."""
    rows, columns = (ceil_pow2(extent) for extent in shape)
    along = rows if transposed else columns
    row_bytes = min(LINE_BYTES, along * element_bytes)
    if row_bytes not in HARDWARE_PHASES:
        layout = row_major((columns, rows) if transposed else (rows, columns))
        yield transpose(layout, (1, 0)) if transposed else layout
        return
    rows_a_line, _ = HARDWARE_PHASES[row_bytes]
    width = row_bytes // element_bytes
    together = 1
    while together <= MAX_ROWS_A_PHASE:
        group = max(1, CHUNK_BYTES // element_bytes)
        while group < width:
            swizzle = (group, rows_a_line * together, width // group)
            yield in_panels((rows, columns), width, swizzle, transposed=transposed)
            group *= 2
        together *= 2


def _cost(
    source: LinearLayout, target: LinearLayout, shared: LinearLayout, element_bytes: int
) -> _Cost:
    width, store = best_access(source, shared, element_bytes)
    stored = _distinct(source) * store.wavefronts / width
    plans = (
        plan_matrix_access(target, shared, element_bytes, transposed=turned)
        for turned in (False, True)
    )
    plan = next((plan for plan in plans if plan is not None), None)
    if plan is not None:
        load, width = plan.conflicts, plan.count * plan.packed
    else:
        width, load = best_access(target, shared, element_bytes)
    loaded = _distinct(target) * load.wavefronts / width
    return _Cost(plan is None, stored + loaded, max(store.factor, load.factor) > 1)


def _distinct(layout: LinearLayout) -> int:
    """The elements that a thread holds, each once."""
    return 1 << gf2.rank(layout.packed(REGISTER))
