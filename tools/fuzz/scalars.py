"""The scalar types as the language defines them, in NumPy: what they hold, how they mix and round.

Integers are arrays of their own width, `index` is int64, and floats of every type are float64
arrays whose elements the type can hold. `int` and `float` are literals that have met no type yet.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

INT_LITERAL, FLOAT_LITERAL, INDEX, BOOL = "int", "float", "index", "bool"
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
SMALL_FLOATS = ("f8e4m3", "f8e5m2")
FLOATS = ("f16", "bf16", "f32", "f64", *SMALL_FLOATS)
STORED = (BOOL, *SIGNED, *UNSIGNED, *FLOATS)

# Bits of the significand, exponent of the smallest subnormal number, the largest number.
_FORMATS = {
    "f8e4m3": (4, -9, 448.0),
    "f8e5m2": (3, -16, 57344.0),
    "f16": (11, -24, 65504.0),
    "bf16": (8, -133, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
    "f32": (24, -149, float(np.finfo(np.float32).max)),
    "f64": (53, -1074, float(np.finfo(np.float64).max)),
}
_ARRAYS = {
    BOOL: np.dtype(bool),
    INDEX: np.dtype(np.int64),
    **{name: np.dtype(f"int{name[1:]}") for name in SIGNED},
    **{name: np.dtype(f"uint{name[1:]}") for name in UNSIGNED},
    **dict.fromkeys(FLOATS, np.dtype(np.float64)),
}
_MEMORY = {
    **_ARRAYS,
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


def is_float(type_: str) -> bool:
    """Whether a type is a float type or a float literal."""
    return type_ in FLOATS or type_ == FLOAT_LITERAL


def is_integer(type_: str) -> bool:
    """Whether a type counts: an integer type, index or an integer literal."""
    return type_ in SIGNED or type_ in UNSIGNED or type_ in (INDEX, INT_LITERAL)


def is_literal(type_: str) -> bool:
    """Whether it is a literal that has met no type."""
    return type_ in (INT_LITERAL, FLOAT_LITERAL)


def bits(type_: str) -> int:
    """The width of a stored type."""
    return 8 * _MEMORY[type_].itemsize


def array_dtype(type_: str) -> np.dtype:
    """The NumPy type in which the evaluator computes with a type."""
    return _ARRAYS[type_]


def memory_dtype(type_: str) -> np.dtype:
    """The NumPy type of a tensor's memory."""
    return _MEMORY[type_]


def largest(type_: str) -> float:
    """The largest finite number of a float type."""
    return _FORMATS[type_][2]


def precision(type_: str) -> int:
    """The bits of a float type's significand."""
    return _FORMATS[type_][0]


def promote(left: str, right: str) -> str:
    """The type in which two values meet; ValueError where the language has none."""
    if left == right:
        return left
    if BOOL in (left, right):
        raise ValueError(f"{left} meets {right}")
    if is_literal(left) or is_literal(right):
        return _with_literal(left, right)
    if is_float(left) and is_float(right):
        if {left, right} == {"f16", "bf16"}:
            return "f32"
        return max(left, right, key=bits)
    if is_float(left) or is_float(right):
        return left if is_float(left) else right
    if INDEX in (left, right):
        other = right if left == INDEX else left
        if other in ("u32", "u64"):
            raise ValueError(f"{left} meets {right}")
        return INDEX
    if bits(left) == bits(right):
        raise ValueError(f"{left} meets {right}")
    return max(left, right, key=bits)


def _with_literal(left: str, right: str) -> str:
    if is_literal(left) and is_literal(right):
        return FLOAT_LITERAL
    literal, other = (left, right) if is_literal(left) else (right, left)
    return "f32" if literal == FLOAT_LITERAL and not is_float(other) else other


# Rounding ----------------------------------------------------------------------------------------


def unit(values: Doubles, type_: str) -> Doubles:
    """The distance of the numbers of a float type around each value."""
    digits, smallest, _ = _FORMATS[type_]
    exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))[1]
    exponents = np.where(values == 0, smallest, exponents - digits)
    return np.ldexp(1.0, np.maximum(exponents, smallest))


def granularity(data: Doubles) -> Doubles:
    """The largest power of two that divides each value; infinite for 0."""
    finite = np.where(np.isfinite(data), data, 0.0)
    mantissas, exponents = np.frexp(finite)
    whole = np.abs(mantissas * 2.0**53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.where(whole == 0, np.inf, np.ldexp(lowest, exponents - 53))


def round_to(values: Doubles, type_: str) -> Doubles:
    """The nearest numbers of a float type, ties to even.

    What is too large becomes infinite; the floats of 8 bits saturate instead.
    """
    if type_ == "f64":
        return values
    if type_ in ("f32", "f16"):
        return values.astype(_MEMORY[type_]).astype(np.float64)
    limit = _FORMATS[type_][2]
    quantum = unit(values, type_)
    rounded = np.rint(values / quantum) * quantum
    if type_ in SMALL_FLOATS:
        return np.clip(rounded, -limit, limit)
    return np.where(np.abs(rounded) > limit, np.copysign(np.inf, values), rounded)


def odd_sum(left: Doubles, right: Doubles) -> Doubles:
    """A sum rounded to odd: whatever is rounded from it to half the digits is rounded once."""
    total = left + right
    back = total - left
    rest = (left - (total - back)) + (right - back)
    is_even = (total.view(np.uint64) & 1) == 0
    moved = np.nextafter(total, np.copysign(np.inf, rest))
    is_moved = is_even & (rest != 0) & np.isfinite(total)
    return np.where(is_moved, moved, total)


def doubles(values: Array) -> Doubles:
    """Floats as float64, each NaN a quiet one, since `fmin` of others is NaN."""
    with np.errstate(invalid="ignore"):  # widening a signalling NaN quiets it
        wide = values.astype(np.float64)
    return np.where(np.isnan(wide), np.nan, wide)


def float_of_integers(values: Array, type_: str) -> Doubles:
    """Integers rounded once to a float type."""
    if type_ == "f64" or values.dtype.itemsize < 8:
        return round_to(values.astype(np.float64), type_)
    low = (values & values.dtype.type(0xFFFFFFFF)).astype(np.float64)
    high = (values >> values.dtype.type(32)).astype(np.float64) * 2.0**32
    return round_to(odd_sum(high, low), type_)


def integer_limits(type_: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    info = np.iinfo(np.int32 if type_ == INDEX else _ARRAYS[type_])
    return int(info.min), int(info.max)


def integers_of_floats(values: Doubles, type_: str) -> Array:
    """Floats cut toward zero; saturated, and 0 for NaN."""
    low, high = integer_limits(type_)
    dtype = _ARRAYS[type_]
    whole = np.trunc(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf))
    is_low, is_high = whole <= float(low), whole >= float(high)
    inside = np.where(is_low | is_high, 0.0, whole)
    cut = inside.astype(np.uint64 if type_ == "u64" else np.int64).astype(dtype)
    return np.where(is_low, dtype.type(low), np.where(is_high, dtype.type(high), cut))
