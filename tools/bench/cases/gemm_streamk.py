"""gemm_streamk: few tiles of C and a long K; every CTA gets as many steps along K."""

from __future__ import annotations

from tools.bench.case import scratch
from tools.bench.products import HALF_SHAPES, THIN, mm, product_case, tiles

COLUMNS = 128
"""TILE_N, which the workspace depends on."""
ROWS = 2 * 128 * 512
"""Room for 512 CTAs with tiles of 128 rows."""

CASE = product_case(
    "gemm_streamk",
    "C = A B, summed in f32, in equal shares",
    ("f16",),
    lambda _: "gemm_streamk_fp16",
    tiles(
        (64, COLUMNS, 64, 128),
        (128, COLUMNS, 64, 256),
        (128, COLUMNS, 32, 256),
        (64, COLUMNS, 32, 128),
    ),
    mm,
    HALF_SHAPES,
    kernel="gemm_streamk",
    size=THIN,
    workspaces=(
        scratch("W", ROWS, COLUMNS, dtype="f32"),
        scratch("state", 2, dtype="i32"),
    ),
)
