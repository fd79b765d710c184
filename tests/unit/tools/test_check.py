"""Comparing results with references."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.tools.numpy_machine import NumpyMachine
from tools.bench import check
from tools.bench.check import Comparison, compare


def compared(
    out: np.ndarray, reference: np.ndarray, dtype: str = "f32", magnitude: float = 1.0
) -> Comparison:
    return compare(NumpyMachine(), "out", out, reference.astype(np.float64), dtype, magnitude)


def test_rounding_is_no_mismatch() -> None:
    reference = np.linspace(-100, 100, 1001)
    result = compared(reference.astype(np.float32), reference)
    assert result.mismatch is None
    assert 0 < result.largest_difference < 1e-5


def test_the_worst_element_is_named() -> None:
    reference = np.arange(12.0).reshape(3, 4)
    out = reference.astype(np.float32)
    out[0, 1] += 0.5
    out[2, 3] = 7
    result = compared(out, reference)
    assert str(result.mismatch) == "out[2, 3] is 7 and should be 11 (2 elements are wrong)"
    assert result.largest_difference == 4


def test_what_was_not_written_is_wrong() -> None:
    reference = np.ones(5)
    out = np.ones(5, np.float32)
    out[4] = np.nan
    mismatch = compared(out, reference).mismatch
    assert mismatch is not None
    assert mismatch.index == (4,)
    assert math.isnan(mismatch.value)
    assert mismatch.count == 1


def test_a_case_may_have_a_tolerance_of_its_own() -> None:
    reference = np.ones(3)
    out = (reference + 0.01).astype(np.float32)
    assert compare(NumpyMachine(), "out", out, reference, "f32", 1.0, 0.01).mismatch is None
    assert compare(NumpyMachine(), "out", out, reference, "f32", 1.0).mismatch is not None


@pytest.mark.parametrize(("difference", "is_right"), [(0.9e-5 * 101, True), (1.1e-5 * 101, False)])
def test_the_tolerance_grows_with_value_and_magnitude(difference: float, is_right: bool) -> None:
    reference = np.array([1.0])
    out = reference + difference
    assert (compared(out, reference, "f32", magnitude=100.0).mismatch is None) == is_right


def test_integers_must_be_exact() -> None:
    reference = np.array([1, 2, 3])
    assert compared(reference.astype(np.int32), reference, "i32").mismatch is None
    assert compared(np.array([1, 2, 4], np.int32), reference, "i32").mismatch is not None


def test_large_results_are_compared_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_CHUNK", 10)
    reference = np.arange(35.0)
    out = reference.copy()
    out[[12, 34]] += [1, 2]
    result = compared(out, reference)
    assert result.mismatch is not None
    assert (result.mismatch.index, result.mismatch.count) == ((34,), 2)
    assert result.largest_difference == 2
