"""Arithmetic of the compiler's own: what constant expressions are worth.

The rules are those of the language: integer `/` and `%` truncate toward zero, integers wrap at
their width, shifts move zeros or the sign in. Literals that have met no type have no width and
do not wrap. `index` has a width that is not known here, so its arithmetic is folded only while
it stays within 32 bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from phobos.frontend.types import BOOL, INDEX, Kind, ScalarType

Constant = int | float | bool

_INDEX_BITS = 32
# Literals compute exactly, so that only what comes out must fit the type it meets. The bound keeps
# a chain of products from growing without end.
_MAX_WEAK_BITS = 256
_MAX_WEAK_SHIFT = 64
_FLOAT_LIMITS = {
    "f8e4m3": 448.0,
    "f8e5m2": 57344.0,
    "f16": 65504.0,
    "bf16": struct.unpack("<f", b"\x00\x00\x7f\x7f")[0],
    "f32": struct.unpack("<f", b"\xff\xff\x7f\x7f")[0],
    "f64": math.inf,
}


def integer_range(type_: ScalarType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type (index: those of 32 bits)."""
    bits = type_.bits or _INDEX_BITS
    if type_.kind is Kind.WEAK_INT:
        return -(1 << _MAX_WEAK_BITS), 1 << _MAX_WEAK_BITS
    if type_.is_unsigned:
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def fits(value: Constant, type_: ScalarType) -> bool:
    """Whether a literal can take a type without changing its value beyond rounding."""
    if type_.is_integer:
        low, high = integer_range(type_)
        return low <= value <= high
    if type_.is_float and math.isfinite(value):
        # The last half of a unit in the last place still rounds down to the largest number;
        # a limit in the value itself keeps the message simple.
        return abs(value) <= _FLOAT_LIMITS.get(type_.name, math.inf)
    return True


def limits_text(type_: ScalarType) -> str:
    """The values a type can hold, for messages: `-128 to 127`."""
    if type_.is_float:
        return f"at most {_FLOAT_LIMITS[type_.name]:g} in magnitude"
    low, high = integer_range(type_)
    return f"{low} to {high}"


def wrap(value: int, type_: ScalarType) -> int | None:
    """`value` modulo the width of an integer type; None where index would leave 32 bits."""
    low, high = integer_range(type_)
    if low <= value <= high:
        return value
    if type_.bits == 0:
        return None
    value &= (1 << type_.bits) - 1
    return value - (1 << type_.bits) if value > high else value


def divide(left: int, right: int) -> int:
    """Integer division that truncates toward zero, as in `-7 / 2 == -3`."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int:
    """What `divide` leaves: it has the sign of the dividend, as in `-7 % 2 == -1`."""
    return left - right * divide(left, right)


# Bits of the significand, and the exponent of the smallest subnormal number.
_PRECISIONS = {
    "f8e4m3": (4, -9),
    "f8e5m2": (3, -16),
    "f16": (11, -24),
    "bf16": (8, -133),
    "f32": (24, -149),
}

_SATURATING = frozenset({"f8e4m3", "f8e5m2"})

_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}
_WEAK_FLOAT: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_COMPARE: dict[str, Callable[[Constant, Constant], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_LOGIC: dict[str, Callable[[bool, bool], bool]] = {
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
    "^": lambda a, b: a != b,
}


def fold_binary(
    operator: str, left: Constant, right: Constant, type_: ScalarType
) -> Constant | None:
    """The value of an operation on two constants of one type, or None if it is left to run time.

    A division by zero must have been refused before. Floats that have a type are left to run
    time, where `ptxas` and the hardware agree on their rounding; literals compute in double.
    """
    if type_ is BOOL:
        logic = _LOGIC.get(operator)
        return None if logic is None else logic(bool(left), bool(right))
    if type_.is_integer:
        return _fold_integer(operator, int(left), int(right), type_)
    if type_.kind is Kind.WEAK_FLOAT:
        return _fold_weak_float(operator, float(left), float(right))
    return None


def _fold_integer(operator: str, left: int, right: int, type_: ScalarType) -> int | None:
    if operator in ("/", "%") and right == 0:
        return None
    weak = type_.kind is Kind.WEAK_INT
    bits = _MAX_WEAK_SHIFT if weak else type_.bits or _INDEX_BITS
    if operator in ("<<", ">>") and not 0 <= right < bits:
        return None
    return wrap(_INTEGER[operator](left, right), type_)


def _fold_weak_float(operator: str, left: float, right: float) -> float | None:
    if operator == "/":
        return _divide_floats(left, right)
    if operator == "%":
        return math.fmod(left, right) if right and math.isfinite(left) else math.nan
    function = _WEAK_FLOAT.get(operator)
    return None if function is None else function(left, right)


def _divide_floats(left: float, right: float) -> float:
    """Division by IEEE rules, which Python's refuses to follow at zero."""
    if right:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def fold_compare(operator: str, left: Constant, right: Constant) -> bool:
    """The truth of a comparison of two constants."""
    return _COMPARE[operator](left, right)


def fold_negate(value: Constant, type_: ScalarType) -> Constant | None:
    """`-value`, wrapped at the width of an integer type."""
    return wrap(-int(value), type_) if type_.is_integer else -value


def fold_invert(value: int, type_: ScalarType) -> int | None:
    """`~value` in an integer type."""
    return wrap(~value, type_)


def round_float(value: float, type_: ScalarType) -> float:
    """The nearest value of a float type, ties to even; what is too large becomes infinite.

    A literal that has met no type yet is as exact as f64.
    """
    if not math.isfinite(value) or value == 0.0 or type_.is_weak or type_.bits == 64:
        return value
    if abs(value) > _FLOAT_LIMITS[type_.name]:
        return math.copysign(math.inf, value)
    digits, smallest = _PRECISIONS[type_.name]
    unit = max(math.frexp(value)[1] - digits, smallest)
    # A small negative number becomes -0.0, of which an int knows nothing.
    return math.copysign(math.ldexp(round(math.ldexp(value, -unit)), unit), value)


def fold_convert(value: Constant, source: ScalarType, target: ScalarType) -> Constant | None:
    """A constant in another type, or None if the conversion is left to run time.

    Floats go to integers by truncation toward zero, saturate at the ends and take NaN to 0. The
    8-bit floats saturate too.
    """
    if target is BOOL:
        return bool(value != 0)
    if target.name in _SATURATING and not math.isnan(value):
        limit = _FLOAT_LIMITS[target.name]
        value = max(-limit, min(limit, value))
    if target.is_float:
        exact = isinstance(value, float) or abs(value) < 2**53
        return round_float(float(value), target) if exact else None
    if source.is_integer or source is BOOL:
        return wrap(int(value), target)
    if target is INDEX and not fits(value, INDEX):
        return None
    if math.isnan(value):
        return 0
    low, high = integer_range(target)
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, math.trunc(value)))


_CALLS: dict[str, Callable[[list[Constant]], Constant]] = {
    "min": min,
    "max": max,
    "abs": lambda values: abs(values[0]),
}


def fold_call(name: str, values: list[Constant]) -> Constant | None:
    """The value of a built-in function of constants that are not NaN, or None."""
    function = _CALLS.get(name)
    if function is None or any(math.isnan(value) for value in values):
        return None
    return function(values)
