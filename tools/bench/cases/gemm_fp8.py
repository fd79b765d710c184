"""gemm_fp8: matrices of 8-bit floats, B transposed, summed in f32, C in bf16."""

from __future__ import annotations

from tools.bench.products import BYTE_SHAPES, mm_small_floats, product_case, tiles

CASE = product_case(
    "gemm_fp8",
    "C = A B^T, summed in f32",
    ("f8e4m3",),
    lambda _: "gemm_fp8e4m3",
    tiles(
        (64, 64, 128, 128),
        (128, 128, 128, 128),
        (256, 128, 128, 256),
        (128, 128, 64, 256),
        (128, 256, 64, 256),
        (128, 128, 128, 256),
        (64, 64, 64, 128),
    ),
    mm_small_floats,
    BYTE_SHAPES,
    result="bf16",
    is_turned=True,
)
