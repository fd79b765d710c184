"""Conversions between number formats, with float64 as the meeting point.

Every format but f64 and the 64-bit integers embeds into float64 exactly, so a conversion is a
step into float64, a rounding there, and an encoding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phobos.emulator.arithmetic import floats
from phobos.emulator.arithmetic.formats import (
    CANONICAL_NAN,
    FORMATS,
    decode,
    encode,
    half_from,
    half_to_single,
    round_integral,
    round_to,
)
from phobos.emulator.types import TYPES, ScalarType, Value

_STICKY_SHIFT = 11
"""Bits that a 64-bit integer has beyond the 53 of float64."""


def to_double(value: Value, source: ScalarType, *, flush: bool = False) -> Value:
    """Values of a float type as float64, exactly; NaN keeps its sign and payload.

    `flush` drops subnormal f32 numbers.
    """
    if source.name in ("f16", "bf16"):
        return half_to_single(value.view(np.uint16), source.name).astype(np.float64)
    if source.name == "tf32":
        return value.view(np.float32).astype(np.float64)
    if flush and source.name == "f32":
        value = floats.flush_subnormals(value)
    return value.astype(np.float64)


def float_to_integer(value: Value, target: ScalarType, source: ScalarType, mode: str) -> Value:
    """float64 values to integers, clamped to the range.

    NaN gives 0, or the number with only the top bit set if 64-bit types are involved.
    """
    whole = round_integral(value, mode)
    info = np.iinfo(target.dtype)
    # The bounds as floats: the upper one is exact only below 2**53, hence the comparison with
    # the first float that is too large.
    beyond = float(info.max) if target.bits < 64 else 2.0 ** (64 - target.is_signed)
    safe = np.where(np.isfinite(whole), np.clip(whole, float(info.min), beyond), 0.0)
    is_high = whole >= beyond
    result = np.where(is_high, 0.0, safe).astype(target.dtype)
    result = np.where(is_high, target.dtype.type(info.max), result)
    result = np.where(whole <= float(info.min), target.dtype.type(info.min), result)
    missing = np.isnan(value)
    if np.any(missing):
        is_wide = source.name == "f64" or target.bits == 64
        pattern = target.storage.type(1 << (target.bits - 1) if is_wide else 0)
        result = np.where(missing, pattern.view(target.dtype), result)
    return result


def integer_to_float(
    value: Value, target: ScalarType, mode: str, *, saturate: bool = False
) -> Value:
    """Integers to floats, rounded once."""
    if target.name == "f64":
        result = _integer_to_double(value, mode)
        return floats.saturate_unit(result) if saturate else result
    double = _integer_odd(value)
    if saturate:
        double = floats.saturate_unit(double)
    return _encode_float(double, target, mode, saturate=False)


def _integer_odd(value: Value) -> Value:
    """Integers as float64, rounded to odd where they have too many bits."""
    if value.dtype.itemsize < 8:
        return value.astype(np.float64)
    negative = value < 0 if value.dtype.kind == "i" else np.zeros(np.shape(value), dtype=np.bool_)
    unsigned = np.asarray(value).view(np.uint64)
    magnitude = np.where(negative, np.uint64(0) - unsigned, unsigned)
    shift = np.uint64(_STICKY_SHIFT)
    low = magnitude & np.uint64((1 << _STICKY_SHIFT) - 1)
    sticky = (magnitude >> shift << shift) | ((low != 0).astype(np.uint64) << shift)
    reduced = np.where(magnitude >> np.uint64(53) != 0, sticky, magnitude)
    return np.where(negative, -1.0, 1.0) * reduced.astype(np.float64)


def _integer_to_double(value: Value, mode: str) -> Value:
    nearest = value.astype(np.float64)
    if mode == "rn" or value.dtype.itemsize < 8:
        return nearest
    flat = np.atleast_1d(nearest).reshape(-1).copy()
    for index, exact in enumerate(np.atleast_1d(value).reshape(-1)):
        number, found = int(exact), int(flat[index])
        too_high = found > number
        wants_low = mode == "rm" or (mode == "rz" and number > 0)
        if found != number and too_high == wants_low:
            flat[index] = np.nextafter(flat[index], -np.inf if too_high else np.inf)
    return flat.reshape(np.shape(nearest))


@dataclass(frozen=True, slots=True)
class FloatConversion:
    """A conversion between single floats: what `cvt` does to a float64 on its way to `target`."""

    target: ScalarType
    source: ScalarType
    mode: str = "rn"
    integral: str | None = None
    flush: bool = False
    saturate: bool = False
    satfinite: bool = False
    relu: bool = False

    def apply(self, value: Value) -> Value:
        """The converted values."""
        if self.integral is not None:
            value = round_integral(value, self.integral)
        if self.saturate:
            value = floats.saturate_unit(value)
        if self.relu:
            value = np.where(value <= 0, 0.0, value)
        result = _encode_float(value, self.target, self.mode, saturate=self.satfinite)
        if self.flush and self.target.name == "f32":
            result = floats.flush_subnormals(result)
        missing = np.isnan(value)
        return self._settle_nan(result, value, missing) if np.any(missing) else result

    def _settle_nan(self, result: Value, value: Value, missing: Value) -> Value:
        """The NaN results, which depend on the formats: some carry sign and payload over."""
        names = {self.target.name, self.source.name}
        bits = np.asarray(value).view(np.uint64)
        if self.target.name == "tf32":
            pattern = _TF32_NAN
        elif self.flush and self.source.name == "f32" and self.target.name == "f64":
            pattern = np.uint64(CANONICAL_NAN["f32"] & 0x7FFFFF) << np.uint64(29) | _DOUBLE_NAN
        elif "f64" in names:
            pattern = _narrow_nan(bits | _DOUBLE_QUIET, self.target.name)
        else:
            return result
        own = pattern.astype(self.target.storage).view(self.target.dtype)
        return np.where(missing, own, result)


_DOUBLE_NAN = np.uint64(0x7FF0000000000000)
_TF32 = TYPES["tf32"]
_TF32_NAN = np.asarray(np.uint64(0x7FFFE000))
_DOUBLE_QUIET = np.uint64(0x0008000000000000)


def _narrow_nan(bits: Value, target: str) -> Value:
    """The pattern of an f64 NaN in a format of the same or fewer bits, its payload cut off."""
    if target == "f64":
        return bits
    form = FORMATS[target]
    sign = bits >> np.uint64(63) << np.uint64(form.bits - 1)
    payload = (bits >> np.uint64(52 - form.mantissa_bits)) & np.uint64(
        (1 << form.mantissa_bits) - 1
    )
    width = form.bits - 1 - form.mantissa_bits
    return sign | payload | np.uint64(((1 << width) - 1) << form.mantissa_bits)


def round_away_tf32(value: Value, *, saturate: bool) -> Value:
    """`cvt.rna.tf32.f32`, which cuts NaN like a number and saturates it one unit down."""
    double = value.astype(np.float64)
    result = _encode_float(double, _TF32, "rna", saturate=saturate)
    cut = value.view(np.uint32) & np.uint32(0xFFFFE000)
    if saturate:
        cut = cut - np.uint32(0x2000)
    return np.where(np.isnan(value), cut, result)


def _encode_float(value: Value, target: ScalarType, mode: str, *, saturate: bool) -> Value:
    if target.name == "f64":
        return value
    if target.name in ("f16", "bf16"):
        return half_from(value, target.name, mode, saturate=saturate).view(target.dtype)
    form = FORMATS[target.name]
    if target.name == "f32" and mode == "rn" and not saturate:
        return floats.canonical(value.astype(np.float32))
    rounded = round_to(value, form, mode, saturate=saturate)
    return floats.canonical(rounded.astype(np.float32)).view(target.dtype)


# Elements of pairs -------------------------------------------------------------------------------

_SCALE_BIAS = 127


def element_encoder(
    name: str, mode: str, *, saturate: bool, relu: bool
) -> Callable[[Value], Value]:
    """A function from float64 to the bit patterns of one element of a packed type."""
    if name == "ue8m0":
        return lambda value: _encode_scale(value, mode, saturate=saturate)
    form = FORMATS[name]

    def apply(value: Value) -> Value:
        if relu:
            value = np.where(value <= 0, 0.0, value)
        if form.nan is None:
            # These formats have no NaN; the largest number stands for it.
            value = np.where(np.isnan(value), form.largest, value)
        if name in ("f16", "bf16"):
            return half_from(value, name, mode, saturate=saturate)
        return encode(round_to(value, form, mode, saturate=True), form)

    return apply


def element_decoder(name: str) -> Callable[[Value], Value]:
    """A function from the bit patterns of one element of a packed type to float64."""
    if name == "ue8m0":
        return decode_scale
    form = FORMATS[name]
    return lambda pattern: decode(pattern, form)


def decode_scale(pattern: Value) -> Value:
    """ue8m0: the power of two 2**(n - 127); 255 is NaN."""
    power = pattern.astype(np.int64) - _SCALE_BIAS
    return np.where(pattern == 255, np.nan, np.ldexp(1.0, power.astype(np.int32)))


def _encode_scale(value: Value, mode: str, *, saturate: bool) -> Value:
    """Positive numbers to the next power of two, up (`rp`) or down (`rz`)."""
    magnitude = np.abs(value)
    mantissa, exponent = np.frexp(magnitude)
    power = exponent.astype(np.int64) - 1
    if mode == "rp":
        power = power + (mantissa > 0.5)
    pattern = np.clip(power + _SCALE_BIAS, 0, 254 if saturate else 255)
    pattern = np.where(magnitude == 0, 0, pattern)
    pattern = np.where(np.isinf(magnitude), 254 if saturate else 255, pattern)
    return np.where(np.isnan(value), 255, pattern).astype(np.uint8)
