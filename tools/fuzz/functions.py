"""The elementwise built-in functions: `max`, `exp`, `where` and their like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tools.fuzz.elementwise import binary, convert, kind_of, limited, rounded_error
from tools.fuzz.scalars import (
    BOOL,
    INDEX,
    Array,
    Doubles,
    array_dtype,
    bits,
    is_float,
    odd_sum,
    round_to,
    unit,
)
from tools.fuzz.values import Misuse, Value, errors, join, settled


def select(condition: Value, left: Value, right: Value) -> Value:
    """`where(condition, left, right)` of choices of one type."""
    data = np.where(condition.data, left.data, right.data)
    error = None
    if condition.error is not None or left.error is not None or right.error is not None:
        error = np.where(condition.data, errors(left), errors(right))
        is_open = (errors(condition) > 0) & (left.data != right.data)
        error = np.where(is_open, np.inf, error)
    return Value(left.type, kind_of(condition, left, right), data, settled(error, data.shape))


def apply(name: str, type_: str, values: Sequence[Value]) -> Value:
    """A built-in function of values of one type."""
    if name in _EXTREMES:
        return _extreme(name, type_, *values)
    if name in _APPROXIMATE:
        return _approximate(_APPROXIMATE[name], type_, values)
    if name in _ROUNDINGS:
        return _to_whole(_ROUNDINGS[name], values[0])
    return _OTHERS[name](type_, *values)


# Exact -------------------------------------------------------------------------------------------

_EXTREMES = {"min": np.fmin, "max": np.fmax, "minnan": np.minimum, "maxnan": np.maximum}


def _extreme(name: str, type_: str, left: Value, right: Value) -> Value:
    data = np.asarray(_EXTREMES[name](left.data, right.data))
    error = join(left.error, right.error)
    constant = None
    if left.constant is not None and right.constant is not None:
        constant = int(data.reshape(-1)[0])
    error = settled(error, data.shape)
    return Value(type_, kind_of(left, right), data, error, constant=constant)


_ROUNDINGS: dict[str, Callable[[Doubles], Doubles]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}


def _to_whole(function: Callable[[Doubles], Doubles], value: Value) -> Value:
    data = function(value.data)
    error = value.error
    if error is not None:
        low, high = function(value.data - error), function(value.data + error)
        error = np.where(error > 0, np.maximum(np.abs(high - data), np.abs(data - low)), 0.0)
        error = settled(limited(value.type, data, error), data.shape)
    return Value(value.type, value.kind, data, error)


def _absolute(type_: str, value: Value) -> Value:
    with np.errstate(all="ignore"):
        return Value(type_, value.kind, np.asarray(np.abs(value.data)), value.error)


def _fma(type_: str, a: Value, b: Value, c: Value) -> Value:
    """A product and a sum with one rounding; that of f64 is left to the bound."""
    product = a.data * b.data
    is_off = any(value.error is not None for value in (a, b, c))
    ea, eb, ec = errors(a), errors(b), errors(c)
    # An infinite operand times a bound of 0 is no number, which stands for any.
    spread = np.abs(a.data) * eb + np.abs(b.data) * ea + ea * eb + ec if is_off else np.zeros(())
    if type_ == "f64":
        data = np.asarray(product + c.data)
        own = (np.abs(product) + np.abs(data)) * 2.0**-52
        error = limited(type_, data, spread + np.where(np.isfinite(data), own, 0.0))
        return Value(type_, kind_of(a, b, c), data, settled(error, data.shape))
    data = np.asarray(round_to(odd_sum(np.asarray(product), np.asarray(c.data)), type_))
    error = rounded_error(type_, data, spread) if is_off else None
    return Value(type_, kind_of(a, b, c), data, settled(error, data.shape))


# Of limited accuracy -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Approximate:
    """A function, how many ulp it may be off in f32 and f64, and whether it is monotonic.

    The bound of one that is not grows by `slope` of its operand's.
    """

    compute: Callable[..., Doubles]
    ulp: float
    slope: float | None = None


_erf_of = np.frompyfunc(__import__("math").erf, 1, 1)


def _erf(x: Doubles) -> Doubles:
    return np.asarray(_erf_of(x), np.float64)


_APPROXIMATE = {
    "exp": _Approximate(np.exp, 3.5),
    "exp2": _Approximate(np.exp2, 3),
    "log": _Approximate(np.log, 3),
    "log2": _Approximate(np.log2, 3),
    "sqrt": _Approximate(np.sqrt, 0),
    "rsqrt": _Approximate(lambda x: 1 / np.sqrt(x), 3),
    "sin": _Approximate(np.sin, 3, slope=1.0),
    "cos": _Approximate(np.cos, 3, slope=1.0),
    "tanh": _Approximate(np.tanh, 3),
    "erf": _Approximate(_erf, 3),
    "sigmoid": _Approximate(lambda x: 1 / (1 + np.exp(-x)), 6),
}


def _approximate(function: _Approximate, type_: str, values: Sequence[Value]) -> Value:
    (value,) = values
    exact = function.compute(value.data)
    data = np.asarray(round_to(np.asarray(exact), type_))
    spread = np.zeros(data.shape)
    if value.error is not None:
        spread = spread + _moved(function, value, exact)
    # A half is computed in f32 and rounded once.
    loose = min(function.ulp, 1.0) if type_ in ("f16", "bf16") else function.ulp
    own = loose * unit(np.abs(data) + spread, type_)
    own = np.where(_is_certain(value.data, data), 0.0, own)
    if type_ == "f32" and function.ulp:
        # `exp` and `exp2` may flush what is subnormal.
        own = np.maximum(own, np.where((np.abs(data) < 2.0**-125) & (data != 0), 2.0**-125, 0.0))
    error = rounded_error(type_, data, spread) if value.error is not None else None
    total = own if error is None else error + own
    if value.error is None:
        return Value(type_, value.kind, data, settled(_near_edge(type_, data, own), data.shape))
    return Value(type_, value.kind, data, settled(limited(type_, data, total), data.shape))


def _near_edge(type_: str, data: Doubles, own: Doubles) -> Doubles:
    """Bounds of exact operands; a finite value at the very end of the range may be infinite."""
    return limited(type_, data, np.where(np.isfinite(data), own, 0.0))


def _is_certain(argument: Doubles, result: Doubles) -> Array:
    """Where the result is special or 0, which is exact."""
    return ~np.isfinite(result) | ~np.isfinite(argument) | ((result == 0) & (argument == 0))


def _moved(function: _Approximate, value: Value, exact: Doubles) -> Doubles:
    """How far the result moves with its operand."""
    error = errors(value)
    if function.slope is not None:
        return function.slope * error
    ends = [function.compute(value.data + side) for side in (-error, error)]
    moved = np.maximum(*(np.abs(end - exact) for end in ends))
    return np.where(error > 0, np.where(np.isnan(moved), np.inf, moved), 0.0)


def _pow(type_: str, base: Value, exponent: Value) -> Value:
    with np.errstate(all="ignore"):
        exact = np.power(base.data, exponent.data)
    data = np.asarray(round_to(np.asarray(exact), type_))
    loose = (errors(base) > 0) | (errors(exponent) > 0) | (base.data == 0)
    own = 3 * unit(data, type_)
    own = np.maximum(own, np.where((np.abs(data) < 2.0**-125), 2.0**-125, 0.0))
    own = limited(type_, data, np.where(np.isfinite(data), own, 0.0))
    error = np.where(loose, np.inf, own)
    return Value(type_, kind_of(base, exponent), data, settled(error, data.shape))


# Bits --------------------------------------------------------------------------------------------


def _bit_planes(data: Array, width: int) -> Array:
    """The bits of each element along a new last axis, the lowest first."""
    words = data.astype(np.uint64)[..., None]
    return ((words >> np.arange(width, dtype=np.uint64)) & np.uint64(1)).astype(np.int64)


def _counted(type_: str, value: Value, counts: Array) -> Value:
    return Value("i32", value.kind, np.asarray(counts).astype(np.int32), value.error)


def _popcount(type_: str, value: Value) -> Value:
    return _counted(type_, value, _bit_planes(value.data, bits(type_)).sum(axis=-1))


def _clz(type_: str, value: Value) -> Value:
    planes = _bit_planes(value.data, bits(type_))[..., ::-1]
    return _counted(type_, value, (np.cumsum(planes, axis=-1) == 0).sum(axis=-1))


def _brev(type_: str, value: Value) -> Value:
    width = bits(type_)
    planes = _bit_planes(value.data, width)[..., ::-1].astype(np.uint64)
    words = (planes << np.arange(width, dtype=np.uint64)).sum(axis=-1, dtype=np.uint64)
    data = words.astype(f"u{width // 8}").view(array_dtype(type_))
    return Value(type_, value.kind, np.asarray(data), value.error)


def _byteperm(type_: str, a: Value, b: Value, selector: Value) -> Value:
    low = a.data.astype(np.uint64) & np.uint64(0xFFFFFFFF)
    pair = low | ((b.data.astype(np.uint64) & np.uint64(0xFFFFFFFF)) << np.uint64(32))
    chosen = selector.data.astype(np.uint64)
    out = np.zeros(np.broadcast(pair, chosen).shape, np.uint64)
    for place in range(4):
        nibble = (chosen >> np.uint64(4 * place)) & np.uint64(15)
        byte = (pair >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        sign = (byte >> np.uint64(7)) * np.uint64(255)
        out |= np.where(nibble >= 8, sign, byte) << np.uint64(8 * place)
    data = np.asarray(out.astype(np.uint32)).view(array_dtype(type_))
    error = join(join(a.error, b.error), selector.error)
    return Value(type_, kind_of(a, b, selector), data, settled(error, data.shape))


def _isnan(type_: str, value: Value) -> Value:
    data = np.isnan(value.data)
    error = None if value.error is None else np.where(np.isinf(value.error), np.inf, 0.0)
    return Value(BOOL, value.kind, data, settled(error, data.shape))


def _clamp(type_: str, value: Value, low: Value, high: Value) -> Value:
    return _extreme("min", type_, _extreme("max", type_, value, low), high)


_OTHERS: dict[str, Callable[..., Value]] = {
    "abs": _absolute,
    "fma": _fma,
    "pow": _pow,
    "popcount": _popcount,
    "clz": _clz,
    "brev": _brev,
    "byteperm": _byteperm,
    "isnan": _isnan,
    "clamp": _clamp,
}

ELEMENTWISE = frozenset({*_EXTREMES, *_APPROXIMATE, *_ROUNDINGS, *_OTHERS})
"""The names of the functions that `apply` knows."""


def check_operands(name: str, type_: str) -> None:
    """Refuse a function of a type that it is not defined on."""
    wants_float = name in _APPROXIMATE or name in _ROUNDINGS or name in ("fma", "pow", "isnan")
    wants_bits = name in ("popcount", "clz", "brev", "byteperm")
    if (wants_float and not is_float(type_)) or (
        wants_bits and (is_float(type_) or type_ == INDEX)
    ):
        raise Misuse(f"{name} of {type_}")


__all__ = ["ELEMENTWISE", "apply", "binary", "check_operands", "convert", "select"]
