"""The approximate instructions, modelled at full precision.

The hardware's tables are not public. Each function computes in float64 and rounds once, so it is
at least as accurate as the hardware; how far the two are apart is measured, not reproduced. The
special values are the hardware's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phobos.emulator.types import Value

_UPPER_NAN = np.uint64(0x7FFF_FFFF_0000_0000)
_HUGE = np.float32(2.0**126)


def _through_double(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def apply(a: Value) -> Value:
        return function(a.astype(np.float64)).astype(a.dtype)

    return apply


exp2 = _through_double(np.exp2)
log2 = _through_double(np.log2)
sine = _through_double(np.sin)
cosine = _through_double(np.cos)
tangent_h = _through_double(np.tanh)
reciprocal = _through_double(lambda a: 1.0 / a)
square_root = _through_double(np.sqrt)
reciprocal_root = _through_double(lambda a: 1.0 / np.sqrt(a))


def divide(a: Value, b: Value) -> Value:
    """`div.approx.f32`: a divisor above 2**126 gives 0, or NaN if the dividend is infinite."""
    quotient = (a.astype(np.float64) / b.astype(np.float64)).astype(a.dtype)
    huge = (np.abs(b) > _HUGE) & np.isfinite(b) & ~np.isnan(a)
    if not np.any(huge):
        return quotient
    zero = np.copysign(a.dtype.type(0), quotient)
    return np.where(huge, np.where(np.isinf(a), a.dtype.type(np.nan), zero), quotient)


def upper_half(a: Value) -> Value:
    """An f64 with the lower 32 bits of its pattern cleared; NaN is 0x7FFFFFFF there."""
    upper = np.asarray(a).view(np.uint64) & np.uint64(0xFFFF_FFFF_0000_0000)
    return np.where(np.isnan(upper.view(np.float64)), _UPPER_NAN, upper).view(np.float64)
