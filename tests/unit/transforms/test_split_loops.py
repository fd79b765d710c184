"""Loops over tiles whose whole tiles go without masks: any extent, ahead of it and below 0."""

from __future__ import annotations

import re

import numpy as np

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check, compiled

EXTENTS = [{"N": n} for n in (1, 15, 16, 17, 31, 32, 33, 100, 128, 255)]


def test_every_element_once() -> None:
    source = """\
@launch(32)
kernel scale(x: tensor<f32>[N], out: tensor<f32>[N]) {
  for k in range(ctx.block.x * 16, N, ctx.blocks.x * 16) {
    out[k :+ 16] = 2 * x[k :+ 16]
  }
}
"""
    check(source, lambda t, _: {"out": 2 * t["x"]}, EXTENTS, grid=(3,), widths=(32, 64))


def test_values_go_from_the_whole_tiles_to_the_rest() -> None:
    source = """\
@launch(32)
kernel total(x: tensor<i32>[N], out: tensor<i32>[1]) {
  var sums = x[0 :+ 16] * 0
  for k in range(0, N, 16) {
    sums = sums * 3 + x[k :+ 16]
  }
  out[:] = sum<over 0>(sums)
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["x"].astype(np.int64)
        padded = np.concatenate([x, np.zeros(-len(x) % 16, np.int64)]).reshape(-1, 16)
        total = np.zeros(16, np.int64)
        for row in padded:
            total = total * 3 + row
        return {"out": np.array([total.sum()]).astype(np.int32)}

    check(source, reference, EXTENTS, chips=("sm_80",))


def test_a_slice_ahead_of_the_counter_ends_earlier() -> None:
    source = """\
@launch(32)
kernel pairs(x: tensor<f32>[N], out: tensor<f32>[N]) {
  for k in range(0, N, 16) {
    out[k :+ 16] = x[k :+ 16] + x[k + 3 :+ 16]
  }
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["x"]
        return {"out": x + np.concatenate([x[3:], np.zeros(min(3, len(x)))])[: len(x)]}

    check(source, reference, EXTENTS, chips=("sm_80",))


def test_tensors_of_different_extents() -> None:
    source = """\
@launch(32)
kernel copy(x: tensor<f32>[M], out: tensor<f32>[N]) {
  for k in range(0, N, 16) {
    out[k :+ 16] = x[k :+ 16]
  }
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x, out = tensors["x"], np.zeros(len(tensors["out"]))
        shared = min(len(x), len(out))
        out[:shared] = x[:shared]
        return {"out": out}

    dims = [{"M": m, "N": n} for m in (1, 16, 40, 64) for n in (1, 16, 40, 64)]
    check(source, reference, dims, chips=("sm_80",))


def test_a_loop_that_starts_below_zero_keeps_its_masks() -> None:
    source = """\
@launch(32)
kernel shifted(x: tensor<f32>[N], out: tensor<f32>[N], first: i32) {
  for k in range(index(first), N, 16) {
    out[k :+ 16] = x[k :+ 16] + 1
  }
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"out": tensors["x"] + 1}  # the tiles at -32 and -16 have no elements

    check(source, reference, EXTENTS, scalars={"first": -32}, chips=("sm_80",))


def test_whole_tiles_are_loaded_without_a_guard() -> None:
    source = """\
@launch(32)
kernel total(x: tensor<f32>[N], out: tensor<f32>[1]) {
  var sums = full(0.0, 128)
  for k in range(0, N, 128) {
    sums += x[k :+ 128]
  }
  out[:] = sum<over 0>(sums)
}
"""
    loads = re.findall(r"^\s*(@%p\d+ )?ld\.global", compiled(source).ptx, re.MULTILINE)
    assert loads.count("") >= 4
    assert sum(guard != "" for guard in loads) == 1
