"""A case that NumPy can compute, for tests of the harness: its peers are Python functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.bench.case import (
    Case,
    PhobosKernel,
    Problem,
    TorchCall,
    Values,
    choices,
    read,
    written,
)

SOURCE = """\
@autotune(BLOCK in [64, 256])
kernel twice(x: tensor<f32>[N], out: tensor<f32>[N]) {
  let base = ctx.block.x * BLOCK
  out[base :+ BLOCK] = x[base :+ BLOCK] + x[base :+ BLOCK]
}
"""


def right(torch: Any, t: Values) -> None:
    """Computes it, in 3 ms."""
    t.out[...] = 2 * t.x
    torch.clock += 3e-3


def quicker(torch: Any, t: Values) -> None:
    """Computes it, in 2 ms."""
    t.out[...] = 2 * t.x
    torch.clock += 2e-3


def last_missing(torch: Any, t: Values) -> None:
    """Leaves out the last element."""
    t.out[:-1] = 2 * t.x[:-1]


def failing(torch: Any, t: Values) -> None:
    """Cannot compute it."""
    raise ValueError("no such thing\nand more about it")


def toy_case(torch: Mapping[str, TorchCall], *, source: str = SOURCE) -> Case:
    """out = 2 * x, with these ways of PyTorch's."""
    return Case(
        name="twice",
        summary="out = 2 * x",
        dims=("N",),
        sizes=((1000,),),
        dtypes=("f32",),
        arrays=(read("x", "N"), written("out", "N")),
        reference=lambda t: 2 * t.x,
        phobos=PhobosKernel(lambda _: source, "twice", choices(BLOCK=(64, 256))),
        torch=torch,
        flops=lambda extents: extents["N"],
    )


def toy_problem(torch: Mapping[str, TorchCall], *, source: str = SOURCE) -> Problem:
    """The toy case with 100 elements."""
    return Problem(toy_case(torch, source=source), "f32", (100,))
