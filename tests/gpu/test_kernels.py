"""The shipped kernels on a GPU, as on the emulator but larger: tuned tiles, long K, many CTAs."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import phobos
from tests.support.kernel_cases import (
    ATTENTION,
    BATCHED,
    GEMMS,
    GROUPED,
    SPLITK,
    STREAMK,
    Shipped,
    attention,
    fill_grouped,
)

SIZES = [(512, 768, 1024), (1000, 300, 2052), (129, 1, 77), (1, 4097, 333)]
"""M, N and K: whole tiles; extents of whole vectors; odd ones."""

by_program = pytest.mark.parametrize("program", GEMMS, ids=lambda program: program.file)
by_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))


def run_product(
    program: Shipped, chip: str | None, constants: dict[str, int], size: tuple[int, int, int]
) -> None:
    module = program.load(chip, constants)
    dims = dict(zip("MNK", size, strict=True))
    for beta in (0, -1):
        program.run(module, dims, "cuda", beta=beta)


@by_size
@by_program
def test_gemm(program: Shipped, size: tuple[int, int, int]) -> None:
    run_product(program, None, {}, size)


@by_size
@by_program
def test_gemm_with_twice_the_threads(program: Shipped, size: tuple[int, int, int]) -> None:
    run_product(program, None, {"TILE_M": 128, "TILE_N": 128, "THREADS": 256}, size)


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"])
@by_program
def test_gemm_for_older_chips(program: Shipped, chip: str) -> None:
    lacks_mma = (program.file, chip) == ("gemm_tf32", "sm_75")
    with (
        pytest.warns(phobos.PhobosWarning, match=r"sm_75 has no mma of tf32 .*\[-W fallback\]")
        if lacks_mma
        else nullcontext()
    ):
        run_product(program, chip, {}, SIZES[1])


@pytest.mark.parametrize("size", [(5, 256, 128, 512), (70, 33, 65, 100)])
def test_batched(size: tuple[int, int, int, int]) -> None:
    module = BATCHED.load(None, {})
    for beta in (0.0, 0.5):
        BATCHED.run(module, dict(zip("ZMNK", size, strict=True)), "cuda", beta=beta)


def test_grouped() -> None:
    """Sixty problems, some empty, of all depths up to K."""
    table = [
        (m, 640 - 7 * g, 1000 - 16 * g, 100 * g, 10 * g)
        for g in range(60)
        for m in ((37 * g) % 101,)
    ]
    dims = {"R": 6000, "K": 1000, "S": 1700, "N": 640, "G": len(table)}
    module = GROUPED.load(None, {})
    for beta in (0.0, 0.5):
        GROUPED.run(module, dims, "cuda", fill=fill_grouped(table), beta=beta)


@pytest.mark.parametrize("splits", [1, 4, 7])
@pytest.mark.parametrize("size", [(128, 4096, 4096), (100, 1000, 2052), (33, 7, 4097)])
def test_split_k(size: tuple[int, int, int], splits: int) -> None:
    module = SPLITK.load(None, {"SPLITS": splits})
    for beta in (0.0, 0.5):
        SPLITK.run(module, dict(zip("MNK", size, strict=True)), "cuda", beta=beta)


@pytest.mark.parametrize("rows", [0, 5, 1024])
@pytest.mark.parametrize("size", [(128, 4096, 4096), (1000, 1000, 2052), (33, 7, 4097)])
def test_stream_k(size: tuple[int, int, int], rows: int) -> None:
    """Without room for parts, with some, and with enough for every CTA of a large GPU."""
    module = STREAMK.load(None, {})
    dims = {**dict(zip("MNK", size, strict=True)), "R": 128 * rows}
    for beta in (0.0, 0.5):
        STREAMK.run(module, dims, "cuda", beta=beta)


ATTENTION_SIZES = [
    # query heads, key heads, queries, keys
    (4, 4, 512, 512),
    (8, 2, 333, 1029),
    (2, 1, 700, 129),
    (3, 3, 1, 2000),
]


@pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [32, 64, 80, 128, 256])
@pytest.mark.parametrize("file", sorted(ATTENTION))
def test_attention(file: str, d: int, causal: bool) -> None:
    element, tolerance = ATTENTION[file]
    program = attention(file, element, tolerance, causal=causal, d=d)
    # What the programs say of heads above 128.
    large = {"BLOCK_N": 16, "THREADS": 128 if element == "f32" else 256}
    constants = {"D": d, "CAUSAL": int(causal), **(large if d > 128 else {})}
    module = program.load(None, constants)
    for heads, groups, queries, keys in ATTENTION_SIZES:
        dims = {"H": heads, "G": groups, "S": queries, "T": keys}
        program.run(module, dims, "cuda")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("block_n", "ctas", "d"), [(64, 1, 64), (32, 3, 64), (32, 1, 128), (64, 1, 128)]
)
def test_attention_with_32_rows_a_warp(block_n: int, ctas: int, d: int, causal: bool) -> None:
    program = attention("attention_fp16", *ATTENTION["attention_fp16"], causal=causal, d=d)
    blocks = {"BLOCK_M": 128, "BLOCK_N": block_n, "THREADS": 128, "CTAS": ctas}
    module = program.load(None, {**blocks, "D": d, "CAUSAL": int(causal)})
    for heads, groups, queries, keys in ATTENTION_SIZES:
        dims = {"H": heads, "G": groups, "S": queries, "T": keys}
        program.run(module, dims, "cuda")
