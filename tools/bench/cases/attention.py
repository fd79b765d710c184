"""attention: heads of size 64."""

from __future__ import annotations

from tools.bench.attention import attention_case, blocks

CASE = attention_case(
    "attention",
    ("f16", "bf16"),
    blocks((128, 64, 128), (128, 32, 128, 3), (128, 32, 128), (128, 64, 256), (64, 64, 128)),
    ((128, 64, 4, 3), (128, 128, 8, 3), (64, 64, 4, 3), (128, 64, 8, 3)),
    d=64,
)
