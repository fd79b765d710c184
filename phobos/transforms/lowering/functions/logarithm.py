"""log, log2, log10 and log1p of f32.

log(x) = e + log(m) with x = 2^e m and m in [2/3, 4/3), in units of the base: e is 0 around 1, so
that the result is accurate relatively, however close to 0 it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.code import (
    INFINITY,
    NAN,
    FloatCode,
    Function,
)
from phobos.transforms.lowering.functions.constants import (
    LN,
    LN_2,
    LOG2,
    LOG2_E,
    LOG10,
    LOG10_2,
    LOG10_E,
)

_EXPONENT_MASK = -0x800000
"""Sign and exponent bits of an f32."""
_PATTERN_OF_TWO_THIRDS = 0x3F2AAAAB
_PATTERN_OF_FOUR = 0x40800000
_PATTERN_OF_INFINITY = 0x7F800000
_SMALLEST_NORMAL = 2.0**-126


@dataclass(frozen=True)
class Base:
    """A base: log(1 + f) = lead f + f^2 tail(f), and log(2)."""

    lead: tuple[float, float]
    tail: tuple[float, ...]
    of_two: tuple[float, float]


E = Base((1.0, 0.0), LN, LN_2)
TWO = Base(LOG2_E, LOG2, (1.0, 0.0))
TEN = Base(LOG10_E, LOG10, LOG10_2)


def split(code: FloatCode, x: SSAValue, lowest: int) -> tuple[SSAValue, SSAValue]:
    """m and e with x = m 2^e, where m is at least the float with the pattern `lowest`.

    `lowest` lies between 1/2 and 1, and m is below twice that. Subnormals are scaled first.
    """
    is_tiny = code.is_("lt", x, _SMALLEST_NORMAL)
    x = code.select(is_tiny, code.mul(x, 2.0**24), x)
    start = code.select(is_tiny, -24.0, 0.0)
    above = code.emit(ptx.SubOp, "s32", x, lowest)
    exponent = code.emit(ptx.AndOp, "b32", above, _EXPONENT_MASK)
    mantissa = code.emit(ptx.SubOp, "s32", x, exponent)
    steps = code.emit(ptx.CvtOp, "rn.f32.s32", exponent)
    return mantissa, code.fma(steps, 2.0**-23, start)


def logarithm(base: Base) -> Function:
    """The logarithm to a base; within 2 ulp, without approximate instructions.

    f + f^2 tail(f), whose second part is below 0.22 f, is off by 0.75 ulp at most, but by 0.5 where
    it is largest. There the sum with e log(2) may be half as large, so that this counts twice;
    with the last rounding it makes 1.5 ulp.
    """

    def function(code: FloatCode, x: SSAValue) -> SSAValue:
        mantissa, exponent = split(code, x, _PATTERN_OF_TWO_THIRDS)
        result = _of_sum(code, base, code.add(mantissa, -1.0), exponent)
        return special_logarithm(code, x, result)

    return function


def _of_sum(code: FloatCode, base: Base, f: SSAValue, exponent: SSAValue) -> SSAValue:
    """log(1 + f) + exponent * log(2)."""
    square = code.mul(f, f)
    tail = code.polynomial(base.tail, f)
    lead, lead_rest = base.lead
    of_two, of_two_rest = base.of_two
    if not lead_rest:
        return code.fma(exponent, of_two, code.fma(square, tail, f))
    rest = code.mul(f, lead_rest)
    if of_two_rest:
        rest = code.fma(exponent, of_two_rest, rest)
    return code.fma(exponent, of_two, code.fma(f, lead, code.fma(square, tail, rest)))


def special_logarithm(code: FloatCode, x: SSAValue, result: SSAValue) -> SSAValue:
    """-inf for 0, inf for inf, NaN for NaN and negative numbers; otherwise `result`."""
    # As unsigned patterns, infinity, NaN and all negative numbers come last.
    is_special = code.emit(ptx.SetpOp, "ge.u32", x, _PATTERN_OF_INFINITY)
    special = code.fma(x, INFINITY, INFINITY)  # NaN for negative x: inf - inf
    result = code.select(is_special, special, result)
    return code.select(code.is_("eq", x, 0.0), -INFINITY, result)


def fast_logarithm(base: Base) -> Function:
    """lg2.approx times log(2): absolute error 2^-22 between 1/2 and 2, relative elsewhere."""

    def function(code: FloatCode, x: SSAValue) -> SSAValue:
        result = code.approximate(ptx.Lg2Op, x)
        if base is TWO:
            return result
        return code.emit(ptx.MulOp, "rn.ftz.f32", result, code.constant(base.of_two[0]))

    return function


def log1p(code: FloatCode, x: SSAValue) -> SSAValue:
    """log(1 + x): e is taken from the rounded sum, and f = 2^-e x + (2^-e - 1) from x itself.

    Within 2 ulp: f is exact for e of 0 and -1. Rounding it otherwise adds 0.5 ulp to the errors of
    the logarithm, where these are small: its sum with e log(2) is at least 0.28.
    """
    total = code.add(x, 1.0)
    above = code.emit(ptx.SubOp, "s32", total, _PATTERN_OF_TWO_THIRDS)
    exponent = code.emit(ptx.AndOp, "b32", above, _EXPONENT_MASK)
    scaled = code.emit(ptx.SubOp, "s32", x, exponent)
    # 4 * 2^-e, since 2^-128 is subnormal.
    inverse = code.emit(ptx.SubOp, "s32", code.low.build.imm(_PATTERN_OF_FOUR, ptx.B32), exponent)
    f = code.add(scaled, code.fma(inverse, 0.25, -1.0))
    steps = code.emit(ptx.CvtOp, "rn.f32.s32", exponent)
    result = _of_sum(code, E, f, code.mul(steps, 2.0**-23))
    result = code.select(code.is_("eq", x, 0.0), x, result)  # keeps the sign of 0
    result = code.select(code.is_("eq", x, INFINITY), INFINITY, result)
    result = code.select(code.is_("eq", x, -1.0), -INFINITY, result)
    # Unordered, so that NaN is among them.
    return code.select(code.is_("ltu", x, -1.0), NAN, result)


def fast_log1p(code: FloatCode, x: SSAValue) -> SSAValue:
    """The fast logarithm of 1 + x: accurate to an absolute 2^-22 near 0."""
    total = code.emit(ptx.AddOp, "rn.ftz.f32", x, code.constant(1.0))
    return fast_logarithm(E)(code, total)
