"""Matrix products, C = A B: what their case files share.

The contenders compute C alone: Phobos' kernels have alpha = 1 and beta = 0, with which they do not
read the old C.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tools.bench.case import (
    Array,
    Case,
    Choices,
    Extents,
    PhobosKernel,
    Rate,
    TorchCall,
    TritonKernel,
    Values,
    ceildiv,
    read,
    shipped,
    written,
)
from tools.bench.triton_language import jit, tl

SQUARE = (4096, 4096, 4096)
THIN = (128, 4096, 4096)
"""Few tiles and a long K, as in the layers of a model with a small batch."""


@jit
def triton_product(
    a, b, c, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr,
    IS_TURNED: tl.constexpr, IS_TF32: tl.constexpr,
):  # fmt: skip
    """One tile of C a program; GROUP rows of tiles are walked together, for the L2 cache.

    B is [N, K] if IS_TURNED. Factors in f32 are rounded to tf32 if IS_TF32.
    """
    rows, columns = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    program = tl.program_id(0)
    first = program // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    i = (first + program % (GROUP * columns) % height) * ROWS + tl.arange(0, ROWS)
    j = program % (GROUP * columns) // height * COLUMNS + tl.arange(0, COLUMNS)
    inner = tl.arange(0, DEPTH)
    kind = a.dtype.element_ty
    wide = tl.float64 if kind == tl.float64 else tl.float32
    total = tl.zeros((ROWS, COLUMNS), tl.int32 if kind == tl.int8 else wide)
    for start in range(0, k, DEPTH):
        d = start + inner
        left = tl.load(a + i[:, None] * k + d[None, :], (i[:, None] < m) & (d[None, :] < k), 0.0)
        place = j[None, :] * k + d[:, None] if IS_TURNED else d[:, None] * n + j[None, :]
        right = tl.load(b + place, (d[:, None] < k) & (j[None, :] < n), 0.0)
        precision: tl.constexpr = "tf32" if IS_TF32 else "ieee"
        total = tl.dot(left, right, total, input_precision=precision, out_dtype=total.dtype)
    inside = (i[:, None] < m) & (j[None, :] < n)
    tl.store(c + i[:, None] * n + j[None, :], total.to(c.dtype.element_ty), inside)


def tiles(*shapes: tuple[int, int, int, int]) -> tuple[Choices, ...]:
    """Constants of a Phobos kernel: TILE_M, TILE_N, TILE_K, THREADS."""
    names = ("TILE_M", "TILE_N", "TILE_K", "THREADS")
    return tuple(dict(zip(names, shape, strict=True)) for shape in shapes)


def _triton_search(
    shapes: tuple[tuple[int, int, int, int, int], ...], *, is_turned: bool, is_tf32: bool
) -> tuple[Choices, ...]:
    """Candidates of Triton: rows, columns, depth, warps, stages."""
    names = ("ROWS", "COLUMNS", "DEPTH", "num_warps", "num_stages")
    fixed = {"GROUP": 8, "IS_TURNED": int(is_turned), "IS_TF32": int(is_tf32)}
    return tuple({**dict(zip(names, shape, strict=True)), **fixed} for shape in shapes)


HALF_SHAPES = (
    (128, 128, 32, 4, 4),
    (128, 256, 64, 8, 3),
    (128, 128, 64, 8, 3),
    (128, 256, 32, 8, 4),
    (64, 128, 64, 4, 4),
)
BYTE_SHAPES = ((128, 128, 64, 4, 4), (128, 256, 128, 8, 3), (128, 128, 128, 8, 3))
FLOAT_SHAPES = ((64, 64, 32, 4, 3), (128, 64, 32, 8, 3), (128, 128, 16, 8, 3))


def product_case(
    name: str,
    summary: str,
    dtypes: tuple[str, ...],
    source: Callable[[str], str],
    search: tuple[Choices, ...],
    torch: TorchCall,
    triton: tuple[tuple[int, int, int, int, int], ...],
    *,
    kernel: str = "gemm",
    result: str | None = None,
    size: tuple[int, int, int] = SQUARE,
    is_turned: bool = False,
    is_tf32: bool = False,
    tolerance: float | None = None,
    workspaces: tuple[Array, ...] = (),
    chip: str | None = None,
) -> Case:
    """A case; `source` names the shipped program for a type, `result` is C's type if another."""
    return Case(
        name=name,
        summary=summary,
        dims=("M", "N", "K"),
        sizes=(size,),
        dtypes=dtypes,
        arrays=(
            read("A", "M", "K"),
            read("B", *(("N", "K") if is_turned else ("K", "N"))),
            written("C", "M", "N", dtype=result),
            *workspaces,
        ),
        scalars={"alpha": 1, "beta": 0},
        flops=lambda extents: 2 * extents["M"] * extents["N"] * extents["K"],
        magnitude=lambda extents: extents["K"] ** 0.5,
        rate=Rate.FLOPS,
        tolerance=tolerance,
        trial=(12, 20, 100),
        reference=lambda t: t.A @ (t.B.T if is_turned else t.B),
        phobos=PhobosKernel(
            lambda dtype: shipped(source(dtype)), kernel, search, chip=chip
        ),
        torch={"mm": torch},
        triton=TritonKernel(
            triton_product,
            ("A", "B", "C", "M", "N", "K"),
            _triton_grid,
            _triton_search(triton, is_turned=is_turned, is_tf32=is_tf32),
        ),
    )  # fmt: skip


def _triton_grid(extents: Extents, chosen: Choices) -> tuple[int, ...]:
    return (ceildiv(extents["M"], chosen["ROWS"]) * ceildiv(extents["N"], chosen["COLUMNS"]),)


# PyTorch's ways, all of which call cuBLAS --------------------------------------------------------


def mm(torch: Any, t: Values) -> None:
    """In the types of the matrices; f32 is not rounded."""
    _mm_with(torch, t, allow_tf32=False)


def mm_tf32(torch: Any, t: Values) -> None:
    """With the factors rounded to tf32."""
    _mm_with(torch, t, allow_tf32=True)


def _mm_with(torch: Any, t: Values, *, allow_tf32: bool) -> None:
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = allow_tf32
    try:
        torch.mm(t.A, t.B, out=t.C)
    finally:
        settings.allow_tf32 = before


def mm_bytes(torch: Any, t: Values) -> None:
    """Of i8, summed in i32."""
    torch._int_mm(t.A, t.B.T, out=t.C)


def mm_small_floats(torch: Any, t: Values) -> None:
    """Of 8-bit floats, summed in f32."""
    one = _one(torch)
    torch._scaled_mm(t.A, t.B.T, scale_a=one, scale_b=one, out_dtype=t.C.dtype, out=t.C)


@cache
def _one(torch: Any) -> Any:
    return torch.ones((), dtype=torch.float32, device="cuda")
