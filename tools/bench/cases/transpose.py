"""transpose: a matrix turned."""

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
@autotune(ROWS in [32, 128], COLUMNS in [32, 128], THREADS in [256, 512])
@launch(THREADS)
kernel turn(A: tensor<DTYPE>[M, N], B: tensor<DTYPE>[N, M]) {
  let i = ctx.block.x * ROWS
  let j = ctx.block.y * COLUMNS
  B[j :+ COLUMNS, i :+ ROWS] = transpose(A[i :+ ROWS, j :+ COLUMNS])
}
"""


@jit
def triton_transpose(a, b, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One tile a program."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    t = tl.load(a + i[:, None] * columns + j[None, :], mask)
    tl.store(b + j[:, None] * rows + i[None, :], tl.trans(t), tl.trans(mask))


CASE = Case(
    name="transpose",
    summary="B = A.T",
    dims=("M", "N"),
    sizes=((8192, 8192),),
    dtypes=("f32", "bf16"),
    arrays=(read("A", "M", "N"), written("B", "N", "M")),
    reference=lambda t: t.A.T,
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype),
        "turn",
        tuple(
            {"ROWS": rows, "COLUMNS": columns, "THREADS": threads}
            for rows, columns, threads in (
                *((64, 64, 256), (64, 64, 512), (64, 128, 256), (64, 128, 512), (32, 128, 256)),
            )
        ),
    ),
    torch={"copy": lambda torch, t: t.B.copy_(t.A.T)},
    triton=TritonKernel(
        triton_transpose,
        ("A", "B", "M", "N"),
        lambda extents, chosen: (
            ceildiv(extents["M"], chosen["ROWS"]),
            ceildiv(extents["N"], chosen["COLUMNS"]),
        ),
        choices(ROWS=(32, 64), COLUMNS=(64, 128), num_warps=(4, 8)),
    ),
)
