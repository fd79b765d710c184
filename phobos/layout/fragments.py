"""Register layouts of the tensor-core instructions.

One rule covers every `mma` shape: with p elements in a 32-bit register, lane = 4 g + q,
 - A (M×K): row = g (+8 for every odd register), k = p q + place in the register + 4 p for every
   further register (pair, for M = 16);
 - B (K×N): column = g, k = p q + place in the register + 4 p for every further register;
 - C and D (M×N): row = g (+8 for the upper pair), column = 2 q + (element & 1).
See "Matrix Fragments for mma" in the PTX manual.  The input `register` counts elements: element i
is in 32-bit register i // p, low bits first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from phobos.layout.algebra import product
from phobos.layout.build import LANE, REGISTER, WARP, identity, log2
from phobos.layout.linear import LinearLayout
from phobos.layout.text import LayoutError

REGISTER_BITS = 32
WARPGROUP_WARPS = 4


@lru_cache(maxsize=256)
def mma_a(m: int, k: int, packed: int) -> LinearLayout:
    """The A operand, (dim0 = M, dim1 = K), with `packed` elements a register.

    >>> str(mma_a(16, 16, 2))  # m16n8k16 f16
    'register=[[0, 1], [8, 0], [0, 8]] lane=[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]] -> [16, 16]'
    """
    _check_shape(k, packed, m)
    inside = [(0, 1 << bit) for bit in range(log2(packed))]
    rows = [(8 << bit, 0) for bit in range(log2(m // 8))]
    further = [(0, 4 * packed << bit) for bit in range(log2(k // (4 * packed)))]
    lanes = [(0, packed), (0, 2 * packed), (1, 0), (2, 0), (4, 0)]
    return LinearLayout.from_bases({REGISTER: inside + rows + further, LANE: lanes}, (m, k))


@lru_cache(maxsize=256)
def mma_b(k: int, packed: int) -> LinearLayout:
    """The B operand, (dim0 = K, dim1 = N = 8), with `packed` elements a register.

    >>> str(mma_b(16, 2))  # m16n8k16 f16
    'register=[[1, 0], [8, 0]] lane=[[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]] -> [16, 8]'
    """
    _check_shape(k, packed)
    inside = [(1 << bit, 0) for bit in range(log2(packed))]
    further = [(4 * packed << bit, 0) for bit in range(log2(k // (4 * packed)))]
    lanes = [(packed, 0), (2 * packed, 0), (0, 1), (0, 2), (0, 4)]
    return LinearLayout.from_bases({REGISTER: inside + further, LANE: lanes}, (k, 8))


@lru_cache(maxsize=256)
def mma_c(m: int, n: int = 8) -> LinearLayout:
    """The accumulator, (dim0 = M, dim1 = N), N a multiple of 8.

    The same for 16-, 32- and 64-bit accumulators; 16-bit ones are packed in pairs.

    >>> str(mma_c(16))
    'register=[[0, 1], [8, 0]] lane=[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]] -> [16, 8]'
    """
    if m not in (8, 16) or n < 8:
        raise LayoutError(f"no mma accumulator of {m}x{n}; M is 8 or 16 and N at least 8")
    rows = [(8 << bit, 0) for bit in range(log2(m // 8))]
    further = [(0, 8 << bit) for bit in range(log2(n // 8))]
    lanes = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]
    return LinearLayout.from_bases({REGISTER: [(0, 1), *rows, *further], LANE: lanes}, (m, n))


def _check_shape(k: int, packed: int, m: int = 8) -> None:
    if m not in (8, 16):
        raise LayoutError(f"no mma operand with M = {m}; M is 8 or 16")
    if packed < 1 or packed > 32 or k < 4 * packed:
        raise LayoutError(f"no mma operand of K = {k} with {packed} elements a register")


def _four_warps_down() -> LinearLayout:
    return identity(WARP, WARPGROUP_WARPS, "dim0")


def wgmma_a(k: int, packed: int) -> LinearLayout:
    """The A operand of `wgmma` held in registers, (64, K), over the four warps of a warpgroup."""
    return product(mma_a(16, k, packed), _four_warps_down())


def wgmma_c(n: int) -> LinearLayout:
    """The accumulator of `wgmma`, (64, N), over the four warps of a warpgroup.

    N is rounded up by the caller to a power of two; the instruction itself takes multiples of 8.

    >>> wgmma_c(16).apply(register=5, lane=6, warp=1)
    (17, 13)
    """
    return product(mma_c(16, n), _four_warps_down())


@lru_cache(maxsize=64)
def ldmatrix(count: int, element_bytes: int, *, transposed: bool = False) -> LinearLayout:
    """What `ldmatrix` delivers: (matrix, row, column) of 8x8 matrices of 16-byte rows.

    A column is one element, so a row has 16 / element_bytes of them.  Transposed loads exist for
    2-byte elements.  `stmatrix` stores from the same layout.

    >>> str(ldmatrix(2, 2))  # x2.b16, register = element
    'register=[[0, 0, 1], [1, 0, 0]] lane=[[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]] \
-> [matrix=2, row=8, column=8]'
    """
    if count not in (1, 2, 4):
        raise LayoutError(f"ldmatrix loads 1, 2 or 4 matrices, got {count}")
    if transposed and element_bytes != 2:
        raise LayoutError(f"a transposed ldmatrix needs 2-byte elements, got {element_bytes}")
    packed = max(1, 4 // element_bytes)
    if element_bytes not in (1, 2, 4):
        raise LayoutError(f"ldmatrix needs elements of 1, 2 or 4 bytes, got {element_bytes}")
    along = [(0, 0, 1 << bit) for bit in range(log2(4 * packed))]
    across = [(0, 1, 0), (0, 2, 0), (0, 4, 0)]
    walk = across + along if transposed else along + across
    inside = log2(packed)
    matrices = [(1 << bit, 0, 0) for bit in range(log2(count))]
    return LinearLayout.from_bases(
        {REGISTER: walk[:inside] + matrices, LANE: walk[inside:]},
        {"matrix": count, "row": 8, "column": 4 * packed},
    )


@dataclass(frozen=True, slots=True)
class MmaShape:
    """The geometry of one `mma.sync` shape for one operand width.

    `registers` counts the registers of A, B and C (64-bit ones for f64, otherwise 32-bit ones, C
    with 32-bit accumulators); it repeats what the layouts say, as a check on the table.
    """

    m: int
    n: int
    k: int
    operand_bits: int
    registers: tuple[int, int, int]

    def __post_init__(self) -> None:
        sizes = (self.a.in_size(REGISTER), self.b.in_size(REGISTER))
        counted = (*(size // self.packed for size in sizes), self.c.in_size(REGISTER))
        if counted != self.registers:
            raise LayoutError(f"{self.name}: registers {self.registers}, layouts say {counted}")

    @property
    def name(self) -> str:
        """The shape as PTX spells it.

        >>> MMA_SHAPES[0].name
        'm16n8k8'
        """
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def packed(self) -> int:
        """The number of operand elements in one register."""
        return max(1, REGISTER_BITS // self.operand_bits)

    @property
    def a(self) -> LinearLayout:
        """The layout of A, (M, K)."""
        return mma_a(self.m, self.k, self.packed)

    @property
    def b(self) -> LinearLayout:
        """The layout of B, (K, N)."""
        return mma_b(self.k, self.packed)

    @property
    def c(self) -> LinearLayout:
        """The layout of the accumulators, (M, N)."""
        return mma_c(self.m, self.n)


MMA_SHAPES = (
    MmaShape(16, 8, 8, 16, (2, 1, 4)),
    MmaShape(16, 8, 16, 16, (4, 2, 4)),
    MmaShape(16, 8, 4, 32, (2, 1, 4)),  # tf32
    MmaShape(16, 8, 8, 32, (4, 2, 4)),
    MmaShape(8, 8, 16, 8, (1, 1, 2)),
    MmaShape(16, 8, 16, 8, (2, 1, 4)),
    MmaShape(16, 8, 32, 8, (4, 2, 4)),
    MmaShape(8, 8, 32, 4, (1, 1, 2)),
    MmaShape(16, 8, 32, 4, (2, 1, 4)),
    MmaShape(16, 8, 64, 4, (4, 2, 4)),
    MmaShape(8, 8, 128, 1, (1, 1, 2)),
    MmaShape(16, 8, 128, 1, (2, 1, 4)),
    MmaShape(16, 8, 256, 1, (4, 2, 4)),
    MmaShape(8, 8, 4, 64, (1, 1, 2)),  # f64
    MmaShape(16, 8, 4, 64, (2, 1, 4)),
    MmaShape(16, 8, 8, 64, (4, 2, 4)),
    MmaShape(16, 8, 16, 64, (8, 4, 4)),
)
"""Every shape that follows the rule above; which chip has it for which type is the chip's table.

The m8n8k4 f16 shape of early tensor cores follows another rule and is left out.
"""


def mma_shape(m: int, n: int, k: int, operand_bits: int) -> MmaShape:
    """The table row of a shape; LayoutError if there is none."""
    for row in MMA_SHAPES:
        if (row.m, row.n, row.k, row.operand_bits) == (m, n, k, operand_bits):
            return row
    raise LayoutError(f"there is no mma of m{m}n{n}k{k} with {operand_bits}-bit operands")
