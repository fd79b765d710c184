"""PTX that nvcc made of small CUDA programs gives the right numbers, with every check on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phobos.emulator import EmulatorError, emulate

Launch = Callable[..., None]

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(params=[0, 1, 2], ids=lambda seed: f"seed{seed}")
def launch(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function that runs one of the recorded programs, under several schedules."""

    def run(name: str, grid: Any, block: Any, args: list[Any], entry: str = "") -> None:
        ptx = (PROGRAMS / f"{name}.ptx").read_text()
        emulate(
            ptx,
            entry or name,
            grid,
            block,
            args,
            checks="all",
            seed=request.param,
            name=f"{name}.ptx",
        )

    return run


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("count", [1, 100, 1000, 5000])
def test_reduction(launch: Launch, generator: np.random.Generator, count: int):
    x = generator.integers(-50, 50, count).astype(np.float32)
    total = np.zeros(1, np.float32)
    launch("reduction", 4, 128, [x, total, count])
    assert total[0] == x.sum()


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (20, 33, 17), (1, 5, 40)])
def test_matmul(launch: Launch, generator: np.random.Generator, m: int, n: int, k: int):
    a = generator.standard_normal((m, k)).astype(np.float32)
    b = generator.standard_normal((k, n)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    launch("matmul", (-(-n // 16), -(-m // 16)), (16, 16), [a, b, c, m, n, k])
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_histogram(launch: Launch, generator: np.random.Generator):
    data = generator.integers(0, 256, 20_000, dtype=np.uint8)
    bins = np.zeros(256, np.uint32)
    launch("histogram", 6, 256, [data, bins, data.size])
    np.testing.assert_array_equal(bins, np.bincount(data, minlength=256))


def test_bitonic_sort(launch: Launch, generator: np.random.Generator):
    keys = generator.integers(-(10**9), 10**9, 1024, dtype=np.int32)
    wanted = np.sort(keys)
    launch("bitonic", 1, 512, [keys])
    np.testing.assert_array_equal(keys, wanted)


def test_wmma(launch: Launch, generator: np.random.Generator):
    a = generator.standard_normal((32, 48)).astype(np.float16)
    b = generator.standard_normal((64, 48)).astype(np.float16)
    c = np.zeros((32, 64), np.float32)
    launch("wmma", (2, 2), 64, [a, b, c, 64, 48], entry="wmma_matmul")
    wanted = 2 * a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 3, 9])
def test_pipeline(launch: Launch, generator: np.random.Generator, rows: int):
    x = generator.integers(-9, 9, (rows, 128, 4)).astype(np.float32)
    y = np.zeros_like(x)
    launch("pipeline", 1, 128, [x, y, rows])
    np.testing.assert_array_equal(y, np.cumsum(x[:, np.arange(128) ^ 1], axis=0))


@pytest.mark.parametrize(("ctas", "count"), [(1, 50), (5, 600), (8, 1024)])
def test_prefix_sum_with_a_grid_barrier(
    launch: Launch, generator: np.random.Generator, ctas: int, count: int
):
    x = generator.integers(-100, 100, count, dtype=np.int32)
    y, sums = np.zeros(count, np.int32), np.zeros(ctas, np.int32)
    launch("prefix", ctas, 128, [x, y, sums, np.zeros(1, np.uint32), count])
    np.testing.assert_array_equal(y, np.cumsum(x, dtype=np.int32))


def test_stencil(launch: Launch, generator: np.random.Generator):
    x = generator.standard_normal((19, 21))
    y = np.zeros_like(x)
    launch("stencil", (3, 3), (8, 8), [x, y, 19, 21])
    wanted = x.copy()
    mean = 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])
    inner = x[1:-1, 1:-1]
    wanted[1:-1, 1:-1] = inner + 0.5 * (mean - inner) + np.sqrt(abs(mean)) / (1 + mean**2)
    np.testing.assert_allclose(y, wanted, rtol=1e-13, atol=1e-15)


def _byte_permute(low: int, high: int, selector: int) -> int:
    table = low | high << 32
    return sum((table >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i for i in range(4))


def test_decode(launch: Launch, generator: np.random.Generator):
    packed = generator.integers(0, 2**32, 300, dtype=np.uint32)
    packed[:2] = [0, 0xFFFFFFFF]
    out = np.zeros((300, 3), np.uint32)
    low, high = 0x03020100, 0x77665504
    launch("decode", 3, 128, [packed, out, low, high, 300])
    for word, row in zip(packed.tolist(), out.tolist(), strict=True):
        even, flip = word & 0x77777777, word >> 3 & 0x11111111
        first, second = _byte_permute(low, high, even), _byte_permute(low, high, even >> 16)
        reverse = int(f"{flip:032b}"[::-1], 2)
        funnel = (low << 32 | word) << 5 >> 32 & 0xFFFFFFFF
        signs = _byte_permute(flip, reverse, 0x3120) ^ funnel
        dot = sum((first >> 8 * i & 255) * (second >> 8 * i & 255) for i in range(4)) + 7
        zeros = 32 - word.bit_length()
        lowest = (word & -word).bit_length()
        wanted = (signs + word.bit_count() + zeros + lowest + dot) & 0xFFFFFFFF
        assert row == [first, second, wanted]


def _switch(v: int, i: int) -> int:
    return [v // 6, v * 3 + 1, v ^ 0x55, -v, v << 2, i][v % 6]


def test_assertion_that_holds(launch: Launch, generator: np.random.Generator):
    x = generator.integers(0, 10**6, 500, dtype=np.int32)
    y = np.zeros_like(x)
    launch("assertion", 4, 128, [x, y, 500])
    assert y.tolist() == [_switch(v, i) for i, v in enumerate(x.tolist())]


def test_assertion_that_fails(launch: Launch):
    x = np.arange(500, dtype=np.int32)
    x[300] = -1
    y = np.zeros_like(x)
    with pytest.raises(EmulatorError, match=r"trap: .*CTA \(2, 0, 0\), thread \(44, 0, 0\)") as e:
        launch("assertion", 4, 128, [x, y, 500])
    location = e.value.finding.location
    assert (location.file, location.line) == ("assertion.cu", 8)
    assert not y.any()
