"""Elementwise arithmetic, comparison and selection on scalars, runs and tiles.

An op is a function from registers to a register, applied to each element. Where the chip
has no instruction for a 16-bit float, the op is done in f32 and rounded, which gives the
same bits for + - * / and sqrt since 24 >= 2 * 11 + 2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import copysign

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.elementwise import (
    BitcastOp,
    CmpFOp,
    CmpIOp,
    PermuteBytesOp,
    ReverseBitsOp,
    RoundTF32Op,
)
from phobos.dialects.ptx import Instruction
from phobos.ir.locations import error_at
from phobos.transforms.lowering import bfloat16
from phobos.transforms.lowering.conversions import (
    clean,
    narrow_to_half,
    round_to_tf32,
    widen_half,
)
from phobos.transforms.lowering.pairs import in_pairs
from phobos.transforms.lowering.registers import BF16, F8E4M3, F16, F32, F64, Kind
from phobos.transforms.lowering.state import Handler, Lowering

Rule = Callable[[Lowering, Operation, Kind, tuple[SSAValue, ...]], SSAValue]


def apply(rule: Rule) -> Handler:
    """Runs a rule over the elements of an op; equal operands are computed once.

    16-bit floats that are held as words are computed two at a time instead, if they can be.
    """

    def handler(low: Lowering, op: Operation) -> None:
        kind = low.kind(op.operands[-1].type, op)
        share = in_pairs(low, op, kind)
        if share is not None:
            low.set_share(op.results[0], share)
            return
        columns = [low.elements(operand) for operand in op.operands]
        done: dict[tuple[SSAValue, ...], SSAValue] = {}
        results: list[SSAValue] = []
        for row in zip(*columns, strict=True):
            result = done.get(row)
            if result is None:
                result = done[row] = rule(low, op, kind, row)
            results.append(result)
        low.set(op.results[0], *results)

    return handler


# ---- floats


def _native_half(low: Lowering, kind: Kind, needs_f16: str | None, needs_bf16: str) -> bool:
    return low.chip.has(needs_bf16 if kind is BF16 else needs_f16)


def through_f32(
    low: Lowering, kind: Kind, row: tuple[SSAValue, ...], emit: Callable[..., SSAValue]
) -> SSAValue:
    """An operation on halves that `emit` computes in f32."""
    wide = [widen_half(low, value, kind) for value in row]
    return narrow_to_half(low, emit(*wide), kind)


def _is_emulated(low: Lowering, kind: Kind) -> bool:
    """Whether values of a type are upper halves of f32 to all instructions of the chip."""
    return kind is BF16 and not low.chip.has_bf16


_EMULATED_ARITHMETIC: dict[type[Instruction], Callable[..., SSAValue]] = {
    ptx.AddOp: bfloat16.add,
    ptx.SubOp: bfloat16.subtract,
    ptx.MulOp: bfloat16.multiply,
}


def _float_arithmetic(cls: type[Instruction]) -> Rule:
    """add, sub, mul. In f32 and f64 without a rounding suffix: these may become an fma."""

    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        if not kind.is_half:
            return low.build.emit(cls, kind.name, *row)
        if _native_half(low, kind, None, "has_bf16_arithmetic"):
            return low.build.emit(cls, f"rn.{kind.name}", *row)
        if _is_emulated(low, kind):
            return _EMULATED_ARITHMETIC[cls](low, *row)
        return through_f32(low, kind, row, lambda *w: low.build.emit(cls, "rn.f32", *w))

    return rule


def _float_extremum(cls: type[Instruction], propagate_nan: bool) -> Rule:
    """min and max; a NaN loses to a number, or wins with `propagate_nan`."""

    def in_f32(low: Lowering, a: SSAValue, b: SSAValue) -> SSAValue:
        if propagate_nan and low.chip.has_nan_minmax:
            return low.build.emit(cls, "NaN.f32", a, b)
        return plain(low, F32, a, b)

    def plain(low: Lowering, kind: Kind, a: SSAValue, b: SSAValue) -> SSAValue:
        result = low.build.emit(cls, kind.name, a, b)
        return _nan_fix(low, kind, a, b, result) if propagate_nan else result

    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        a, b = row
        if kind is F64:
            return plain(low, F64, a, b)
        if kind is F32:
            return in_f32(low, a, b)
        if _native_half(low, kind, "has_half_minmax", "has_bf16"):
            suffix = f"NaN.{kind.name}" if propagate_nan else kind.name
            return low.build.emit(cls, suffix, *row)
        if _is_emulated(low, kind):
            # One of the operands, so there is nothing to round.
            return bfloat16.half_of(low, in_f32(low, *(bfloat16.widen(low, v) for v in row)))
        return through_f32(low, kind, row, lambda a, b: in_f32(low, a, b))

    return rule


def _nan_fix(low: Lowering, kind: Kind, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """Without the NaN form: the sum of the operands is NaN wherever one of them is."""
    ordered = low.build.emit(ptx.SetpOp, f"num.{kind.name}", a, b)
    nan = low.build.emit(ptx.AddOp, f"rn.{kind.name}", a, b)
    return low.build.emit(ptx.SelpOp, kind.untyped, result, nan, ordered)


def sign_rule(cls: type[Instruction]) -> Rule:
    """neg and abs: operations on the sign bit, exact in every type."""

    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        if _is_emulated(low, kind):
            # Of an f32 it is part of the instruction that uses it.
            return bfloat16.half_of(low, low.build.emit(cls, "f32", bfloat16.widen(low, row[0])))
        return low.build.emit(cls, kind.name, row[0])

    return rule


_FLOAT_PREDICATES = {
    1: "eq",
    2: "gt",
    3: "ge",
    4: "lt",
    5: "le",
    6: "ne",
    7: "num",
    8: "equ",
    9: "gtu",
    10: "geu",
    11: "ltu",
    12: "leu",
    13: "neu",
    14: "nan",
}
"""arith.cmpf's predicates that compare, as PTX spells them."""


def _compare_float(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
    assert isinstance(op, arith.CmpfOp | CmpFOp)
    number = op.predicate.value.data
    if number in (0, 15):
        return low.build.true() if number else low.build.false()
    if kind is BF16 and not low.chip.has_bf16_arithmetic:
        row, kind = tuple(widen_half(low, value, kind) for value in row), F32
    return low.build.emit(ptx.SetpOp, f"{_FLOAT_PREDICATES[number]}.{kind.name}", *row)


# ---- integers


def _integer(cls: type[Instruction], prefix: str = "") -> Rule:
    """An op whose low bits depend on the operands' low bits alone."""

    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        if kind.bits == 1:
            raise error_at(op, f"`{op.name}` on i1 is not supported yet; convert to i32 first")
        return low.build.emit(cls, f"{prefix}{_wide_name(kind, signed=True)}", *row)

    return rule


def _wide_name(kind: Kind, *, signed: bool) -> str:
    return f"{'s' if signed else 'u'}{max(32, kind.bits)}"


def clean_integer(cls: type[Instruction], *, signed: bool) -> Rule:
    """An op that looks at the whole value, so narrow operands are extended first."""

    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        cleaned = (clean(low, value, kind, signed=signed) for value in row)
        return low.build.emit(cls, _wide_name(kind, signed=signed), *cleaned)

    return rule


def _bitwise(cls: type[Instruction]) -> Rule:
    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        return low.build.emit(cls, kind.untyped, *row)

    return rule


def _shift_count(low: Lowering, kind: Kind, value: SSAValue) -> SSAValue:
    """A count as 32 bits; a 64-bit one that is too large stays too large."""
    if kind.bits < 64:
        return clean(low, value, kind, signed=False)
    limited = low.build.emit(ptx.MinOp, "u64", value, 64)
    return low.build.emit(ptx.CvtOp, "u32.u64", limited)


def _shift_left(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
    return low.build.emit(ptx.ShlOp, kind.untyped, row[0], _shift_count(low, kind, row[1]))


def _shift_right(*, signed: bool) -> Rule:
    def rule(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
        value = clean(low, row[0], kind, signed=signed)
        count = _shift_count(low, kind, row[1])
        return low.build.emit(ptx.ShrOp, _wide_name(kind, signed=signed), value, count)

    return rule


_INTEGER_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
_FIRST_UNSIGNED = 6


def _compare_integer(
    low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]
) -> SSAValue:
    assert isinstance(op, arith.CmpiOp | CmpIOp)
    number = op.predicate.value.data
    comparison = _INTEGER_PREDICATES[number]
    if kind.bits == 1:
        if number > 1:
            raise error_at(op, "booleans are compared by == and != only")
        differ = low.build.emit(ptx.XorOp, "pred", *row)
        return differ if number == 1 else low.build.emit(ptx.NotOp, "pred", differ)
    signed = number < _FIRST_UNSIGNED
    cleaned = (clean(low, value, kind, signed=signed) for value in row)
    return low.build.emit(ptx.SetpOp, f"{comparison}.{_wide_name(kind, signed=signed)}", *cleaned)


def _select(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
    condition, if_true, if_false = row
    if _is_emulated(low, kind) and (if_true in low.wide or if_false in low.wide):
        wides = (bfloat16.widen(low, value) for value in (if_true, if_false))
        return bfloat16.half_of(low, low.build.emit(ptx.SelpOp, "b32", *wides, condition))
    if kind.bits > 1:
        return low.build.emit(ptx.SelpOp, kind.untyped, if_true, if_false, condition)
    chosen = low.build.emit(ptx.AndOp, "pred", condition, if_true)
    inverse = low.build.emit(ptx.NotOp, "pred", condition)
    other = low.build.emit(ptx.AndOp, "pred", inverse, if_false)
    return low.build.emit(ptx.OrOp, "pred", chosen, other)


def _select_any(low: Lowering, op: Operation) -> None:
    """A scalar condition chooses between whole runs or tiles, too."""
    condition = low.elements(op.operands[0])
    rows = zip(*(low.elements(operand) for operand in op.operands[1:]), strict=True)
    kind = low.kind(op.results[0].type, op)
    results = [
        _select(low, op, kind, (condition[i if len(condition) > 1 else 0], *row))
        for i, row in enumerate(rows)
    ]
    low.set(op.results[0], *results)


# ---- constants and reinterpretation


def constant_bits(value: float, kind: Kind) -> int:
    """The bit pattern of a number in a type."""
    if not kind.is_float:
        return int(value) & ((1 << kind.bits) - 1)
    if kind.is_small_float:
        return _small_float_bits(value, kind)
    if kind is F64:
        return int.from_bytes(struct.pack("<d", value), "little")
    if kind is F16:
        return int.from_bytes(struct.pack("<e", value), "little")
    single = int.from_bytes(struct.pack("<f", value), "little")
    if kind is F32:
        return single
    if value != value:
        return 0x7FFF
    return (single + 0x7FFF + (single >> 16 & 1)) >> 16


def _small_float_bits(value: float, kind: Kind) -> int:
    """The bits of a number that an 8-bit float has exactly, as the front end rounded it."""
    sign = 0x80 if copysign(1.0, value) < 0 else 0
    if value != value:
        return 0x7F
    # Both formats are f16 with bits missing at the end; e4m3 has its exponents 2^8 lower.
    dropped, scale, largest = (7, 2.0**-8, 448.0) if kind is F8E4M3 else (8, 1.0, 57344.0)
    size = min(abs(value), largest) * scale
    return sign | int.from_bytes(struct.pack("<e", size), "little") >> dropped


def _constant(low: Lowering, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    kind = low.kind(op.result.type, op)
    match op.value:
        case IntegerAttr() | FloatAttr():
            value = op.value.value.data
        case DenseIntOrFPElementsAttr() if op.value.is_splat():
            value = op.value.get_values()[0]
            assert isinstance(value, int | float)
        case _:
            raise error_at(op, "constant tiles other than splats are not supported yet")
    register = low.build.imm(constant_bits(value, kind), kind.register)
    low.set(op.result, *(register,) * low.share_size(op.result))


def _bitcast(low: Lowering, op: Operation) -> None:
    source, target = low.kind(op.operands[0].type, op), low.kind(op.results[0].type, op)
    if source.bits != target.bits:
        raise error_at(op, "a bitcast keeps the number of bits")
    elements = low.elements(op.operands[0])
    if source.register != target.register:
        elements = tuple(_move_half(low, value, to_float=target.is_float) for value in elements)
    low.set(op.results[0], *elements)


def _move_half(low: Lowering, value: SSAValue, *, to_float: bool) -> SSAValue:
    """Between i16, which lives in 32 bits, and a 16-bit float."""
    return low.build.emit(ptx.CvtOp, "u16.u32" if to_float else "u32.u16", value)


def _reverse_bits(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
    reverse = low.build.emit(ptx.BrevOp, kind.untyped, row[0])
    if not kind.is_narrow_int:
        return reverse
    return low.build.emit(ptx.ShrOp, "u32", reverse, 32 - kind.bits)


def _permute_bytes(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
    return low.build.emit(ptx.PrmtOp, "b32", *row)


def _round_tf32(low: Lowering, op: Operation, kind: Kind, row: tuple[SSAValue, ...]) -> SSAValue:
    return round_to_tf32(low, row[0])


_RULES: dict[type[Operation], Rule] = {
    ReverseBitsOp: _reverse_bits,
    PermuteBytesOp: _permute_bytes,
    RoundTF32Op: _round_tf32,
    arith.AddfOp: _float_arithmetic(ptx.AddOp),
    arith.SubfOp: _float_arithmetic(ptx.SubOp),
    arith.MulfOp: _float_arithmetic(ptx.MulOp),
    arith.NegfOp: sign_rule(ptx.NegOp),
    arith.MaxnumfOp: _float_extremum(ptx.MaxOp, propagate_nan=False),
    arith.MinnumfOp: _float_extremum(ptx.MinOp, propagate_nan=False),
    arith.MaximumfOp: _float_extremum(ptx.MaxOp, propagate_nan=True),
    arith.MinimumfOp: _float_extremum(ptx.MinOp, propagate_nan=True),
    arith.CmpfOp: _compare_float,
    CmpFOp: _compare_float,
    arith.AddiOp: _integer(ptx.AddOp),
    arith.SubiOp: _integer(ptx.SubOp),
    arith.MuliOp: _integer(ptx.MulOp, "lo."),
    arith.DivSIOp: clean_integer(ptx.DivOp, signed=True),
    arith.DivUIOp: clean_integer(ptx.DivOp, signed=False),
    arith.RemSIOp: clean_integer(ptx.RemOp, signed=True),
    arith.RemUIOp: clean_integer(ptx.RemOp, signed=False),
    arith.MinSIOp: clean_integer(ptx.MinOp, signed=True),
    arith.MaxSIOp: clean_integer(ptx.MaxOp, signed=True),
    arith.MinUIOp: clean_integer(ptx.MinOp, signed=False),
    arith.MaxUIOp: clean_integer(ptx.MaxOp, signed=False),
    arith.AndIOp: _bitwise(ptx.AndOp),
    arith.OrIOp: _bitwise(ptx.OrOp),
    arith.XOrIOp: _bitwise(ptx.XorOp),
    arith.ShLIOp: _shift_left,
    arith.ShRSIOp: _shift_right(signed=True),
    arith.ShRUIOp: _shift_right(signed=False),
    arith.CmpiOp: _compare_integer,
    CmpIOp: _compare_integer,
}

HANDLERS: dict[type[Operation], Handler] = {
    **{cls: apply(rule) for cls, rule in _RULES.items()},
    arith.SelectOp: _select_any,
    tile.SelectOp: _select_any,
    arith.ConstantOp: _constant,
    arith.BitcastOp: _bitcast,
    BitcastOp: _bitcast,
}
