"""Whether `ldmatrix` or `stmatrix` can move a tile between registers and shared memory, and how.

The instruction moves 8x8 matrices of 16-byte rows: the lane bits and the bits inside a 32-bit
register must map to the bytes of a row just so, while every row may lie at any address that is a
multiple of 16.  Both are read off the map from registers to shared offsets, so any register
layout and any swizzle are judged alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from phobos.layout import gf2
from phobos.layout.build import LANE, LANE_BITS, REGISTER, WARP, log2
from phobos.layout.linear import LinearLayout
from phobos.layout.shared import CHUNK_BYTES, LINE_BYTES, BankConflicts, offsets

MAX_MATRIX_BITS = 2  # x4 is the largest form
ROW_BITS = 3  # a matrix has 8 rows


@dataclass(frozen=True, slots=True)
class MatrixAccess:
    """A series of `ldmatrix` (or `stmatrix`) instructions of `count` matrices each.

    `rows` gives the shared offset, in elements, that a lane supplies as its address: its inputs are
    `lane`, `warp` and `instruction`.  Matrix j of instruction i is the 32-bit register
    `first_element(i, j) // packed`, where elements are numbered as in the register layout.
    """

    count: int
    packed: int
    transposed: bool
    rows: LinearLayout
    matrix_masks: tuple[int, ...]
    instruction_masks: tuple[int, ...]
    conflicts: BankConflicts

    @property
    def instructions(self) -> int:
        """The number of instructions that move the whole tile of a warp."""
        return 1 << len(self.instruction_masks)

    def first_element(self, instruction: int, matrix: int) -> int:
        """The first register element that matrix `matrix` of an instruction fills."""
        by_instruction = gf2.multiply(self.instruction_masks, instruction)
        return by_instruction ^ gf2.multiply(self.matrix_masks, matrix)


@lru_cache(maxsize=512)
def plan_matrix_access(
    layout: LinearLayout, shared: LinearLayout, element_bytes: int, *, transposed: bool = False
) -> MatrixAccess | None:
    """The `ldmatrix` instructions that load the tile, or None if they cannot.

    >>> from phobos.layout.fragments import mma_a
    >>> from phobos.layout.shared import row_major
    >>> plan = plan_matrix_access(mma_a(16, 16, 2), row_major((16, 16)), element_bytes=2)
    >>> plan.count, plan.instructions, str(plan.rows)
    (4, 1, 'lane=[[16], [32], [64], [128], [8]] warp=[] instruction=[] -> [offset=256]')
    """
    if element_bytes not in (1, 2, 4) or (transposed and element_bytes != 2):
        return None
    if layout.in_bits(LANE) != LANE_BITS:
        return None
    at = offsets(layout, shared)
    inside = log2(4 // element_bytes)
    registers, lanes = at.packed(REGISTER), at.packed(LANE)
    if transposed:
        walk = (*lanes[2:], *registers[:inside], *lanes[:2])
    else:
        walk = (*registers[:inside], *lanes)
    chunk = CHUNK_BYTES // element_bytes
    along, across = walk[: log2(chunk)], walk[log2(chunk) :]
    others = (*across, *registers[inside:], *at.packed(WARP))
    if len(across) != ROW_BITS or along != tuple(1 << bit for bit in range(log2(chunk))):
        return None
    if any(vector % chunk for vector in others):
        return None
    return _plan(at, across, element_bytes, transposed)


def _plan(
    at: LinearLayout, across: Sequence[int], element_bytes: int, transposed: bool
) -> MatrixAccess:
    packed = 4 // element_bytes
    inside = log2(packed)
    further = at.packed(REGISTER)[inside:]
    matrices, rest = further[:MAX_MATRIX_BITS], further[MAX_MATRIX_BITS:]
    # Lanes beyond the matrices repeat addresses: the oldest chips want all 32 to be valid.
    unused = (0,) * (MAX_MATRIX_BITS - len(matrices))
    rows = LinearLayout(
        ((LANE, (*across, *matrices, *unused)), (WARP, at.packed(WARP)), ("instruction", rest)),
        at.outputs,
    )
    masks = tuple(1 << (inside + bit) for bit in range(len(further)))
    count = 1 << len(matrices)
    chunks = [vector * element_bytes // CHUNK_BYTES for vector in across]
    in_line = LINE_BYTES // CHUNK_BYTES
    clash = gf2.rank(chunks) - gf2.rank(c % in_line for c in chunks)
    return MatrixAccess(
        count=count,
        packed=packed,
        transposed=transposed,
        rows=rows,
        matrix_masks=masks[: len(matrices)],
        instruction_masks=masks[len(matrices) :],
        conflicts=BankConflicts(wavefronts=count << clash, ideal=count),
    )
