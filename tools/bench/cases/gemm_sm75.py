"""gemm_sm75: matrices of f16, by Phobos' code for sm_75: no asynchronous copies, small products."""

from __future__ import annotations

from tools.bench.products import HALF_SHAPES, mm, product_case, tiles

CASE = product_case(
    "gemm_sm75",
    "C = A B, summed in f32, compiled for sm_75",
    ("f16",),
    lambda _: "gemm_fp16tc_fp32acc",
    tiles(
        (64, 64, 64, 128),
        (128, 128, 64, 128),
        (128, 128, 32, 128),
        (256, 128, 32, 256),
        (128, 256, 32, 256),
        (128, 128, 32, 256),
        (64, 64, 32, 128),
    ),
    mm,
    HALF_SHAPES,
    chip="sm_75",
)
