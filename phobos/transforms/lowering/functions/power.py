"""pow of f32, with the special cases of C99 (Annex F.9.4.4)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.code import (
    INFINITY,
    NAN,
    ROUND_TO_INTEGER,
    FloatCode,
)
from phobos.transforms.lowering.functions.constants import (
    EXP2,
    LOG2_E,
    LOG2_RATIO,
    LOG2_RATIO_START,
)
from phobos.transforms.lowering.functions.logarithm import split

_PATTERN_OF_ROOT_HALF = 0x3F3504F3
_BIAS = 127
_MANTISSA_BITS = 23
_LARGEST_EXPONENT = 2.0**40
"""Times the logarithm next to 0, 2^-24, it overflows already."""
_OUT_OF_RANGE = 160.0
"""2^y is 0 or infinite where |y| is larger."""

Pair = tuple[SSAValue, SSAValue]
"""A number as the sum of two floats, the first of which is the sum rounded."""


def pow(code: FloatCode, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """base^exponent = 2^(exponent * log2(|base|)) with a sign; within 2 ulp.

    The logarithm is a sum of two floats with a relative error below 2^-35, so that |y| <= 150
    has an absolute one below 2^-27, or 0.1 ulp of the power. Rounding the fraction of y below 1/2
    brings 0.25 ulp and the polynomial 0.75. The quotient made with rcp.approx is corrected, so
    that nothing rests on an approximate instruction.
    """
    size = code.abs(base)
    high, low = _log2(code, size)
    high = code.select(code.is_("eq", size, 0.0), -INFINITY, high)
    high = code.select(code.is_("eq", size, INFINITY), INFINITY, high)
    limited = code.emit(ptx.MaxOp, "f32", exponent, code.constant(-_LARGEST_EXPONENT))
    limited = code.emit(ptx.MinOp, "f32", limited, code.constant(_LARGEST_EXPONENT))
    y, error = code.product(limited, high)
    power = _exp2(code, y, code.fma(limited, low, error))
    return special_power(code, base, exponent, signed_power(code, base, exponent, power))


def _log2(code: FloatCode, x: SSAValue) -> Pair:
    """log2(x) = e + log2(m) with m in [sqrt(1/2), sqrt(2)).

    log2(m) = v / ln(2) + v t P(t) with v = 2 (m - 1) / (m + 1), t = v^2. The second part is below
    1/100 of the first, and all but t times the higher terms of P is in two floats.
    """
    mantissa, e = split(code, x, _PATTERN_OF_ROOT_HALF)
    v, v_low = _quotient(code, mantissa)
    t, t_low = code.product(v, v)
    t_low = code.fma(code.add(v, v), v_low, t_low)
    higher = code.mul(t, code.polynomial(LOG2_RATIO[1:], t))
    factor, factor_low = code.ordered_sum(LOG2_RATIO_START[0], higher)
    factor_low = code.add(factor_low, LOG2_RATIO_START[1])
    return log2_of_quotient(code, e, (v, v_low), (t, t_low), (factor, factor_low), LOG2_E)


def log2_of_quotient(
    code: FloatCode,
    e: SSAValue,
    quotient: Pair,
    square: Pair,
    curve: Pair,
    log2_e: Sequence[float],
) -> Pair:
    """e + v log2(e) + v t P(t), from v, t = v^2, P(t) and log2(e), each the sum of two floats."""
    (v, v_low), (t, t_low), (factor, factor_low) = quotient, square, curve
    cube, cube_low = code.product(t, v)
    cube_low = code.fma(t, v_low, code.fma(t_low, v, cube_low))
    tail, tail_low = code.product(cube, factor)
    tail_low = code.fma(cube_low, factor, code.fma(cube, factor_low, tail_low))
    lead, lead_low = code.product(v, log2_e[0])
    lead_low = code.fma(v_low, log2_e[0], code.fma(v, log2_e[1], lead_low))
    high, low = code.ordered_sum(lead, tail)
    low = code.add(low, code.add(lead_low, tail_low))
    high, rest = code.ordered_sum(e, high)
    return code.ordered_sum(high, code.add(rest, low))


def _quotient(code: FloatCode, mantissa: SSAValue) -> Pair:
    """2 (m - 1) / (m + 1), which lies so near m - 1 that their difference is exact."""
    f = code.add(mantissa, -1.0)
    inverse = code.approximate(ptx.RcpOp, code.add(mantissa, 1.0))
    v = code.mul(code.add(f, f), inverse)
    # 2 f - v (2 + f), the remainder of the division
    difference = code.sub(f, v)
    remainder = code.fma(code.neg(v), f, code.add(difference, difference))
    return v, code.mul(remainder, inverse)


def _exp2(code: FloatCode, y: SSAValue, error: SSAValue) -> SSAValue:
    """2^(y + error); the power of two in two steps, so that subnormal results are rounded."""
    shifted = code.add(y, ROUND_TO_INTEGER)
    k = code.sub(shifted, ROUND_TO_INTEGER)
    fraction = code.add(code.sub(y, k), error)
    result = code.fma(fraction, code.polynomial(EXP2, fraction), 1.0)
    number = code.emit(ptx.SubOp, "s32", shifted, code.constant(ROUND_TO_INTEGER))
    half = code.emit(ptx.ShrOp, "s32", number, 1)
    for part in (half, code.emit(ptx.SubOp, "s32", number, half)):
        biased = code.emit(ptx.AddOp, "s32", part, _BIAS)
        result = code.mul(result, code.emit(ptx.ShlOp, "b32", biased, _MANTISSA_BITS))
    beyond = code.select(code.is_("gt", y, 0.0), INFINITY, 0.0)
    return code.select(code.is_("gt", code.abs(y), _OUT_OF_RANGE), beyond, result)


def signed_power(code: FloatCode, base: SSAValue, exponent: SSAValue, power: SSAValue) -> SSAValue:
    """The power of |base| as that of base: the sign for odd exponents, NaN for fractions."""
    emit = code.emit
    is_fraction = code.is_("ne", code.trunc(exponent), exponent)
    half = code.mul(exponent, 0.5)
    is_odd = emit(
        ptx.AndOp,
        "pred",
        code.is_("ne", code.trunc(half), half),
        emit(ptx.NotOp, "pred", is_fraction),
    )
    signed = code.select(is_odd, code.with_sign_of(base, power), power)
    # -0 and -inf have powers with fractions, those of 0 and inf.
    is_negative = code.is_("lt", base, 0.0)
    is_finite = code.is_("gt", base, -INFINITY)
    has_none = emit(ptx.AndOp, "pred", is_fraction, emit(ptx.AndOp, "pred", is_negative, is_finite))
    return code.select(has_none, NAN, signed)


def special_power(code: FloatCode, base: SSAValue, exponent: SSAValue, power: SSAValue) -> SSAValue:
    """NaN for a NaN, but 1 where the base is 1 or the exponent 0."""
    power = code.select(code.is_("nan", base, exponent), NAN, power)
    power = code.select(code.is_("eq", base, 1.0), 1.0, power)
    return code.select(code.is_("eq", exponent, 0.0), 1.0, power)


def fast_pow(code: FloatCode, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """2^(exponent * log2(base)); NaN for negative bases."""
    logarithm = code.approximate(ptx.Lg2Op, base)
    scaled = code.emit(ptx.MulOp, "rn.ftz.f32", exponent, logarithm)
    return code.approximate(ptx.Ex2Op, scaled)
