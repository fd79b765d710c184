"""gemm_int8: matrices of i8, B transposed, summed in i32."""

from __future__ import annotations

from tools.bench.products import BYTE_SHAPES, mm_bytes, product_case, tiles

CASE = product_case(
    "gemm_int8",
    "C = A B^T, summed in i32",
    ("i8",),
    lambda _: "gemm_int8",
    tiles(
        (64, 64, 128, 128),
        (128, 128, 64, 128),
        (128, 256, 64, 256),
        (128, 128, 128, 128),
        (256, 128, 64, 256),
        (128, 256, 128, 256),
        (128, 256, 128, 512),
        (64, 64, 64, 128),
    ),
    mm_bytes,
    BYTE_SHAPES,
    result="i32",
    is_turned=True,
)
