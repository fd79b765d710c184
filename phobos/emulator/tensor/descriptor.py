"""Operands of warpgroup products in shared memory: matrix descriptors and the tiles they name.

A descriptor holds, in units of 16 bytes, the start address (bits 0-13), the leading offset L
(bits 16-29) and the stride offset S (bits 32-45), then the base offset (bits 49-51) and the
swizzle (bits 62-63). A tile has some rows of M or N and 32 bytes of K. It is read in pieces of 16
bytes, at these places behind the start, with w the bytes of a swizzled row (128, 64 or 32):

    K-major, piece c of row r:
        plain      (r / 8) S + c L + 16 (r % 8)
        swizzled   (r / 8) S + w (r % 8) + 16 c
    MN-major, piece m (8 rows) of step k, elements of 16 bits:
        plain      m S + (k / 8) L + 16 (k % 8)
        swizzled   (k / 8) S + (16 m / w) L + w (k % 8) + 16 m % w

A swizzle then exchanges pieces: bits 4 to 6 of the address are XORed with bits 7 to 9, or as many
of them as the width of a row leaves. It counts from address 0, not from the start of the tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phobos.emulator.types import UNSIGNED

IntArray = npt.NDArray[np.int64]

PIECE = 16
"""Bytes that stay together under every layout."""

DEPTH_BYTES = 32
"""Bytes of K that one instruction takes."""

ROW_BYTES: Mapping[int, int] = {0: 0, 1: 128, 2: 64, 3: 32}
"""Bytes of a swizzled row by the descriptor's field; 0 without a swizzle."""

_FIELD = 0x3FFF
_MEANINGLESS = ~(_FIELD | _FIELD << 16 | _FIELD << 32 | 7 << 49 | 3 << 62) & (2**64 - 1)
_ATOM_ROWS = 8


class Fault(NamedTuple):
    """What is wrong with the descriptor of one warpgroup, the `place`-th of those given."""

    place: int
    is_misaligned: bool
    explain: str


@dataclass(frozen=True, eq=False)
class Descriptors:
    """The fields of one descriptor a warpgroup, in bytes."""

    start: IntArray
    leading: IntArray
    stride: IntArray
    base_offset: IntArray
    row_bytes: IntArray
    meaningless: npt.NDArray[np.bool_]


def split_descriptors(values: npt.NDArray[np.uint64]) -> Descriptors:
    """The fields of descriptors."""

    def field(shift: int, mask: int) -> IntArray:
        return ((values >> np.uint64(shift)) & np.uint64(mask)).astype(np.int64)

    widths = np.array([ROW_BYTES[code] for code in range(4)], dtype=np.int64)
    return Descriptors(
        start=field(0, _FIELD) * PIECE,
        leading=field(16, _FIELD) * PIECE,
        stride=field(32, _FIELD) * PIECE,
        base_offset=field(49, 7),
        row_bytes=widths[field(62, 3)],
        meaningless=(values & np.uint64(_MEANINGLESS)) != 0,
    )


@dataclass(frozen=True)
class SharedTile:
    """The shape of one operand: `rows` of M or N by 32 bytes of K.

    `is_k_major` says that K runs through memory; if not, M or N does, in elements of 16 bits.
    """

    rows: int
    bits: int
    is_k_major: bool

    @property
    def depth(self) -> int:
        """Elements of K."""
        return 8 * DEPTH_BYTES // self.bits

    @property
    def pieces(self) -> int:
        """Pieces of 16 bytes."""
        return self.rows * DEPTH_BYTES // PIECE

    def row_of_piece(self) -> IntArray:
        """The first row of each piece, in the order of `addresses`."""
        if self.is_k_major:
            return np.arange(self.pieces) // 2
        return 8 * (np.arange(self.pieces) % (self.rows // 8))

    def addresses(self, descriptors: Descriptors) -> IntArray:
        """Addresses in shared memory, shaped [warpgroup, piece]."""
        found = np.empty((len(descriptors.start), self.pieces), dtype=np.int64)
        for row_bytes in np.unique(descriptors.row_bytes).tolist():
            these = descriptors.row_bytes == row_bytes
            by_leading, by_stride, fixed = _coefficients(self, row_bytes)
            start, leading, stride = (
                values[these, None]
                for values in (descriptors.start, descriptors.leading, descriptors.stride)
            )
            places = start + by_leading * leading + by_stride * stride + fixed
            if row_bytes:
                places ^= ((places >> 7) & (row_bytes // PIECE - 1)) << 4
            found[these] = places
        return found

    def elements(self, pieces: npt.NDArray[np.uint8]) -> npt.NDArray:
        """Patterns [warpgroup, row, k] from bytes [warpgroup, piece, byte]."""
        count = len(pieces)
        if self.is_k_major:
            lines = np.ascontiguousarray(pieces.reshape(count, self.rows, DEPTH_BYTES))
            return lines.view(UNSIGNED[self.bits])
        lines = np.ascontiguousarray(pieces.reshape(count, self.depth, -1))
        return lines.view(UNSIGNED[self.bits]).transpose(0, 2, 1)

    def fault(self, descriptors: Descriptors) -> Fault | None:
        """The first thing wrong with descriptors, where they lie left aside."""
        for place in range(len(descriptors.start)):
            found = self._fault(descriptors, place)
            if found is not None:
                return found
        return None

    def _fault(self, descriptors: Descriptors, place: int) -> Fault | None:
        if descriptors.meaningless[place]:
            return Fault(
                place, False, "sets bits that have no meaning (14, 15, 30, 31, 46-48 or 52-61)"
            )
        base = int(descriptors.base_offset[place])
        if base:
            return Fault(
                place, False, f"has the base offset {base}; lay the tile out so that it can be 0"
            )
        width = int(descriptors.row_bytes[place])
        if not width:
            return None
        start = int(descriptors.start[place])
        pattern = _ATOM_ROWS * width
        if start % pattern >= width:
            return Fault(
                place,
                True,
                f"starts at {start:#x}, in row {start % pattern // width} of a swizzle pattern; "
                f"tiles with rows of {width} bytes must start at a multiple of {pattern}",
            )
        if start % width + self._bytes_in_row(width) > width:
            return Fault(
                place,
                True,
                f"starts at {start:#x}, {start % width} bytes into a swizzled row of {width}, too "
                f"far for the {self._bytes_in_row(width)} bytes that it takes from the row",
            )
        return None

    def _bytes_in_row(self, width: int) -> int:
        return DEPTH_BYTES if self.is_k_major else min(width, 2 * self.rows)


@lru_cache(maxsize=256)
def _coefficients(tile: SharedTile, row_bytes: int) -> tuple[IntArray, IntArray, IntArray]:
    """What the leading and the stride offset count for in each piece, and what is fixed."""
    zero = np.zeros(tile.pieces, dtype=np.int64)
    number = np.arange(tile.pieces)
    if tile.is_k_major:
        row, piece = number // 2, number % 2
        if not row_bytes:
            return piece, row // 8, PIECE * (row % 8)
        return zero, row // 8, row_bytes * (row % 8) + PIECE * piece
    step, piece = number // (tile.rows // 8), number % (tile.rows // 8)
    if not row_bytes:
        return step // 8, piece, PIECE * (step % 8)
    per_row = row_bytes // PIECE
    return piece // per_row, step // 8, row_bytes * (step % 8) + PIECE * (piece % per_row)
