"""`%` of floats is exact: C's fmod, bit for bit, in every type."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from tests.unit.builtins.trying import compiled
from tests.unit.functions.accuracy import FORMATS, random_patterns, special_values

COUNT = 2_000
SOURCE = """\
@launch(256)
kernel k(X: tensor<{kind}>[N], Y: tensor<{kind}>[N], A: tensor<{kind}>[N], B: tensor<{kind}>[N]) {{
  for base in range(0, N, 1024) {{
    A[base :+ 1024] = X[base :+ 1024] % Y[base :+ 1024]
  }}
  for j in range(ctx.thread, N, ctx.threads) {{
    B[j] = X[j]
    B[j] %= Y[j]
  }}
}}
"""


def arguments(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Special values in all pairs, numbers of all sizes, near multiples, and everyday ones."""
    form = FORMATS[kind]
    special = special_values(kind)
    dividends, divisors = (one.ravel() for one in np.meshgrid(special, special))
    patterns = [random_patterns(kind, COUNT, seed) for seed in (1, 2)]
    generator = np.random.default_rng(3)
    everyday = [(generator.standard_normal(COUNT) * scale).astype(form.dtype) for scale in (20, 3)]
    multiples = generator.integers(-40, 40, COUNT) * everyday[1].astype(np.float64)
    with np.errstate(all="ignore"):
        near = multiples.astype(form.dtype)
    return (
        np.concatenate([dividends, patterns[0], everyday[0], near]),
        np.concatenate([divisors, patterns[1], everyday[1], everyday[1]]),
    )


@pytest.mark.parametrize("chip", ["sm_75", "sm_90"])
@pytest.mark.parametrize("kind", list(FORMATS))
def test_remainder_is_exact(kind: str, chip: str) -> None:
    x, y = arguments(kind)
    tiles, points = np.empty_like(x), np.empty_like(x)
    module = compiled(SOURCE.format(kind=kind), chip)
    module["k"](x, y, tiles, points, grid=1, device="emulator")
    wide = np.float64 if kind == "f64" else np.float32  # which hold the others' remainders exactly
    with np.errstate(all="ignore"):
        expected = np.fmod(x.astype(wide), y.astype(wide))
    for got in (tiles, points):
        np.testing.assert_array_equal(got.astype(wide), expected)
        is_number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[is_number]), np.signbit(expected[is_number]))


def test_literals_fold_to_the_same() -> None:
    source = """\
kernel k(Y: tensor<f32>[4]) {
  Y[:] = full(-7.5 % 2.0, 4)
}
"""
    out = np.zeros(4, np.float32)
    phobos.compile(source)["k"](out, grid=1, device="emulator")
    assert np.array_equal(out, np.full(4, np.fmod(-7.5, 2.0)))
