"""exp2, log2 and pow of f64."""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B32
from phobos.transforms.lowering.functions.code import INFINITY, FloatCode, integer_to_float
from phobos.transforms.lowering.functions.constants import (
    EXP_DOUBLE,
    LN_2_DOUBLE,
    LOG2_E_DOUBLE,
    LOG2_RATIO_DOUBLE,
)
from phobos.transforms.lowering.functions.double import (
    log_of_sum,
    power_of_two,
    special_logarithm,
    split,
)
from phobos.transforms.lowering.functions.power import (
    Pair,
    log2_of_quotient,
    signed_power,
    special_power,
)

_OUT_OF_RANGE = 1100.0
"""2^y is 0 or infinite where |y| is larger."""
_LARGEST_EXPONENT = 2.0**70
"""Times the logarithm next to 0, 2^-53, it overflows already."""


def exp2(code: FloatCode, x: SSAValue) -> SSAValue:
    """2^x: below 1 ulp."""
    return _exp2(code, x, None)


def _exp2(code: FloatCode, y: SSAValue, error: SSAValue | None) -> SSAValue:
    """2^(y + error) = 2^k e^(r + tail), where r is the fraction times ln(2), rounded.

    The power of two is applied in two steps, so that subnormal results come out rounded.
    """
    k = code.emit(ptx.CvtOp, "rni.s32.f64", y, result=B32)
    fraction = code.sub(y, integer_to_float(code, k))
    r, tail = code.product(fraction, LN_2_DOUBLE[0])
    tail = code.fma(fraction, LN_2_DOUBLE[1], tail)
    curve = code.mul(code.mul(r, r), code.polynomial(EXP_DOUBLE, r))
    if error is not None:
        # A thousand times as large as what rounding r took, so that e^r counts as its factor.
        tail = code.fma(error, LN_2_DOUBLE[0], tail)
        tail = code.fma(tail, code.add(r, curve), tail)
    result = code.add(code.add(r, code.add(curve, tail)), 1.0)
    half = code.emit(ptx.ShrOp, "s32", k, 1)
    for exponent in (half, code.emit(ptx.SubOp, "s32", k, half)):
        result = code.mul(result, power_of_two(code, exponent))
    result = code.select(code.is_("gt", y, _OUT_OF_RANGE), INFINITY, result)
    return code.select(code.is_("lt", y, -_OUT_OF_RANGE), 0.0, result)


def log2(code: FloatCode, x: SSAValue) -> SSAValue:
    """log2(x) = e + log(1 + f) / ln(2): below 1 ulp, as all but the last sum is in two floats."""
    f, e = split(code, x)
    high, low = log_of_sum(code, f)
    scaled, rest = code.product(high, LOG2_E_DOUBLE[0])
    rest = code.fma(high, LOG2_E_DOUBLE[1], code.fma(low, LOG2_E_DOUBLE[0], rest))
    # |e| is at least 1, or 0: then the sum is exact as well.
    total, error = code.ordered_sum(e, scaled)
    return special_logarithm(code, x, code.add(total, code.add(error, rest)))


def pow(code: FloatCode, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """base^exponent = 2^(exponent * log2(|base|)) with a sign; below 1.5 ulp.

    The logarithm has a relative error below 2^-63, so that |y| <= 1075 has an absolute one below
    2^-53, a third of an ulp of the power.
    """
    size = code.abs(base)
    high, low = _log2(code, size)
    high = code.select(code.is_("eq", size, 0.0), -INFINITY, high)
    high = code.select(code.is_("eq", size, INFINITY), INFINITY, high)
    limited = code.emit(ptx.MaxOp, "f64", exponent, code.constant(-_LARGEST_EXPONENT))
    limited = code.emit(ptx.MinOp, "f64", limited, code.constant(_LARGEST_EXPONENT))
    y, error = code.product(limited, high)
    power = _exp2(code, y, code.fma(limited, low, error))
    return special_power(code, base, exponent, signed_power(code, base, exponent, power))


def _log2(code: FloatCode, x: SSAValue) -> Pair:
    """log2(x) as in `power`: e + v / ln(2) + v t P(t) with v = 2 f / (2 + f), t = v^2."""
    f, e = split(code, x)
    v, v_low = _quotient(code, f)
    t, t_low = code.product(v, v)
    t_low = code.fma(code.add(v, v), v_low, t_low)
    higher = code.mul(t, code.polynomial(LOG2_RATIO_DOUBLE[1:], t))
    # The higher coefficients make up for what rounding the first one took.
    factor, factor_low = code.ordered_sum(LOG2_RATIO_DOUBLE[0], higher)
    return log2_of_quotient(code, e, (v, v_low), (t, t_low), (factor, factor_low), LOG2_E_DOUBLE)


def _quotient(code: FloatCode, f: SSAValue) -> Pair:
    """2 f / (2 + f) in two floats. It lies so near f that their difference is exact."""
    divisor = code.add(f, 2.0)
    v = code.div(code.add(f, f), divisor)
    # 2 f - v (2 + f), the remainder of the division by 2 + f itself
    difference = code.sub(f, v)
    remainder = code.fma(code.neg(v), f, code.add(difference, difference))
    return v, code.div(remainder, divisor)
