"""embedding: rows of a table, picked by number."""

from __future__ import annotations

from tools.bench.case import (
    Case,
    PhobosKernel,
    TritonKernel,
    ceildiv,
    read,
    written,
)
from tools.bench.reference import subscripts
from tools.bench.triton_language import jit, tl

SOURCE = """\
@autotune(ROWS in [1, 64], COLUMNS in [64, 4096])
kernel embedding(T: tensor<i64>[I], W: tensor<DTYPE>[V, D], O: tensor<DTYPE>[I, D]) {
  let i = ctx.block.x * ROWS
  let k = ctx.block.y * COLUMNS
  O[i :+ ROWS, k :+ COLUMNS] = W[i32(T[i :+ ROWS]), k :+ COLUMNS]
}
"""


@jit
def triton_embedding(numbers, table, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A tile of the result a program."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (i[:, None] < rows) & (k[None, :] < columns)
    picked = tl.load(numbers + i, i < rows, other=0).to(tl.int64)
    values = tl.load(table + picked[:, None] * columns + k[None, :], mask)
    tl.store(out + i[:, None].to(tl.int64) * columns + k[None, :], values, mask)


CASE = Case(
    name="embedding",
    summary="O[i, :] = W[T[i], :]",
    dims=("V", "D", "I"),
    sizes=((131072, 4096, 65536),),
    dtypes=("f32", "bf16"),
    arrays=(read("T", "I", dtype="i64", below="V"), read("W", "V", "D"), written("O", "I", "D")),
    # Rows that are picked twice are read twice: what the caches save is not counted.
    bytes=lambda problem: sum(
        problem.array_bytes(array) * (1 if array.name == "T" else 2)
        for array in problem.case.arrays
        if array.name != "W"
    ),
    reference=lambda t: t.W[subscripts(t.T)],
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype),
        "embedding",
        tuple(
            {"ROWS": rows, "COLUMNS": columns}
            for rows, columns in ((8, 512), (4, 1024), (1, 4096), (2, 2048))
        ),
    ),
    torch={"index_select": lambda torch, t: torch.index_select(t.W, 0, t.T, out=t.O)},
    triton=TritonKernel(
        triton_embedding,
        ("T", "W", "O", "I", "D"),
        lambda extents, chosen: (
            ceildiv(extents["I"], chosen["ROWS"]),
            ceildiv(extents["D"], chosen["COLUMNS"]),
        ),
        tuple(
            {"ROWS": rows, "COLUMNS": columns, "num_warps": warps}
            for rows, columns, warps in ((8, 512, 8), (1, 4096, 8), (4, 1024, 8))
        ),
    ),
)
