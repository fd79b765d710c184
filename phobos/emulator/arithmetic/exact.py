"""Error-free transformations in float64, and rounding to odd.

A float64 that was *rounded to odd* (its last bit set whenever bits were lost) can be rounded
again, in any mode, to a format of at most 51 significant bits, and gives what one rounding of the
exact value gives. All single-precision and narrower operations are built on that.
See S. Boldo, G. Melquiond, "Emulation of a FMA and Correctly Rounded Sums", IEEE Trans. Comput.
57(4), 2008.
"""

from __future__ import annotations

import numpy as np

from phobos.emulator.types import Value

_SPLITTER = np.float64(134217729.0)
"""2**27 + 1, which splits 53 bits into two halves of 26 (Veltkamp)."""
_ONE = np.uint64(1)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum and the exact error; the error is NaN where the sum overflows."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded product and the exact error, for operands well inside the exponent range."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _split(a: Value) -> tuple[Value, Value]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def to_odd(value: Value, error: Value) -> Value:
    """`value + error` rounded to odd, where `error` is what rounding to `value` lost.

    Where nothing was lost, or the value is not finite, it stays.
    """
    bits = np.asarray(value).view(np.uint64)
    lost = (error != 0) & np.isfinite(error) & np.isfinite(value) & ((bits & _ONE) == 0)
    if not np.any(lost):
        return value
    # Toward the error: one step up in magnitude if the signs agree, else one step down.
    away = np.signbit(error) == np.signbit(value)
    moved = np.where(away, bits + _ONE, bits - _ONE)
    # Zero has no step down in magnitude; the error itself is then the whole value.
    odd = np.where(value == 0, error, moved.view(np.float64))
    return np.where(lost, odd, value)


def add_odd(a: Value, b: Value) -> Value:
    """`a + b` in float64, rounded to odd."""
    return to_odd(*two_sum(a, b))


def divide_odd(a: Value, b: Value) -> Value:
    """`a / b` rounded to odd, for float64 operands that came from single precision."""
    quotient = a / b
    product, error = two_product(quotient, b)
    remainder = (a - product) - error
    return to_odd(quotient, np.where(np.signbit(b), -remainder, remainder))


def square_root_odd(a: Value) -> Value:
    """The square root rounded to odd, for float64 operands that came from single precision."""
    root = np.sqrt(a)
    product, error = two_product(root, root)
    return to_odd(root, (a - product) - error)
