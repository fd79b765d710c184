"""Every operation names its place, and the place stands for the whole expression."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

from phobos.diagnostics import SourceMap
from phobos.frontend import FrontendOptions, to_ir
from phobos.ir.locations import location_of

TEXT = """\
fn scaled(v: f32) -> f32 {
  return v * 3.0
}
kernel k(x: tensor<f32>[N], A: tensor<f32>[M, N], alpha: f32) {
  let base = ctx.block.x * 16
  x[base :+ 16] = alpha * x[base :+ 16] + 1.0
  var acc = 0.0
  for i in range(ctx.thread, N, ctx.threads) {
    acc += exp(A[0, i]) - f32(i)
  }
  if acc > 1.0 && x[0] < scaled(acc) {
    x[N - 1] = sum<over ctx.thread>(acc)
  }
  while acc < 9.0 { acc *= 2.0 }
}
"""


def texts(name: str) -> list[str]:
    """The source text that each operation of a name stands for."""
    sources = SourceMap()
    top = to_ir(TEXT, "k.ph", FrontendOptions(sources=sources))
    return [source_text(sources, op) for op in top.walk() if op.name == name]


def source_text(sources: SourceMap, op: Operation) -> str:
    place = location_of(op)
    assert place is not None
    place = sources.resolve(place)
    line = sources.line(place.file, place.line)
    assert line is not None
    end = place.end_column if place.end_line == place.line else None
    return line[place.column - 1 : None if end is None else end - 1].strip()


@pytest.mark.parametrize(
    ("name", "spans"),
    [
        ("ctx.block", ["ctx.block.x"]),
        ("arith.muli", ["ctx.block.x * 16"]),
        ("tile.load", ["x[base :+ 16]"]),
        ("tile.store", ["x[base :+ 16] = alpha * x[base :+ 16] + 1.0"]),
        ("math.exp", ["exp(A[0, i])"]),
        ("memref.load", ["A[0, i]", "x[0]"]),
        ("arith.subf", ["exp(A[0, i]) - f32(i)"]),
        ("arith.cmpf", ["acc > 1.0", "x[0] < scaled(acc)", "acc < 9.0"]),
        ("collective.reduce", ["sum<over ctx.thread>(acc)"]),
        ("memref.store", ["x[N - 1] = sum<over ctx.thread>(acc)"]),
        ("scf.for", ["for i in range(ctx.thread, N, ctx.threads)"]),
        ("scf.while", ["while acc < 9.0"]),
    ],
)
def test_spans(name: str, spans: list[str]) -> None:
    assert texts(name) == spans


def test_operations_of_a_function_are_at_their_place_in_it() -> None:
    assert "v * 3.0" in texts("arith.mulf")


def test_conversions_are_at_the_value_they_convert() -> None:
    assert texts("arith.sitofp") == ["f32(i)"]
