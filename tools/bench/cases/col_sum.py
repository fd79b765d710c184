"""col_sum: the sum of each column of a matrix, in f32 whatever the type of the matrix."""

from __future__ import annotations

from tools.bench.case import (
    Case,
    PhobosKernel,
    TritonKernel,
    ceildiv,
    choices,
    read,
    written,
)
from tools.bench.triton_language import jit, tl

SOURCE = """\
@autotune(ROWS in [32, 512], COLUMNS in [16, 256], THREADS in [256, 1024])
@launch(THREADS)
kernel col_sum(X: tensor<DTYPE>[R, K], O: tensor<f32>[1, K]) {
  let k = ctx.block.x * COLUMNS
  var sums = full(0.0, ROWS, COLUMNS)
  for r in range(0, R, ROWS) {
    sums += f32(X[r :+ ROWS, k :+ COLUMNS])
  }
  O[:, k :+ COLUMNS] = sum<over 0>(sums)
}
"""


@jit
def triton_col_sum(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Some columns a program."""
    k = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        r = start + tl.arange(0, ROWS)
        mask = (r[:, None] < rows) & (k[None, :] < columns)
        total += tl.load(x + r[:, None] * columns + k[None, :], mask, other=0.0).to(tl.float32)
    tl.store(out + k, tl.sum(total, axis=0), k < columns)


CASE = Case(
    name="col_sum",
    summary="O[0, k] = sum of X[:, k]",
    dims=("R", "K"),
    sizes=((8192, 8192),),
    dtypes=("f32", "bf16"),
    arrays=(read("X", "R", "K"), written("O", 1, "K", dtype="f32")),
    flops=lambda extents: extents["R"] * extents["K"],
    magnitude=lambda extents: extents["R"] ** 0.5,
    reference=lambda t: t.X.sum(0, keepdims=True),
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype),
        "col_sum",
        tuple(
            {"ROWS": rows, "COLUMNS": columns, "THREADS": threads}
            for rows, columns, threads in (
                *((128, 32, 256), (256, 16, 256), (256, 32, 512), (512, 16, 512)),
                *((512, 32, 1024), (256, 64, 1024)),
            )
        ),
    ),
    torch={
        "sum": lambda torch, t: torch.sum(t.X, 0, keepdim=True, dtype=torch.float32, out=t.O),
    },
    triton=TritonKernel(
        triton_col_sum,
        ("X", "O", "R", "K"),
        lambda extents, chosen: (ceildiv(extents["K"], chosen["COLUMNS"]),),
        choices(ROWS=(64, 128), COLUMNS=(32, 64), num_warps=(4, 8)),
    ),
)
