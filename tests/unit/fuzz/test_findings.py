"""What random programs have found, each cut down to what matters."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from phobos.frontend import ast, parse
from tools.fuzz.generator.inputs import make_array, make_number
from tools.fuzz.generator.programs import CHIPS, Case
from tools.fuzz.runner import Verdict, judge


@dataclass(frozen=True)
class Finding:
    """A program, the extents that only a launch knows, and what tensors hold."""

    source: str
    dims: dict[str, int] = field(default_factory=dict)
    content: str = "whole"
    grid: tuple[int, int, int] = (1, 1, 1)


FINDINGS = {
    # Some lanes of the last warp do not exist, so that no tensor core may be used.
    "products in a part of a warp": Finding("""\
@launch(33)
kernel k(a: tensor<f16>[16, 16], b: tensor<f16>[16, 16], o: tensor<f32>[16, 16]) {
  o[:, :] = t_dot(a[:, :], b[:, :])
}
"""),
    # The tile has a shared buffer that nothing reads.
    "a loop with a tile that nothing reads": Finding(
        """\
@launch(64)
kernel k(x: tensor<u8>[4], n: i32) {
  for i in range(0, n & 3) {
    var t = x[0 :+ 5][ctx.block.y & 3 :+ 2]
  }
}
"""
    ),
    # -128 has no opposite in i8, also where the compiler works it out.
    "the absolute value of the smallest constant": Finding("""\
@launch(32)
kernel k(x: tensor<i32>[32], o: tensor<i32>[16], p: tensor<i32>[16]) {
  o[:] = x[abs(i8(-128)) % 9 :+ 16]
  p[:] = full<i32>(i32(abs(i8(-128))), 16) + i32(-i16(-32768))
}
"""),
}


@pytest.mark.parametrize("name", FINDINGS)
@pytest.mark.parametrize("chip", CHIPS)
def test_finding(name: str, chip: str) -> None:
    finding = FINDINGS[name]
    outcome = judge(Case(3, finding.source, _arguments(finding), finding.grid, chip, index_bits=32))
    assert outcome.verdict is Verdict.AGREED, outcome.detail


def _arguments(finding: Finding) -> dict[str, np.ndarray | int | float | bool]:
    generator = np.random.default_rng(1)
    (kernel,) = parse(finding.source, "finding.ph").kernels
    found: dict[str, np.ndarray | int | float | bool] = {}
    for param in kernel.params:
        if isinstance(param.type, ast.ScalarType):
            found[param.name] = make_number(generator, param.type.name)
            continue
        shape = tuple(
            dim.value if isinstance(dim, ast.DimSize) else finding.dims[dim.name]
            for dim in param.type.dims
        )
        found[param.name] = make_array(generator, param.type.element.name, shape, finding.content)
    return found
