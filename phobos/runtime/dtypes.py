"""The language's scalar types as NumPy, the array protocols and arguments know them."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_NUMPY_NAMES: dict[str, str] = {
    "bool": "bool",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
}
_LANGUAGE_NAMES = {numpy_name: name for name, numpy_name in _NUMPY_NAMES.items()}
EXTENSION_TYPES = frozenset({"bf16", "f8e4m3", "f8e5m2"})
"""Types that NumPy lacks; the package ml_dtypes adds them."""

# (type code, bits) of DLPack's DLDataType (dlpack.h).
_DLPACK_TYPES: dict[tuple[int, int], str] = {
    **{(0, bits): f"i{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"u{bits}" for bits in (8, 16, 32, 64)},
    **{(2, bits): f"f{bits}" for bits in (16, 32, 64)},
    (4, 16): "bf16",
    (6, 8): "bool",
    (10, 8): "f8e4m3",
    (12, 8): "f8e5m2",
}

_STRUCTS = {
    name: struct.Struct(code) for name, code in (("f16", "<e"), ("f32", "<f"), ("f64", "<d"))
}

FLOATS = frozenset({"f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"})
"""The floating-point types."""


@cache
def numpy_dtype(type_name: str) -> np.dtype:
    """The NumPy dtype of a scalar type of the language."""
    import numpy as np

    if type_name not in EXTENSION_TYPES:
        return np.dtype(_NUMPY_NAMES[type_name])
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, _NUMPY_NAMES[type_name]))


@cache
def language_type(dtype_name: str) -> str | None:
    """The language's name for a NumPy dtype (by its `name`), or None if it has none."""
    return _LANGUAGE_NAMES.get(dtype_name)


def dlpack_type(code: int, bits: int, lanes: int) -> str | None:
    """The language's name for a DLPack type, or None if it has none."""
    return _DLPACK_TYPES.get((code, bits)) if lanes == 1 else None


def is_unsigned(type_name: str) -> bool:
    """Whether a type is an unsigned integer."""
    return type_name.startswith("u")


def integer_range(type_name: str) -> tuple[int, int]:
    """The least and greatest value of an integer type; 0 and 1 for bool."""
    if type_name == "bool":
        return 0, 1
    bits = int(type_name[1:])
    if is_unsigned(type_name):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def float_bits(type_name: str, value: float) -> int:
    """The bit pattern of a float, rounded to nearest even; too large a value becomes inf.

    The 8-bit types round as ml_dtypes does: f8e4m3 has no inf and gives NaN.
    """
    layout = _STRUCTS.get(type_name)
    if layout is not None:
        return _struct_bits(layout, value)
    import numpy as np

    dtype = numpy_dtype(type_name)
    with np.errstate(over="ignore"):
        raw = np.float64(value).astype(dtype).tobytes()
    return int.from_bytes(raw, "little")


def _struct_bits(layout: struct.Struct, value: float) -> int:
    try:
        raw = layout.pack(value)
    except OverflowError:
        raw = layout.pack(float("inf") if value > 0 else float("-inf"))
    return int.from_bytes(raw, "little")
