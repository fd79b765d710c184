"""Loops that begin or end where the index does, or go over more than half of it: filled ahead."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.runtime.emulator_device import EmulatorDevice

FIRST, LAST = -(2**31), 2**31 - 1
ROWS, COLUMNS, DEPTH = 64, 16, 16
pytestmark = pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning")

FORMS = {
    "tensor copies": ("sm_90a", True, "cp.async.bulk.tensor."),
    "copies to wgmma": ("sm_90a", False, "cp.async.c"),
    "copies": ("sm_80", False, "cp.async.c"),
    "registers": ("sm_75", False, "ld.global"),
}
"""How operands run ahead: chip, tensor maps, and what the PTX has then."""

SOURCE = """
@launch(128)
@pipeline({stages})
kernel k(A: tensor<f16>[K, M], B: tensor<f16>[K, N], C: tensor<f32>[M, N], lo: i32, hi: i32) {{
  var acc: tile<f32>[64, 16] = 0.0
  for k in range({first}, {last}, {step}) {{
    acc += t_dot(A[k :+ 16, 0 :+ 64], B[k :+ 16, 0 :+ 16])
  }}
  C[0 :+ 64, 0 :+ 16] = acc
}}
"""
INDEX = "M * 0 + {}"
"""A value of the launch as an index, which the loop has then."""


def check(form: str, stages: int, lo: int, hi: int, step: int, *, constant: bool = False) -> None:
    """Sums the products of a loop over places most of which are outside, and compares."""
    chip, maps, copy = FORMS[form]
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-3, 4, (2 * DEPTH, n)).astype(np.float16) for n in (ROWS, COLUMNS))
    c = np.full((ROWS, COLUMNS), np.nan, np.float32)
    first, last = (lo, hi) if constant else (INDEX.format("lo"), INDEX.format("hi"))
    text = SOURCE.format(stages=stages, first=first, last=last, step=step)
    module = phobos.compile(text, chip=chip, extent_multiple=16, tensor_maps=maps)
    assert copy in module.ptx
    module["k"](a, b, c, lo, hi, device=EmulatorDevice(checks="all"))
    inside = [k for k in range(lo, hi, step) if 0 <= k < len(a)]
    expected = np.zeros_like(c)
    for k in inside:
        rows = slice(k, k + DEPTH)
        expected += a[rows].T.astype(np.float32) @ b[rows].astype(np.float32)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(
    ("form", "constant"), [("tensor copies", True), ("tensor copies", False), ("copies", True)]
)
def test_more_than_half_of_all_places(form: str, constant: bool) -> None:
    """What is left of the loop is no signed index."""
    check(form, 3, FIRST, 2 * DEPTH, 1 << 24, constant=constant)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lo", [LAST - 23, LAST - 7])
def test_no_place_behind_the_last_index(form: str, lo: int) -> None:
    """One or two iterations, and none where the index wraps."""
    check(form, 4, lo, LAST, DEPTH)


@pytest.mark.parametrize(("lo", "hi"), [(-2 * DEPTH, 2 * DEPTH), (7, 7), (9, 3), (LAST, FIRST)])
def test_bounds_of_the_launch(lo: int, hi: int) -> None:
    """Places below 0 read as 0, and empty loops sum nothing up."""
    check("tensor copies", 4, lo, hi, DEPTH)
