"""softmax: Y[r, :] = exp(X[r, :]) / sum(exp(X[r, :])).

In bf16 the kernels of Phobos are marked @fast_math, since a result of 8 bits shows nothing of it:
exponentials and quotients by approximate instructions, as Triton's always are.
"""

from __future__ import annotations

from tools.bench.reference import E
from tools.bench.row_cases import RowOperation
from tools.bench.triton_language import jit, tl

TILE = """\
@autotune(ROWS in [1, 8], BLOCK in [1024, 16384], THREADS in [64, 1024], CTAS in [1, 32])
@launch(THREADS, CTAS)
kernel softmax(X: tensor<DTYPE>[M, N], Y: tensor<DTYPE>[M, N]) {
  let r = ctx.block.x * ROWS
  let x = f32(pad(X[r :+ ROWS, 0 :+ BLOCK], -inf))
  let e = exp(x - max<over 1>(x))
  Y[r :+ ROWS, 0 :+ BLOCK] = DTYPE(e / sum<over 1>(e))
}
"""
LONG = """\
@autotune(BLOCK in [4096, 16384], THREADS in [256, 1024], CTAS in [1, 8])
@launch(THREADS, CTAS)
kernel softmax(X: tensor<DTYPE>[M, N], Y: tensor<DTYPE>[M, N]) {
  let r = ctx.block.x
  var top = full(-1e30, 1, BLOCK)
  var total = full(0.0, 1, BLOCK)
  for k in range(0, N, BLOCK) {
    let x = f32(pad(X[r, k :+ BLOCK], -inf))
    let larger = max(top, x)
    total = total * exp(top - larger) + exp(x - larger)
    top = larger
  }
  let largest = max<over 1>(top)
  let scale = 1.0 / sum<over 1>(total * exp(top - largest))
  for k in range(0, N, BLOCK) {
    Y[r, k :+ BLOCK] = DTYPE(exp(f32(X[r, k :+ BLOCK]) - largest) * scale)
  }
}
"""


@jit
def triton_softmax(x, y, columns, BLOCK: tl.constexpr):
    """One row a program."""
    start = tl.program_id(0).to(tl.int64) * columns
    k = tl.arange(0, BLOCK)
    row = tl.load(x + start + k, k < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + start + k, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), k < columns)


@jit
def triton_softmax_long(x, y, columns, BLOCK: tl.constexpr):
    """One row a program, in pieces: the running maximum and sum, then the row again."""
    start = tl.program_id(0).to(tl.int64) * columns
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, columns, BLOCK):
        k = first + tl.arange(0, BLOCK)
        piece = tl.load(x + start + k, k < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(top, piece)
        total = total * tl.exp(top - larger) + tl.exp(piece - larger)
        top = larger
    largest = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(top - largest), axis=0)
    for first in range(0, columns, BLOCK):
        k = first + tl.arange(0, BLOCK)
        piece = tl.load(x + start + k, k < columns, other=0.0).to(tl.float32)
        e = tl.exp(piece - largest) * scale
        tl.store(y + start + k, e.to(y.dtype.element_ty), k < columns)


SOFTMAX = RowOperation(
    name="softmax",
    summary="Y[r, :] = exp(X[r, :]) / sum(exp(X[r, :]))",
    reference=lambda t: E**t.X / (E**t.X).sum(1, keepdims=True),
    tile=TILE,
    long=LONG,
    torch={"softmax": lambda torch, t: torch.softmax(t.X, 1, out=t.Y)},
    triton_tile=triton_softmax,
    triton_long=triton_softmax_long,
    is_fast=True,
)
