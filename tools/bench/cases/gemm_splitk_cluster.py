"""gemm_splitk_cluster: the product of gemm_splitk, whose parts a cluster of CTAs adds up."""

from __future__ import annotations

from tools.bench.products import HALF_SHAPES, THIN, mm, product_case

NAMES: tuple[str, ...] = ("TILE_M", "TILE_N", "TILE_K", "THREADS", "SPLITS")
SEARCH = tuple(
    dict(zip(NAMES, choice, strict=True))
    for choice in (
        (128, 128, 64, 256, 4),
        (128, 256, 64, 256, 8),
        (64, 128, 64, 128, 4),
        (128, 64, 64, 128, 2),
        (64, 64, 64, 128, 4),
    )
)

CASE = product_case(
    "gemm_splitk_cluster",
    "C = A B, summed in f32, K in parts that clusters add up",
    ("f16",),
    lambda _: "gemm_splitk_cluster_fp16",
    SEARCH,
    mm,
    HALF_SHAPES,
    kernel="gemm_splitk",
    size=THIN,
    chip="sm_90a",
)
