"""Conversion from and to the 8-bit floats e4m3 and e5m2.

Narrowing rounds to nearest even and saturates at the largest number; NaN becomes 0x7f. Chips
with instructions for it convert two at a time, as all hold two in a 16-bit register; elsewhere
it is done in integers, by way of f16, whose exponent is that of e5m2 and whose subnormal
numbers, scaled by 2^8, are those of e4m3.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B16, B32
from phobos.record import Record, record
from phobos.transforms.lowering.registers import F8E4M3, F8E5M2, Kind
from phobos.transforms.lowering.state import Lowering

_NAN = 0x7F
_SIGN = 0x80
_NAN_F32 = 0x7FFFFFFF


@record
class _Format(Record):
    """How an 8-bit float sits in an f16: the bits it lacks, and the scale of its exponents."""

    dropped: int
    scale: float
    largest: float


_FORMATS = {F8E4M3: _Format(7, 256.0, 448.0), F8E5M2: _Format(8, 1.0, 57344.0)}


def widen_pair(low: Lowering, pair: SSAValue, kind: Kind) -> SSAValue:
    """Two 8-bit floats in a 16-bit register as two f16 in a word, exactly."""
    return low.build.emit(ptx.CvtOp, f"rn.f16x2.{kind.name}x2", pair)


def narrow_pair(low: Lowering, first: SSAValue, second: SSAValue, kind: Kind) -> SSAValue:
    """Two f32 as 8-bit floats in a 16-bit register, the first in its lower byte."""
    return low.build.emit(ptx.CvtOp, f"rn.satfinite.{kind.name}x2.f32", second, first)


def widen_byte(low: Lowering, value: SSAValue, kind: Kind) -> SSAValue:
    """An 8-bit float, in the low byte of a register, as f32, exactly."""
    emit = low.build.emit
    if low.chip.has_fp8:
        halves = widen_pair(low, emit(ptx.CvtOp, "u16.u32", value), kind)
        first = low.build.emit_multi(ptx.UnpackOp, "b32", halves, results=(B16, B16))[0]
        return emit(ptx.CvtOp, "f32.f16", first)
    form = _FORMATS[kind]
    magnitude = emit(ptx.AndOp, "b32", value, _NAN)
    sign = emit(ptx.ShlOp, "b32", emit(ptx.AndOp, "b32", value, _SIGN), 8)
    bits = emit(ptx.OrOp, "b32", sign, emit(ptx.ShlOp, "b32", magnitude, form.dropped))
    wide = emit(ptx.CvtOp, "f32.f16", emit(ptx.CvtOp, "u16.u32", bits))
    if kind is F8E5M2:
        return wide
    scaled = emit(ptx.MulOp, "f32", wide, low.build.imm_f32(form.scale))
    is_nan = emit(ptx.SetpOp, "eq.b32", magnitude, _NAN)
    return emit(ptx.SelpOp, "b32", _NAN_F32, scaled, is_nan)


def narrow_to_byte(low: Lowering, value: SSAValue, kind: Kind) -> SSAValue:
    """An f32 as an 8-bit float in the low byte of a register."""
    emit = low.build.emit
    if low.chip.has_fp8:
        pair = narrow_pair(low, value, low.build.imm_f32(0.0), kind)
        return emit(ptx.CvtOp, "u32.u16", pair)
    form = _FORMATS[kind]
    size = emit(ptx.AbsOp, "f32", value)
    size = emit(ptx.MinOp, "f32", size, low.build.imm_f32(form.largest))
    if form.scale != 1.0:
        size = emit(ptx.MulOp, "f32", size, low.build.imm_f32(1 / form.scale))
    # Cut to f16 with its last bit set if that is inexact: the rounding below is then the only one.
    half = emit(ptx.CvtOp, "rz.f16.f32", size)
    inexact = emit(ptx.SetpOp, "ne.f32", emit(ptx.CvtOp, "f32.f16", half), size)
    bits = emit(ptx.CvtOp, "u32.u16", half)
    bits = emit(ptx.SelpOp, "b32", emit(ptx.OrOp, "b32", bits, 1), bits, inexact)
    last = emit(ptx.BfeOp, "u32", bits, form.dropped, 1)
    bias = emit(ptx.AddOp, "u32", last, (1 << (form.dropped - 1)) - 1)
    rounded = emit(ptx.ShrOp, "u32", emit(ptx.AddOp, "u32", bits, bias), form.dropped)
    sign = emit(ptx.AndOp, "b32", emit(ptx.ShrOp, "u32", value, 24), _SIGN)
    is_nan = emit(ptx.SetpOp, "nan.f32", value, value)
    return emit(ptx.SelpOp, "b32", _NAN, emit(ptx.OrOp, "b32", rounded, sign), is_nan)


# ---- words of four


def widen_words(low: Lowering, words: Sequence[SSAValue], kind: Kind) -> list[SSAValue]:
    """Words of four 8-bit floats as words of two f16."""
    halves: list[SSAValue] = []
    for word in words:
        pairs = low.build.emit_multi(ptx.UnpackOp, "b32", word, results=(B16, B16))
        halves += [widen_pair(low, pair, kind) for pair in pairs]
    return halves


def narrow_words(low: Lowering, values: Sequence[SSAValue], kind: Kind) -> list[SSAValue]:
    """A multiple of four f32 as words of four 8-bit floats."""
    pairs = [
        narrow_pair(low, first, second, kind)
        for first, second in zip(values[0::2], values[1::2], strict=True)
    ]
    return [
        low.build.emit(ptx.PackOp, "b32", first, second, result=B32)
        for first, second in zip(pairs[0::2], pairs[1::2], strict=True)
    ]
