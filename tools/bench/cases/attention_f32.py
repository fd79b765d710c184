"""attention_f32: heads of size 64 in f32, not rounded to narrower types."""

from __future__ import annotations

from tools.bench.attention import attention_case, blocks

CASE = attention_case(
    "attention_f32",
    ("f32",),
    blocks(
        (32, 32, 128), (64, 32, 128), (64, 64, 128), (64, 64, 256), (128, 32, 256), (32, 64, 128)
    ),
    ((64, 32, 4, 2), (64, 64, 8, 2), (128, 32, 8, 2)),
    d=64,
)
