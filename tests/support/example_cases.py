"""The programs under examples/ with inputs, grids and what NumPy says they compute.

Shared by the tests on the emulator and those on a GPU. Sizes are awkward on purpose: one element,
one past a tile, primes, and extents that no power of two divides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parents[2] / "examples"
Array = NDArray[Any]
Dims = tuple[int, ...]
Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Problem:
    """Arguments of one launch and the arrays that outputs must equal, by argument number."""

    arguments: list[Any]
    expected: dict[int, Array]
    tolerance: float = 1e-6

    def check(self) -> None:
        """Assert that the outputs are right; call it when the kernel has run."""
        for number, expected in self.expected.items():
            np.testing.assert_allclose(
                self.arguments[number].astype(np.float64),
                expected,
                rtol=self.tolerance,
                atol=self.tolerance * max(1.0, float(np.max(np.abs(expected)))),
            )


@dataclass(frozen=True)
class Example:
    """One program: how to make a problem of given extents, and the grid to launch."""

    file: str
    kernel: str
    problem: Callable[[np.random.Generator, Dims], Problem]
    grid: Callable[[Dims], Grid]
    sizes: tuple[Dims, ...]
    constants: dict[str, int] = field(default_factory=dict)
    infers_grid: bool = True

    @property
    def source(self) -> str:
        """The program's text."""
        return (FOLDER / f"{self.file}.ph").read_text()


def ceildiv(dividend: int, divisor: int) -> int:
    """The quotient rounded up."""
    return -(-dividend // divisor)


def poisoned(shape: Dims, dtype: Any = np.float32) -> Array:
    """An output that shows every element that is not written."""
    if np.issubdtype(dtype, np.integer):
        return np.full(shape, np.iinfo(dtype).min, dtype)
    return np.full(shape, np.nan, dtype)


def normal(rng: np.random.Generator, shape: Dims, dtype: Any = np.float32) -> Array:
    """Normally distributed numbers."""
    return rng.standard_normal(shape).astype(dtype)


def wide(array: Array) -> Array:
    """The array in float64, to compute what is expected."""
    return array.astype(np.float64)


def saxpy(rng: np.random.Generator, dims: Dims) -> Problem:
    x, y = normal(rng, dims), normal(rng, dims)
    return Problem([x, y, poisoned(dims), np.float32(2.5)], {2: 2.5 * wide(x) + wide(y)})


def scale(rng: np.random.Generator, dims: Dims) -> Problem:
    x = normal(rng, dims)
    return Problem([x, poisoned(dims), np.float32(-1.5)], {1: -1.5 * wide(x)})


def row_sum(rng: np.random.Generator, dims: Dims) -> Problem:
    x = normal(rng, dims)
    sums = wide(x).sum(axis=1, keepdims=True)
    return Problem([x, poisoned((dims[0], 1))], {1: sums}, tolerance=1e-5)


def matvec(rng: np.random.Generator, dims: Dims) -> Problem:
    n, k = dims
    a, w = normal(rng, (1, k)), normal(rng, dims)
    return Problem([a, w, poisoned((1, n))], {2: wide(a) @ wide(w).T}, tolerance=1e-5)


def matvec_i8(rng: np.random.Generator, dims: Dims) -> Problem:
    n, k = dims
    a, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((1, k), dims))
    exact = a.astype(np.int64) @ w.astype(np.int64).T
    return Problem([a, w, poisoned((1, n), np.int32)], {2: exact}, tolerance=0.0)


def copy2d(rng: np.random.Generator, dims: Dims) -> Problem:
    a = normal(rng, dims)
    return Problem([a, poisoned(dims)], {1: wide(a)}, tolerance=0.0)


def axpby(rng: np.random.Generator, dims: Dims) -> Problem:
    x, y = (normal(rng, dims, ml_dtypes.bfloat16) for _ in range(2))
    bias = normal(rng, (1, dims[1]), np.float16)
    expected = 0.5 * wide(x) - 2.0 * wide(y) + wide(bias)
    arguments = [x, y, bias, poisoned(dims), np.float32(0.5), np.float32(-2.0)]
    return Problem(arguments, {3: expected})


def batch_add(rng: np.random.Generator, dims: Dims) -> Problem:
    a, b = normal(rng, dims), normal(rng, dims)
    return Problem([a, b, poisoned(dims)], {2: wide(a) + wide(b)})


def gemm(rng: np.random.Generator, dims: Dims) -> Problem:
    m, n, k = dims
    a, b, c = normal(rng, (m, k)), normal(rng, (k, n)), normal(rng, (m, n))
    expected = 0.5 * (wide(a) @ wide(b)) + 2.0 * wide(c)
    return Problem([a, b, c, np.float32(0.5), np.float32(2.0)], {2: expected}, tolerance=1e-5)


VECTOR_SIZES = ((1,), (3,), (4,), (17,), (97,), (100,), (1000,), (1025,))
MATRIX_SIZES = ((1, 1), (4, 4), (3, 97), (33, 65), (17, 129), (100, 100), (2, 1000))

EXAMPLES = (
    Example(
        "saxpy_fp32", "saxpy", saxpy,
        grid=lambda dims: (ceildiv(dims[0], 16), 1, 1),
        sizes=VECTOR_SIZES,
    ),
    Example(
        "scale", "scale", scale,
        grid=lambda dims: (2, 1, 1),
        sizes=(*VECTOR_SIZES, (5000,)),
        infers_grid=False,
    ),
    Example(
        "row_sum", "row_sum", row_sum,
        grid=lambda dims: (dims[0], 1, 1),
        sizes=((1, 1), (4, 4), (2, 97), (3, 100), (2, 1000), (5, 257)),
        infers_grid=False,
    ),
    Example(
        "matvec", "matvec", matvec,
        grid=lambda dims: (ceildiv(dims[0], 8), 1, 1),
        sizes=((1, 1), (4, 4), (17, 97), (9, 100), (8, 1000), (3, 33)),
        infers_grid=False,
    ),
    Example(
        "matvec_i8", "matvec_i8", matvec_i8,
        grid=lambda dims: (ceildiv(dims[0], 8), 1, 1),
        sizes=((1, 1), (4, 16), (17, 97), (9, 100), (8, 1000), (3, 528)),
        infers_grid=False,
    ),
    Example(
        "copy2d", "copy2d", copy2d,
        grid=lambda dims: (ceildiv(dims[0], 32), ceildiv(dims[1], 64), 1),
        sizes=MATRIX_SIZES,
    ),
    Example(
        "axpby_bf16", "axpby", axpby,
        grid=lambda dims: (ceildiv(dims[0], 16), ceildiv(dims[1], 128), 1),
        sizes=MATRIX_SIZES,
    ),
    Example(
        "batch_add", "batch_add", batch_add,
        grid=lambda dims: (ceildiv(dims[1], 8), ceildiv(dims[2], 128), dims[0]),
        sizes=((1, 1, 1), (2, 4, 4), (3, 9, 129), (2, 17, 97), (1, 100, 100)),
    ),
    Example(
        "gemm_fp32", "gemm", gemm,
        grid=lambda dims: (dims[0] // 32, dims[1] // 32, 1),
        sizes=((32, 32, 4), (64, 32, 100), (32, 96, 12)),
        infers_grid=False,
    ),
)  # fmt: skip
"""Every program of the folder; a test checks that none is missing."""
