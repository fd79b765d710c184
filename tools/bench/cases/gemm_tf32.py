"""gemm_tf32: matrices of f32 on tensor cores, factors rounded to tf32."""

from __future__ import annotations

from tools.bench.products import mm_tf32, product_case, tiles

CASE = product_case(
    "gemm_tf32",
    "C = A B in f32, factors rounded to tf32",
    ("f32",),
    lambda _: "gemm_tf32",
    tiles(
        (64, 64, 16, 128),
        (128, 64, 32, 128),
        (128, 128, 32, 128),
        (128, 128, 32, 256),
        (256, 128, 32, 256),
        (64, 64, 32, 128),
    ),
    mm_tf32,
    ((128, 128, 32, 4, 3), (128, 256, 32, 8, 3), (128, 128, 32, 8, 4)),
    is_tf32=True,
    tolerance=2e-3,  # a factor keeps 11 bits
)
