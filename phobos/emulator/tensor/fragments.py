"""Which lane and register hold which element of a matrix fragment.

One rule covers every `mma.sync` shape of 8 columns. Let g = lane / 4, q = lane % 4, and let p be
the elements that one register holds (2 for f16 in 32 bits, 1 for f64 in 64). Element i of a lane
lies in register i / p. Then

    A (16 x K):  row = g + 8 * (i / p % 2),  k = p * q + i % p + 4 * p * (i / p / 2)
    B (K x 8):   column = g,                 k = p * q + i % p + 4 * p * (i / p)
    C (16 x 8):  row = g + 8 * (i / 2 % 2),  column = 2 * q + i % 2 + 8 * (i / 4)

and with 8 rows A is placed as B is, and C has one row. For m16n8k16 in f16, lane 5 (g = 1, q = 1)
holds in its first register A[1, 2] and A[1, 3], in its second A[9, 2] and A[9, 3].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.intp]

LANES = 32
_LANE = np.arange(LANES)[:, None]
_GROUP, _QUAD = _LANE // 4, _LANE % 4


@dataclass(frozen=True, eq=False)
class Fragment:
    """Row and column of every element, shaped [lane, element]."""

    rows: int
    columns: int
    row: IntArray
    column: IntArray

    @property
    def elements(self) -> int:
        """Elements of a lane."""
        return self.row.shape[1]

    def gather(self, values: npt.NDArray) -> npt.NDArray:
        """Matrices [warp, row, column] from fragments [warp, lane, element]."""
        matrix = np.empty((len(values), self.rows, self.columns), dtype=values.dtype)
        matrix[:, self.row, self.column] = values
        return matrix

    def scatter(self, matrix: npt.NDArray) -> npt.NDArray:
        """Fragments [warp, lane, element] from matrices [warp, row, column]."""
        return matrix[:, self.row, self.column]


def fragment_a(rows: int, depth: int, per_register: int) -> Fragment:
    """The fragment of A for shapes with 8 or 16 rows."""
    if rows == 8:
        other = fragment_b(8, depth, per_register)
        return Fragment(8, depth, other.column, other.row)
    element = np.arange(rows * depth // LANES)[None, :]
    register = element // per_register
    row = _GROUP + 8 * (register % 2)
    k = per_register * _QUAD + element % per_register + 4 * per_register * (register // 2)
    return Fragment(rows, depth, row, k)


def fragment_b(columns: int, depth: int, per_register: int) -> Fragment:
    """The fragment of B for shapes with 8 columns."""
    element = np.arange(columns * depth // LANES)[None, :]
    register = element // per_register
    k = per_register * _QUAD + element % per_register + 4 * per_register * register
    return Fragment(depth, columns, k, np.broadcast_to(_GROUP, k.shape))


def fragment_c(rows: int, columns: int = 8) -> Fragment:
    """The fragment of C and D for shapes with 8 or 16 rows, and columns in blocks of 8."""
    element = np.arange(rows * columns // LANES)[None, :]
    in_block = rows // 4
    row = _GROUP + 8 * (element % in_block // 2)
    return Fragment(
        rows, columns, row, 8 * (element // in_block) + 2 * _QUAD + element % 2 + 0 * _GROUP
    )


# The oldest shape: four products of 8 x 8 x 4, one a pair of quads -------------------------------


@dataclass(frozen=True, eq=False)
class QuadPair:
    """`m8n8k4` on f16: lanes 4j to 4j + 3 and 16 + 4j to 16 + 4j + 3 multiply for themselves.

    `row`, `column` as in `Fragment`; the matrices of the four pairs are stacked along the warps.
    """

    fragment: Fragment

    def gather(self, values: npt.NDArray) -> npt.NDArray:
        """Matrices [4 * warp + pair, row, column]."""
        return self.fragment.gather(values[:, _PAIR_LANES].reshape(-1, 8, values.shape[2]))

    def scatter(self, matrix: npt.NDArray) -> npt.NDArray:
        """Fragments [warp, lane, element]."""
        parts = self.fragment.scatter(matrix)
        parts = parts.reshape(-1, 4, 8, parts.shape[2])
        values = np.empty((len(parts), LANES, parts.shape[3]), dtype=matrix.dtype)
        values[:, _PAIR_LANES] = parts
        return values


_PAIR_LANES = np.array([[4 * j + i + 16 * h for h in (0, 1) for i in range(4)] for j in range(4)])
_IN_PAIR = np.arange(8)[:, None]
_ELEMENT_4 = np.arange(4)[None, :]
_ELEMENT_8 = np.arange(8)[None, :]


def quad_pair_a(*, by_row: bool) -> QuadPair:
    """A (8 x 4) of one pair: a lane holds four elements of a row, or of a column."""
    if by_row:
        return QuadPair(Fragment(8, 4, _IN_PAIR + 0 * _ELEMENT_4, _ELEMENT_4 + 0 * _IN_PAIR))
    row = _ELEMENT_4 + 4 * (_IN_PAIR // 4)
    return QuadPair(Fragment(8, 4, row, _IN_PAIR % 4 + 0 * _ELEMENT_4))


def quad_pair_b(*, by_row: bool) -> QuadPair:
    """B (4 x 8) of one pair: a lane holds four elements of a row, or of a column."""
    other = quad_pair_a(by_row=not by_row).fragment
    return QuadPair(Fragment(4, 8, other.column, other.row))


def quad_pair_c(*, single: bool) -> QuadPair:
    """C and D (8 x 8) of one pair, in f32 (`single`) or f16."""
    element = _ELEMENT_8
    if not single:
        return QuadPair(Fragment(8, 8, _IN_PAIR + 0 * element, element + 0 * _IN_PAIR))
    row = _IN_PAIR % 2 + (element & 2) + 4 * (_IN_PAIR // 4)
    column = (element & 4) + (_IN_PAIR & 2) + (element & 1)
    return QuadPair(Fragment(8, 8, row, column))
