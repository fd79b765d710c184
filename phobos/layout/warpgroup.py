"""Operands that a warpgroup's products (`wgmma`) read from shared memory, and their descriptors.

The hardware takes a tile as panels of rows of 128, 64 or 32 bytes in which chunks of 16 bytes are
exchanged: along K ("K-major") or, for elements of two bytes, along M or N ("MN-major"). See "Matrix
descriptor" and "Strides" under asynchronous warpgroup-level matrix operations in the PTX manual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from phobos.layout.build import OFFSET, ceil_pow2
from phobos.layout.linear import LinearLayout
from phobos.layout.shared import HARDWARE_PHASES, LINE_BYTES, hardware_swizzle
from phobos.layout.text import LayoutError

ATOM_ROWS = 8
"""Rows after which a swizzle repeats."""
ALIGNMENT = ATOM_ROWS * LINE_BYTES
"""Of a buffer, in bytes: the swizzle is one of address bits."""
LEAST_ROW_BYTES = min(HARDWARE_PHASES)

_SWIZZLES = {128: 1, 64: 2, 32: 3}
_NO_LEADING_STRIDE = 1


class Descriptor(NamedTuple):
    """What a descriptor says of a buffer besides where it starts. Strides are in bytes.

    `stride` is from eight rows to the next eight, `leading` from one panel to the next along M or
    N; along K each step has a start of its own.
    """

    row_bytes: int
    leading: int
    stride: int
    is_turned: bool
    """Whether rows run along M or N."""

    @property
    def low(self) -> int:
        """The lower word of the descriptor of address 0."""
        return _field(self.leading) << 16

    @property
    def high(self) -> int:
        """The upper word."""
        return _field(self.stride) | _SWIZZLES[self.row_bytes] << 30


def _field(count: int) -> int:
    return count >> 4 or _NO_LEADING_STRIDE


def row_bytes_of(extents: Sequence[int], along: int, piece: int, element_bytes: int) -> int:
    """The bytes of a swizzled row of a tile whose rows run along an axis.

    A row is not longer than what one instruction takes of the axis.

    >>> row_bytes_of((64, 256), 1, 256, 2), row_bytes_of((64, 64), 1, 32, 2)
    (128, 64)
    """
    return min(LINE_BYTES, min(ceil_pow2(extents[along]), piece) * element_bytes)


def warpgroup_buffer(
    shape: tuple[int, int], along: int, piece: int, element_bytes: int
) -> LinearLayout:
    """The shared layout of an operand whose rows run along the axis `along`.

    `piece` is what one instruction takes of that axis, for K all of it.

    >>> warpgroup_buffer((64, 16), 1, 16, 2).apply(offset=16 * 4)  # rows of 32 bytes
    (4, 8)
    """
    sizes = ceil_pow2(shape[0]), ceil_pow2(shape[1])
    row_bytes = row_bytes_of(sizes, along, piece, element_bytes)
    return hardware_swizzle(sizes, element_bytes, row_bytes, transposed=along == 0)


def descriptor_of(shared: LinearLayout, k_axis: int, element_bytes: int) -> Descriptor:
    """How `wgmma` reads a buffer of this layout; LayoutError if it cannot.

    >>> d = descriptor_of(warpgroup_buffer((64, 256), 1, 256, 2), 0, 2)  # B, N contiguous
    >>> d.row_bytes, d.leading, d.stride, d.is_turned
    (128, 8192, 1024, True)
    """
    units = shared.bases(OFFSET)
    along = 0 if units[0][0] else 1
    inside = next((i for i, unit in enumerate(units) if unit[1 - along]), len(units))
    row_bytes = element_bytes << inside
    rows = shared.shape[1 - along]
    if row_bytes not in HARDWARE_PHASES or shared != hardware_swizzle(
        (shared.shape[0], shared.shape[1]), element_bytes, row_bytes, transposed=along == 0
    ):
        raise LayoutError(f"no operand of wgmma: {shared}")
    is_turned = along != k_axis
    return Descriptor(
        row_bytes, rows * row_bytes if is_turned else 0, ATOM_ROWS * row_bytes, is_turned
    )
