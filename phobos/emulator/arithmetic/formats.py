"""Floating-point formats and rounding into them, in every mode, from float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phobos.emulator.types import UNSIGNED, ScalarType, Value

ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")
"""To nearest even, toward zero, down, up, to nearest with ties away from zero."""


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: `precision` significant bits, exponents from `lowest` to `highest`.

    `bits` counts the whole encoding. A format without infinity saturates or has NaN for it
    (`nan` is None if it has neither). `largest` is the greatest finite value.
    """

    name: str
    bits: int
    precision: int
    lowest: int
    highest: int
    has_infinity: bool
    nan: int | None
    largest: float
    is_signed: bool = True

    @property
    def mantissa_bits(self) -> int:
        """Stored bits of the significand."""
        return self.precision - 1

    @property
    def bias(self) -> int:
        """What the exponent field adds to the exponent."""
        return 1 - self.lowest


def _format(name: str, exponent: int, mantissa: int, *, infinity: bool = True) -> Format:
    lowest = 2 - (1 << (exponent - 1))
    highest = (1 << (exponent - 1)) - 1
    bits = 1 + exponent + mantissa
    largest = (2 - 2.0**-mantissa) * 2.0**highest
    nan = (1 << (bits - 1)) - 1
    return Format(name, bits, mantissa + 1, lowest, highest, infinity, nan, largest)


FORMATS: Mapping[str, Format] = {
    "f32": _format("f32", 8, 23),
    "f16": _format("f16", 5, 10),
    "bf16": _format("bf16", 8, 7),
    "tf32": Format("tf32", 32, 11, -126, 127, True, 0x7FFFFFFF, (2 - 2.0**-10) * 2.0**127),
    "e5m2": _format("e5m2", 5, 2),
    "e4m3": Format("e4m3", 8, 4, -6, 8, False, 0x7F, 448.0),
    "e3m2": Format("e3m2", 6, 3, -2, 4, False, None, 28.0),
    "e2m3": Format("e2m3", 6, 4, 0, 2, False, None, 7.5),
    "e2m1": Format("e2m1", 4, 2, 0, 2, False, None, 6.0),
}
"""Formats by PTX name. tf32 keeps its 19 bits at the top of 32."""

_UNBOUNDED: Mapping[str, Format] = {
    name: replace(FORMATS[name], lowest=-1000) for name in ("f32", "f16", "bf16")
}

CANONICAL_NAN: Mapping[str, int] = {
    "f16": 0x7FFF,
    "bf16": 0x7FFF,
    "f32": 0x7FFFFFFF,
    "f64": 0xFFF8000000000000,
}
"""The NaN that arithmetic instructions produce."""

_INTEGRAL: Mapping[str, Callable[[Value], Value]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
}


def is_tiny(exact: Value, form: Format, mode: str = "rn") -> Value:
    """Whether `.ftz` flushes a result: it is below the normal numbers once it was rounded.

    Rounded is to the precision of the format with no bound on the exponent, so that a number just
    below the smallest normal one is flushed unless it rounds up to that. `exact` is float64,
    rounded to odd at most.
    """
    smallest = 2.0**form.lowest
    near = (np.abs(exact) < smallest) & (exact != 0)
    if not np.any(near):
        return near
    return near & (np.abs(round_to(exact, _UNBOUNDED[form.name], mode)) < smallest)


def round_integral(value: Value, mode: str) -> Value:
    """Floats rounded to whole numbers."""
    if mode != "rna":
        return _INTEGRAL[mode](value)
    whole = np.trunc(value)
    away = np.abs(value - whole) >= 0.5
    return np.where(away, whole + np.copysign(1.0, value), whole)


def round_to(value: Value, form: Format, mode: str = "rn", *, saturate: bool = False) -> Value:
    """float64 values rounded to values of a format, still as float64.

    Values that were rounded to odd give the correct result of one rounding. Too large ones become
    infinity or, by mode or with `saturate`, the largest finite value. NaN stays NaN.
    """
    _, exponent = np.frexp(value)
    quantum = np.maximum(exponent - form.precision, form.lowest - form.mantissa_bits)
    rounded = np.ldexp(round_integral(np.ldexp(value, -quantum), mode), quantum)
    rounded = np.where(np.isfinite(value), rounded, value)
    over = np.abs(rounded) > form.largest
    if not np.any(over):
        return rounded
    limit = np.copysign(form.largest, value)
    if saturate:
        return np.where(over, limit, rounded)
    beyond = np.copysign(np.inf, value)
    if mode in ("rn", "rna"):
        return np.where(over, beyond, rounded)
    keeps = {"rz": np.ones_like(over), "rm": value > 0, "rp": value < 0}[mode]
    return np.where(over, np.where(keeps & np.isfinite(value), limit, beyond), rounded)


def encode(value: Value, form: Format) -> Value:
    """The bit patterns of float64 values that the format holds exactly, in a wide enough type."""
    storage = UNSIGNED[max(8, 1 << (form.bits - 1).bit_length())]
    _, exponent = np.frexp(value)
    field = np.maximum(exponent.astype(np.int64) - 1, form.lowest)
    scaled = np.ldexp(np.abs(value), form.mantissa_bits - field)
    finite = np.isfinite(scaled)
    significand = np.where(finite, scaled, 0.0).astype(np.int64)
    # The hidden bit carries into the exponent field, so subnormal numbers need no case apart.
    pattern = ((field - form.lowest) << form.mantissa_bits) + significand
    pattern = np.where(value == 0, 0, pattern)
    exponent_mask = ((1 << (form.bits - 1 - form.mantissa_bits)) - 1) << form.mantissa_bits
    pattern = np.where(np.isinf(value), exponent_mask, pattern)
    pattern = pattern | (np.signbit(value).astype(np.int64) << (form.bits - 1))
    if form.nan is not None:
        pattern = np.where(np.isnan(value), form.nan, pattern)
    return pattern.astype(storage)


def decode(pattern: Value, form: Format) -> Value:
    """float64 values of bit patterns of a format of at most 16 bits."""
    bits = pattern.astype(np.int64) & ((1 << form.bits) - 1)
    mantissa = bits & ((1 << form.mantissa_bits) - 1)
    top = (1 << (form.bits - 1 - form.mantissa_bits)) - 1
    exponent = (bits >> form.mantissa_bits) & top
    normal = exponent > 0
    significand = mantissa + (normal.astype(np.int64) << form.mantissa_bits)
    scale = np.maximum(exponent, 1) - form.bias - form.mantissa_bits
    value = np.ldexp(significand.astype(np.float64), scale.astype(np.int32))
    if form.has_infinity:
        special = np.where(mantissa == 0, np.inf, np.nan)
        value = np.where(exponent == top, special, value)
    elif form.nan is not None:
        value = np.where((bits & form.nan) == form.nan, np.nan, value)
    return np.where(bits >> (form.bits - 1) & 1, -value, value)


# Halves ------------------------------------------------------------------------------------------


def half_to_single(bits: Value, name: str) -> Value:
    """f16 or bf16 bit patterns (uint16) as float32, exactly."""
    if name == "f16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def half_from(value: Value, name: str, mode: str = "rn", *, saturate: bool = False) -> Value:
    """float64 values rounded to f16 or bf16 bit patterns, NaN to the canonical one."""
    if name == "f16" and mode == "rn" and not saturate:
        bits = value.astype(np.float16).view(np.uint16)
        missing = np.isnan(value)
        if np.any(missing):
            bits = np.where(missing, np.uint16(CANONICAL_NAN["f16"]), bits)
        return bits
    form = FORMATS[name]
    return encode(round_to(value, form, mode, saturate=saturate), form)


def unpack_half(value: Value, kind: ScalarType) -> list[Value]:
    """The elements of an operand of type f16, bf16, f16x2 or bf16x2 as float32, low first."""
    if kind.name in ("f16", "bf16"):
        return [half_to_single(value.view(np.uint16), kind.name)]
    name = kind.name.removesuffix("x2")
    low = value.astype(np.uint16)
    high = (value >> np.uint32(16)).astype(np.uint16)
    return [half_to_single(low, name), half_to_single(high, name)]


def pack_half(patterns: Sequence[Value], kind: ScalarType) -> Value:
    """The opposite of `unpack_half`, from uint16 bit patterns."""
    if len(patterns) == 1:
        return patterns[0].view(kind.dtype)
    low, high = patterns
    return low.astype(np.uint32) | (high.astype(np.uint32) << np.uint32(16))
