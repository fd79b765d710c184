"""bf16 on chips without it: f32 arithmetic, and rounding with f32 arithmetic alone.

A bf16 is the upper half of an f32, so its f32 (its *wide* value) has 16 zeros at the end. What is
rounded is kept in this form beside the half, and the next operation reads it as it is.

Rounding to 8 bits is a subtraction of two neighbours: with ``t = RN(x - x / 65536)`` the number
``x - t``, which is exact, is ``x / 65536`` rounded to a multiple of the last bit of x, ties to
even as x itself is even at a tie; times 65536 that is x rounded to 8 bits. Because all of it takes
place 16 binades lower, nothing overflows on the way, the product alone does where bf16 does, and
subnormals of f32 stand in for those of bf16. Two things are lost, and put right: inf gives NaN
(inf - inf), and what is rounded to zero gives +0. NaN stays NaN. `ph-ptx-assume-finite` does it in
fewer instructions where no value is huge; the last instruction of a rounding says for it by an
attribute what is rounded.

An integer would need the last bit, a sum, a test for NaN and a mask, which all run on a pipe of
half the rate of f32 arithmetic.
"""

from __future__ import annotations

from enum import Enum

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B16, B32, InstructionBuilder
from phobos.transforms.lowering.state import Lowering

_BELOW_ONE = 0x3F7FFF00
"""1 - 2^-16 as f32."""
_MINUS_BELOW_ONE = 0xBF7FFF00
_DOWN = 0x37800000
"""2^-16."""
_UP = 0x47800000
"""2^16."""
_INFINITY = 0x7F800000

_MANY = 0x477FFF00
"""65535."""

_BIAS = 127
_SHIFT = 16


class Rounded(Enum):
    """What is known of a number that is rounded."""

    SUM = "sum"
    """A multiple of the least bf16."""
    SQUARE = "square"
    """Not negative, nor -0."""
    SIGNLESS = "signless"
    """Where it does not matter whether it is rounded to 0 or to -0, unless it is that already."""
    ANY = "any"


ROUNDS = "phobos.rounds"
"""On the last instruction of a rounding, a choice whose second operand is rounded: what of."""


def widen(low: Lowering, half: SSAValue) -> SSAValue:
    """A bf16 as f32."""
    known = low.wide.get(half)
    if known is not None:
        return known
    emit, owner = low.build.emit, half.owner
    if isinstance(owner, ptx.ImmOp):
        return low.build.imm(owner.pattern << _SHIFT, B32)
    if isinstance(owner, ptx.UnpackOp) and owner.suffix == "b32":
        word = owner.operands[0]
        if half is owner.results[0]:
            return emit(ptx.ShlOp, "b32", word, _SHIFT)
        return emit(ptx.AndOp, "b32", word, 0xFFFF0000)
    return emit(ptx.ShlOp, "b32", emit(ptx.CvtOp, "u32.u16", half), _SHIFT)


def half_of(low: Lowering, wide: SSAValue) -> SSAValue:
    """The bf16 of an f32 that is one exactly, or NaN with its upper bits set."""
    half = low.build.emit_multi(ptx.UnpackOp, "b32", wide, results=(B16, B16))[1]
    low.wide[half] = wide
    return half


def narrow(low: Lowering, value: SSAValue) -> SSAValue:
    """Any f32 as bf16, to nearest even."""
    return half_of(low, _scaled_up(low, value, Rounded.ANY))


def _scaled_up(low: Lowering, value: SSAValue, known: Rounded) -> SSAValue:
    """A value rounded, or as it is if it is inf."""
    emit = low.build.emit
    part = part_of(low.build, value, known)
    size = emit(ptx.AbsOp, "f32", value)
    is_not_infinite = emit(ptx.SetpOp, "neu.f32", size, _INFINITY)
    return _rounded(low, scaled(low.build, part), value, is_not_infinite, known)


def _rounded(
    low: Lowering, rounded: SSAValue, value: SSAValue, condition: SSAValue, known: Rounded
) -> SSAValue:
    """The end of a rounding: ptxas makes a multiplication under a predicate of the two."""
    operands = (rounded, value, condition)
    chosen = low.build.emit_op(ptx.SelpOp, "b32", operands)
    chosen.attributes[ROUNDS] = StringAttr(known.value)
    return chosen.results[0]


def part_of(build: InstructionBuilder, value: SSAValue, known: Rounded) -> SSAValue:
    """x / 65536 rounded; NaN for inf. What is rounded to zero keeps its sign if x can be any."""
    emit = build.emit
    if known is Rounded.SIGNLESS:
        # The 0 that is added makes +0 of -0, so that -0 keeps its sign.
        below = emit(ptx.FmaOp, "rn.f32", value, _BELOW_ONE, 0)
        return emit(ptx.SubOp, "rn.f32", value, below)
    below = emit(ptx.MulOp, "rn.f32", value, _BELOW_ONE)
    if known is not Rounded.ANY:
        return emit(ptx.SubOp, "rn.f32", value, below)
    # As a sum of products with the sign of x, so that what is rounded to zero keeps its sign.
    rest = emit(ptx.FmaOp, "rn.f32", value, _MINUS_BELOW_ONE, below)
    return emit(ptx.FmaOp, "rn.f32", value, _DOWN, emit(ptx.NegOp, "f32", rest))


def scaled(build: InstructionBuilder, part: SSAValue) -> SSAValue:
    """65536 times what `part_of` gives."""
    return build.emit(ptx.MulOp, "rn.f32", part, _UP)


def sum_in_range(build: InstructionBuilder, value: SSAValue) -> SSAValue:
    """A sum of two bf16 below 2^112 rounded; of a larger one the same, or inf or NaN."""
    # The 0 that is added makes +0 of -0, so that a difference of two zeros has the sign of x.
    many = build.emit(ptx.FmaOp, "rn.f32", value, _MANY, 0)
    return build.emit(ptx.FmaOp, "rn.f32", value, _UP, build.emit(ptx.NegOp, "f32", many))


def add(low: Lowering, a: SSAValue, b: SSAValue) -> SSAValue:
    """The sum of two bf16, rounded."""
    return _sum(low, low.build.emit(ptx.AddOp, "rn.f32", widen(low, a), widen(low, b)))


def subtract(low: Lowering, a: SSAValue, b: SSAValue) -> SSAValue:
    """The difference of two bf16, rounded."""
    return _sum(low, low.build.emit(ptx.SubOp, "rn.f32", widen(low, a), widen(low, b)))


def _sum(low: Lowering, value: SSAValue) -> SSAValue:
    """A sum of two bf16 rounded: it is a multiple of the least bf16, so only 0 becomes 0."""
    part = part_of(low.build, value, Rounded.SUM)
    # False for NaN: what the sum gave for inf and NaN is right, and so is its zero.
    is_number = low.build.emit(ptx.SetpOp, "ne.f32", part, 0)
    rounded = scaled(low.build, part)
    return half_of(low, _rounded(low, rounded, value, is_number, Rounded.SUM))


def multiply(low: Lowering, a: SSAValue, b: SSAValue) -> SSAValue:
    """The product of two bf16, rounded."""
    emit = low.build.emit
    for value, factor in ((a, b), (b, a)):
        exponent = _power_of_two(factor)
        if exponent is not None and exponent >= _SHIFT + 1 - _BIAS:
            return half_of(low, _times_power_of_two(low, widen(low, value), factor, exponent))
    wide = widen(low, a)
    product = emit(ptx.MulOp, "rn.f32", wide, wide if a is b else widen(low, b))
    return half_of(low, _scaled_up(low, product, Rounded.SQUARE if a is b else Rounded.ANY))


def _power_of_two(half: SSAValue) -> int | None:
    """n if a half is a constant, 2^n or -2^n, and no subnormal."""
    if not isinstance(half.owner, ptx.ImmOp):
        return None
    exponent, fraction = half.owner.pattern >> 7 & 0xFF, half.owner.pattern & 0x7F
    return exponent - _BIAS if fraction == 0 and 0 < exponent < 0xFF else None


def _times_power_of_two(low: Lowering, wide: SSAValue, factor: SSAValue, exponent: int) -> SSAValue:
    """Inexact for subnormal results alone, which 16 binades lower f32 rounds as bf16 does."""
    emit = low.build.emit
    assert isinstance(factor.owner, ptx.ImmOp)
    bits = factor.owner.pattern << _SHIFT
    if exponent >= 0:
        return emit(ptx.MulOp, "rn.f32", wide, bits)
    lower = emit(ptx.MulOp, "rn.f32", wide, bits - (_SHIFT << 23))
    return emit(ptx.MulOp, "rn.f32", lower, _UP)
