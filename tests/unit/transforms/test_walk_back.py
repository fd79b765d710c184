"""Loops that are walked backwards do what they did, whatever the length of the rows."""

from __future__ import annotations

import pytest

from tests.support.cases import Arrays, Reference
from tests.unit.builtins.trying import check

LENGTHS = (33, 63, 64, 65, 96, 97, 127, 160, 200, 513)
"""Less than a tile, whole tiles from 0 or 32 on, and those with a rest."""


def _reference(first: int, written: str) -> Reference:
    def reference(tensors: Arrays, _: object) -> Arrays:
        x, y = tensors["X"], tensors[written].copy()
        y[:, first:] = x[:, first:] - x[:, first:].sum(1, keepdims=True) / x.shape[1]
        return {written: y}

    return reference


@pytest.mark.parametrize("first", [0, 32])
def test_rows_are_centred(first: int) -> None:
    source = f"""\
@launch(32)
kernel centre(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {{
  let r = ctx.block.x
  var total = full(0.0, 1, 64)
  for k in range({first}, N, 64) {{ total += X[r, k :+ 64] }}
  let mean = sum<over 1>(total) / N
  for k in range({first}, N, 64) {{ Y[r, k :+ 64] = X[r, k :+ 64] - mean }}
}}
"""
    dims = [{"M": 2, "N": n} for n in LENGTHS]
    check(source, _reference(first, "Y"), dims, grid=(2,), widths=(32, 64), chips=("sm_90",))


def test_rows_are_centred_in_place() -> None:
    source = """\
@launch(32)
kernel centre(X: tensor<f32>[M, N]) {
  let r = ctx.block.x
  var total = full(0.0, 1, 64)
  for k in range(0, N, 64) { total += X[r, k :+ 64] }
  let mean = sum<over 1>(total) / N
  for k in range(0, N, 64) { X[r, k :+ 64] = X[r, k :+ 64] - mean }
}
"""
    dims = [{"M": 2, "N": n} for n in LENGTHS]
    check(source, _reference(0, "X"), dims, grid=(2,), chips=("sm_90",))


def test_a_loop_with_no_iteration_writes_nothing() -> None:
    source = """\
@launch(32)
kernel fill(X: tensor<f32>[N], Y: tensor<f32>[N], first: i32, last: i32) {
  var total = full(0.0, 64)
  for k in range(index(first), index(last), 64) { total += X[k :+ 64] }
  for k in range(index(first), index(last), 64) { Y[k :+ 64] = X[k :+ 64] }
  if first == last { Y[0 :+ 64] = total }
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        y = tensors["Y"].copy()
        y[:64] = 0
        return {"Y": y}

    check(source, reference, [{"N": 200}], scalars={"first": 70, "last": 70}, chips=("sm_90",))
