"""IEEE arithmetic in f32 and f64 as PTX defines it, all rounding modes exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from phobos.emulator.arithmetic.exact import (
    add_odd,
    divide_odd,
    square_root_odd,
    two_product,
    two_sum,
)
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
        return _double_directed(a, b, None, mode, "add")
    total = add_odd(a.astype(np.float64), b.astype(np.float64))
    return _signed_zero_sum(_single(total, mode), total, a, b, mode)


def multiply(a: Value, b: Value, mode: str = "rn") -> Value:
    """`a * b`."""
    if mode == "rn":
        return a * b
    if a.dtype == np.float64:
        return _double_directed(a, b, None, mode, "mul")
    return _single(a.astype(np.float64) * b.astype(np.float64), mode)


def divide(a: Value, b: Value, mode: str = "rn") -> Value:
    """`a / b`."""
    if mode == "rn":
        return a / b
    if a.dtype == np.float64:
        return _double_directed(a, b, None, mode, "div")
    return _single(divide_odd(a.astype(np.float64), b.astype(np.float64)), mode)


def square_root(a: Value, mode: str = "rn") -> Value:
    """The square root; of -0 it is -0."""
    if mode == "rn":
        return np.sqrt(a)
    if a.dtype == np.float64:
        return _double_directed(a, a, None, mode, "sqrt")
    return _single(square_root_odd(a.astype(np.float64)), mode)


def fused_multiply_add(a: Value, b: Value, c: Value, mode: str = "rn") -> Value:
    """`a * b + c` with one rounding."""
    if a.dtype == np.float64:
        return _double_fma(a, b, c) if mode == "rn" else _double_directed(a, b, c, mode, "fma")
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


# f64 ---------------------------------------------------------------------------------------------

_SAFE_LOW, _SAFE_HIGH = 2.0**-450, 2.0**450


def _double_fma(a: Value, b: Value, c: Value) -> Value:
    """The fused operation in f64 by error-free sums; elements near the ends of the range apart."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = two_product(a, b)
    t_high, t_low = two_sum(c, low)
    v_high, v_low = two_sum(high, t_high)
    result = v_high + add_odd(t_low, v_low)
    magnitudes = [np.abs(x) for x in (a, b, c)]
    safe = np.ones(a.shape, dtype=np.bool_)
    for magnitude in magnitudes:
        safe &= (magnitude > _SAFE_LOW) & (magnitude < _SAFE_HIGH)
    if safe.all():
        return result
    # Zeros, infinities and NaN need one rounding at most: plain arithmetic is right, save where
    # a nonzero product is added.
    plain = (magnitudes[0] == 0) | (magnitudes[1] == 0)
    for magnitude in magnitudes:
        plain |= ~np.isfinite(magnitude)
    simple = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)
    result = np.where(plain, simple, result)
    hard = np.flatnonzero(~(safe | plain))
    flat = result.reshape(-1)
    for index in hard:
        operands = (float(x.reshape(-1)[index]) for x in (a, b, c))
        flat[index] = _exact_double(
            _fma_exact(*operands), "rn", _fma_zero(a, b, c, int(index), "rn")
        )
    return flat.reshape(result.shape)


def _fma_exact(a: float, b: float, c: float) -> Fraction:
    return Fraction(a) * Fraction(b) + Fraction(c)


def _fma_zero(a: Value, b: Value, c: Value, index: int, mode: str) -> float:
    """The zero that the fused operation gives when its exact result is zero."""
    parts = [x.reshape(-1)[index] for x in (a, b, c)]
    product_negative = bool(np.signbit(parts[0]) != np.signbit(parts[1]))
    if product_negative == bool(np.signbit(parts[2])):
        return -0.0 if product_negative else 0.0
    return -0.0 if mode == "rm" else 0.0


def _exact_double(exact: Fraction, mode: str, zero: float) -> float:
    """A rational number rounded to f64."""
    if exact == 0:
        return zero
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    if mode == "rn":
        # An underflow to zero keeps the sign.
        return math.copysign(nearest, 1.0 if exact > 0 else -1.0)
    down = _largest_not_above(exact, nearest)
    if Fraction(down) == exact if math.isfinite(down) else False:
        return down
    up = math.nextafter(down, math.inf)
    toward_zero = down if exact > 0 else up
    chosen = {"rz": toward_zero, "rm": down, "rp": up}[mode]
    return math.copysign(chosen, 1.0 if exact > 0 else -1.0)


def _largest_not_above(exact: Fraction, nearest: float) -> float:
    if math.isinf(nearest):
        return math.nextafter(math.inf, 0.0) if nearest > 0 else nearest
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def _double_directed(a: Value, b: Value, c: Value | None, mode: str, operation: str) -> Value:
    """f64 operations in a directed mode, one element at a time: rare, so plain is best."""
    third = np.float64(0) if c is None else c
    shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(third))
    arrays = [np.broadcast_to(x, shape).reshape(-1) for x in (a, b, third)]
    nearest = _NEAREST[operation](*arrays)
    result = nearest.copy()
    for index in range(len(result)):
        operands = [float(x[index]) for x in arrays]
        if not all(math.isfinite(x) for x in operands):
            continue
        result[index] = _directed_element(operation, operands, float(nearest[index]), mode)
    return result.reshape(shape)


_NEAREST: Mapping[str, Callable[[Value, Value, Value], Value]] = {
    "add": lambda a, b, c: a + b,
    "mul": lambda a, b, c: a * b,
    "div": lambda a, b, c: a / b,
    "sqrt": lambda a, b, c: np.sqrt(a),
    "fma": _double_fma,
}


def _directed_element(operation: str, operands: list[float], nearest: float, mode: str) -> float:
    a, b, c = operands
    if operation == "sqrt":
        return _directed_root(a, nearest, mode)
    if operation == "div":
        if b == 0 or a == 0:
            return nearest
        return _exact_double(Fraction(a) / Fraction(b), mode, nearest)
    if operation == "mul":
        return _exact_double(Fraction(a) * Fraction(b), mode, nearest)
    if operation == "add":
        zero = -0.0 if mode == "rm" and not (a == b == 0 and nearest == 0) else nearest
        if a == b == 0 and math.copysign(1, a) != math.copysign(1, b) and mode == "rm":
            zero = -0.0
        return _exact_double(Fraction(a) + Fraction(b), mode, zero)
    arrays = [np.array([x]) for x in operands]
    zero = _fma_zero(arrays[0], arrays[1], arrays[2], 0, mode)
    return _exact_double(_fma_exact(a, b, c), mode, zero)


def _directed_root(a: float, nearest: float, mode: str) -> float:
    if a <= 0:
        return nearest
    square = Fraction(nearest) ** 2
    if square == Fraction(a):
        return nearest
    if mode == "rp":
        return nearest if square > Fraction(a) else math.nextafter(nearest, math.inf)
    return nearest if square < Fraction(a) else math.nextafter(nearest, 0.0)


# Minimum and maximum -----------------------------------------------------------------------------


def minimum(a: Value, b: Value, *, propagate_nan: bool = False) -> Value:
    """The smaller operand; -0 is below +0. NaN counts as missing, or wins if it propagates."""
    return _extreme(a, b, np.fmin, np.bitwise_or, propagate_nan=propagate_nan)


def maximum(a: Value, b: Value, *, propagate_nan: bool = False) -> Value:
    """The larger operand, with the rules of `minimum`."""
    return _extreme(a, b, np.fmax, np.bitwise_and, propagate_nan=propagate_nan)


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
    if propagate_nan:
        result = np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), result)
    return settle_nan(result, (b, a))
