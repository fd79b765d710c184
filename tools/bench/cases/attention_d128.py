"""attention_d128: heads of size 128."""

from __future__ import annotations

from tools.bench.attention import attention_case, blocks

CASE = attention_case(
    "attention_d128",
    ("f16", "bf16"),
    blocks((128, 32, 128), (128, 64, 128), (128, 64, 256), (64, 64, 128)),
    ((128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3), (128, 64, 4, 2)),
    d=128,
)
