"""A running sum and the sum of the same tile share their partial results."""

from __future__ import annotations

import numpy as np
import pytest

import phobos

SOURCE = """\
@launch({threads})
kernel k(x: tensor<i32>[M, N], y: tensor<i32>[M, N], s: tensor<i32>[M, 1]) {{
  let t = x[0 :+ {rows}, 0 :+ {columns}]
{body}
}}
"""
SCAN = "  y[0 :+ {rows}, 0 :+ {columns}] = scan<over 1>(t)\n"
SUM = "  s[0 :+ {rows}, :] = sum<over 1>(t)\n"
ORDERS = {"scan first": SCAN + SUM, "sum first": SUM + SCAN}


def source(rows: int, columns: int, threads: int, body: str) -> str:
    """A program of a scan, a sum, or both."""
    text = SOURCE.replace("{body}", body)
    return text.format(rows=rows, columns=columns, threads=threads)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("rows", "columns", "threads"), [(1, 256, 64), (1, 200, 64), (4, 64, 128), (2, 512, 256)]
)
def test_both_are_right(rows: int, columns: int, threads: int, order: str) -> None:
    module = phobos.compile(source(rows, columns, threads, ORDERS[order]), cache=False)
    x = np.random.default_rng(0).integers(-99, 99, (rows, columns)).astype(np.int32)
    y, s = np.zeros_like(x), np.zeros((rows, 1), np.int32)
    module["k"](x, y, s, grid=(1, 1, 1), device="emulator")
    np.testing.assert_array_equal(y, x.cumsum(1))
    np.testing.assert_array_equal(s, x.sum(1, keepdims=True))


def count(text: str, instruction: str) -> int:
    return phobos.compile(text, chip="sm_90", cache=False).ptx.count(instruction)


def test_the_sum_needs_no_shuffles_and_no_barriers_of_its_own() -> None:
    shape = (1, 256, 64)
    alone, both = source(*shape, SCAN), source(*shape, SCAN + SUM)
    for instruction in ("shfl", "bar.sync", "st.shared"):
        assert count(both, instruction) == count(alone, instruction) > 0


def test_a_sum_before_the_scan_shares_its_buffer() -> None:
    shape = (1, 256, 64)
    alone, both = source(*shape, SUM), source(*shape, SUM + SCAN)
    assert count(both, "st.shared") == count(alone, "st.shared") > 0


def test_there_is_no_race_where_a_loop_carries_the_sum() -> None:
    text = """\
@launch(64)
kernel k(x: tensor<i32>[N], y: tensor<i32>[N]) {
  var carry: tile<i32>[1] = 0
  for i in range(0, N, 128) {
    let t = x[i :+ 128]
    y[i :+ 128] = scan<over 0>(t) + carry
    carry += sum<over 0>(t)
  }
}
"""
    x = np.arange(-50, 300, dtype=np.int32)
    y = np.zeros_like(x)
    arguments: list[object] = []
    for array in (x, y):
        arguments += [array, array, *np.array([0, x.size, 1], np.uint32)]
    phobos.emulate(
        phobos.compile(text, extent_multiple=1, cache=False).ptx, "k", (1, 1, 1), (64, 1, 1),
        arguments, checks=("bounds", "init", "race"), seed=1,
    )  # fmt: skip
    np.testing.assert_array_equal(y, x.cumsum())
