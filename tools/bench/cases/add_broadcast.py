"""add_broadcast: a matrix plus a row plus a column."""

from __future__ import annotations

from tools.bench.case import (
    Case,
    PhobosKernel,
    TritonKernel,
    ceildiv,
    read,
    written,
)
from tools.bench.triton_language import jit, tl

SOURCE = """\
@autotune(ROWS in [1, 64], COLUMNS in [64, 8192])
kernel add(X: tensor<DTYPE>[M, N], row: tensor<DTYPE>[1, N], column: tensor<DTYPE>[M, 1],
           Z: tensor<DTYPE>[M, N]) {
  let i = ctx.block.y * ROWS
  let k = ctx.block.x * COLUMNS
  let x = X[i :+ ROWS, k :+ COLUMNS]
  Z[i :+ ROWS, k :+ COLUMNS] = x + row[0, k :+ COLUMNS] + column[i :+ ROWS, :]
}
"""


@jit
def triton_add(x, row, column, z, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One tile a program."""
    i = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    k = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (i[:, None] < rows) & (k[None, :] < columns)
    place = i[:, None].to(tl.int64) * columns + k[None, :]
    across = tl.load(row + k, k < columns)[None, :]
    down = tl.load(column + i, i < rows)[:, None]
    tl.store(z + place, tl.load(x + place, mask) + across + down, mask)


CASE = Case(
    name="add_broadcast",
    summary="Z = X + row + column",
    dims=("M", "N"),
    sizes=((16384, 16384),),
    dtypes=("f32", "bf16"),
    arrays=(
        read("X", "M", "N"),
        read("row", 1, "N"),
        read("column", "M", 1),
        written("Z", "M", "N"),
    ),
    flops=lambda extents: 2 * extents["M"] * extents["N"],
    magnitude=lambda _: 4.0,
    reference=lambda t: t.X + t.row + t.column,
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype),
        "add",
        tuple(
            {"ROWS": rows, "COLUMNS": columns}
            for rows, columns in ((8, 512), (16, 256), (4, 1024), (2, 1024))
        ),
    ),
    torch={"two": lambda torch, t: torch.add(t.X, t.row, out=t.Z).add_(t.column)},
    triton=TritonKernel(
        triton_add,
        ("X", "row", "column", "Z", "M", "N"),
        lambda extents, chosen: (
            ceildiv(extents["N"], chosen["COLUMNS"]),
            ceildiv(extents["M"], chosen["ROWS"]),
        ),
        tuple(
            {"ROWS": rows, "COLUMNS": columns, "num_warps": warps}
            for rows, columns, warps in ((8, 512, 8), (4, 1024, 8), (8, 256, 4))
        ),
    ),
)
