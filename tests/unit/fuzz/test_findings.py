"""What random programs have found, each cut down to what matters."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from phobos.frontend import ast, parse
from tests.support.chips import PLAIN_CHIPS
from tools.fuzz.generator.inputs import make_array, make_number
from tools.fuzz.generator.programs import Case
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
    # The hardware makes the smallest number of a NaN where an f64 becomes an integer.
    "no number as an integer of 16 bits": Finding("""\
@launch(32)
kernel k(o: tensor<i16>[4], p: tensor<u16>[4], x: tensor<f64>[4]) {
  let none = x[:] * inf * 0
  o[:] = i16(none)
  p[:] = u16(none)
}
"""),
    # The outer one was unrolled first, and the inner one of the two copies never.
    "unrolled loops in each other": Finding("""\
@launch(32)
kernel k(x: tensor<i32>[40], o: tensor<i32>[2]) {
  for<unroll 2> i in range(2) {
    for<unroll 2> j in range(0, 3) {
      o[:] += x[0 :+ 4][i + j :+ 2]
    }
  }
}
"""),
    # Elements that are neighbours in the tensor are none in the buffer of the turned tile.
    "copies of single halves": Finding(
        """\
@launch(7)
kernel k(x: tensor<bf16>[N, 80], o: tensor<f32>[64, 2]) {
  var total = full<f32>(0, 64, 2)
  for i in range(0, 14, 8) {
    total += t_dot(x[ctx.block.x :+ 8, 0 : 64], x[i :+ 8, 0 :+ 2])
  }
  o[:, :] = total
}
""",
        {"N": 13},
    ),
    # The power of e in it is beyond f16.
    "the sigmoid of a small half": Finding("""\
@launch(32)
kernel k(o: tensor<f16>[8], p: tensor<bf16>[8]) {
  let x = f32(iota(8)) - 16
  o[:] = sigmoid(f16(x))
  p[:] = sigmoid(bf16(x * 0.5))
}
"""),
    # The layout goes on to a fourth row, where the slice is filled, too.
    "a product of a slice that is filled": Finding("""\
@launch(33)
kernel k(x: tensor<f32>[4, 4], y: tensor<f32>[3, 12], o: tensor<f32>[4, 12]) {
  o[:, :] = t_dot(pad(x[0 :+ 3, :], -inf), y[:, :])
}
"""),
    # Each product has a layout of its own for its sums.
    "two products of different types in one expression": Finding("""\
@launch(128)
kernel k(a: tensor<u8>[16, 32], b: tensor<f16>[16, 16], x: i8, o: tensor<i32>[16, 8]) {
  let p = dot(a[:, 0 : 16], full<i8>(x, 16, 8))
  o[:, :] = where(iota<1>(16, 8) < 4, p, dot_t(a[:, 0 : 3], a[0 : 8, 3 : 6]) << 20) + \
    p * i32(dot(b[:, :], b[:, 0 : 8]))
}
"""),
    # What literals give before it meets a type may leave 64 bits.
    "a literal shifted there and back": Finding("""\
@launch(32)
kernel k(x: tensor<u64>[32], y: tensor<i64>[32], o: tensor<u64>[32], p: tensor<i64>[32]) {
  o[:] = x[:] + (15044749520329091029 << 1 >> 1)
  p[:] = max(y[:], 7481875422924717981 * 6 / 6) + (1 << 40)
}
"""),
    # What a product on tensor cores is added to may be taken for 0 if it is subnormal.
    "a subnormal number and a product": Finding("""\
@launch(32)
kernel k(a: tensor<f16>[16, 16], x: tensor<u32>[16, 16], o: tensor<f32>[16, 16]) {
  o[:, :] = dot(tril(a[:, :], -3), a[:, :]) + bitcast<f32>(x[:, :] & 7)
}
"""),
    # Tensor cores cut what others round, also where the product itself is exact.
    "a product that is added to a tile": Finding(
        """\
@launch(32)
kernel k(a: tensor<f8e4m3>[16, 8], x: tensor<f32>[16, 16], o: tensor<f32>[16, 16]) {
  let halves = f16(a[:, :])
  o[:, :] = x[:, :]
  o[:, :] += dot_t(halves, halves)
}
""",
        content="broad",
    ),
    # On a GPU: ptxas took a sum above 1 for a number.
    "the remainder by no number": Finding("""\
@launch(32)
kernel k(x: tensor<f32>[32], y: tensor<u32>[32], o: tensor<f32>[32], p: tensor<bool>[32]) {
  let none = abs(bitcast<f32>(y[:] | 0x7fc00000)) + 1
  o[:] = x[:] % none
  p[:] = none > 0
}
"""),
}


@pytest.mark.parametrize("name", FINDINGS)
@pytest.mark.parametrize("chip", PLAIN_CHIPS)
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
