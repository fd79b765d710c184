"""saxpy: two vectors in, one out; in 16-bit types it is computed in f32, as PyTorch does."""

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

BODY = """\
kernel saxpy(x: tensor<DTYPE>[N], y: tensor<DTYPE>[N], out: tensor<DTYPE>[N], alpha: f32) {
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = DTYPE(alpha * f32(x[base :+ BLOCK]) + f32(y[base :+ BLOCK]))
}
"""
NARROW_SOURCE = "@autotune(BLOCK in [512, 8192])\n" + BODY
LAUNCHED_SOURCE = (
    "@autotune(BLOCK in [512, 8192], THREADS in [64, 1024])\n@launch(THREADS)\n" + BODY
)


def source(dtype: str) -> str | Path:
    """The program that users copy, or its form for 16-bit types; its CTAs have 256 threads."""
    return example("saxpy_fp32.ph") if dtype == "f32" else NARROW_SOURCE.replace("DTYPE", dtype)


LAUNCHED = PhobosKernel(
    lambda dtype: LAUNCHED_SOURCE.replace("DTYPE", dtype),
    "saxpy",
    tuple(
        {"BLOCK": block, "THREADS": threads}
        for block, threads in ((512, 64), (512, 128), (1024, 128), (4096, 1024), (8192, 1024))
    ),
    label="launch",
)


@jit
def triton_saxpy(x, y, out, alpha, n, BLOCK: tl.constexpr):
    """One block of elements a program."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, i < n).to(tl.float32)
    b = tl.load(y + i, i < n).to(tl.float32)
    tl.store(out + i, (alpha * a + b).to(out.dtype.element_ty), i < n)


CASE = Case(
    name="saxpy",
    summary="out = alpha * x + y",
    dims=("N",),
    sizes=((1 << 28,),),
    dtypes=("f32", "f16", "bf16"),
    arrays=(read("x", "N"), read("y", "N"), written("out", "N")),
    scalars={"alpha": 2.0},
    flops=lambda extents: 2 * extents["N"],
    reference=lambda t: t.alpha * t.x + t.y,
    phobos=PhobosKernel(source, "saxpy", choices(BLOCK=(1024, 2048, 4096)), others=(LAUNCHED,)),
    torch={"add": lambda torch, t: torch.add(t.y, t.x, alpha=t.alpha, out=t.out)},
    triton=TritonKernel(
        triton_saxpy,
        ("x", "y", "out", "alpha", "N"),
        lambda extents, chosen: (ceildiv(extents["N"], chosen["BLOCK"]),),
        choices(BLOCK=(1024, 2048, 4096, 8192), num_warps=(4, 8)),
    ),
)
