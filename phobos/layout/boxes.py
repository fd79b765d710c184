"""Boxes of tensor copies: which shared layouts a copy of a tile can fill."""

from __future__ import annotations

from collections.abc import Sequence

from phobos.layout.contraction import flat
from phobos.layout.linear import LinearLayout
from phobos.layout.shared import HARDWARE_PHASES, hardware_swizzle
from phobos.layout.warpgroup import ATOM_ROWS


def swizzle_of_boxes(
    shared: LinearLayout, extents: Sequence[int], element_bytes: int
) -> int | None:
    """The bytes of a row of the boxes that fill a buffer of this layout; None if none do.

    The layout is over the coordinates of the tile as the tensor has it, whose extents are given.
    Boxes have the rows of a panel: see `hardware_swizzle`. Axes before the last two have extent 1.

    >>> from phobos.layout.warpgroup import warpgroup_buffer
    >>> swizzle_of_boxes(warpgroup_buffer((64, 256), 1, 256, 2), (64, 256), 2)
    128
    """
    rows, columns = extents[-2:]
    is_matrix = all(extent == 1 for extent in extents[:-2])
    if tuple(shared.shape) != tuple(extents) or not is_matrix or rows % ATOM_ROWS:
        return None
    matrix = flat(shared)
    for swizzle in HARDWARE_PHASES:
        if columns * element_bytes % swizzle == 0 and matrix == hardware_swizzle(
            (rows, columns), element_bytes, swizzle
        ):
            return swizzle
    return None
