"""gemm_fp64: matrices of f64."""

from __future__ import annotations

from tools.bench.products import FLOAT_SHAPES, mm, product_case, tiles

CASE = product_case(
    "gemm_fp64",
    "C = A B in f64",
    ("f64",),
    lambda _: "gemm_fp64",
    tiles((64, 64, 16, 128), (128, 64, 16, 128), (128, 128, 16, 256), (64, 64, 8, 128)),
    mm,
    FLOAT_SHAPES,
)
