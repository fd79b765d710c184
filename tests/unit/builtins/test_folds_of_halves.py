"""Folds of 16-bit floats: largest and smallest two at a time, sums by the type's own addition."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check, compiled

CHIPS = ("sm_75", "sm_80", "sm_90")
SOURCE = """\
@launch(64)
kernel fold(X: tensor<T>[32, 64], down: tensor<T>[1, 64], along: tensor<T>[32, 1],
            all: tensor<T>[1, 1]) {
  let x = X[:, :]
  down[:, :] = FOLD<over 0>(x)
  along[:, :] = FOLD<over 1>(x)
  all[:, :] = FOLD<over 0, 1>(x)
}
"""


def _with_nan(tensors: Arrays) -> None:
    """A row and a column of NaN, some among numbers, and zeros of both signs."""
    x = tensors["X"]
    x[3, :] = x[:, 5] = x[7, 9] = np.nan
    x[20, :] = -0.0
    x[20, ::2] = 0.0


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.filterwarnings("ignore:All-NaN")
def test_largest_and_smallest(name: str, dtype: str) -> None:
    fold = {"max": np.fmax, "min": np.fmin}[name]

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        return {
            "down": fold.reduce(x, 0, keepdims=True),
            "along": fold.reduce(x, 1, keepdims=True),
            "all": fold.reduce(x, (0, 1), keepdims=True),
        }

    source = SOURCE.replace("FOLD", name).replace("T>", f"{dtype}>")
    check(source, reference, [{}], chips=CHIPS, relative=0, absolute=0, prepare=_with_nan)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums(dtype: str) -> None:
    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        return {
            "down": x.sum(0, keepdims=True),
            "along": x.sum(1, keepdims=True),
            "all": x.sum((0, 1), keepdims=True),
        }

    source = SOURCE.replace("FOLD", "sum").replace("T>", f"{dtype}>")
    check(source, reference, [{}], chips=CHIPS, relative=0.05, absolute=0.5)


@pytest.mark.parametrize(
    ("chip", "dtype", "instruction"),
    [
        ("sm_80", "f16", "max.f16x2"),
        ("sm_80", "bf16", "max.bf16x2"),
        ("sm_75", "f16", "max.f32"),
        ("sm_75", "bf16", "max.f32"),
    ],
)
def test_a_row_is_folded_by_instructions_on_pairs(chip: str, dtype: str, instruction: str) -> None:
    source = f"""\
@launch(32)
kernel largest(X: tensor<{dtype}>[M, 512], out: tensor<{dtype}>[M, 1]) {{
  let r = ctx.block.x
  out[r :+ 1, :] = max<over 1>(X[r :+ 1, :])
}}
"""
    text = compiled(source, chip).ptx
    pairs, lanes = 7, 1 + 5  # of the 16 elements of a thread
    count = pairs if instruction.endswith("x2") else 2 * pairs + 1 + 5
    assert text.count(f"\t{instruction} ") == count
    if instruction.endswith("x2"):
        assert text.count(f"\tmax.{dtype} ") == lanes
