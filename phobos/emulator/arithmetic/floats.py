"""IEEE arithmetic in f32 and f64 as PTX defines it, all rounding modes exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from phobos.emulator.arithmetic import double
from phobos.emulator.arithmetic.exact import add_odd, divide_odd, square_root_odd
from phobos.emulator.arithmetic.formats import CANONICAL_NAN, FORMATS, is_tiny, round_to
from phobos.emulator.types import Value

_SMALLEST_NORMAL = {
    np.dtype(np.float32): np.float32(2.0**-126),
    np.dtype(np.float64): np.float64(2.0**-1022),
}
_NANS = {
    np.dtype(np.float32): np.uint32(CANONICAL_NAN["f32"]).view(np.float32),
    np.dtype(np.float64): np.uint64(CANONICAL_NAN["f64"]).view(np.float64),
}
_SINGLE = FORMATS["f32"]
_QUIET = np.uint64(1 << 51)
_LOST_BITS = np.uint64(0x1FFF_FFFF)
_HALFWAY = np.uint64(0x1000_0000)
"""The 29 bits that f64 has beyond f32, and their value halfway between two f32."""


def canonical(value: Value) -> Value:
    """The same values with every NaN replaced by the one that the hardware makes."""
    missing = np.isnan(value)
    if not np.any(missing):
        return value
    return np.where(missing, _NANS[value.dtype], value)


def settle_nan(result: Value, operands: Sequence[Value]) -> Value:
    """The NaN results of an operation as the hardware gives them.

    In f32 they are all the same. In f64 the first operand that is NaN, in the order given, comes
    through with its quiet bit set; without one it is the default NaN.
    """
    missing = np.isnan(result)
    if not np.any(missing):
        return result
    settled = np.where(missing, _NANS[result.dtype], result)
    if result.dtype != np.float64:
        return settled
    for operand in reversed(operands):
        settled = np.where(missing & np.isnan(operand), quiet(operand), settled)
    return settled


def quiet(value: Value) -> Value:
    """f64 values with the quiet bit of NaN set; meaningless for numbers."""
    return (np.asarray(value).view(np.uint64) | _QUIET).view(np.float64)


def flush_subnormals(value: Value) -> Value:
    """`.ftz`: subnormal numbers become zeros of their sign."""
    small = (np.abs(value) < _SMALLEST_NORMAL[value.dtype]) & (value != 0)
    if not np.any(small):
        return value
    return np.where(small, np.copysign(value.dtype.type(0), value), value)


def saturate_unit(value: Value) -> Value:
    """`.sat`: clamped to [0, 1]; NaN becomes +0."""
    zero, one = value.dtype.type(0), value.dtype.type(1)
    return np.where(value > zero, np.minimum(value, one), zero)


def multiply_flushed(a: Value, b: Value, mode: str = "rn") -> Value:
    """`a * b` in f32 with tiny results flushed; the operands were flushed already."""
    exact = a.astype(np.float64) * b.astype(np.float64)
    return _flushed(multiply(a, b, mode), exact, mode)


def divide_flushed(a: Value, b: Value, mode: str = "rn") -> Value:
    """`a / b` in f32 with tiny results flushed."""
    exact = divide_odd(a.astype(np.float64), b.astype(np.float64))
    return _flushed(divide(a, b, mode), exact, mode)


def fma_flushed(a: Value, b: Value, c: Value, mode: str = "rn") -> Value:
    """`a * b + c` in f32 with tiny results flushed."""
    exact = add_odd(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
    return _flushed(fused_multiply_add(a, b, c, mode), exact, mode)


def _flushed(result: Value, exact: Value, mode: str) -> Value:
    tiny = is_tiny(exact, _SINGLE, mode)
    if not np.any(tiny):
        return result
    return np.where(tiny, np.copysign(np.float32(0), exact.astype(np.float32)), result)


# f32 ---------------------------------------------------------------------------------------------


def _single(value: Value, mode: str) -> Value:
    """float64, exact or rounded to odd, to f32."""
    if mode == "rn":
        return value.astype(np.float32)
    return round_to(value, _SINGLE, mode).astype(np.float32)


def _signed_zero_sum(result: Value, exact: Value, a: Value, b: Value, mode: str) -> Value:
    """An exact zero sum is -0 when rounding down, unless both terms are +0 (IEEE 754, 6.3)."""
    if mode != "rm":
        return result
    cancels = (exact == 0) & ~((a == 0) & (b == 0) & (np.signbit(a) == np.signbit(b)))
    return np.where(cancels, -np.abs(result), result)


def add(a: Value, b: Value, mode: str = "rn") -> Value:
    """`a + b`."""
    if mode == "rn":
        return a + b
    if a.dtype == np.float64:
        return double.add(a, b, mode)
    total = add_odd(a.astype(np.float64), b.astype(np.float64))
    return _signed_zero_sum(_single(total, mode), total, a, b, mode)


def multiply(a: Value, b: Value, mode: str = "rn") -> Value:
    """`a * b`."""
    if mode == "rn":
        return a * b
    if a.dtype == np.float64:
        return double.multiply(a, b, mode)
    return _single(a.astype(np.float64) * b.astype(np.float64), mode)


def divide(a: Value, b: Value, mode: str = "rn") -> Value:
    """`a / b`."""
    if mode == "rn":
        return a / b
    if a.dtype == np.float64:
        return double.divide(a, b, mode)
    return _single(divide_odd(a.astype(np.float64), b.astype(np.float64)), mode)


def square_root(a: Value, mode: str = "rn") -> Value:
    """The square root; of -0 it is -0."""
    if mode == "rn":
        return np.sqrt(a)
    if a.dtype == np.float64:
        return double.square_root(a, mode)
    return _single(square_root_odd(a.astype(np.float64)), mode)


def fused_multiply_add(a: Value, b: Value, c: Value, mode: str = "rn") -> Value:
    """`a * b + c` with one rounding."""
    if a.dtype == np.float64:
        return double.fused_multiply_add(a, b, c, mode)
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    if mode != "rn":
        total = add_odd(product, addend)
        return _signed_zero_sum(_single(total, mode), total, product, addend, mode)
    total = product + addend
    result = total.astype(np.float32)
    doubtful = (np.asarray(total).view(np.uint64) & _LOST_BITS) == _HALFWAY
    doubtful |= (np.abs(total) < 2.0**-126) & (total != 0)
    if np.any(doubtful):
        # Rounding twice may differ from rounding once only here.
        result = np.where(doubtful, add_odd(product, addend).astype(np.float32), result)
    return result


# Minimum and maximum -----------------------------------------------------------------------------


def minimum(a: Value, b: Value, *, propagate_nan: bool = False) -> Value:
    """The smaller operand; -0 is below +0. NaN counts as missing, or wins if it propagates."""
    return _extreme(a, b, np.minimum, np.bitwise_or, propagate_nan=propagate_nan)


def maximum(a: Value, b: Value, *, propagate_nan: bool = False) -> Value:
    """The larger operand, with the rules of `minimum`."""
    return _extreme(a, b, np.maximum, np.bitwise_and, propagate_nan=propagate_nan)


def _extreme(
    a: Value,
    b: Value,
    choose: Callable[[Value, Value], Value],
    combine_signs: Callable[[Value, Value], Value],
    *,
    propagate_nan: bool,
) -> Value:
    storage = np.dtype(f"u{a.dtype.itemsize}")
    result = choose(a, b)
    zeros = (a == 0) & (b == 0)
    if np.any(zeros):
        signed = combine_signs(np.asarray(a).view(storage), np.asarray(b).view(storage))
        result = np.where(zeros, signed.view(a.dtype), result)
    if not np.any(np.isnan(result)):
        return result
    # NumPy's own fmin and fmax do not always take a signalling NaN for missing.
    if not propagate_nan:
        result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
    return settle_nan(result, (b, a))
