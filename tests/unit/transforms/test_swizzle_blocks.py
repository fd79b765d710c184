"""`@swizzle`: another order of the same CTAs."""

from __future__ import annotations

import numpy as np
import pytest

import phobos

SOURCE = """
{swizzle}@launch(32)
kernel visit(seen: tensor<i32>[Z, Y, X], order: tensor<i32>[T], count: tensor<i32>[1]) {{
  if ctx.thread == 0 {{
    let turn = atomic_add(count, 0, 1)
    order[index(turn)] = i32(ctx.block.x)
    atomic_add(seen, ctx.block.z, ctx.block.y, ctx.block.x, 1)
  }}
}}
"""


def _visit(grid: tuple[int, int, int], *, swizzle: str, chip: str = "sm_80"):
    x, y, z = grid
    seen, order = np.zeros((z, y, x), np.int32), np.zeros(x * y * z, np.int32)
    module = phobos.compile(SOURCE.format(swizzle=swizzle), chip=chip, extent_multiple=1)
    module["visit"](seen, order, np.zeros(1, np.int32), grid=grid, device="emulator")
    return seen, order


@pytest.mark.parametrize(
    "grid", [(1, 1, 1), (1, 9, 1), (9, 1, 1), (7, 5, 1), (8, 3, 2), (17, 6, 1), (20, 4, 3)]
)
def test_every_block_is_visited_once(grid: tuple[int, int, int]) -> None:
    """Whatever the grid, also where the last band is narrower."""
    seen, _ = _visit(grid, swizzle="@swizzle\n")
    assert (seen == 1).all()


def test_blocks_that_follow_each_other_are_near() -> None:
    """The first CTAs are the first band; without the attribute they are the first row."""
    grid = (20, 6, 1)
    _, order = _visit(grid, swizzle="@swizzle\n")
    assert set(order[:48]) == set(range(8))
    assert set(order[96:]) == set(range(16, 20))
    _, plain = _visit(grid, swizzle="")
    assert set(plain[:20]) == set(range(20))


PRODUCT = """
@launch(64)
@swizzle
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x * 16
  let column = ctx.block.y * 16
  var acc: tile<f32>[16, 16] = 0.0
  for k in range(0, K, 16) {
    acc += dot(A[row :+ 16, k :+ 16], B[k :+ 16, column :+ 16])
  }
  C[row :+ 16, column :+ 16] = acc
}
"""


@pytest.mark.parametrize("index_bits", [32, 64])
def test_a_product_keeps_its_grid(index_bits: int) -> None:
    """The grid that a launch infers is that of the unchanged program."""
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (150, 20)).astype(np.float16)
    b = rng.integers(-4, 5, (20, 40)).astype(np.float16)
    c = np.full((150, 40), np.nan, np.float32)
    module = phobos.compile(PRODUCT, chip="sm_80", index_bits=index_bits)
    module["product"](a, b, c, device="emulator")
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
