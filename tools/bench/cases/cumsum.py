"""cumsum: the running sums along each row, in f32 and rounded once."""

from __future__ import annotations

from tools.bench.case import (
    Case,
    PhobosKernel,
    TritonKernel,
    choices,
    read,
    written,
)
from tools.bench.triton_language import jit, tl

SOURCE = """\
@autotune(BLOCK in [1024, 8192], THREADS in [128, 1024], CTAS in [1, 16])
@launch(THREADS, CTAS)
kernel cumsum(X: tensor<DTYPE>[R, K], O: tensor<DTYPE>[R, K]) {
  let r = ctx.block.x
  var carry: tile<f32>[1, 1] = 0
  for k in range(0, K, BLOCK) {
    let x = f32(X[r, k :+ BLOCK])
    O[r, k :+ BLOCK] = DTYPE(scan<over 1>(x) + carry)
    carry += sum<over 1>(x)
  }
}
"""


@jit
def triton_cumsum(x, out, columns, BLOCK: tl.constexpr):
    """One row a program, in pieces."""
    start = tl.program_id(0).to(tl.int64) * columns
    carry = 0.0
    for first in range(0, columns, BLOCK):
        k = first + tl.arange(0, BLOCK)
        piece = tl.load(x + start + k, k < columns, other=0.0).to(tl.float32)
        sums = tl.cumsum(piece, axis=0) + carry
        carry += tl.sum(piece, axis=0)
        tl.store(out + start + k, sums.to(out.dtype.element_ty), k < columns)


CASE = Case(
    name="cumsum",
    summary="O[r, k] = sum of X[r, 0] to X[r, k]",
    dims=("R", "K"),
    sizes=((8192, 8192),),
    dtypes=("f32", "bf16"),
    arrays=(read("X", "R", "K"), written("O", "R", "K")),
    flops=lambda extents: extents["R"] * extents["K"],
    magnitude=lambda extents: extents["K"] ** 0.5,
    reference=lambda t: t.X.cumsum(1),
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype),
        "cumsum",
        tuple(
            {"BLOCK": block, "THREADS": threads, "CTAS": ctas}
            for block, threads, ctas in (
                *((8192, 128, 2), (8192, 128, 3), (8192, 256, 2), (8192, 256, 3), (8192, 512, 3)),
                *((4096, 128, 6), (4096, 256, 6), (2048, 128, 12)),
            )
        ),
    ),
    torch={"cumsum": lambda torch, t: torch.cumsum(t.X, 1, out=t.O)},
    triton=TritonKernel(
        triton_cumsum,
        ("X", "O", "K"),
        lambda extents, chosen: (extents["R"],),
        choices(BLOCK=(2048, 8192), num_warps=(4, 8)),
    ),
)
