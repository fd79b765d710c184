"""sin, cos and tan of f32, for arguments of any size."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.transforms.lowering.functions.argument_reduction import Reduced, reduce_arguments
from phobos.transforms.lowering.functions.code import FloatCode, Function, Functions, Row
from phobos.transforms.lowering.functions.constants import COSINE, SINE, TANGENT


def sine_from(first_quadrant: int) -> Functions:
    """sin(x + first_quadrant pi/2): the sine for 0, the cosine for 1; within 2 ulp.

    Without approximate instructions. Rounding the reduced argument brings up to 1 ulp, the
    polynomial and the last sum 0.6. (Trying every f32 up to 2^17 found 1.53.)
    """

    def function(code: FloatCode, rows: Sequence[Row]) -> list[SSAValue]:
        reduced = reduce_arguments(code, [row[0] for row in rows], with_tail=False)
        return [_sine(code, one, first_quadrant) for one in reduced]

    return function


def _sine(code: FloatCode, argument: Reduced, first_quadrant: int) -> SSAValue:
    """x + x t P(t) in even quadrants, 1 + t P(t) in odd ones, t = x^2; negated in 2 and 3."""
    emit = code.emit
    quadrant = argument.quadrant
    if first_quadrant:
        quadrant = emit(ptx.AddOp, "s32", quadrant, first_quadrant)
    is_odd = _is_odd(code, quadrant)
    start = code.select(is_odd, 1.0, argument.rest)
    square = code.mul(argument.rest, argument.rest)
    coefficients = [
        code.select(is_odd, cosine, sine) for cosine, sine in zip(COSINE, SINE, strict=True)
    ]
    *lower, value = coefficients
    for coefficient in reversed(lower):
        value = code.fma(value, square, coefficient)
    # The sum with +0 keeps a result of -0 negative.
    result = code.fma(value, code.fma(square, start, 0.0), start)
    second_bit = emit(ptx.AndOp, "b32", quadrant, 2)
    return emit(ptx.XorOp, "b32", result, emit(ptx.ShlOp, "b32", second_bit, 30))


def _is_odd(code: FloatCode, quadrant: SSAValue) -> SSAValue:
    return code.emit(ptx.SetpOp, "ne.b32", code.emit(ptx.AndOp, "b32", quadrant, 1), 0)


def tan(code: FloatCode, rows: Sequence[Row]) -> list[SSAValue]:
    """tan(x), within 2 ulp.

    The reduced argument and the tangent of it are sums of two floats; the reciprocal in odd
    quadrants is rcp.approx with one Newton step, so its own error is gone. What is left is that of
    the polynomial, 0.6 ulp at most, and the last rounding.
    """
    reduced = reduce_arguments(code, [row[0] for row in rows], with_tail=True)
    return [_tan(code, row[0], one) for row, one in zip(rows, reduced, strict=True)]


def _tan(code: FloatCode, x: SSAValue, argument: Reduced) -> SSAValue:
    assert argument.tail is not None
    square = code.mul(argument.rest, argument.rest)
    cube = code.mul(square, argument.rest)
    small = code.fma(argument.tail, square, argument.tail)  # times 1 + tan^2, about
    small = code.fma(cube, code.polynomial(TANGENT, square), small)
    high, low = code.ordered_sum(argument.rest, small)
    inverse = code.approximate(ptx.RcpOp, high)
    minus_high = code.neg(high)
    error = code.fma(low, code.neg(inverse), code.fma(minus_high, inverse, 1.0))
    cotangent = code.neg(code.fma(inverse, error, inverse))
    result = code.select(_is_odd(code, argument.quadrant), cotangent, high)
    return code.select(code.is_("eq", x, 0.0), x, result)  # keeps the sign of 0


def fast(cls: type[ptx.Instruction]) -> Function:
    """sin.approx or cos.approx: absolute error 2^-20.5 in [-2 pi, 2 pi], growing with |x|."""
    return lambda code, x: code.approximate(cls, x)


def fast_tan(code: FloatCode, x: SSAValue) -> SSAValue:
    """sin.approx / cos.approx."""
    sine, cosine = code.approximate(ptx.SinOp, x), code.approximate(ptx.CosOp, x)
    return code.emit(ptx.DivOp, "approx.ftz.f32", sine, cosine)
