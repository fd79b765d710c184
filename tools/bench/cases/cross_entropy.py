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
@autotune(PARTS in [4], BLOCK in [1024, 8192], THREADS in [128, 1024], CTAS in [1, 16])
@launch(THREADS, CTAS)
kernel cross_entropy(X: tensor<DTYPE>[M, N], T: tensor<i64>[M], L: tensor<DTYPE>[M, 1]) {
  let r = ctx.block.x
  var top = full(-1e30, 1, BLOCK)
  var total = full(0.0, 1, BLOCK)
  for k in range(0, N, PARTS * BLOCK) {
    let x = reshape(f32(pad(X[r, k :+ PARTS * BLOCK], -inf)), PARTS, BLOCK)
    let larger = max(top, max<over 0>(x))
    total = total * exp(top - larger) + sum<over 0>(exp(x - larger))
    top = larger
  }
  let largest = max<over 1>(top)
  let sums = sum<over 1>(total * exp(top - largest))
  L[r, :] = DTYPE(largest + log(sums) - f32(X[r, T[r]]))
}
"""


def source(dtype: str) -> str:
    """The program, in 16-bit types with approximate exponentials, as Triton's always are."""
    mark = "" if dtype == "f32" else "@fast_math\n"
    return mark + SOURCE.replace("DTYPE", dtype)


@jit
def triton_cross_entropy(x, targets, loss, columns, BLOCK: tl.constexpr):
    """One row a program, in pieces: the running maximum and sum."""
    r = tl.program_id(0)
    start = r.to(tl.int64) * columns
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, columns, BLOCK):
        k = first + tl.arange(0, BLOCK)
        piece = tl.load(x + start + k, k < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(top, piece)
        total = total * tl.exp(top - larger) + tl.exp(piece - larger)
        top = larger
    largest = tl.max(top, axis=0)
    sums = tl.sum(total * tl.exp(top - largest), axis=0)
    target = tl.load(x + start + tl.load(targets + r)).to(tl.float32)
    tl.store(loss + r, (largest + tl.log(sums) - target).to(loss.dtype.element_ty))


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
        source,
        "cross_entropy",
        tuple(
            {"PARTS": parts, "BLOCK": block, "THREADS": threads, "CTAS": ctas}
            for parts, block, threads, ctas in (
                *((4, 1024, 128, 8), (4, 1024, 128, 6), (4, 2048, 256, 4), (4, 2048, 256, 3)),
                *((2, 2048, 256, 4), (8, 1024, 128, 4), (4, 2048, 512, 2)),
            )
        ),
    ),
    torch={"cross_entropy": _torch_cross_entropy},
    triton=TritonKernel(
        triton_cross_entropy,
        ("X", "T", "L", "N"),
        lambda extents, chosen: (extents["M"],),
        choices(BLOCK=(2048, 4096, 8192), num_warps=(8, 16)),
    ),
)
