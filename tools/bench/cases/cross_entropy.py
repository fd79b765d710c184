"""cross_entropy: the loss of each row of logits, computed in f32."""

from __future__ import annotations

from typing import Any

from tools.bench.case import (
    Case,
    PhobosKernel,
    TritonKernel,
    Values,
    choices,
    read,
    written,
)
from tools.bench.reference import E, log, subscripts
from tools.bench.triton_language import jit, tl

SOURCE = """\
@autotune(BLOCK in [1024, 65536], THREADS in [256, 1024])
@launch(THREADS)
kernel cross_entropy(X: tensor<DTYPE>[M, N], T: tensor<i64>[M], L: tensor<DTYPE>[M, 1]) {
  let r = ctx.block.x
  let x = f32(pad(X[r, 0 :+ BLOCK], -inf))
  let top = max<over 1>(x)
  let total = sum<over 1>(exp(x - top))
  L[r, :] = DTYPE(top + log(total) - f32(X[r, T[r]]))
}
"""


@jit
def triton_cross_entropy(x, targets, loss, columns, BLOCK: tl.constexpr):
    """One row a program."""
    r = tl.program_id(0)
    start = r.to(tl.int64) * columns
    k = tl.arange(0, BLOCK)
    row = tl.load(x + start + k, k < columns, other=-float("inf")).to(tl.float32)
    top = tl.max(row, axis=0)
    total = tl.sum(tl.exp(row - top), axis=0)
    target = tl.load(x + start + tl.load(targets + r)).to(tl.float32)
    tl.store(loss + r, (top + tl.log(total) - target).to(loss.dtype.element_ty))


def _reference(t: Values) -> Any:
    columns = subscripts(t.T)
    picked = t.X[_counted(columns), columns].reshape(-1, 1)
    return log((E**t.X).sum(1, keepdims=True)) - picked


def _counted(like: Any) -> Any:
    """0, 1, 2, ... in an array like another."""
    return (like * 0 + 1).cumsum(0) - 1


def _torch_cross_entropy(torch: Any, t: Values) -> None:
    # There is no form that writes to an array it is given.
    loss = torch.nn.functional.cross_entropy(t.X, t.T, reduction="none")
    t.L = loss.reshape(-1, 1)


CASE = Case(
    name="cross_entropy",
    summary="L[r] = log(sum(exp(X[r, :]))) - X[r, T[r]]",
    dims=("M", "N"),
    sizes=((8192, 32000),),
    dtypes=("f32", "bf16"),
    arrays=(
        read("X", "M", "N"),
        read("T", "M", dtype="i64", below="N"),
        written("L", "M", 1),
    ),
    flops=lambda extents: 5 * extents["M"] * extents["N"],
    magnitude=lambda _: 10.0,
    reference=_reference,
    phobos=PhobosKernel(
        lambda dtype: SOURCE.replace("DTYPE", dtype),
        "cross_entropy",
        choices(BLOCK=32768, THREADS=(256, 512, 1024)),
    ),
    torch={"cross_entropy": _torch_cross_entropy},
    triton=TritonKernel(
        triton_cross_entropy,
        ("X", "T", "L", "N"),
        lambda extents, chosen: (extents["M"],),
        choices(BLOCK=32768, num_warps=(8, 16, 32)),
    ),
)
