"""gemm_fp32: matrices of f32 by multiply-adds."""

from __future__ import annotations

from tools.bench.products import FLOAT_SHAPES, mm, product_case, tiles

CASE = product_case(
    "gemm_fp32",
    "C = A B in f32",
    ("f32",),
    lambda _: "gemm_fp32",
    tiles(
        (128, 128, 16, 128),
        (128, 128, 32, 128),
        (128, 256, 8, 256),
        (128, 256, 16, 256),
        (128, 256, 32, 256),
        (64, 128, 32, 128),
        (64, 128, 16, 128),
        (128, 64, 32, 128),
        (64, 64, 16, 64),
    ),
    mm,
    FLOAT_SHAPES,
)
