"""Operations of `arith` and `math` on scalars, runs and tiles alike.

The sign of an integer is in the operation, so the tables are by operator and kind of element.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from phobos.diagnostics import Location
from phobos.dialects.elementwise import RemainderOp
from phobos.frontend.emit_types import type_attr
from phobos.frontend.emitter import Emitter
from phobos.frontend.operators import BinaryOp, UnaryOp
from phobos.frontend.types import (
    BOOL,
    F8E4M3,
    F8E5M2,
    F32,
    I32,
    I64,
    INDEX,
    Kind,
    ScalarType,
    ValueType,
    element_of,
    with_element,
)

_FLOAT: dict[BinaryOp, type[Operation]] = {
    BinaryOp.ADD: arith.AddfOp,
    BinaryOp.SUBTRACT: arith.SubfOp,
    BinaryOp.MULTIPLY: arith.MulfOp,
    BinaryOp.DIVIDE: arith.DivfOp,
    BinaryOp.REMAINDER: RemainderOp,
}
_BITS: dict[BinaryOp, type[Operation]] = {
    BinaryOp.BIT_AND: arith.AndIOp,
    BinaryOp.BIT_OR: arith.OrIOp,
    BinaryOp.BIT_XOR: arith.XOrIOp,
}
_SIGNED: dict[BinaryOp, type[Operation]] = {
    **_BITS,
    BinaryOp.ADD: arith.AddiOp,
    BinaryOp.SUBTRACT: arith.SubiOp,
    BinaryOp.MULTIPLY: arith.MuliOp,
    BinaryOp.DIVIDE: arith.DivSIOp,
    BinaryOp.REMAINDER: arith.RemSIOp,
    BinaryOp.SHIFT_LEFT: arith.ShLIOp,
    BinaryOp.SHIFT_RIGHT: arith.ShRSIOp,
}
_UNSIGNED: dict[BinaryOp, type[Operation]] = {
    **_SIGNED,
    BinaryOp.DIVIDE: arith.DivUIOp,
    BinaryOp.REMAINDER: arith.RemUIOp,
    BinaryOp.SHIFT_RIGHT: arith.ShRUIOp,
}
_ARITHMETIC: dict[Kind, dict[BinaryOp, type[Operation]]] = {
    Kind.FLOAT: _FLOAT,
    Kind.SIGNED: _SIGNED,
    Kind.INDEX: _SIGNED,
    Kind.UNSIGNED: _UNSIGNED,
    Kind.BOOL: _BITS,
}

# The numbers of arith's predicates: cmpi eq ne slt sle sgt sge ult ule ugt uge, cmpf below.
_COMPARISONS = (
    BinaryOp.EQUAL,
    BinaryOp.NOT_EQUAL,
    BinaryOp.LESS,
    BinaryOp.LESS_EQUAL,
    BinaryOp.GREATER,
    BinaryOp.GREATER_EQUAL,
)


def _predicates(numbers: tuple[int, ...]) -> dict[BinaryOp, IntegerAttr]:
    return {op: IntegerAttr(number, i64) for op, number in zip(_COMPARISONS, numbers, strict=True)}


_SIGNED_PREDICATES = _predicates((0, 1, 2, 3, 4, 5))
_UNSIGNED_PREDICATES = _predicates((0, 1, 6, 7, 8, 9))
# oeq une olt ole ogt oge: a comparison with NaN is false, except that it differs from all.
_FLOAT_PREDICATES = _predicates((1, 13, 4, 5, 2, 3))


def arithmetic(
    emitter: Emitter,
    op: BinaryOp,
    left: SSAValue,
    right: SSAValue,
    type_: ValueType,
    place: Location,
) -> SSAValue:
    """An arithmetic, bitwise or shift operation on two values of one type."""
    kind = _ARITHMETIC[element_of(type_).kind][op]
    return emitter.value(kind, (left, right), type_attr(type_), place)


def comparison(
    emitter: Emitter,
    op: BinaryOp,
    left: SSAValue,
    right: SSAValue,
    type_: ValueType,
    place: Location,
) -> SSAValue:
    """A comparison of two values of type `type_`; the result has bools in its shape."""
    element = element_of(type_)
    if element.is_float:
        kind, predicates = arith.CmpfOp, _FLOAT_PREDICATES
    else:
        kind = arith.CmpiOp
        signless = element.is_unsigned or element is BOOL
        predicates = _UNSIGNED_PREDICATES if signless else _SIGNED_PREDICATES
    result = type_attr(with_element(type_, BOOL))
    return emitter.value(kind, (left, right), result, place, {"predicate": predicates[op]})


def prefix(
    emitter: Emitter, op: UnaryOp, operand: SSAValue, type_: ValueType, place: Location
) -> SSAValue:
    """A unary operation."""
    result = type_attr(type_)
    if op is UnaryOp.NEGATE:
        if element_of(type_).is_float:
            return emitter.value(arith.NegfOp, (operand,), result, place)
        zero = emitter.constant(0, type_, place)
        return emitter.value(arith.SubiOp, (zero, operand), result, place)
    ones = emitter.constant(True if op is UnaryOp.NOT else -1, type_, place)
    return emitter.value(arith.XOrIOp, (operand, ones), result, place)


# Conversions -------------------------------------------------------------------------------------


def conversion(
    emitter: Emitter, value: SSAValue, source: ValueType, target: ScalarType, place: Location
) -> SSAValue:
    """The elements of `value`, which has type `source`, in the type `target`."""
    converter = _Converter(emitter, source, place)
    return converter.convert(value, element_of(source), target)


class _Converter:
    """Conversions of one value; the steps between may take several operations."""

    def __init__(self, emitter: Emitter, shape: ValueType, place: Location) -> None:
        self._emitter = emitter
        self._shape = shape
        self._place = place

    def convert(self, value: SSAValue, source: ScalarType, target: ScalarType) -> SSAValue:
        if source is target:
            return value
        if target is BOOL and source in (F8E4M3, F8E5M2):
            return self.convert(self._step(arith.ExtFOp, value, F32), F32, BOOL)
        if target is BOOL:
            type_ = with_element(self._shape, source)
            zero = self._emitter.constant(0.0 if source.is_float else 0, type_, self._place)
            return comparison(self._emitter, BinaryOp.NOT_EQUAL, value, zero, type_, self._place)
        if INDEX in (source, target):
            return self._through_integer(value, source, target)
        if source.is_float:
            if target.is_float:
                return self._between_floats(value, source, target)
            return self._step(
                arith.FPToUIOp if target.is_unsigned else arith.FPToSIOp, value, target
            )
        signless = source.is_unsigned or source is BOOL
        if target.is_float:
            return self._step(arith.UIToFPOp if signless else arith.SIToFPOp, value, target)
        return self._between_integers(value, source, target, signless=signless)

    def _step(self, kind: type[Operation], value: SSAValue, target: ScalarType) -> SSAValue:
        result = type_attr(with_element(self._shape, target))
        return self._emitter.value(kind, (value,), result, self._place)

    def _between_floats(self, value: SSAValue, source: ScalarType, target: ScalarType) -> SSAValue:
        if source.bits == target.bits:  # f16 and bf16
            value, source = self._step(arith.ExtFOp, value, F32), F32
        wider = target.bits > source.bits
        return self._step(arith.ExtFOp if wider else arith.TruncFOp, value, target)

    def _between_integers(
        self, value: SSAValue, source: ScalarType, target: ScalarType, *, signless: bool
    ) -> SSAValue:
        if source.bits == target.bits:
            return value  # the same bits, read with another sign
        if source.bits > target.bits:
            return self._step(arith.TruncIOp, value, target)
        return self._step(arith.ExtUIOp if signless else arith.ExtSIOp, value, target)

    def _through_integer(self, value: SSAValue, source: ScalarType, target: ScalarType) -> SSAValue:
        """To or from index, by way of an integer that has every value the other side has."""
        if source is INDEX:
            middle = self._middle(target)
            value = self._step(arith.IndexCastOp, value, middle)
            return self.convert(value, middle, target)
        middle = self._middle(source)
        value = self.convert(value, source, middle)
        return self._step(arith.IndexCastOp, value, INDEX)

    def _middle(self, other: ScalarType) -> ScalarType:
        if other.is_float:
            return I32 if self._emitter.index_bits == 32 else I64
        if other.bits < 32 or other is I32:
            return I32
        return I64
