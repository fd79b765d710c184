"""x as a multiple of a quarter turn and a rest: x = q pi/2 + r, |r| <= 0.8, for sin, cos and tan.

Up to 2^17 the multiple is subtracted in three parts of pi / 2. Larger arguments need more bits of
pi: x times the 96 bits of 2 / pi that matter, in integers (Payne and Hanek). All threads that
have one take a branch for it, once for all elements of an op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B32, B64
from phobos.transforms.lowering.functions.code import ROUND_TO_INTEGER, FloatCode
from phobos.transforms.lowering.functions.constants import HALF_PI, TWO_OVER_PI
from phobos.transforms.lowering.registers import F16

LARGEST_SUBTRACTED = 2.0**17
"""Up to here three parts of pi / 2 are enough: for larger multiples the last one's rounding, which
is that of the number times 2^-72, comes near the last place of small rests."""

_TWO_OVER_PI = 0.636619772
_QUARTER_OF_2_TO_64 = pi / 2 / 2.0**64
_MANTISSA_BITS = 23
_FIRST_BIT = 7
"""From an exponent to the number of the first bit of 0, TWO_OVER_PI whose weight is below 4."""
_WORD_BITS = 32
_BIAS = 127


@dataclass(frozen=True)
class Reduced:
    """An argument as q pi/2 + rest + tail, of which the low two bits of q are meant.

    The tail is what rounding took from the rest; None where nobody asked for it.
    """

    quadrant: SSAValue
    rest: SSAValue
    tail: SSAValue | None

    @property
    def registers(self) -> list[SSAValue]:
        """The registers that hold it."""
        both = [self.quadrant, self.rest]
        return both if self.tail is None else [*both, self.tail]


def reduce_arguments(
    code: FloatCode, arguments: Sequence[SSAValue], *, with_tail: bool
) -> list[Reduced]:
    """Reduces all arguments of an op."""
    subtract = _subtract_exactly if with_tail else _subtract
    quick = [subtract(code, x) for x in arguments]
    if code.source is F16:  # ends at 65504
        return quick
    are_large = [code.is_("gt", code.abs(x), LARGEST_SUBTRACTED) for x in arguments]
    build = code.low.build
    any_large, *others = are_large
    for is_large in others:
        any_large = build.emit(ptx.OrOp, "pred", any_large, is_large)
    registers = [register for one in quick for register in one.registers]
    large = build.block((), "large")
    reduced = build.block([B32] * len(registers), "reduced")
    build.cond_bra(any_large, large, reduced, (), registers)
    build.at(large)
    slow = [
        build.emit(ptx.SelpOp, "b32", register, old, is_large)
        for x, one, is_large in zip(arguments, quick, are_large, strict=True)
        for register, old in zip(
            _multiply(code, x, with_tail=with_tail).registers, one.registers, strict=True
        )
    ]
    build.bra(reduced, *slow)
    build.at(reduced)
    width = 3 if with_tail else 2
    rows = (reduced.args[i : i + width] for i in range(0, len(registers), width))
    return [Reduced(row[0], row[1], row[2] if with_tail else None) for row in rows]


def _subtract(code: FloatCode, x: SSAValue) -> Reduced:
    """Three fused steps. The first is exact; the others round, the last one small rests only.

    No part is negative, so that -0 stays what it is: it loses 0 times a part.
    """
    quadrant = code.fma(x, _TWO_OVER_PI, ROUND_TO_INTEGER)
    k = code.sub(quadrant, ROUND_TO_INTEGER)
    rest = x
    for part in HALF_PI:
        rest = code.fma(k, -part, rest)
    return Reduced(quadrant, rest, None)


def _subtract_exactly(code: FloatCode, x: SSAValue) -> Reduced:
    """The same with the errors of the steps in a tail."""
    quadrant = code.fma(x, _TWO_OVER_PI, ROUND_TO_INTEGER)
    k = code.sub(quadrant, ROUND_TO_INTEGER)
    first = code.fma(k, -HALF_PI[0], x)
    second, error = code.product(k, -HALF_PI[1])
    high, low = code.any_sum(first, second)
    rest, tail = code.ordered_sum(high, code.add(low, code.fma(k, -HALF_PI[2], error)))
    return Reduced(quadrant, rest, tail)


def _multiply(code: FloatCode, x: SSAValue, *, with_tail: bool) -> Reduced:
    """x times 2 / pi modulo 4 in 64 bits, of which 62 are a fraction; NaN for infinity.

    The fraction is off by less than 2^-61, and no f32 comes closer to a multiple of pi / 2 than
    2^-30, so the rest is the nearest f32 but for 2^-7 of an ulp.
    """
    emit = code.emit
    product = _product_modulo_4(code, x)
    upper = code.low.build.emit_multi(ptx.UnpackOp, "b64", product, results=(B32, B32))[1]
    # To the nearest quarter turn: the fraction, read as signed, is from -1/2 to 1/2.
    quadrant = emit(ptx.ShrOp, "u32", emit(ptx.AddOp, "u32", upper, 1 << 29), 30)
    fraction = emit(ptx.ShlOp, "b64", product, 2)
    number = emit(ptx.CvtOp, "rn.f64.s64", fraction)
    scale = code.low.build.imm_f64(_QUARTER_OF_2_TO_64)
    exact = emit(ptx.MulOp, "rn.f64", number, scale)
    is_negative = emit(ptx.SetpOp, "lt.s32", x, 0)
    exact = emit(ptx.SelpOp, "b64", emit(ptx.NegOp, "f64", exact), exact, is_negative)
    quadrant = emit(ptx.SelpOp, "b32", emit(ptx.NegOp, "s32", quadrant), quadrant, is_negative)
    rest = emit(ptx.CvtOp, "rn.f32.f64", exact)
    tail = None
    if with_tail:
        back = emit(ptx.CvtOp, "f64.f32", rest)
        tail = emit(ptx.CvtOp, "rn.f32.f64", emit(ptx.SubOp, "rn.f64", exact, back))
    # x - x is 0, or NaN for infinity.
    return Reduced(quadrant, code.add(rest, code.sub(x, x)), tail)


def _product_modulo_4(code: FloatCode, x: SSAValue) -> SSAValue:
    """The mantissa of x times 96 bits of 2 / pi, its top two bits the quadrant."""
    emit = code.emit
    low = emit(ptx.AndOp, "b32", x, (1 << _MANTISSA_BITS) - 1)
    mantissa = emit(ptx.OrOp, "b32", low, 1 << _MANTISSA_BITS)
    exponent = emit(ptx.BfeOp, "u32", x, _MANTISSA_BITS, 8)
    first_bit = emit(ptx.AddOp, "s32", exponent, _FIRST_BIT - _BIAS)
    words = _four_words(code, emit(ptx.ShrOp, "u32", first_bit, 5))
    # shf takes the count modulo 32 itself.
    high, middle, bottom = (
        emit(ptx.ShfOp, "l.wrap.b32", words[i + 1], words[i], first_bit) for i in range(3)
    )
    carry = emit(ptx.CvtOp, "u64.u32", emit(ptx.MulOp, "hi.u32", bottom, mantissa), result=B64)
    lower = emit(ptx.MadOp, "wide.u32", middle, mantissa, carry)
    top = emit(ptx.PackOp, "b64", 0, emit(ptx.MulOp, "lo.u32", high, mantissa))
    return emit(ptx.AddOp, "u64", top, lower)


def _four_words(code: FloatCode, first: SSAValue) -> list[SSAValue]:
    """Words `first` to `first` + 3 of 0, TWO_OVER_PI; `first` is from 0 to 4."""
    words = [code.low.build.imm(word, B32) for word in (0, *TWO_OVER_PI)]
    for distance in (4, 2, 1):
        bit = code.emit(ptx.AndOp, "b32", first, distance)
        is_set = code.emit(ptx.SetpOp, "ne.b32", bit, 0)
        # What lies beyond the last word is never chosen.
        words = [
            code.emit(ptx.SelpOp, "b32", words[i + distance], word, is_set)
            if i + distance < len(words)
            else word
            for i, word in enumerate(words[: distance + 3])
        ]
    return words
