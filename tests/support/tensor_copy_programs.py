"""Programs whose slices tensor copies bring from odd places, and what NumPy says of them."""

from __future__ import annotations

import numpy as np

AROUND = """
@launch(128)
@dynshared
@pipeline(3)
kernel around(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[G, 64, 64], first: i32) {
  let row = ctx.block.x * 64 - 72
  let column = ctx.block.y * 64 - 40
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(first * 8, K + 64, 32) {
    acc += dot(A[row :+ 64, k :+ 32], B[k :+ 32, column :+ 64])
  }
  let place = ctx.block.x * ctx.blocks.y + ctx.block.y
  C[place :+ 1, 0 :+ 64, 0 :+ 64] = reshape(acc, 1, 64, 64)
}
"""
"""Tiles in front of the tensors, across their edges and behind them, along all axes."""

GRID = (5, 4)


def padded(array: np.ndarray, row: int, column: int, shape: tuple[int, int]) -> np.ndarray:
    """A piece of an array, 0 where there is none."""
    piece = np.zeros(shape)
    rows = range(max(row, 0), min(row + shape[0], array.shape[0]))
    columns = range(max(column, 0), min(column + shape[1], array.shape[1]))
    if rows and columns:
        piece[
            rows[0] - row : rows[-1] + 1 - row, columns[0] - column : columns[-1] + 1 - column
        ] = array[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return piece


def around(a: np.ndarray, b: np.ndarray, first: int) -> np.ndarray:
    """What `AROUND` gives on a grid of `GRID`, in f64; K starts at 8 times `first`."""
    start = 8 * first
    length = max(0, -(-(a.shape[1] + 64 - start) // 32) * 32)
    return np.stack(
        [
            padded(a, x * 64 - 72, start, (64, length))
            @ padded(b, start, y * 64 - 40, (length, 64))
            for x in range(GRID[0])
            for y in range(GRID[1])
        ]
    )


ROUNDED = """
@launch(128)
@dynshared
@tensorcore(tf32)
kernel rounded(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[ctx.block.x * 64 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[ctx.block.x * 64 :+ 64, 0 :+ 64] = acc
}
"""
"""By an identity, elements rounded to tf32."""


def round_to_tf32(bits: np.ndarray) -> np.ndarray:
    """The bits of finite f32 rounded to 10 bits of fraction, to nearest, ties to even."""
    return (bits + 0xFFF + (bits >> 13 & 1)) & ~np.uint32(0x1FFF)
