"""How far results are from the exact ones, in units in the last place."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Format:
    """A float format: bits of the significand, and the exponents of its normal numbers."""

    dtype: np.dtype
    digits: int
    lowest: int
    highest: int

    @property
    def tiniest(self) -> float:
        """The smallest normal number."""
        return 2.0**self.lowest


FORMATS = {
    "f16": Format(np.dtype(np.float16), 11, -14, 15),
    "bf16": Format(np.dtype(ml_dtypes.bfloat16), 8, -126, 127),
    "f32": Format(np.dtype(np.float32), 24, -126, 127),
    "f64": Format(np.dtype(np.float64), 53, -1022, 1023),
}


def ulps(got: np.ndarray, exact: np.ndarray, kind: str, *, may_flush: bool = False) -> np.ndarray:
    """The distance of each result from the exact one, in ulps of the exact one; inf if wrong.

    `exact` is in a wider type. Wrong are: NaN where there is none or none where there is, another
    sign of zero. Overflow counts as 2 to the power that is just too large. With `may_flush` a
    result of 0 is right where the exact one is below the smallest normal number.
    """
    form = FORMATS[kind]
    # exact is wider (float64, or longdouble for f64), so this is exact, too.
    value = got.astype(exact.dtype)
    limit = exact.dtype.type(2) ** (form.highest + 1)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.abs(exact))[1] - 1, form.lowest)
        clipped = np.clip(exact, -limit, limit)
        exponent = np.minimum(exponent, form.highest)
        unit = np.ldexp(np.ones_like(exact), exponent - (form.digits - 1))
        error = np.abs(np.clip(value, -limit, limit) - clipped) / unit
    error = np.where(np.isnan(exact), np.where(np.isnan(value), 0, np.inf), error)
    error = np.where(np.isnan(value) & ~np.isnan(exact), np.inf, error)
    if may_flush:
        error = np.where((value == 0) & (np.abs(exact) < form.tiniest), 0, error)
    wrong_zero = (value == 0) & (exact == 0) & (np.signbit(value) != np.signbit(exact))
    return np.where(wrong_zero, np.inf, error)


def worst(error: np.ndarray) -> int:
    """The place of the largest error."""
    return int(np.argmax(error))


def special_values(kind: str) -> np.ndarray:
    """Zeros, infinities, NaN, ones, the ends of the ranges and numbers beside them."""
    form = FORMATS[kind]
    wide = np.longdouble if kind == "f64" else np.float64
    two = wide(2)
    smallest = two ** (form.lowest - form.digits + 1)
    largest = (2 - two ** (1 - form.digits)) * two**form.highest
    unit = two ** (1 - form.digits)
    numbers = [
        *(0.0, np.inf, np.nan, 1.0, 2.0, 0.5, 3.0, 10.0, 1 / 3, 1 + unit, 1 - unit / 2),
        *(smallest, 2 * smallest, two**form.lowest, two**form.lowest - smallest, largest),
        *(two**form.highest, np.pi, np.pi / 2, np.pi / 4, np.e, np.log(two)),
        *(5.0, 7.0, 100.0, 87.0, 88.0, 89.0, 103.0, 104.0, 127.0, 128.0, 149.0, 150.0),
    ]
    both = np.array([sign * number for number in numbers for sign in (1, -1)], dtype=wide)
    with np.errstate(all="ignore"):
        return both.astype(form.dtype)


def random_patterns(kind: str, count: int, seed: int) -> np.ndarray:
    """Floats with uniformly random bits: any exponent, NaN and infinity among them."""
    form = FORMATS[kind]
    bits = np.random.default_rng(seed).integers(0, 256, (count, form.dtype.itemsize), np.uint8)
    return bits.reshape(-1).view(form.dtype)


def all_patterns(kind: str) -> np.ndarray:
    """Every number of a 16-bit format."""
    return np.arange(1 << 16, dtype=np.uint16).view(FORMATS[kind].dtype)
