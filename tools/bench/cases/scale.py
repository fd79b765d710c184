"""scale: a vector times a number, on a grid that strides over it."""

from __future__ import annotations

from pathlib import Path

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
@autotune(BLOCK in [1024, 8192])
kernel scale(x: tensor<DTYPE>[N], out: tensor<DTYPE>[N], alpha: f32) {
  for base in range(ctx.block.x * BLOCK, N, ctx.blocks.x * BLOCK) {
    out[base :+ BLOCK] = DTYPE(alpha * f32(x[base :+ BLOCK]))
  }
}
"""


def source(dtype: str) -> str | Path:
    """The program that users copy, or its form for 16-bit types."""
    return example("scale.ph") if dtype == "f32" else NARROW_SOURCE.replace("DTYPE", dtype)


@jit
def triton_scale(x, out, alpha, n, BLOCK: tl.constexpr):
    """One block of elements a program."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scaled = alpha * tl.load(x + i, i < n).to(tl.float32)
    tl.store(out + i, scaled.to(out.dtype.element_ty), i < n)


CASE = Case(
    name="scale",
    summary="out = alpha * x, by a grid-stride loop",
    dims=("N",),
    sizes=((1 << 28,),),
    dtypes=("f32", "f16", "bf16"),
    arrays=(read("x", "N"), written("out", "N")),
    scalars={"alpha": 0.5},
    flops=lambda extents: extents["N"],
    reference=lambda t: t.alpha * t.x,
    phobos=PhobosKernel(
        source,
        "scale",
        choices(BLOCK=(1024, 2048, 4096)),
        ctas_per_multiprocessor=(8, 16, 32),
    ),
    torch={"mul": lambda torch, t: torch.mul(t.x, t.alpha, out=t.out)},
    triton=TritonKernel(
        triton_scale,
        ("x", "out", "alpha", "N"),
        lambda extents, chosen: (ceildiv(extents["N"], chosen["BLOCK"]),),
        choices(BLOCK=(1024, 2048, 4096, 8192), num_warps=(4, 8)),
    ),
)
