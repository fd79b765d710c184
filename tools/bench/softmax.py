"""softmax: Y[r, :] = exp(X[r, :]) / sum(exp(X[r, :])).

In bf16 the kernels of Phobos are marked @fast_math, since a result of 8 bits shows nothing of it:
exponentials and quotients by approximate instructions, as Triton's always are.

A long row is walked in tiles of PARTS parts. Each place of a part has a running maximum and a
running sum, so that an element costs one exponential, and a place one more for all its parts.
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
  let scale = 1 / sum<over 1>(e)
  Y[r :+ ROWS, 0 :+ BLOCK] = DTYPE(e * scale)
}
"""
LONG = """\
@autotune(PARTS in [4], BLOCK in [1024, 16384], THREADS in [128, 1024], CTAS in [1, 16])
@launch(THREADS, CTAS)
kernel softmax(X: tensor<DTYPE>[M, N], Y: tensor<DTYPE>[M, N]) {
  let r = ctx.block.x
  var top = full(-1e30, 1, BLOCK)
  var total = full(0.0, 1, BLOCK)
  for k in range(0, N, PARTS * BLOCK) {
    let x = reshape(f32(pad(X[r, k :+ PARTS * BLOCK], -inf)), PARTS, BLOCK)
    let larger = max(top, max<over 0>(x))
    total = total * exp(top - larger) + sum<over 0>(exp(x - larger))
    top = larger
  }
  let largest = max<over 1>(top)
  let shift = largest + log(sum<over 1>(total * exp(top - largest)))
  for k in range(0, N, PARTS * BLOCK) {
    Y[r, k :+ PARTS * BLOCK] = DTYPE(exp(f32(X[r, k :+ PARTS * BLOCK]) - shift))
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
    long_choices=tuple(
        {"PARTS": parts, "BLOCK": block, "THREADS": threads, "CTAS": ctas}
        for parts, block, threads, ctas in (
            *((4, 2048, 256, 4), (4, 2048, 256, 3), (4, 4096, 512, 2), (2, 4096, 512, 2)),
            *((4, 4096, 1024, 1), (4, 8192, 1024, 1)),
        )
    ),
)
