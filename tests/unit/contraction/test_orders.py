"""Loops in loops, and barriers beside products: nothing is read while another thread fills it."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.runtime.emulator_device import EmulatorDevice

NESTED = """
@launch(128)
@pipeline(2)
kernel sums(A: tensor<f16>[M, K], B: tensor<f16>[K, N], D: tensor<f16>[M, L],
            E: tensor<f16>[L, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
    for j in range(0, 2) {
      for l in range(0, L, 16) { acc += dot(D[0 :+ 64, l :+ 16], E[l :+ 16, 0 :+ 64]) }
    }
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
"""

HELD = """
@launch(256)
@pipeline(3)
kernel sums(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N],
            G: tensor<f32>[M, N]) {
  for j in range(0, 3) {
    let a = A[0 :+ 128, j * 32 :+ 32]
    G[0 :+ 128, 0 :+ 64] = dot(a, B[0 :+ 32, 0 :+ 64])
    barrier()
    var acc: tile<f32>[128, 64] = 0.0
    for k in range(0, K, 32) {
      acc += dot(a, B[k :+ 32, 0 :+ 64])
      barrier()
    }
    C[0 :+ 128, 0 :+ 64] = acc
  }
}
"""


def _integers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-3, 4, shape).astype(np.float16)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("chip", ["sm_75", "sm_80"])
def test_stages_of_an_inner_loop_have_barriers_of_their_own(chip: str, seed: int) -> None:
    """Its conditional copies are none of the outer product's, which is prefetched."""
    rng = np.random.default_rng(0)
    a, b, d, e = (_integers(rng, *s) for s in ((64, 96), (96, 64), (64, 64), (64, 64)))
    c = np.full((64, 64), np.nan, np.float32)
    device = EmulatorDevice(checks=("bounds", "init", "race"), seed=seed)
    phobos.compile(NESTED, chip=chip, extent_multiple=16)["sums"](a, b, d, e, c, device=device)
    wide = [one.astype(np.float64) for one in (a, b, d, e)]
    np.testing.assert_array_equal(c, wide[0] @ wide[1] + 6 * (wide[2] @ wide[3]))


@pytest.mark.parametrize("seed", [0, 1])
def test_an_operand_is_not_replaced_while_products_in_flight_read_it(seed: int) -> None:
    """A barrier behind the start of a product does not say that other warps have awaited it."""
    rng = np.random.default_rng(0)
    a, b = _integers(rng, 128, 96), _integers(rng, 96, 64)
    c, g = (np.full((128, 64), np.nan, np.float32) for _ in range(2))
    device = EmulatorDevice(checks=("all",), seed=seed)
    module = phobos.compile(HELD, chip="sm_90a", extent_multiple=16)
    assert "wgmma.wait_group.sync.aligned 1" in module.ptx
    module["sums"](a, b, c, g, device=device)
    left, right = a[:, 64:].astype(np.float64), b.astype(np.float64)
    np.testing.assert_array_equal(c, sum(left @ right[k : k + 32] for k in (0, 32, 64)))
    np.testing.assert_array_equal(g, left @ right[:32])
