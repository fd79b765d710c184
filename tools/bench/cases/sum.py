"""sum: the sum of a whole array, in f32 whatever its type.

CTAs walk the array together and each adds what it found to the result, so that the result has to
be zero before; clearing it is timed as well.
"""

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
@autotune(BLOCK in [1024, 16384], THREADS in [128, 1024])
@launch(THREADS)
@grid(x = ceildiv(N, 32 * BLOCK))
kernel total(X: tensor<DTYPE>[N], O: tensor<f32>[1]) {
  var sums = full(0.0, BLOCK)
  for k in range(ctx.block.x * BLOCK, N, ctx.blocks.x * BLOCK) {
    sums += f32(X[k :+ BLOCK])
  }
  let all = sum<over 0>(sums)
  if ctx.thread == 0 {
    atomic_add(O, 0, all[0])
  }
}
"""


@jit
def triton_sum(x, out, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """STEPS blocks a program, which adds their sum to the result."""
    first = tl.program_id(0) * BLOCK * STEPS
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(STEPS):
        i = first + step * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(x + i, i < n, other=0.0).to(tl.float32)
    tl.atomic_add(out, tl.sum(total, axis=0))


CASE = Case(
    name="sum",
    summary="O[0] = sum of X",
    dims=("N",),
    sizes=((1 << 28,),),
    dtypes=("f32", "bf16"),
    arrays=(read("X", "N"), written("O", 1, dtype="f32")),
    zeroed=("O",),
    flops=lambda extents: extents["N"],
    magnitude=lambda extents: extents["N"] ** 0.5,
    reference=lambda t: t.X.sum().reshape(1),
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype),
        "total",
        tuple(
            {"BLOCK": block, "THREADS": threads}
            for block, threads in ((2048, 256), (4096, 256), (4096, 512))
        ),
        ctas_per_multiprocessor=(2, 4, 8),
    ),
    torch={"sum": lambda torch, t: torch.sum(t.X, 0, dtype=torch.float32, out=t.O[0])},
    triton=TritonKernel(
        triton_sum,
        ("X", "O", "N"),
        lambda extents, chosen: (ceildiv(extents["N"], chosen["BLOCK"] * chosen["STEPS"]),),
        choices(BLOCK=(2048, 4096), STEPS=(8, 32), num_warps=(4, 8)),
    ),
)
