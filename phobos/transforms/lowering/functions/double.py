"""exp and log of f64, and what the other functions of f64 share with them."""

from __future__ import annotations

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B32
from phobos.transforms.lowering.functions.code import INFINITY, FloatCode, integer_to_float
from phobos.transforms.lowering.functions.constants import (
    EXP_DOUBLE,
    LN_2_DOUBLE,
    LN_DOUBLE,
)

_OVERFLOW, _UNDERFLOW = 709.8, -745.2
"""e^x is infinite above the one and 0 below the other."""
_BIAS = 1023
_EXPONENT_BITS = 20
"""Where the exponent starts in the upper half of the pattern."""
_UPPER_HALF_OF_ROOT_HALF = 0x3FE6A09E
"""sqrt(1/2), without the lower half of its pattern."""
_INVERSE_LN_2 = 1 / LN_2_DOUBLE[0]
_SMALLEST_NORMAL = 2.0**-1022
_HALVES = (B32, B32)


def exp(code: FloatCode, x: SSAValue) -> SSAValue:
    """e^x = 2^k e^r, |r| <= ln(2) / 2: below 1 ulp.

    The sum of 1 and r + r^2 P(r) brings 0.5 ulp, the roundings of r and of the rest 0.3. The power
    of two is applied in two steps, so that subnormal results come out rounded.
    """
    k = code.emit(ptx.CvtOp, "rni.s32.f64", code.mul(x, _INVERSE_LN_2), result=B32)
    steps = integer_to_float(code, k)
    r = code.fma(steps, -LN_2_DOUBLE[0], x)
    r = code.fma(steps, -LN_2_DOUBLE[1], r)
    result = code.add(code.fma(code.mul(r, r), code.polynomial(EXP_DOUBLE, r), r), 1.0)
    half = code.emit(ptx.ShrOp, "s32", k, 1)
    for exponent in (half, code.emit(ptx.SubOp, "s32", k, half)):
        result = code.mul(result, power_of_two(code, exponent))
    result = code.select(code.is_("gt", x, _OVERFLOW), INFINITY, result)
    return code.select(code.is_("lt", x, _UNDERFLOW), 0.0, result)


def power_of_two(code: FloatCode, exponent: SSAValue) -> SSAValue:
    """2^exponent as f64, for a normal one."""
    biased = code.emit(ptx.AddOp, "s32", exponent, _BIAS)
    upper = code.emit(ptx.ShlOp, "b32", biased, _EXPONENT_BITS)
    return code.emit(ptx.PackOp, "b64", 0, upper)


def split(code: FloatCode, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """f and e with x = 2^e (1 + f) and 1 + f from sqrt(1/2) up; subnormals are scaled first."""
    is_tiny = code.is_("lt", x, _SMALLEST_NORMAL)
    scaled = code.select(is_tiny, code.mul(x, 2.0**54), x)
    start = code.select(is_tiny, -54.0, 0.0)
    lower, upper = code.low.build.emit_multi(ptx.UnpackOp, "b64", scaled, results=_HALVES)
    above = code.emit(ptx.SubOp, "s32", upper, _UPPER_HALF_OF_ROOT_HALF)
    e = code.emit(ptx.ShrOp, "s32", above, _EXPONENT_BITS)
    mantissa_upper = code.emit(
        ptx.SubOp, "s32", upper, code.emit(ptx.ShlOp, "b32", e, _EXPONENT_BITS)
    )
    f = code.add(code.emit(ptx.PackOp, "b64", lower, mantissa_upper), -1.0)
    return f, code.add(integer_to_float(code, e), start)


def log(code: FloatCode, x: SSAValue) -> SSAValue:
    """log(x) = e ln(2) + log(1 + f): below 1 ulp.

    With s = f / (2 + f), log(1 + f) = 2 s + s R = f - (h - s (h + R)), h = f^2 / 2, where f is
    exact and what is taken from it is below f / 5.
    """
    f, steps = split(code, x)
    half, rest = _half_and_rest(code, f)
    rest = code.fma(steps, LN_2_DOUBLE[1], rest)
    result = code.sub(f, code.sub(half, rest))
    result = code.fma(steps, LN_2_DOUBLE[0], result)
    return special_logarithm(code, x, result)


def _half_and_rest(code: FloatCode, f: SSAValue) -> tuple[SSAValue, SSAValue]:
    """h and s (h + R), as `log` has them."""
    s = code.div(f, code.add(f, 2.0))
    square = code.mul(s, s)
    half = code.mul(code.mul(f, 0.5), f)
    rest = code.fma(square, code.polynomial(LN_DOUBLE, square), half)
    return half, code.mul(s, rest)


def log_of_sum(code: FloatCode, f: SSAValue) -> tuple[SSAValue, SSAValue]:
    """log(1 + f) in two floats: f - h is one, and what rounding h and f - h took goes below."""
    half, rest = _half_and_rest(code, f)
    lost = code.fma(code.mul(f, 0.5), f, code.neg(half))
    high, low = code.ordered_sum(f, code.neg(half))
    return high, code.add(low, code.sub(rest, lost))


def special_logarithm(code: FloatCode, x: SSAValue, result: SSAValue) -> SSAValue:
    """-inf for 0, inf for inf, NaN for NaN and negative numbers; otherwise `result`."""
    is_ordinary = code.is_("lt", code.abs(x), INFINITY)
    special = code.fma(x, INFINITY, INFINITY)
    result = code.select(is_ordinary, result, special)
    result = code.select(code.is_("lt", x, 0.0), special, result)
    return code.select(code.is_("eq", x, 0.0), -INFINITY, result)
