"""f64 arithmetic with one rounding: the fused operation, and the directed modes of all others.

NumPy rounds to nearest. What it lost is found by error-free sums and products, which say whether
a result is too high or too low. Results near the ends of the exponent range, where those are not
exact, are computed with rational numbers, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from phobos.emulator.arithmetic.exact import add_odd, two_product, two_sum
from phobos.emulator.types import Value

_SMALLEST_NORMAL = 2.0**-1022
_SAFE_LOW, _SAFE_HIGH = 2.0**-450, 2.0**450

Flags = npt.NDArray[np.bool_]


def add(a: Value, b: Value, mode: str) -> Value:
    """`a + b` in a directed mode."""
    nearest, error = two_sum(a, b)
    result = _step(nearest, error, mode)
    if mode == "rm":
        # An exact zero sum is -0 when rounding down, unless both terms are +0.
        same = (a == 0) & (b == 0) & (np.signbit(a) == np.signbit(b))
        result = np.where((nearest == 0) & (error == 0) & ~same, -0.0, result)
    unsafe = ~np.isfinite(nearest) & np.isfinite(a) & np.isfinite(b)
    return _one_by_one(result, unsafe, (a, b), lambda x, y: x + y, mode)


def multiply(a: Value, b: Value, mode: str) -> Value:
    """`a * b` in a directed mode."""
    nearest = a * b
    _, error = two_product(np.frexp(a)[0], np.frexp(b)[0])
    result = _step(nearest, error, mode)
    unsafe = _is_extreme(nearest) & np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    return _one_by_one(result, unsafe, (a, b), lambda x, y: x * y, mode)


def divide(a: Value, b: Value, mode: str) -> Value:
    """`a / b` in a directed mode."""
    nearest = a / b
    dividend, divisor = np.frexp(a)[0], np.frexp(b)[0]
    quotient = dividend / divisor
    product, low = two_product(quotient, divisor)
    remainder = (dividend - product) - low
    error = np.where(np.signbit(divisor), -remainder, remainder)
    result = _step(nearest, error, mode)
    unsafe = _is_extreme(nearest) & np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    return _one_by_one(result, unsafe, (a, b), lambda x, y: x / y, mode)


def square_root(a: Value, mode: str) -> Value:
    """The square root in a directed mode; it is never near the ends of the range."""
    nearest = np.sqrt(a)
    mantissa, exponent = np.frexp(a)
    mantissa = np.where(exponent % 2 == 0, mantissa, mantissa * 2)
    root = np.sqrt(mantissa)
    product, low = two_product(root, root)
    return _step(nearest, (mantissa - product) - low, mode)


def fused_multiply_add(a: Value, b: Value, c: Value, mode: str = "rn") -> Value:
    """`a * b + c` with one rounding."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = two_product(a, b)
    t_high, t_low = two_sum(c, low)
    v_high, v_low = two_sum(high, t_high)
    tail = add_odd(t_low, v_low)
    result, error = two_sum(v_high, tail)
    if mode != "rn":
        result = _step(result, np.where(error == 0, _lost(t_low, v_low, tail), error), mode)
        result = np.where(result == 0, _zero_sum(a, b, c, mode), result)
    magnitudes = [np.abs(x) for x in (a, b, c)]
    safe = np.ones(a.shape, dtype=np.bool_)
    for magnitude in magnitudes:
        safe &= (magnitude > _SAFE_LOW) & (magnitude < _SAFE_HIGH)
    if safe.all():
        return result
    return _fma_extremes(result, safe, a, b, c, mode)


def _lost(a: Value, b: Value, odd: Value) -> Value:
    """What rounding `a + b` to odd lost, or at least its sign."""
    total, error = two_sum(a, b)
    return np.where(total == odd, error, total - odd)


def _fma_extremes(result: Value, safe: Flags, a: Value, b: Value, c: Value, mode: str) -> Value:
    """The fused operation where an operand is zero, infinite, NaN, tiny or huge."""
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    # Where nothing is finite, plain arithmetic is right, save that a huge product is no infinity.
    infinite = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)
    result = np.where(finite, result, infinite)
    vanishes = finite & ((a == 0) | (b == 0))
    sums = np.where(c == 0, _zero_sum(a, b, c, mode), c)
    result = np.where(vanishes, sums, result)
    hard = finite & ~safe & ~vanishes
    return _one_by_one(
        result, hard, (a, b, c), lambda x, y, z: x * y + z, mode, _zero_sum(a, b, c, mode)
    )


def _zero_sum(a: Value, b: Value, c: Value, mode: str) -> Value:
    """The zero that `a * b + c` gives where it is exactly zero."""
    product_negative = np.signbit(a) != np.signbit(b)
    agree = product_negative == np.signbit(c)
    other = -0.0 if mode == "rm" else 0.0
    return np.where(agree, np.where(product_negative, -0.0, 0.0), other)


# Steps -------------------------------------------------------------------------------------------


def _is_extreme(result: Value) -> Flags:
    """Whether a result may be rounded at a place that its exponent moved: tiny or too large."""
    return ~(np.abs(result) > _SMALLEST_NORMAL) | np.isinf(result)


def _step(nearest: Value, error: Value, mode: str) -> Value:
    """Results in a directed mode from those to nearest; `error` has the sign of what is missing."""
    down, up = np.nextafter(nearest, -np.inf), np.nextafter(nearest, np.inf)
    if mode == "rm":
        return np.where(error < 0, down, nearest)
    if mode == "rp":
        return np.where(error > 0, up, nearest)
    inward = np.where(nearest > 0, (error < 0), (error > 0))
    return np.where(inward, np.where(nearest > 0, down, up), nearest)


def _one_by_one(
    result: Value,
    unsafe: Flags,
    operands: tuple[Value, ...],
    operation: Callable[..., Fraction],
    mode: str,
    zero: Value | None = None,
) -> Value:
    """Replace the results marked unsafe by rational arithmetic."""
    places = np.flatnonzero(unsafe)
    if not len(places):
        return result
    flat = np.array(np.broadcast_to(result, unsafe.shape)).reshape(-1)
    arrays = [np.broadcast_to(x, unsafe.shape).reshape(-1) for x in operands]
    zeros = None if zero is None else np.broadcast_to(zero, unsafe.shape).reshape(-1)
    for place in places.tolist():
        exact = operation(*(Fraction(float(array[place])) for array in arrays))
        if exact == 0 and zeros is not None:
            flat[place] = zeros[place]
        else:
            flat[place] = round_rational(exact, mode)
    return flat.reshape(unsafe.shape)


def round_rational(exact: Fraction, mode: str) -> float:
    """A rational number other than zero, rounded to f64."""
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    sign = 1.0 if exact > 0 else -1.0
    if mode == "rn":
        # An underflow to zero keeps the sign.
        return math.copysign(nearest, sign)
    if math.isinf(nearest):
        down = math.nextafter(math.inf, 0.0) if nearest > 0 else nearest
    else:
        down = nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)
    if math.isfinite(down) and Fraction(down) == exact:
        return down
    up = math.nextafter(down, math.inf)
    toward_zero = down if exact > 0 else up
    return math.copysign({"rz": toward_zero, "rm": down, "rp": up}[mode], sign)
