"""Rows divided by one number each: every quotient is rounded correctly, of any numbers."""

from __future__ import annotations

import numpy as np
import pytest

import phobos

ROWS, COLUMNS = 32, 256
SOURCE = f"""\
@launch(64)
kernel divide(X: tensor<TYPE>[{ROWS}, {COLUMNS}], D: tensor<TYPE>[{ROWS}, 1],
              O: tensor<TYPE>[{ROWS}, {COLUMNS}]) {{
  let r = ctx.block.x * 4
  O[r :+ 4, :] = X[r :+ 4, :] / D[r :+ 4, :]
}}
"""
DIVISORS = (
    1.0, 3.0, -7.0, 2.0**-20, 2.0**-21, 2.0**60, 2.0**61, 1.9999999, 2.0**-126, 2.0**-149,
    2.0**127, 0.0, -0.0, np.inf, -np.inf, np.nan,
)  # fmt: skip
DIVIDENDS = (
    0.0, -0.0, 1.0, -1.0, 2.0**-149, -(2.0**-140), 2.0**-126, 2.0**-80, 2.0**-100, 3.4e38,
    -3.4e38, np.inf, -np.inf, np.nan,
)  # fmt: skip


def quotients(kind: str, x: np.ndarray, d: np.ndarray) -> np.ndarray:
    module = phobos.compile(SOURCE.replace("TYPE", kind), chip="sm_90", cache=False)
    out = np.full_like(x, np.nan)
    module["divide"](X=x, D=d, O=out, grid=(ROWS // 4,), device="emulator")
    return out


def same(got: np.ndarray, wanted: np.ndarray) -> None:
    """Equal to the bit, but that any NaN is as good as another."""
    bits = f"u{got.itemsize}"
    is_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), is_nan)
    np.testing.assert_array_equal(got.view(bits)[~is_nan], wanted.view(bits)[~is_nan])


@pytest.mark.parametrize("spread", [0, 4, 60])
def test_random_numbers(spread: int) -> None:
    rng = np.random.default_rng(spread)
    x = rng.standard_normal((ROWS, COLUMNS)) * 2.0 ** rng.integers(
        -spread, spread + 1, (ROWS, COLUMNS)
    )
    d = rng.standard_normal((ROWS, 1)) * 2.0 ** rng.integers(
        -spread // 4, spread // 4 + 1, (ROWS, 1)
    )
    x, d = x.astype(np.float32), d.astype(np.float32)
    same(quotients("f32", x, d), x / d)


def test_numbers_next_to_ties() -> None:
    """Dividends that are products rounded up or down make quotients hard to round."""
    rng = np.random.default_rng(1)
    d = rng.uniform(1, 2, (ROWS, 1)).astype(np.float32)
    q = rng.uniform(1, 2, (ROWS, COLUMNS)).astype(np.float32)
    halfway = q.astype(np.float64) + 2.0**-24
    x = np.nextafter((halfway * d).astype(np.float32), np.float32(rng.choice([0, 4])))
    same(quotients("f32", x, d), x / d)


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_special_values(kind: str) -> None:
    dtype = np.float32 if kind == "f32" else np.float16
    with np.errstate(all="ignore"):
        d = np.resize(np.array(DIVISORS, np.float32), (ROWS, 1)).astype(dtype)
        x = np.resize(np.array(DIVIDENDS, np.float32), (ROWS, COLUMNS)).astype(dtype)
        # Some threads have harmless numbers alone, and some of them next to special ones.
        x[:, 64:128] = np.arange(64)
        same(quotients(kind, x, d), x / d)
