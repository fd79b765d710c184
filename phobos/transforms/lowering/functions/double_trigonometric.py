"""sin and cos of f64, for arguments of any size.

As for f32, an argument is a multiple of a quarter turn and a rest. Up to 2^30 the multiple is
subtracted in three parts of pi / 2; beyond, the mantissa is multiplied by the 192 bits of 2 / pi
that matter, in a branch that all elements of an op share (Payne and Hanek).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B32, B64
from phobos.transforms.lowering.functions.code import FloatCode, Functions, Row
from phobos.transforms.lowering.functions.constants import (
    COSINE_DOUBLE,
    HALF_PI_DOUBLE,
    SINE_DOUBLE,
    TWO_OVER_PI_DOUBLE,
)

LARGEST_SUBTRACTED = 2.0**30
"""Up to here the multiple fits a word, and three parts of pi / 2 are enough for the closest rest,
which is above 2^-62: the last one ends at 2^-159."""

_TWO_OVER_PI = 0.6366197723675814
_MANTISSA_BITS = 52
_BIAS = 1023
_FIRST_BIT = 64 - _MANTISSA_BITS - 2
"""From an exponent to the number of the first bit of 0, TWO_OVER_PI_DOUBLE that matters: the bits
before it times the mantissa are multiples of 4 quarter turns."""
_WORDS = 4

Reduced = tuple[SSAValue, SSAValue]
"""A quadrant, of which the low two bits are meant, and a rest."""


def sine_from(first_quadrant: int) -> Functions:
    """sin(x + first_quadrant pi/2): the sine for 0, the cosine for 1; below 1.5 ulp."""

    def function(code: FloatCode, rows: Sequence[Row]) -> list[SSAValue]:
        reduced = _reduce_all(code, [row[0] for row in rows])
        return [_sine(code, one, first_quadrant) for one in reduced]

    return function


def _sine(code: FloatCode, argument: Reduced, first_quadrant: int) -> SSAValue:
    """x + x t P(t) in even quadrants, 1 + t P(t) in odd ones, t = x^2; negated in 2 and 3."""
    emit = code.emit
    quadrant, rest = argument
    if first_quadrant:
        quadrant = emit(ptx.AddOp, "s32", quadrant, first_quadrant)
    is_odd = emit(ptx.SetpOp, "ne.b32", emit(ptx.AndOp, "b32", quadrant, 1), 0)
    start = code.select(is_odd, 1.0, rest)
    square = code.mul(rest, rest)
    coefficients = [
        code.select(is_odd, cosine, sine)
        for cosine, sine in zip(COSINE_DOUBLE, SINE_DOUBLE, strict=True)
    ]
    *lower, value = coefficients
    for coefficient in reversed(lower):
        value = code.fma(value, square, coefficient)
    # The sum with +0 keeps a result of -0 negative.
    result = code.fma(value, code.fma(square, start, 0.0), start)
    is_negative = emit(ptx.SetpOp, "ne.b32", emit(ptx.AndOp, "b32", quadrant, 2), 0)
    return code.select(is_negative, code.neg(result), result)


# Reduction ---------------------------------------------------------------------------------------


def _reduce_all(code: FloatCode, arguments: Sequence[SSAValue]) -> list[Reduced]:
    quick = [_subtract(code, x) for x in arguments]
    are_large = [code.is_("gt", code.abs(x), LARGEST_SUBTRACTED) for x in arguments]
    build = code.low.build
    any_large = reduce(lambda a, b: build.emit(ptx.OrOp, "pred", a, b), are_large)
    large = build.block((), "large")
    reduced = build.block([B32, B64] * len(quick), "reduced")
    build.cond_bra(any_large, large, reduced, (), [part for one in quick for part in one])
    build.at(large)
    slow: list[SSAValue] = []
    for x, one, is_large in zip(arguments, quick, are_large, strict=True):
        quadrant, rest = _multiply(code, x)
        slow.append(build.emit(ptx.SelpOp, "b32", quadrant, one[0], is_large))
        slow.append(code.select(is_large, rest, one[1]))
    build.bra(reduced, *slow)
    build.at(reduced)
    return [(reduced.args[i], reduced.args[i + 1]) for i in range(0, len(slow), 2)]


def _subtract(code: FloatCode, x: SSAValue) -> Reduced:
    """Three fused steps, of which the first is exact.

    No part is negative, so that -0 stays what it is: it loses 0 times a part.
    """
    quadrant = code.emit(ptx.CvtOp, "rni.s32.f64", code.mul(x, _TWO_OVER_PI), result=B32)
    k = code.emit(ptx.CvtOp, "rn.f64.s32", quadrant, result=B64)
    rest = x
    for part in HALF_PI_DOUBLE:
        rest = code.fma(k, -part, rest)
    return quadrant, rest


def _multiply(code: FloatCode, x: SSAValue) -> Reduced:
    """x times 2 / pi modulo 4 in 128 bits, of which 126 are a fraction; NaN for infinity.

    No f64 comes closer to a multiple of pi / 2 than 2^-62, so that a fraction off by 2^-123 gives
    a rest that is off by 2^-8 of its ulp.
    """
    emit = code.emit
    high, low = _product_modulo_4(code, x)
    # To the nearest quarter turn: the fraction, read as signed, is from -1/2 to 1/2.
    top = emit(ptx.ShrOp, "u64", emit(ptx.AddOp, "u64", high, 1 << 61), 62)
    quadrant = emit(ptx.CvtOp, "u32.u64", top, result=B32)
    upper = emit(ptx.OrOp, "b64", emit(ptx.ShlOp, "b64", high, 2), emit(ptx.ShrOp, "u64", low, 62))
    lower = emit(ptx.ShlOp, "b64", low, 2)
    rest = _quarter_turns(code, upper, lower)
    is_negative = code.is_("lt", x, 0.0)
    rest = code.select(is_negative, code.neg(rest), rest)
    minus = emit(ptx.NegOp, "s32", quadrant)
    quadrant = emit(ptx.SelpOp, "b32", minus, quadrant, is_negative)
    # x - x is 0, or NaN for infinity.
    return quadrant, code.add(rest, code.sub(x, x))


def _quarter_turns(code: FloatCode, upper: SSAValue, lower: SSAValue) -> SSAValue:
    """The signed fraction of 128 bits times pi / 2.

    The upper half is a float and an integer that rounding took from it.
    """
    emit = code.emit
    first = emit(ptx.CvtOp, "rn.f64.s64", upper, result=B64)
    # 2^63 is no integer of 64 bits: one less is off by 2^-64, where the fraction is 1/2.
    back = emit(ptx.CvtOp, "rzi.s64.f64", first, result=B64)
    lost = emit(ptx.CvtOp, "rn.f64.s64", emit(ptx.SubOp, "s64", upper, back), result=B64)
    second = emit(ptx.CvtOp, "rn.f64.u64", lower, result=B64)
    first, lost = code.mul(first, 2.0**-64), code.mul(lost, 2.0**-64)
    number, rest = code.ordered_sum(first, code.fma(second, 2.0**-128, lost))
    result, error = code.product(number, HALF_PI_DOUBLE[0])
    error = code.fma(number, HALF_PI_DOUBLE[1], code.fma(rest, HALF_PI_DOUBLE[0], error))
    return code.add(result, error)


def _product_modulo_4(code: FloatCode, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The mantissa of x times 192 bits of 2 / pi, its top 128 bits, two of which are quarters."""
    emit = code.emit
    mask = code.low.build.imm((1 << _MANTISSA_BITS) - 1, B64)
    leading = code.low.build.imm(1 << _MANTISSA_BITS, B64)
    mantissa = emit(ptx.OrOp, "b64", emit(ptx.AndOp, "b64", x, mask), leading)
    field = emit(ptx.CvtOp, "u32.u64", emit(ptx.ShrOp, "u64", x, _MANTISSA_BITS), result=B32)
    exponent = emit(ptx.AndOp, "b32", field, 0x7FF)
    first_bit = emit(ptx.AddOp, "s32", exponent, _FIRST_BIT - _BIAS)
    words = _words_from(code, emit(ptx.ShrOp, "u32", first_bit, 6))
    shift = emit(ptx.AndOp, "b32", first_bit, 63)
    rest = emit(ptx.SubOp, "s32", 64, shift)
    # A shift by 64 gives 0.
    top, middle, bottom = (
        emit(
            ptx.OrOp,
            "b64",
            emit(ptx.ShlOp, "b64", words[i], shift),
            emit(ptx.ShrOp, "u64", words[i + 1], rest),
        )
        for i in range(3)
    )
    carried = emit(ptx.MulOp, "hi.u64", bottom, mantissa)
    low = emit(ptx.AddOp, "u64", emit(ptx.MulOp, "lo.u64", middle, mantissa), carried)
    carry = emit(ptx.SetpOp, "lt.u64", low, carried)
    high = emit(
        ptx.AddOp,
        "u64",
        emit(ptx.MulOp, "lo.u64", top, mantissa),
        emit(ptx.MulOp, "hi.u64", middle, mantissa),
    )
    one = code.low.build.imm(1, B64)
    nothing = code.low.build.imm(0, B64)
    return emit(ptx.AddOp, "u64", high, emit(ptx.SelpOp, "b64", one, nothing, carry)), low


def _words_from(code: FloatCode, first: SSAValue) -> list[SSAValue]:
    """Words `first` to `first` + 3 of 0, TWO_OVER_PI_DOUBLE; `first` is from 0 to 16."""
    words = [code.low.build.imm(word, B64) for word in (0, *TWO_OVER_PI_DOUBLE)]
    for distance in (16, 8, 4, 2, 1):
        bit = code.emit(ptx.AndOp, "b32", first, distance)
        is_set = code.emit(ptx.SetpOp, "ne.b32", bit, 0)
        # What lies beyond the last word is never chosen.
        words = [
            code.emit(ptx.SelpOp, "b64", words[i + distance], word, is_set)
            if i + distance < len(words)
            else word
            for i, word in enumerate(words[: distance + _WORDS - 1])
        ]
    return words
