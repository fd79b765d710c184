"""The shipped attention kernels on the emulator, with all its checks, against float64."""

from __future__ import annotations

import pytest

from phobos.runtime.emulator_device import EmulatorDevice
from tests.support.kernel_cases import ATTENTION, attention

CASES = [
    # program, chip, query heads, key heads, queries, keys, columns, causal
    ("attention_fp32", "sm_75", 1, 1, 33, 65, 32, False),
    ("attention_fp32", "sm_80", 4, 1, 1, 33, 64, True),  # one row; grouped heads
    ("attention_fp32", "sm_90", 1, 1, 65, 33, 80, True),  # rows without any key
    ("attention_fp16", "sm_80", 1, 1, 65, 65, 64, False),
    ("attention_fp16", "sm_90", 4, 1, 33, 100, 64, True),
    ("attention_fp16", "sm_86", 1, 1, 100, 33, 64, True),
    ("attention_fp16", "sm_75", 1, 1, 33, 65, 128, True),
    ("attention_fp16", "sm_89", 2, 2, 100, 1, 32, False),
    ("attention_fp16", "sm_86", 1, 1, 17, 200, 32, False),  # more blocks than stages
    ("attention_fp16", "sm_120", 4, 2, 7, 100, 80, True),
    ("attention_fp16", "sm_90", 1, 1, 33, 65, 256, True),
    ("attention_bf16", "sm_75", 1, 1, 20, 33, 32, False),
    ("attention_bf16", "sm_80", 2, 1, 65, 100, 128, True),
    ("attention_bf16", "sm_120", 1, 1, 100, 7, 80, True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_attention(case: tuple[str, str, int, int, int, int, int, bool]) -> None:
    file, chip, heads, groups, queries, keys, d, causal = case
    element, tolerance = ATTENTION[file]
    program = attention(file, element, tolerance, causal=causal, d=d)
    threads = 128 if element == "f32" else 64
    constants = {"BLOCK_M": 32, "BLOCK_N": 32, "THREADS": threads, "D": d, "CAUSAL": int(causal)}
    module = program.load(chip, constants)
    dims = {"H": heads, "G": groups, "S": queries, "T": keys}
    program.run(module, dims, EmulatorDevice(checks="all"))


def test_blocks_as_large_as_the_defaults() -> None:
    program = attention("attention_fp16", *ATTENTION["attention_fp16"], causal=True, d=64)
    module = program.load("sm_80", {"CAUSAL": 1})
    program.run(module, {"H": 1, "G": 1, "S": 100, "T": 70}, EmulatorDevice(checks="all"))


@pytest.mark.parametrize(("d", "ctas", "causal"), [(64, 3, False), (128, 1, True)])
def test_32_rows_a_warp(d: int, ctas: int, causal: bool) -> None:
    program = attention("attention_fp16", *ATTENTION["attention_fp16"], causal=causal, d=d)
    blocks = {"BLOCK_M": 128, "BLOCK_N": 32, "THREADS": 128}
    module = program.load("sm_90", {**blocks, "D": d, "CTAS": ctas, "CAUSAL": int(causal)})
    dims = {"H": 1, "G": 1, "S": 130, "T": 200}
    program.run(module, dims, EmulatorDevice(checks="all"))


@pytest.mark.parametrize("d", [160, 256])
def test_large_heads_fit_the_smallest_chip(d: int) -> None:
    """As the program says above its constants."""
    program = attention("attention_fp16", *ATTENTION["attention_fp16"], causal=False, d=d)
    module = program.load("sm_75", {"D": d, "BLOCK_N": 16, "THREADS": 256})
    program.run(module, {"H": 1, "G": 1, "S": 7, "T": 33}, EmulatorDevice(checks="all"))
