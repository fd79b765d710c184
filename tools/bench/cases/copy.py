"""copy: the rate at which memory can be read and written, which bounds all the others."""

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
@autotune(BLOCK in [512, 8192], THREADS in [64, 1024])
@launch(THREADS)
kernel copy(x: tensor<DTYPE>[N], out: tensor<DTYPE>[N]) {
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = x[base :+ BLOCK]
}
"""


@jit
def triton_copy(x, out, n, BLOCK: tl.constexpr):
    """One block of elements a program."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n), i < n)


CASE = Case(
    name="copy",
    summary="out = x",
    dims=("N",),
    sizes=((1 << 28,),),
    dtypes=("f32", "f16", "bf16"),
    arrays=(read("x", "N"), written("out", "N")),
    reference=lambda t: t.x,
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype),
        "copy",
        tuple(
            {"BLOCK": block, "THREADS": threads}
            for block, threads in ((512, 128), (1024, 128), (1024, 256), (2048, 256), (4096, 512))
        ),
    ),
    torch={"copy_": lambda torch, t: t.out.copy_(t.x)},
    triton=TritonKernel(
        triton_copy,
        ("x", "out", "N"),
        lambda extents, chosen: (ceildiv(extents["N"], chosen["BLOCK"]),),
        choices(BLOCK=(1024, 2048, 4096, 8192), num_warps=(4, 8)),
    ),
)
