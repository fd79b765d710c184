"""gemm_splitk: few tiles of C and a long K, which is cut into parts."""

from __future__ import annotations

from tools.bench.case import scratch
from tools.bench.products import HALF_SHAPES, THIN, mm, product_case, tiles

SPLITS = 4

CASE = product_case(
    "gemm_splitk",
    "C = A B, summed in f32, K in 4 parts",
    ("f16",),
    lambda _: "gemm_splitk_fp16",
    tuple(
        {**shape, "SPLITS": SPLITS}
        for shape in tiles(
            (64, 64, 64, 128),
            (128, 128, 64, 256),
            (128, 128, 32, 256),
            (64, 128, 64, 128),
            (64, 64, 32, 128),
        )
    ),
    mm,
    HALF_SHAPES,
    kernel="gemm_splitk",
    size=THIN,
    workspaces=(
        scratch("W", SPLITS, "M", "N", dtype="f32"),
        scratch("state", 2, dtype="i32"),
    ),
)
