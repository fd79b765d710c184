"""Products whose operands tensor copies bring: on the emulator, small integers, exact."""

from __future__ import annotations

import random

import numpy as np
import pytest

import phobos
from phobos.runtime.emulator_device import EmulatorDevice
from tests.support.tensor_copy_programs import AROUND, GRID, around
from tests.unit.contraction.test_products import ELEMENTS, PATHS, source

CHIP = "sm_90a"
COPY = "cp.async.bulk.tensor."
ALL = ("all",)
pytestmark = pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning")

Case = tuple[str, tuple[int, int, int], tuple[int, int, int], int, int, str]
"""Path, sizes (M, N, K), tile, threads, stages and form of a product."""


def random_cases(count: int, seed: int = 5) -> list[Case]:
    """Cases drawn once and for all, whose rows are whole 16 bytes."""
    rng = random.Random(seed)
    cases: list[Case] = []
    for number in range(count):
        name = ("f16", "bf16", "f16 in f16", "i8", "f8e5m2", "tf32")[number % 6]
        multiple = 16 // np.dtype(ELEMENTS[PATHS[name].a]).itemsize
        forms = {"i8": ("dot_t",), "f8e5m2": ("dot_t",), "tf32": ("dot", "dot_t")}
        form = rng.choice(forms.get(name, ("dot", "dot_t", "t_dot")))
        n, k = (multiple * rng.choice((1, 2, 3, 5, 8, 9, 13, 17)) for _ in range(2))
        m = multiple * rng.choice((1, 4, 9)) if form == "t_dot" else rng.choice((1, 7, 65, 129))
        depth = 32 if name == "tf32" else rng.choice((32, 64))
        tile = rng.choice((64, 128)), rng.choice((64, 128)), depth
        cases.append((name, (m, n, k), tile, rng.choice((128, 256)), rng.randint(2, 5), form))
    return cases


def run(case: Case, *, checks: tuple[str, ...] = ALL, seed: int = 0) -> phobos.Module:
    """Multiplies random integers and compares with ==; gives the module that was launched."""
    name, (m, n, k), tile, threads, stages, form = case
    path = PATHS[name]
    rng = np.random.default_rng(seed)
    a = rng.integers(-3, 4, (m, k)).astype(ELEMENTS[path.a])
    b = rng.integers(-3, 4, (k, n)).astype(ELEMENTS[path.b])
    c = np.full((m, n), 77).astype(ELEMENTS[path.total])
    given_a = np.ascontiguousarray(a.T) if form == "t_dot" else a
    given_b = np.ascontiguousarray(b.T) if form == "dot_t" else b
    text = source(path, tile, threads, stages, form)
    module = phobos.compile(text, chip=CHIP, extent_multiple=16, tensor_maps=True)
    device = EmulatorDevice(checks=checks, seed=seed)
    module["product"](given_a, given_b, c, device=device)
    np.testing.assert_array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))
    return module


@pytest.mark.parametrize("case", random_cases(24), ids=lambda case: "-".join(map(str, case[:2])))
def test_products_are_exact(case: Case) -> None:
    """Extents below a tile, one row, one and two warpgroups, two to five stages."""
    module = run(case)
    assert COPY in module.ptx
    assert "cp.async.c" not in module.ptx


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("name", ["f16", "tf32"])
def test_trip_counts_around_the_stages(name: str, steps: int, stages: int) -> None:
    """None, one, and around what is copied ahead."""
    run((name, (64, 64, 32 * steps), (64, 64, 32), 128, stages, "dot"))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["f16", "tf32"])
def test_no_race(name: str, seed: int) -> None:
    """Copies into stages, products that read them and warps that release them, in any schedule."""
    run((name, (136, 72, 224), (128, 64, 32), 256, 3, "dot"), seed=seed)


def test_tf32_is_rounded_as_it_is_copied() -> None:
    """To nearest, ties to even, as conversions round it."""
    text = source(PATHS["tf32"], (64, 64, 32), 128, 2, "dot")
    a = np.random.default_rng(1).integers(0, 1 << 30, (64, 64), np.uint32)
    a[0] = (a[0] & ~np.uint32(0x1FFF)) | 0x1000
    identity, c = np.eye(64, dtype=np.float32), np.full((64, 64), np.nan, np.float32)
    module = phobos.compile(text, chip=CHIP, tensor_maps=True)
    assert COPY in module.ptx
    module["product"](a.view(np.float32), identity, c, device="emulator")
    rounded = (a + 0xFFF + (a >> 13 & 1)) & ~np.uint32(0x1FFF)
    np.testing.assert_array_equal(c.view(np.uint32), rounded)


PERSISTENT = """
@launch(128)
@persistent
@pipeline(3)
kernel tiles(A: tensor<f16>[S, M, K], B: tensor<f16>[S, K, N], C: tensor<f32>[S, M, N]) {
  for item in range(ctx.block.x, S, ctx.blocks.x) {
    var acc: tile<f32>[1, 64, 64] = 0.0
    for k in range(0, K, 32) {
      acc += dot(A[item :+ 1, 0 :+ 64, k :+ 32], B[item :+ 1, k :+ 32, 0 :+ 64])
    }
    C[item :+ 1, 0 :+ 64, 0 :+ 64] = acc
  }
}
"""


@pytest.mark.parametrize("index_bits", [32, 64])
@pytest.mark.parametrize("k", [0, 8, 104])
def test_a_ring_is_opened_again(k: int, index_bits: int) -> None:
    """A loop in a loop, over a stack of matrices; more items than CTAs."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, size).astype(np.float16) for size in ((11, 40, k), (11, k, 56)))
    c = np.full((11, 40, 56), np.nan, np.float32)
    module = phobos.compile(
        PERSISTENT, chip=CHIP, extent_multiple=8, index_bits=index_bits, tensor_maps=True
    )
    assert COPY in module.ptx
    module["tiles"](a, b, c, device=EmulatorDevice(checks=ALL), grid=2)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_rows_of_any_length_take_the_other_way() -> None:
    """What no tensor map describes is launched without: 8 * 65 + 4 halves are no whole 16 bytes."""
    text = source(PATHS["f16"], (64, 64, 32), 128, 2, "dot")
    module = phobos.compile(text, chip=CHIP, extent_multiple=16, tensor_maps=True)
    a, b = np.ones((64, 524), np.float16), np.ones((524, 64), np.float16)
    c = np.full((64, 64), np.nan, np.float32)
    module["product"](a, b, c, device="emulator")
    np.testing.assert_array_equal(c, 524)


@pytest.mark.parametrize("first", [0, -8, 512])
def test_tiles_around_a_tensor(first: int) -> None:
    """In front of it, across its edges and behind it: zeros."""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-3, 4, size).astype(np.float16) for size in ((136, 96), (96, 120)))
    c = np.full((GRID[0] * GRID[1], 64, 64), np.nan, np.float32)
    module = phobos.compile(AROUND, chip=CHIP, extent_multiple=8, tensor_maps=True)
    assert COPY in module.ptx
    module["around"](a, b, c, first, grid=GRID, device="emulator")
    np.testing.assert_array_equal(c, around(a, b, first))
