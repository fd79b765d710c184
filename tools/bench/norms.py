"""rmsnorm and layernorm of the rows of a matrix, computed in f32 whatever its type."""

from __future__ import annotations

from typing import Any

from tools.bench.case import Values
from tools.bench.row_cases import RowOperation
from tools.bench.triton_language import jit, tl

RMSNORM_TILE = """\
@autotune(ROWS in [1, 8], BLOCK in [1024, 16384], THREADS in [64, 1024], CTAS in [1, 32])
@launch(THREADS, CTAS)
kernel rmsnorm(X: tensor<DTYPE>[M, N], G: tensor<DTYPE>[N], Y: tensor<DTYPE>[M, N], epsilon: f32) {
  let r = ctx.block.x * ROWS
  let x = f32(X[r :+ ROWS, 0 :+ BLOCK])
  let mean = sum<over 1>(x * x) / N
  let g = f32(reshape(G[0 :+ BLOCK], 1, BLOCK))
  Y[r :+ ROWS, 0 :+ BLOCK] = DTYPE(x * rsqrt(mean + epsilon) * g)
}
"""
RMSNORM_LONG = """\
@autotune(BLOCK in [4096, 16384], THREADS in [256, 1024], CTAS in [1, 8])
@launch(THREADS, CTAS)
kernel rmsnorm(X: tensor<DTYPE>[M, N], G: tensor<DTYPE>[N], Y: tensor<DTYPE>[M, N], epsilon: f32) {
  let r = ctx.block.x
  var squares = full(0.0, 1, BLOCK)
  for k in range(0, N, BLOCK) {
    let x = f32(X[r, k :+ BLOCK])
    squares += x * x
  }
  let scale = rsqrt(sum<over 1>(squares) / N + epsilon)
  for k in range(0, N, BLOCK) {
    let g = f32(reshape(G[k :+ BLOCK], 1, BLOCK))
    Y[r, k :+ BLOCK] = DTYPE(f32(X[r, k :+ BLOCK]) * scale * g)
  }
}
"""
LAYERNORM_TILE = """\
@autotune(ROWS in [1, 8], BLOCK in [1024, 16384], THREADS in [64, 1024], CTAS in [1, 32])
@launch(THREADS, CTAS)
kernel layernorm(X: tensor<DTYPE>[M, N], G: tensor<DTYPE>[N], B: tensor<DTYPE>[N],
                 Y: tensor<DTYPE>[M, N], epsilon: f32) {
  let r = ctx.block.x * ROWS
  let x = f32(X[r :+ ROWS, 0 :+ BLOCK])
  let mean = sum<over 1>(x) / N
  let centred = where(valid(X[r :+ ROWS, 0 :+ BLOCK]), x - mean, 0)
  let variance = sum<over 1>(centred * centred) / N
  let g = f32(reshape(G[0 :+ BLOCK], 1, BLOCK))
  let b = f32(reshape(B[0 :+ BLOCK], 1, BLOCK))
  Y[r :+ ROWS, 0 :+ BLOCK] = DTYPE(centred * rsqrt(variance + epsilon) * g + b)
}
"""
LAYERNORM_LONG = """\
@autotune(BLOCK in [4096, 16384], THREADS in [256, 1024], CTAS in [1, 8])
@launch(THREADS, CTAS)
kernel layernorm(X: tensor<DTYPE>[M, N], G: tensor<DTYPE>[N], B: tensor<DTYPE>[N],
                 Y: tensor<DTYPE>[M, N], epsilon: f32) {
  let r = ctx.block.x
  var sums = full(0.0, 1, BLOCK)
  var squares = full(0.0, 1, BLOCK)
  for k in range(0, N, BLOCK) {
    let x = f32(X[r, k :+ BLOCK])
    sums += x
    squares += x * x
  }
  let mean = sum<over 1>(sums) / N
  let scale = rsqrt(sum<over 1>(squares) / N - mean * mean + epsilon)
  for k in range(0, N, BLOCK) {
    let g = f32(reshape(G[k :+ BLOCK], 1, BLOCK))
    let b = f32(reshape(B[k :+ BLOCK], 1, BLOCK))
    Y[r, k :+ BLOCK] = DTYPE((f32(X[r, k :+ BLOCK]) - mean) * scale * g + b)
  }
}
"""


@jit
def triton_rmsnorm(x, g, y, columns, epsilon, BLOCK: tl.constexpr):
    """One row a program."""
    start = tl.program_id(0).to(tl.int64) * columns
    k = tl.arange(0, BLOCK)
    row = tl.load(x + start + k, k < columns, other=0.0).to(tl.float32)
    gain = tl.load(g + k, k < columns, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(row * row, axis=0) / columns + epsilon)
    tl.store(y + start + k, (row * scale * gain).to(y.dtype.element_ty), k < columns)


@jit
def triton_rmsnorm_long(x, g, y, columns, epsilon, BLOCK: tl.constexpr):
    """One row a program, in pieces, twice."""
    start = tl.program_id(0).to(tl.int64) * columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, columns, BLOCK):
        k = first + tl.arange(0, BLOCK)
        piece = tl.load(x + start + k, k < columns, other=0.0).to(tl.float32)
        squares += piece * piece
    scale = tl.rsqrt(tl.sum(squares, axis=0) / columns + epsilon)
    for first in range(0, columns, BLOCK):
        k = first + tl.arange(0, BLOCK)
        piece = tl.load(x + start + k, k < columns, other=0.0).to(tl.float32)
        gain = tl.load(g + k, k < columns, other=0.0).to(tl.float32)
        tl.store(y + start + k, (piece * scale * gain).to(y.dtype.element_ty), k < columns)


@jit
def triton_layernorm(x, g, b, y, columns, epsilon, BLOCK: tl.constexpr):
    """One row a program."""
    start = tl.program_id(0).to(tl.int64) * columns
    k = tl.arange(0, BLOCK)
    row = tl.load(x + start + k, k < columns, other=0.0).to(tl.float32)
    gain = tl.load(g + k, k < columns, other=0.0).to(tl.float32)
    bias = tl.load(b + k, k < columns, other=0.0).to(tl.float32)
    centred = tl.where(k < columns, row - tl.sum(row, axis=0) / columns, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    result = centred * scale * gain + bias
    tl.store(y + start + k, result.to(y.dtype.element_ty), k < columns)


@jit
def triton_layernorm_long(x, g, b, y, columns, epsilon, BLOCK: tl.constexpr):
    """One row a program, in pieces, twice."""
    start = tl.program_id(0).to(tl.int64) * columns
    sums = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, columns, BLOCK):
        k = first + tl.arange(0, BLOCK)
        piece = tl.load(x + start + k, k < columns, other=0.0).to(tl.float32)
        sums += piece
        squares += piece * piece
    mean = tl.sum(sums, axis=0) / columns
    scale = tl.rsqrt(tl.sum(squares, axis=0) / columns - mean * mean + epsilon)
    for first in range(0, columns, BLOCK):
        k = first + tl.arange(0, BLOCK)
        piece = tl.load(x + start + k, k < columns, other=0.0).to(tl.float32)
        gain = tl.load(g + k, k < columns, other=0.0).to(tl.float32)
        bias = tl.load(b + k, k < columns, other=0.0).to(tl.float32)
        result = (piece - mean) * scale * gain + bias
        tl.store(y + start + k, result.to(y.dtype.element_ty), k < columns)


def _rmsnorm(t: Values) -> Any:
    mean = (t.X * t.X).sum(1, keepdims=True) / t.X.shape[1]
    return t.X / (mean + t.epsilon) ** 0.5 * t.G


def _layernorm(t: Values) -> Any:
    centred = t.X - t.X.sum(1, keepdims=True) / t.X.shape[1]
    variance = (centred * centred).sum(1, keepdims=True) / t.X.shape[1]
    return centred / (variance + t.epsilon) ** 0.5 * t.G + t.B


def _torch_rmsnorm(torch: Any, t: Values) -> None:
    # There is no form that writes to an array it is given.
    t.Y = torch.nn.functional.rms_norm(t.X, (t.X.shape[1],), t.G, t.epsilon)


def _torch_layernorm(torch: Any, t: Values) -> None:
    t.Y = torch.nn.functional.layer_norm(t.X, (t.X.shape[1],), t.G, t.B, t.epsilon)


RMSNORM = RowOperation(
    name="rmsnorm",
    summary="Y[r, :] = X[r, :] / sqrt(mean(X[r, :]^2) + epsilon) * G",
    reference=_rmsnorm,
    tile=RMSNORM_TILE,
    long=RMSNORM_LONG,
    torch={"rms_norm": _torch_rmsnorm},
    triton_tile=triton_rmsnorm,
    triton_long=triton_rmsnorm_long,
    weights=("G",),
    scalars=(("epsilon", 1e-5),),
)
LAYERNORM = RowOperation(
    name="layernorm",
    summary="Y[r, :] = (X[r, :] - mean) / sqrt(variance + epsilon) * G + B",
    reference=_layernorm,
    tile=LAYERNORM_TILE,
    long=LAYERNORM_LONG,
    torch={"layer_norm": _torch_layernorm},
    triton_tile=triton_layernorm,
    triton_long=triton_layernorm_long,
    weights=("G", "B"),
    scalars=(("epsilon", 1e-5),),
    operations=8,
)
