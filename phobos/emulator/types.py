"""PTX scalar types as NumPy sees them, and the register classes that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

WARP = 32
"""Threads of a warp."""

Value: TypeAlias = npt.NDArray[Any]
"""The values of one register or operand: one element a thread, or a scalar for all threads.

Scalars are NumPy scalars, which share the interface of arrays except for item assignment; type
checkers are told that they are arrays.
"""


def scalar(value: np.generic) -> Value:
    """A NumPy scalar as a value that all threads share."""
    return cast(Value, value)


Selection: TypeAlias = npt.NDArray[np.intp] | None
"""The threads that run: sorted indices into the wave, or None for every thread of it."""


class Kind(Enum):
    """What the bits of a type stand for."""

    UNSIGNED = "unsigned integer"
    SIGNED = "signed integer"
    BITS = "untyped bits"
    FLOAT = "float"
    PREDICATE = "predicate"


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A PTX type. `dtype` is what computes with it, `storage` the unsigned integer that holds it.

    Floats that NumPy lacks (bf16, tf32, the 8-bit and smaller ones) and packed pairs are computed
    on their storage; their `dtype` is the storage.
    """

    name: str
    bits: int
    kind: Kind
    dtype: np.dtype
    storage: np.dtype

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return self.bits // 8

    @property
    def is_signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.kind is Kind.SIGNED

    @property
    def is_float(self) -> bool:
        """Whether it is a float."""
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer."""
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)


UNSIGNED: Mapping[int, np.dtype] = {
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}
SIGNED: Mapping[int, np.dtype] = {
    8: np.dtype(np.int8),
    16: np.dtype(np.int16),
    32: np.dtype(np.int32),
    64: np.dtype(np.int64),
}
_NATIVE_FLOATS: Mapping[str, np.dtype] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
_RAW_FLOATS: Mapping[str, int] = {"bf16": 16, "tf32": 32}
_PACKED: Mapping[str, int] = {
    "f16x2": 32,
    "bf16x2": 32,
    "u16x2": 32,
    "s16x2": 32,
    "f32x2": 64,
    "e4m3x2": 16,
    "e5m2x2": 16,
    "e2m3x2": 16,
    "e3m2x2": 16,
    "e2m1x2": 8,
    "ue8m0x2": 16,
    "e4m3x4": 32,
    "e5m2x4": 32,
    "e2m1x4": 16,
}
_BOOL = np.dtype(np.bool_)


def _table() -> dict[str, ScalarType]:
    table = {"pred": ScalarType("pred", 1, Kind.PREDICATE, _BOOL, _BOOL)}
    for bits, storage in UNSIGNED.items():
        rows = (("u", Kind.UNSIGNED, storage), ("b", Kind.BITS, storage))
        for letter, kind, dtype in (*rows, ("s", Kind.SIGNED, SIGNED[bits])):
            name = f"{letter}{bits}"
            table[name] = ScalarType(name, bits, kind, dtype, storage)
    for name, dtype in _NATIVE_FLOATS.items():
        bits = dtype.itemsize * 8
        table[name] = ScalarType(name, bits, Kind.FLOAT, dtype, UNSIGNED[bits])
    for name, bits in _RAW_FLOATS.items():
        table[name] = ScalarType(name, bits, Kind.FLOAT, UNSIGNED[bits], UNSIGNED[bits])
    for name, bits in _PACKED.items():
        table[name] = ScalarType(name, bits, Kind.BITS, UNSIGNED[bits], UNSIGNED[bits])
    wide = np.dtype((np.void, 16))
    table["b128"] = ScalarType("b128", 128, Kind.BITS, wide, wide)
    return table


TYPES: Mapping[str, ScalarType] = _table()
"""Every type that an instruction suffix may name, by its PTX name."""

U8, U16, U32, U64 = (TYPES[f"u{bits}"] for bits in (8, 16, 32, 64))
S8, S16, S32, S64 = (TYPES[f"s{bits}"] for bits in (8, 16, 32, 64))
B8, B16, B32, B64 = (TYPES[f"b{bits}"] for bits in (8, 16, 32, 64))
B128 = TYPES["b128"]
F16, BF16, F32, F64 = (TYPES[name] for name in ("f16", "bf16", "f32", "f64"))
PRED = TYPES["pred"]
