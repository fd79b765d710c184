"""Operators and conversions, element by element, on arrays of one type.

Operands are values whose arrays NumPy broadcasts. Results are rounded as the language says, and
bounds are carried along: an operation on exact operands is exact, on inexact ones as far off as
its operands allow plus one rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tools.fuzz.scalars import (
    BOOL,
    INDEX,
    UNSIGNED,
    Array,
    Doubles,
    array_dtype,
    bits,
    doubles,
    float_of_integers,
    granularity,
    integers_of_floats,
    is_float,
    is_integer,
    largest,
    memory_dtype,
    precision,
    round_to,
    unit,
)
from tools.fuzz.terms import Terms
from tools.fuzz.values import Kind, Misuse, Value, errors, join, settled

CONTRACTED = ("f32", "f64")
"""The types whose product and sum a GPU's assembler may make one operation with one rounding."""

_INDEX_LIMIT = 1 << 31


def binary(op: str, type_: str, left: Value, right: Value, *, is_contracted: bool = False) -> Value:
    """`left op right` of two values of one type; comparisons give bools.

    `is_contracted` allows for products that are not rounded before they are added.
    """
    if op in _COMPARISONS:
        return _compare(op, type_, left, right)
    if is_float(type_):
        return _float_binary(op, type_, left, right, is_contracted)
    data = _integer_binary(op, type_, left.data, right.data)
    error = join(left.error, right.error)
    if op in ("/", "%") and np.any(right.data == 0):
        error = join(error, np.where(right.data == 0, np.inf, 0.0))
    constant = None
    if type_ == INDEX and left.constant is not None and right.constant is not None:
        constant = int(data.reshape(-1)[0])
    error = settled(error, data.shape)
    return Value(type_, kind_of(left, right), data, error, constant=constant)


def kind_of(*values: Value) -> Kind:
    """What operands make together."""
    return max((value.kind for value in values), key=lambda kind: kind.value)


# Integers ----------------------------------------------------------------------------------------


def _integer_binary(op: str, type_: str, left: Array, right: Array) -> Array:
    left, right = np.broadcast_arrays(left, right)
    if op in ("/", "%"):
        return _divide(op, left, right)
    if op in ("<<", ">>"):
        return _shift(op, type_, left, right)
    return np.asarray(_INTEGER[op](left, right))


_INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}


def _divide(op: str, left: Array, right: Array) -> Array:
    """Division toward zero; what a division by zero gives is not said, here it is 0."""
    dtype = left.dtype
    if dtype.kind == "u":
        safe = np.where(right == 0, dtype.type(1), right)
        quotient = left // safe
        return quotient if op == "/" else left - quotient * safe
    safe = np.where((right == 0) | (right == -1), dtype.type(1), right)
    quotient = left // safe
    rest = left - quotient * safe
    is_short = (rest != 0) & ((left < 0) != (safe < 0))
    quotient = quotient + is_short.astype(dtype)
    quotient = np.where(right == -1, np.zeros_like(left) - left, quotient)
    if op == "/":
        return quotient
    return np.where(right == -1, dtype.type(0), left - quotient * safe)


def _shift(op: str, type_: str, left: Array, right: Array) -> Array:
    """A count is unsigned; one of the width or more moves every bit out."""
    width = bits(type_) if type_ != INDEX else 32
    dtype = left.dtype
    is_out = (right < 0) | (right >= width)
    count = np.where(is_out, dtype.type(0), right)
    if op == "<<":
        return np.where(is_out, dtype.type(0), left << count)
    count = np.where(is_out, dtype.type(width - 1), right)
    last = left >> count
    return last if dtype.kind == "i" else np.where(is_out, dtype.type(0), last)


# Floats ------------------------------------------------------------------------------------------

_FLOAT: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}


def _float_binary(op: str, type_: str, left: Value, right: Value, is_contracted: bool) -> Value:
    if op not in _FLOAT:
        raise Misuse(f"{op} of {type_}")
    a, b = left.data, right.data
    exact = _FLOAT[op](a, b)
    data = np.asarray(round_to(np.asarray(exact), type_))
    spread = None
    if left.error is not None or right.error is not None:
        spread = _spread(op, a, b, errors(left), errors(right))
    error = rounded_error(type_, data, spread)
    if op == "+" and (left.terms is not None or right.terms is not None):
        error = _added_error(type_, data, left, right)
    if op == "/":
        # The sign of a zero is nowhere promised, so neither is the sign of an infinite quotient.
        is_pole = (b == 0) & (a != 0) & ~np.isnan(a)
        if np.any(is_pole):
            error = join(error, np.where(is_pole, np.inf, 0.0))
    if op == "*" and type_ in CONTRACTED and is_contracted:
        error = join(error, _unrounded_error(type_, a, b, data))
    return Value(type_, kind_of(left, right), data, settled(error, data.shape))


def _unrounded_error(type_: str, a: Doubles, b: Doubles, data: Doubles) -> Doubles:
    """How far products are from what they were before they were rounded to `data`.

    Of two odd numbers the product is odd, too: with the powers of two left out of a and b it has
    all the bits that it needs, and is exact if these fit the type.
    """
    grain = granularity(a) * granularity(b)
    smallest = unit(np.zeros(1), type_)[0]
    is_exact = (np.abs(a * b) <= grain * 2.0 ** precision(type_)) & (grain >= smallest)
    lost = np.where(is_exact, 0.0, np.maximum(unit(data, type_) / 2, smallest))
    # An infinite product of numbers may become one again with what is added to it.
    lost = np.where(np.isfinite(data), lost, np.inf)
    return np.where(np.isfinite(a) & np.isfinite(b), lost, 0.0)


def _added_error(type_: str, data: Doubles, left: Value, right: Value) -> Doubles:
    """The bound where a product of matrices meets an addend, which may be one of its terms."""
    terms = _terms(left) + _terms(right)
    return limited(type_, data, terms.error(type_, data))


def _terms(value: Value) -> Terms:
    return value.terms or Terms.of_value(value.data, errors(value))


def _spread(op: str, a: Array, b: Array, ea: Doubles, eb: Doubles) -> Doubles:
    if op in ("+", "-"):
        return ea + eb
    if op == "*":
        return _times(np.abs(a), eb) + _times(np.abs(b), ea) + _times(ea, eb)
    if op == "%":
        return np.where((ea == 0) & (eb == 0), 0.0, np.inf)
    room = np.abs(b) - eb
    spread = (_times(np.abs(a), eb) + _times(np.abs(b), ea)) / (np.abs(b) * room)
    spread = np.where(room > 0, spread, np.inf)
    return np.where((ea == 0) & (eb == 0), 0.0, spread)


def _times(size: Array, error: Doubles) -> Doubles:
    """A product in which a bound of 0 makes nothing of infinity.

    What may be any value may be no number, and 0 times that is none either.
    """
    product = np.where(np.isinf(error), np.inf, size * error)
    return np.where(error == 0, 0.0, product)


def rounded_error(type_: str, data: Doubles, spread: Doubles | None) -> Doubles | None:
    """The bound behind a rounding, of a result that was off by `spread` before it."""
    if spread is None:
        return None
    spread = np.where(np.isnan(spread), np.inf, spread)
    reach = np.abs(data) + spread
    error = np.where(spread > 0, spread + unit(reach, type_), 0.0)
    is_wild = (spread > 0) & ~(reach + error < largest(type_))
    return np.where(is_wild, np.inf, error)


def limited(type_: str, data: Doubles, error: Doubles) -> Doubles:
    """A bound that is infinite where the value could leave the range of its type."""
    error = np.where(np.isnan(error), np.inf, error)
    is_wild = (error > 0) & ~(np.abs(data) + error < largest(type_))
    return np.where(is_wild, np.inf, error)


# Comparisons -------------------------------------------------------------------------------------

_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _compare(op: str, type_: str, left: Value, right: Value) -> Value:
    data = np.asarray(_COMPARISONS[op](left.data, right.data))
    error = None
    if left.error is not None or right.error is not None:
        distance = errors(left) + errors(right)
        if is_float(type_):
            gap = np.abs(left.data - right.data)
            is_open = (distance > 0) & ~(gap > distance)
        else:
            is_open = distance > 0
        error = np.where(is_open, np.inf, 0.0)
    return Value(BOOL, kind_of(left, right), data, settled(error, data.shape))


# One operand -------------------------------------------------------------------------------------


def negate(value: Value) -> Value:
    """`-value`, which wraps at the width of an integer."""
    if is_float(value.type):
        return replace(value, data=-value.data)
    constant = None if value.constant is None else -value.constant
    zero = value.data.dtype.type(0)
    return replace(value, data=np.asarray(zero - value.data), constant=constant)


def invert(value: Value) -> Value:
    """`~value` of an integer, `!value` of a bool."""
    constant = None if value.constant is None or value.type == BOOL else ~value.constant
    return replace(value, data=~value.data, constant=constant)


# Conversions -------------------------------------------------------------------------------------


def convert(value: Value, type_: str) -> Value:
    """`type_(value)`: floats are cut toward zero and saturate, integers wrap, rounding is to even.

    Any number but 0, NaN too, is the bool `true`.
    """
    source = value.type
    if source == type_:
        return value
    value = replace(value, constant=value.constant if type_ == INDEX else None)
    if type_ == BOOL:
        return _to_bool(value)
    if is_float(source):
        return _from_float(value, type_)
    data = value.data.astype(np.int8) if source == BOOL else value.data
    if is_float(type_):
        result = float_of_integers(data, type_)
        return replace(value, type=type_, data=np.asarray(result))
    data = data.astype(array_dtype(type_))
    if type_ == INDEX:
        data = ((data + _INDEX_LIMIT) & (2 * _INDEX_LIMIT - 1)) - _INDEX_LIMIT
    return replace(value, type=type_, data=data)


def _to_bool(value: Value) -> Value:
    data = value.data != 0
    error = value.error
    if error is not None and is_float(value.type):
        is_open = (error > 0) & ~(np.abs(value.data) > error)
        error = settled(np.where(is_open, np.inf, 0.0), data.shape)
    return Value(BOOL, value.kind, data, error)


def _from_float(value: Value, type_: str) -> Value:
    data, error = value.data, value.error
    if is_float(type_):
        result = np.asarray(round_to(data, type_))
        if error is not None:
            error = settled(rounded_error(type_, result, error), result.shape)
        return Value(type_, value.kind, result, error)
    result = integers_of_floats(data, type_)
    if error is not None:
        low, high = (integers_of_floats(data + side, type_) for side in (-error, error))
        error = settled(np.where((low != high) | np.isnan(data), np.inf, 0.0), result.shape)
    return Value(type_, value.kind, np.asarray(result), error)


def bitcast(value: Value, type_: str) -> Value:
    """The bits of a value as another type; those of NaN and the sign of 0 are nowhere promised."""
    memory = value.data.astype(memory_dtype(value.type))
    data = memory.view(memory_dtype(type_))
    error = None
    if is_float(value.type):
        loose = (errors(value) > 0) | np.isnan(value.data) | (value.data == 0)
        error = settled(np.where(loose, np.inf, 0.0), data.shape)
    elif value.error is not None:
        error = value.error
    if is_float(type_):
        data = doubles(data)
    return Value(type_, value.kind, np.asarray(data), error)


def is_unsigned(type_: str) -> bool:
    """Whether a type has no negative numbers."""
    return type_ in UNSIGNED


def is_number(type_: str) -> bool:
    """Whether arithmetic is defined on a type."""
    return is_integer(type_) or is_float(type_)
