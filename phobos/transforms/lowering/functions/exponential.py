"""exp, exp2 and expm1 of f32.

exp(x) = 2^k * 2^r with k the integer nearest x / ln(2) and |r| <= 1/2.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.code import INFINITY, ROUND_TO_INTEGER, FloatCode
from phobos.transforms.lowering.functions.constants import EXPM1, LN_2, LOG2_E

_MANTISSA_BITS = 23
_LOWEST, _STEPS = 126.0, 253.0
"""2^k is a normal f32 for k from -126 to 127, which is 253 steps."""

_BIAS_AT_LOWEST = 1.0
"""The exponent field of 2^-126."""


def exp(code: FloatCode, x: SSAValue) -> SSAValue:
    """e^x in 8 instructions, subnormal results included.

    The argument r = x / ln(2) - k is rounded twice below 1/2, which brings 0.3 ulp at most (0.7
    above 88, where k stays at 127). What ex2.approx adds is 2 ulp by its manual; in a sample from
    an H200 it is at most 1.75, next to r = 0, where the rounding of r brings 0.2. The product with
    2^k is exact for normal results.

    Saturation to [0, 1] clamps k and turns a NaN into 0, so that infinities, overflow and NaN come
    out of r.
    """
    clamped = code.emit(
        ptx.FmaOp,
        "rn.sat.f32",
        x,
        code.constant(LOG2_E[0] / _STEPS),
        code.constant(_LOWEST / _STEPS),
    )
    start = ROUND_TO_INTEGER + _BIAS_AT_LOWEST
    shifted = code.fma(clamped, _STEPS, start)
    minus_k = code.sub(start + _LOWEST, shifted)
    r = code.fma(x, LOG2_E[0], minus_k)
    r = code.fma(x, LOG2_E[1], r)
    power = code.emit(ptx.ShlOp, "b32", shifted, _MANTISSA_BITS)
    return code.mul(code.approximate(ptx.Ex2Op, r), power)


def fast_exp(code: FloatCode, x: SSAValue) -> SSAValue:
    """2^(x / ln(2)); the relative error grows with |x|, by about 2^-24 a unit."""
    scaled = code.emit(ptx.MulOp, "rn.ftz.f32", x, code.constant(LOG2_E[0]))
    return code.approximate(ptx.Ex2Op, scaled)


def exp2(code: FloatCode, x: SSAValue) -> SSAValue:
    """2^x in one instruction; within its 2 ulp. Subnormal results are 0."""
    return code.approximate(ptx.Ex2Op, x)


_TO_MINUS_ONE = -17.5
"""Below this e^x - 1 rounds to -1."""
_IS_ITSELF = 2.0**-25
"""Below this size e^x - 1 rounds to x."""
_TO_INFINITY = 88.75
"""Above this e^x overflows; below, the integer nearest x / ln(2) is at most 128."""


def expm1(code: FloatCode, x: SSAValue) -> SSAValue:
    """e^x - 1 = 2^k (e^r - 1) + (2^k - 1), halved until the end since 2^128 is no f32.

    No approximate instruction: r + r^2 P(r) is off by 0.75 ulp at most, and the last sum, which
    is no smaller than its first part, brings the other half of 1.5 ulp.
    """
    shifted = code.fma(x, LOG2_E[0], ROUND_TO_INTEGER)
    k = code.sub(shifted, ROUND_TO_INTEGER)
    r = code.fma(k, -LN_2[0], x)
    r = code.fma(k, -LN_2[1], r)
    small = code.fma(code.mul(r, r), code.polynomial(EXPM1, r), r)
    exponent = code.emit(ptx.ShlOp, "b32", shifted, _MANTISSA_BITS)
    half_power = code.emit(ptx.AddOp, "s32", exponent, _PATTERN_OF_HALF)
    half = code.fma(small, half_power, code.sub(half_power, 0.5))
    result = code.add(half, half)
    result = code.select(code.is_("lt", x, _TO_MINUS_ONE), -1.0, result)
    result = code.select(code.is_("gt", x, _TO_INFINITY), INFINITY, result)
    # Halves of subnormals are inexact, and -0 would lose its sign.
    return code.select(code.is_("lt", code.abs(x), _IS_ITSELF), x, result)


def fast_expm1(code: FloatCode, x: SSAValue) -> SSAValue:
    """The fast e^x, less 1: accurate to an absolute 2^-22 near 0."""
    return code.emit(ptx.AddOp, "rn.ftz.f32", fast_exp(code, x), code.constant(-1.0))


_PATTERN_OF_HALF = 0x3F000000
