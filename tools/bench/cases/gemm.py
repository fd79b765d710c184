"""gemm: matrices of f16 and bf16 on tensor cores, summed in f32."""

from __future__ import annotations

from tools.bench.products import HALF_SHAPES, mm, product_case, tiles

PROGRAMS = {"f16": "gemm_fp16tc_fp32acc", "bf16": "gemm_bf16"}

CASE = product_case(
    "gemm",
    "C = A B, summed in f32",
    ("f16", "bf16"),
    lambda dtype: PROGRAMS[dtype],
    tiles(
        (64, 64, 64, 128),
        (128, 128, 32, 128),
        (256, 128, 64, 256),
        (128, 256, 64, 256),
        (128, 256, 32, 256),
        (256, 128, 32, 256),
        (128, 128, 64, 128),
        (128, 128, 64, 256),
        (64, 64, 32, 128),
    ),
    mm,
    HALF_SHAPES,
)
