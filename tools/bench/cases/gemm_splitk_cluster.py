"""gemm_splitk_cluster: the product of gemm_splitk, whose parts a cluster of CTAs adds up."""

from __future__ import annotations

from tools.bench.case import Choices
from tools.bench.products import HALF_SHAPES, THIN, mm, product_case, tiles

SEARCH: tuple[Choices, ...] = (
    *({**one, "SPLITS": 2, "STAGES": 8} for one in tiles((128, 64, 64, 128), (64, 64, 64, 128))),
    *({**one, "SPLITS": 2, "STAGES": 4} for one in tiles((128, 64, 128, 128), (64, 128, 64, 128))),
    *({**one, "SPLITS": 4, "STAGES": 4} for one in tiles((128, 128, 64, 256))),
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
