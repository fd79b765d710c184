"""matvec: a matrix times a vector, as in generating one token; accumulated in f32."""

from __future__ import annotations

from tools.bench.case import (
    Case,
    PhobosKernel,
    TritonKernel,
    ceildiv,
    choices,
    example,
    read,
    written,
)
from tools.bench.triton_language import jit, tl

NARROW_SOURCE = """\
@autotune(THREADS in [64, 512])
@launch(THREADS)
kernel matvec(A: tensor<DTYPE>[1, K], W: tensor<DTYPE>[N, K], O: tensor<DTYPE>[1, N]) {
  let col = ctx.block.x * ctx.warps + ctx.warp
  if col < N {
    let whole = K / 8 * 8
    var acc: f32 = 0.0
    for k in range(ctx.lane * 8, whole, ctx.lanes * 8) {
      acc += sum(f32(A[0, k :+ 8]) * f32(W[col, k :+ 8]))
    }
    for k in range(whole + ctx.lane, K, ctx.lanes) {
      acc += f32(A[0, k]) * f32(W[col, k])
    }
    let total = sum<over ctx.lane>(acc)
    if ctx.lane == 0 {
      O[0, col] = DTYPE(total)
    }
  }
}
"""


TILE_SOURCE = """\
@autotune(ROWS in [1, 8], BLOCK in [512, 4096], THREADS in [64, 512])
@launch(THREADS)
kernel matvec(A: tensor<DTYPE>[1, K], W: tensor<DTYPE>[N, K], O: tensor<DTYPE>[1, N]) {
  let n = ctx.block.x * ROWS
  var sums = full(0.0, ROWS, BLOCK)
  for k in range(0, K, BLOCK) {
    sums += f32(W[n :+ ROWS, k :+ BLOCK]) * f32(A[:, k :+ BLOCK])
  }
  O[:, n :+ ROWS] = DTYPE(reshape(sum<over 1>(sums), 1, ROWS))
}
"""


def source(dtype: str) -> str:
    """The program that users copy with its threads to choose, or one for 16-bit types."""
    if dtype != "f32":
        return NARROW_SOURCE.replace("DTYPE", dtype)
    text = example("matvec.ph").read_text()
    return text.replace("@launch(256)", "@autotune(THREADS in [64, 512])\n@launch(THREADS)")


@jit
def triton_matvec(a, w, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows of the matrix a program."""
    n = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        k = start + tl.arange(0, BLOCK)
        mask = (n[:, None] < rows) & (k[None, :] < columns)
        weights = tl.load(w + n[:, None] * columns + k[None, :], mask, other=0.0)
        vector = tl.load(a + k, k < columns, other=0.0)
        total += weights.to(tl.float32) * vector[None, :].to(tl.float32)
    tl.store(out + n, tl.sum(total, axis=1).to(out.dtype.element_ty), n < rows)


CASE = Case(
    name="matvec",
    summary="O[0, n] = A[0, :] . W[n, :]",
    dims=("N", "K"),
    sizes=((14336, 4096),),
    dtypes=("f32", "f16", "bf16"),
    arrays=(read("A", 1, "K"), read("W", "N", "K"), written("O", 1, "N")),
    flops=lambda extents: 2 * extents["N"] * extents["K"],
    magnitude=lambda extents: extents["K"] ** 0.5,
    reference=lambda t: t.A @ t.W.T,
    phobos=PhobosKernel(
        source,
        "matvec",
        choices(THREADS=(64, 128, 256, 512)),
        others=(
            PhobosKernel(
                lambda dtype: TILE_SOURCE.replace("DTYPE", dtype),
                "matvec",
                tuple(
                    {"ROWS": rows, "BLOCK": block, "THREADS": threads}
                    for rows, block, threads in (
                        *((1, 2048, 256), (2, 1024, 128), (2, 2048, 256)),
                        *((4, 512, 64), (4, 1024, 128)),
                    )
                ),
                label="tiles",
            ),
        ),
    ),
    torch={
        "mv": lambda torch, t: torch.mv(t.W, t.A[0], out=t.O[0]),
        "matmul": lambda torch, t: torch.matmul(t.A, t.W.T, out=t.O),
    },
    triton=TritonKernel(
        triton_matvec,
        ("A", "W", "O", "N", "K"),
        lambda extents, chosen: (ceildiv(extents["N"], chosen["ROWS"]),),
        choices(ROWS=(1, 2, 4, 8), BLOCK=(512, 1024, 2048), num_warps=(2, 4)),
    ),
)
