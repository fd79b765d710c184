"""Registers to elements and back, for every type that tensor cores take."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from phobos.emulator.arithmetic.formats import (
    CANONICAL_NAN,
    FORMATS,
    decode,
    half_from,
    half_to_single,
)

ELEMENT_BITS: Mapping[str, int] = {
    "f64": 64,
    "f32": 32,
    "s32": 32,
    "tf32": 32,
    "f16": 16,
    "bf16": 16,
    "e4m3": 8,
    "e5m2": 8,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "b1": 1,
}
"""Bits of one element inside its register."""

SMALL_FLOATS = frozenset({"e4m3", "e5m2"})
INTEGERS = frozenset({"s8", "u8", "s4", "u4"})


def per_register(kind: str) -> int:
    """Elements of one register: 32 bits, or 64 for f64. One-bit elements count as a word."""
    return 1 if kind in ("f64", "b1") else 32 // ELEMENT_BITS[kind]


def unpack(registers: npt.NDArray, kind: str) -> npt.NDArray:
    """Elements [warp, lane, element] as numbers, from registers [warp, lane, register].

    Floats come as float64, integers as int64, one-bit elements as the words themselves.
    """
    if kind == "f64":
        return registers.view(np.float64)
    if kind == "b1":
        return registers
    if kind == "s32":
        return registers.view(np.int32).astype(np.int64)
    if kind == "f32":
        return registers.view(np.float32).astype(np.float64)
    if kind == "tf32":
        return numbers(registers, kind)
    return numbers(_fields(registers, ELEMENT_BITS[kind]), kind)


def _fields(registers: npt.NDArray, bits: int) -> npt.NDArray:
    shifts = np.arange(32 // bits, dtype=np.uint32) * np.uint32(bits)
    fields = (registers[..., None] >> shifts) & np.uint32((1 << bits) - 1)
    return fields.reshape(*registers.shape[:2], -1)


def numbers(fields: npt.NDArray, kind: str) -> npt.NDArray:
    """What the bit patterns of elements stand for: float64, or int64 for integers.

    Args:
        fields: Patterns in unsigned integers, of 32 bits for tf32.
        kind: A type of factors of at least 4 bits that is no f64.
    """
    if kind == "tf32":
        # The multiplier does not see the low 13 bits.
        return (fields & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if kind in ("f16", "bf16"):
        return half_to_single(fields.astype(np.uint16), kind).astype(np.float64)
    if kind in SMALL_FLOATS:
        return decode(fields, FORMATS[kind])
    signed = fields.astype(np.int64)
    if kind[0] == "u":
        return signed
    bits = ELEMENT_BITS[kind]
    return signed - ((signed >> (bits - 1)) << bits)


def pack(elements: npt.NDArray, kind: str) -> npt.NDArray:
    """Registers [warp, lane, register] of accumulator elements [warp, lane, element]."""
    if kind == "f64":
        return np.ascontiguousarray(elements).view(np.uint64)
    if kind == "s32":
        return elements.astype(np.int32).view(np.uint32)
    if kind == "f32":
        bits = elements.astype(np.float32).view(np.uint32)
        return np.where(np.isnan(elements), np.uint32(CANONICAL_NAN["f32"]), bits)
    bits = half_from(elements, "f16").astype(np.uint32)
    return bits[..., 0::2] | (bits[..., 1::2] << np.uint32(16))
