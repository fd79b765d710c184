"""Conversions between element types: one function from kind to kind, used by all ops.

Float to integer truncates toward zero, saturates and turns NaN into 0; float narrowing
rounds to nearest even; integers wrap when narrowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx
from phobos.dialects.elementwise import ELEMENTWISE
from phobos.dialects.ptx import B32
from phobos.transforms.lowering import bfloat16
from phobos.transforms.lowering.registers import BF16, F16, F32, F64, Kind, Share
from phobos.transforms.lowering.small_floats import (
    narrow_to_byte,
    narrow_words,
    widen_byte,
    widen_words,
)
from phobos.transforms.lowering.state import Handler, Lowering


def clean(low: Lowering, value: SSAValue, kind: Kind, *, signed: bool) -> SSAValue:
    """A narrow integer with the bits above it set to its sign (or to 0)."""
    if not kind.is_narrow_int:
        return value
    if kind.bits == 8:
        return low.build.emit(ptx.CvtOp, "s32.s8" if signed else "u32.u8", value, result=B32)
    if signed:
        return low.build.emit(ptx.BfeOp, "s32", value, 0, 16)
    return low.build.emit(ptx.AndOp, "b32", value, 0xFFFF)


def widen_half(low: Lowering, value: SSAValue, kind: Kind) -> SSAValue:
    """A 16-bit float as f32, exactly."""
    if kind is BF16 and not low.chip.has_bf16:
        return bfloat16.widen(low, value)
    return low.build.emit(ptx.CvtOp, f"f32.{kind.name}", value)


def narrow_to_half(low: Lowering, value: SSAValue, kind: Kind) -> SSAValue:
    """An f32 as a 16-bit float, to nearest even."""
    if kind is BF16 and not low.chip.has_bf16:
        return bfloat16.narrow(low, value)
    return low.build.emit(ptx.CvtOp, f"rn.{kind.name}.f32", value)


def float_to_float(low: Lowering, value: SSAValue, source: Kind, target: Kind) -> SSAValue:
    """Any float as any other."""
    if source is target:
        return value
    if source.is_small_float:
        return float_to_float(low, widen_byte(low, value, source), F32, target)
    if target.is_small_float:
        wide = round_to_odd(low, value) if source is F64 else value
        wide = widen_half(low, value, source) if source.is_half else wide
        return narrow_to_byte(low, wide, target)
    if target is BF16 and source is F64:
        return narrow_to_half(low, round_to_odd(low, value), BF16)
    if target.is_half and source is F64:
        return low.build.emit(ptx.CvtOp, f"rn.{target.name}.f64", value)
    if source.is_half:
        value, source = widen_half(low, value, source), F32
    if target.is_half:
        return narrow_to_half(low, value, target)
    if source is target:
        return value
    return low.build.emit(ptx.CvtOp, "f64.f32" if target is F64 else "rn.f32.f64", value)


def round_to_tf32(low: Lowering, value: SSAValue) -> SSAValue:
    """An f32 with the bits that tf32 has, to nearest; ties as the chip does."""
    rounding = "rn" if low.chip.has_tf32_nearest else "rna"
    return low.build.emit(ptx.CvtOp, f"{rounding}.tf32.f32", value)


def round_to_odd(low: Lowering, value: SSAValue) -> SSAValue:
    """An f64 as f32, its last bit set if that is inexact.

    A second rounding to fewer than 23 bits then gives what one rounding would have given
    (Boldo and Melquiond, "When double rounding is odd").
    """
    emit = low.build.emit
    cut = emit(ptx.CvtOp, "rz.f32.f64", value)
    back = emit(ptx.CvtOp, "f64.f32", cut)
    inexact = emit(ptx.SetpOp, "ne.f64", back, value)
    sticky = emit(ptx.OrOp, "b32", cut, 1)
    return emit(ptx.SelpOp, "b32", sticky, cut, inexact)


def int_to_float(
    low: Lowering, value: SSAValue, source: Kind, target: Kind, *, signed: bool
) -> SSAValue:
    """An integer as the nearest float."""
    emit = low.build.emit
    if target.is_small_float:
        wide = int_to_float(low, value, source, F64, signed=signed)
        return float_to_float(low, wide, F64, target)
    if source.bits == 1:
        one, zero = (-1 if signed else 1), 0
        value = emit(ptx.SelpOp, "b32", one, zero, value)
        source_name = "s32"
    else:
        value = clean(low, value, source, signed=signed)
        source_name = ("s" if signed else "u") + str(max(32, source.bits))
    if target is not BF16:
        return emit(ptx.CvtOp, f"rn.{target.name}.{source_name}", value)
    if source.bits <= 16:
        return narrow_to_half(low, emit(ptx.CvtOp, f"rn.f32.{source_name}", value), BF16)
    if source.bits == 32:
        return narrow_to_half(
            low, round_to_odd(low, emit(ptx.CvtOp, f"rn.f64.{source_name}", value)), BF16
        )
    return narrow_to_half(low, round_to_odd(low, _wide_to_odd_f64(low, value, source_name)), BF16)


def _wide_to_odd_f64(low: Lowering, value: SSAValue, source_name: str) -> SSAValue:
    """A 64-bit integer as f64, its last bit set if that is inexact."""
    emit = low.build.emit
    cut = emit(ptx.CvtOp, f"rz.f64.{source_name}", value)
    back = emit(ptx.CvtOp, f"rzi.{source_name}.f64", cut)
    inexact = emit(ptx.SetpOp, "ne.b64", back, value)
    sticky = emit(ptx.OrOp, "b64", cut, 1)
    return emit(ptx.SelpOp, "b64", sticky, cut, inexact)


def float_to_int(
    low: Lowering, value: SSAValue, source: Kind, target: Kind, *, signed: bool
) -> SSAValue:
    """A float as an integer: toward zero, saturating, NaN gives 0."""
    emit = low.build.emit
    if source is BF16:
        value, source = widen_half(low, value, source), F32
    if source.is_small_float:
        value, source = widen_byte(low, value, source), F32
    if target.bits == 1:
        return emit(ptx.SetpOp, f"neu.{source.name}", value, _zero(low, source))
    name = ("s" if signed else "u") + str(target.bits)
    mnemonic = f"rzi.{name}.{source.name}"
    if target.bits == 16:
        result = emit(ptx.CvtOp, "u32.u16", emit(ptx.CvtOp, mnemonic, value))
    else:
        result = emit(ptx.CvtOp, mnemonic, value, result=target.register)
    if target.bits < 64 and source is not F64:
        return result
    # The hardware gives the smallest number for NaN here, and 0 only for the other forms.
    number = emit(ptx.SetpOp, f"num.{source.name}", value, value)
    return emit(ptx.SelpOp, target.untyped, result, 0, number)


def _zero(low: Lowering, kind: Kind) -> SSAValue:
    return low.build.imm(0, kind.register)


def int_to_int(
    low: Lowering, value: SSAValue, source: Kind, target: Kind, *, signed: bool
) -> SSAValue:
    """An integer at another width: extended by its sign (or by 0), or cut."""
    emit = low.build.emit
    if source is target:
        return value
    if source.bits == 1:
        return emit(ptx.SelpOp, target.untyped, -1 if signed else 1, 0, value)
    if target.bits == 1:
        low_bit = emit(ptx.AndOp, source.untyped, value, 1)
        return emit(ptx.SetpOp, f"ne.{source.untyped}", low_bit, 0)
    if target.bits <= source.bits:
        return emit(ptx.CvtOp, "u32.u64", value) if source.bits == 64 else value
    value = clean(low, value, source, signed=signed)
    if target.bits < 64:
        return value
    return emit(ptx.CvtOp, "s64.s32" if signed else "u64.u32", value)


def _float(low: Lowering, value: SSAValue, source: Kind, target: Kind) -> SSAValue:
    return float_to_float(low, value, source, target)


def _signed_int_to_float(low: Lowering, value: SSAValue, source: Kind, target: Kind) -> SSAValue:
    return int_to_float(low, value, source, target, signed=True)


def _unsigned_int_to_float(low: Lowering, value: SSAValue, source: Kind, target: Kind) -> SSAValue:
    return int_to_float(low, value, source, target, signed=False)


def _float_to_signed(low: Lowering, value: SSAValue, source: Kind, target: Kind) -> SSAValue:
    return float_to_int(low, value, source, target, signed=True)


def _float_to_unsigned(low: Lowering, value: SSAValue, source: Kind, target: Kind) -> SSAValue:
    return float_to_int(low, value, source, target, signed=False)


def _signed(low: Lowering, value: SSAValue, source: Kind, target: Kind) -> SSAValue:
    return int_to_int(low, value, source, target, signed=True)


def _unsigned(low: Lowering, value: SSAValue, source: Kind, target: Kind) -> SSAValue:
    return int_to_int(low, value, source, target, signed=False)


_Conversion = Callable[[Lowering, SSAValue, Kind, Kind], SSAValue]

_CONVERSIONS: dict[type[Operation], _Conversion] = {
    arith.ExtFOp: _float,
    arith.TruncFOp: _float,
    arith.SIToFPOp: _signed_int_to_float,
    arith.UIToFPOp: _unsigned_int_to_float,
    arith.FPToSIOp: _float_to_signed,
    arith.FPToUIOp: _float_to_unsigned,
    arith.ExtSIOp: _signed,
    arith.ExtUIOp: _unsigned,
    arith.TruncIOp: _unsigned,
    arith.IndexCastOp: _signed,
}


def _convert_words(low: Lowering, op: Operation, source: Kind, target: Kind) -> bool:
    """Converts 8-bit floats two at a time where the chip does and they fill words."""
    share = low.share(op.operands[0])
    count = low.share_size(op.operands[0])
    if not low.chip.has_fp8 or count % 4:
        return False
    if source.is_small_float and target in (F16, F32) and share.words is not None:
        halves = widen_words(low, share.words, source)
        if target is F16:
            low.set_share(op.results[0], Share(words=halves))
        else:
            elements = low.unpack(halves, F16)
            low.set(op.results[0], *(widen_half(low, half, F16) for half in elements))
        return True
    if target.is_small_float and source is F32:
        words = narrow_words(low, low.elements(op.operands[0]), target)
        low.set_share(op.results[0], Share(words=words))
        return True
    return False


def _widen_words(low: Lowering, words: Sequence[SSAValue]) -> Iterator[SSAValue]:
    """Pairs of bf16 as f32: each is the upper half of its f32, so one instruction an element."""
    done: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
    for word in words:
        if word not in done:
            first = low.build.emit(ptx.ShlOp, "b32", word, 16)
            done[word] = (first, low.build.emit(ptx.AndOp, "b32", word, 0xFFFF0000))
        yield from done[word]


def _convert(low: Lowering, op: Operation) -> None:
    """Converts every element; equal registers (copies of a broadcast) once."""
    convert = _CONVERSIONS[type(op)]
    source, target = low.kind(op.operands[0].type, op), low.kind(op.results[0].type, op)
    words = low.share(op.operands[0]).words
    if words is not None and source is BF16 and target is F32:
        low.set(op.results[0], *_widen_words(low, words))
        return
    if _convert_words(low, op, source, target):
        return
    done: dict[SSAValue, SSAValue] = {}
    results: list[SSAValue] = []
    for value in low.elements(op.operands[0]):
        if value not in done:
            done[value] = convert(low, value, source, target)
        results.append(done[value])
    low.set(op.results[0], *results)


_CONVERSIONS |= {ELEMENTWISE[cls]: rule for cls, rule in _CONVERSIONS.items() if cls in ELEMENTWISE}

HANDLERS: dict[type[Operation], Handler] = dict.fromkeys(_CONVERSIONS, _convert)
