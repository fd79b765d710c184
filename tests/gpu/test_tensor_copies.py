"""Tensor copies on a GPU: tiles from odd places, elements that are rounded on the way."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.runtime.cuda_device import cuda_fault
from phobos.runtime.detect import gpu_capability
from tests.support.tensor_copy_programs import AROUND, GRID, ROUNDED, around, round_to_tf32

pytestmark = pytest.mark.skipif(
    cuda_fault() is not None or gpu_capability() != 90, reason="needs a GPU that runs sm_90a"
)
CHIP = "sm_90a"


@pytest.mark.parametrize("first", [0, -8, -1, 12, 512])
def test_tiles_around_a_tensor(first: int) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-3, 4, size).astype(np.float16) for size in ((136, 96), (96, 120)))
    c = np.full((GRID[0] * GRID[1], 64, 64), np.nan, np.float32)
    module = phobos.compile(AROUND, chip=CHIP, extent_multiple=8, tensor_maps=True)
    assert "cp.async.bulk.tensor" in module.ptx
    module["around"](a, b, c, first, grid=GRID, device="cuda")
    np.testing.assert_array_equal(c, around(a, b, first))


def test_f32_is_rounded_as_it_is_copied() -> None:
    """All kinds of finite numbers, ties among them; times one, in a product with zeros."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 32, (64, 64), np.uint32)
    bits[:8] = bits[:8] & ~np.uint32(0x1FFF) | 0x1000
    bits[8:16] &= 0x807FFFFF  # subnormals
    bits = np.where((bits & 0x7F800000) >= 0x7F000000, 0x3F801000, bits).astype(np.uint32)
    c = np.full((64, 64), np.nan, np.float32)
    module = phobos.compile(ROUNDED, chip=CHIP, tensor_maps=True)
    assert "cp.async.bulk.tensor" in module.ptx
    module["rounded"](bits.view(np.float32), np.eye(64, dtype=np.float32), c, device="cuda")
    wanted = round_to_tf32(bits)
    np.testing.assert_array_equal(c, wanted.view(np.float32))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_so(special: float) -> None:
    a, b = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
    a[3, 5] = special
    c = np.zeros((64, 64), np.float32)
    module = phobos.compile(ROUNDED, chip=CHIP, tensor_maps=True)
    module["rounded"](a, b, c, device="cuda")
    wanted = np.full((64, 64), 64, np.float32)
    wanted[3] = special
    np.testing.assert_array_equal(c, wanted)
