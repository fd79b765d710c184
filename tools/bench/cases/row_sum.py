"""row_sum: the sum of each row of a matrix, in f32 whatever the type of the matrix."""

from __future__ import annotations

from pathlib import Path

from tools.bench.case import (
    Case,
    PhobosKernel,
    TritonKernel,
    choices,
    example,
    read,
    written,
)
from tools.bench.triton_language import jit, tl

NARROW_SOURCE = """\
@launch(256)
kernel row_sum(X: tensor<DTYPE>[R, K], O: tensor<f32>[R, 1]) {
  let r = ctx.block.x
  let whole = K / 8 * 8
  var acc: f32 = 0.0
  for k in range(ctx.thread * 8, whole, ctx.threads * 8) {
    acc += sum(f32(X[r, k :+ 8]))
  }
  for k in range(whole + ctx.thread, K, ctx.threads) {
    acc += f32(X[r, k])
  }
  let total = sum<over ctx.thread>(acc)
  if ctx.thread == 0 {
    O[r, 0] = total
  }
}
"""


def source(dtype: str) -> str | Path:
    """The program that users copy, or one for 16-bit types that reads 16 bytes at a time."""
    return example("row_sum.ph") if dtype == "f32" else NARROW_SOURCE.replace("DTYPE", dtype)


@jit
def triton_row_sum(x, out, columns, BLOCK: tl.constexpr):
    """One row a program."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        k = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + k, k < columns, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(total, axis=0))


CASE = Case(
    name="row_sum",
    summary="O[r, 0] = sum of X[r, :]",
    dims=("R", "K"),
    sizes=((8192, 8192),),
    dtypes=("f32", "f16", "bf16"),
    arrays=(read("X", "R", "K"), written("O", "R", 1, dtype="f32")),
    flops=lambda extents: extents["R"] * extents["K"],
    magnitude=lambda extents: extents["K"] ** 0.5,
    reference=lambda t: t.X.sum(1, keepdims=True),
    phobos=PhobosKernel(source, "row_sum"),
    torch={
        "sum": lambda torch, t: torch.sum(t.X, 1, keepdim=True, dtype=torch.float32, out=t.O),
    },
    triton=TritonKernel(
        triton_row_sum,
        ("X", "O", "K"),
        lambda extents, chosen: (extents["R"],),
        choices(BLOCK=(1024, 2048, 4096, 8192), num_warps=(4, 8)),
    ),
)
