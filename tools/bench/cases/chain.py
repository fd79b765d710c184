"""chain: ten operations on each element, in the type of the vectors."""

from __future__ import annotations

from typing import Any

from tools.bench.case import (
    Case,
    PhobosKernel,
    TritonKernel,
    Values,
    ceildiv,
    choices,
    read,
    written,
)
from tools.bench.triton_language import jit, tl

SOURCE = """\
@autotune(BLOCK in [1024, 8192])
kernel chain(x: tensor<DTYPE>[N], y: tensor<DTYPE>[N], out: tensor<DTYPE>[N]) {
  let i = ctx.block.x * BLOCK
  let a = x[i :+ BLOCK]
  let b = y[i :+ BLOCK]
  let c = a * b + a
  let d = max(c - b, a * 0.5)
  let e = min(abs(d) + b, 4.0)
  out[i :+ BLOCK] = e * e - c
}
"""


@jit
def triton_chain(x, y, out, n, BLOCK: tl.constexpr):
    """One block of elements a program."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, i < n)
    b = tl.load(y + i, i < n)
    c = a * b + a
    d = tl.maximum(c - b, (a * 0.5).to(a.dtype))
    e = tl.minimum(tl.abs(d) + b, 4.0).to(a.dtype)
    tl.store(out + i, (e * e - c).to(out.dtype.element_ty), i < n)


def _reference(t: Values) -> Any:
    c = t.x * t.y + t.x
    d = larger(c - t.y, t.x * 0.5)
    e = -larger(-(abs(d) + t.y), t.x * 0 - 4.0)
    return e * e - c


def larger(a: Any, b: Any) -> Any:
    """The larger of two, element by element."""
    return (a + b + abs(a - b)) / 2


def _torch_chain(torch: Any, t: Values) -> None:
    c = torch.addcmul(t.x, t.x, t.y)
    d = torch.maximum(c - t.y, t.x * 0.5)
    e = torch.clamp_max(torch.abs(d) + t.y, 4.0)
    torch.sub(e * e, c, out=t.out)


CASE = Case(
    name="chain",
    summary="ten elementwise operations on two vectors",
    dims=("N",),
    sizes=((1 << 28,),),
    dtypes=("f32", "f16", "bf16"),
    arrays=(read("x", "N"), read("y", "N"), written("out", "N")),
    flops=lambda extents: 10 * extents["N"],
    magnitude=lambda _: 16.0,
    reference=_reference,
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype), "chain", choices(BLOCK=(1024, 2048, 4096))
    ),
    torch={"eager": _torch_chain},
    triton=TritonKernel(
        triton_chain,
        ("x", "y", "out", "N"),
        lambda extents, chosen: (ceildiv(extents["N"], chosen["BLOCK"]),),
        choices(BLOCK=(1024, 4096), num_warps=(4, 8)),
    ),
)
