"""Functions of the math dialect that are one instruction, or two."""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import Instruction
from phobos.transforms.lowering.conversions import clean
from phobos.transforms.lowering.elementwise import (
    Rule,
    apply,
    clean_integer,
    sign_rule,
    through_f32,
)
from phobos.transforms.lowering.registers import BF16, F32, F64, Kind
from phobos.transforms.lowering.state import Handler, Lowering


def _in_f32(cls: type[Instruction], f32: str, f64: str) -> Rule:
    """A function that has f32 and f64 instructions; halves go through f32."""

    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        if kind is F64:
            return low.build.emit(cls, f64, row[0])
        if kind is F32:
            return low.build.emit(cls, f32, row[0])
        return through_f32(low, kind, row, lambda a: low.build.emit(cls, f32, a))

    return rule


def _fma(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
    if kind is BF16 and not low.chip.has_bf16:
        return through_f32(low, kind, row, lambda *wide: _fma_to_odd(low, *wide))
    return low.build.emit(ptx.FmaOp, f"rn.{kind.name}", *row)


def _fma_to_odd(low: Lowering, *row: SSAValue) -> SSAValue:
    """The fma of f32 rounded to the neighbour whose last bit is 1, unless it is exact.

    Rounding that to a shorter type gives what rounding the exact number would: the last bit says
    on which side of a tie it is (Boldo and Melquiond, "Emulation of FMA and correctly rounded
    sums"). Where they differ, the neighbours below and above are next to each other.
    """
    build = low.build
    below, above = (build.emit(ptx.FmaOp, f"{mode}.f32", *row) for mode in ("rm", "rp"))
    is_odd = build.emit(ptx.SetpOp, "ne.b32", build.emit(ptx.AndOp, "b32", below, 1), 0)
    return build.emit(ptx.SelpOp, "b32", below, above, is_odd)


def _count(cls: type[Instruction]) -> Rule:
    """popc and clz: PTX counts in 32 bits; the result has the operand's width."""

    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        value = clean(low, row[0], kind, signed=False)
        result = low.build.emit(cls, kind.untyped, value)
        if cls is ptx.ClzOp and kind.is_narrow_int:
            result = low.build.emit(ptx.SubOp, "s32", result, 32 - kind.bits)
        return low.build.emit(ptx.CvtOp, "u64.u32", result) if kind.bits == 64 else result

    return rule


_RULES: dict[type[Operation], Rule] = {
    math.AbsFOp: sign_rule(ptx.AbsOp),
    math.AbsIOp: clean_integer(ptx.AbsOp, signed=True),
    math.FloorOp: _in_f32(ptx.CvtOp, "rmi.f32.f32", "rmi.f64.f64"),
    math.CeilOp: _in_f32(ptx.CvtOp, "rpi.f32.f32", "rpi.f64.f64"),
    math.RoundEvenOp: _in_f32(ptx.CvtOp, "rni.f32.f32", "rni.f64.f64"),
    math.TruncOp: _in_f32(ptx.CvtOp, "rzi.f32.f32", "rzi.f64.f64"),
    math.FmaOp: _fma,
    math.CtPopOp: _count(ptx.PopcOp),
    math.CountLeadingZerosOp: _count(ptx.ClzOp),
}

HANDLERS: dict[type[Operation], Handler] = {cls: apply(rule) for cls, rule in _RULES.items()}
