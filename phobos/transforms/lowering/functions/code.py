"""Writing floating-point code: arithmetic on registers, and tables of functions made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import Instruction
from phobos.transforms.lowering.registers import F64, Kind
from phobos.transforms.lowering.state import Lowering

Operand = SSAValue | float
"""A register, or a number that becomes a constant."""

Row = tuple[SSAValue, ...]
"""The arguments of one application of a function."""

Function = Callable[..., SSAValue]
"""Takes a FloatCode and registers of its type, and writes one application."""

Functions = Callable[["FloatCode", Sequence[Row]], list[SSAValue]]
"""Writes all applications of an op at once, for functions that share a branch."""

INFINITY = float("inf")
NAN = float("nan")


class FloatCode:
    """Writes arithmetic of f32 or f64. Every step rounds to nearest even and keeps subnormals.

    `source` is the type that the arguments come from: a half is computed in f32.
    """

    __slots__ = ("bits", "constant", "emit", "kind", "low", "source", "type")

    def __init__(self, low: Lowering, kind: Kind, source: Kind):
        self.low = low
        self.source = source
        self.kind = kind
        self.type = kind.name
        self.bits = kind.untyped
        self.emit = low.build.emit
        self.constant = low.build.imm_f64 if kind is F64 else low.build.imm_f32

    def _arithmetic(self, cls: type[Instruction], *operands: Operand) -> SSAValue:
        # With the rounding spelled out, ptxas fuses nothing.
        return self.emit(cls, f"rn.{self.type}", *map(self.register, operands))

    def register(self, operand: Operand) -> SSAValue:
        """A register that holds the operand."""
        return operand if isinstance(operand, SSAValue) else self.constant(operand)

    def add(self, a: Operand, b: Operand) -> SSAValue:
        """a + b."""
        return self._arithmetic(ptx.AddOp, a, b)

    def sub(self, a: Operand, b: Operand) -> SSAValue:
        """a - b."""
        return self._arithmetic(ptx.SubOp, a, b)

    def mul(self, a: Operand, b: Operand) -> SSAValue:
        """a * b."""
        return self._arithmetic(ptx.MulOp, a, b)

    def fma(self, a: Operand, b: Operand, c: Operand) -> SSAValue:
        """a * b + c, rounded once."""
        return self._arithmetic(ptx.FmaOp, a, b, c)

    def div(self, a: Operand, b: Operand) -> SSAValue:
        """a / b."""
        return self._arithmetic(ptx.DivOp, a, b)

    def sqrt(self, a: SSAValue) -> SSAValue:
        """The square root of a."""
        return self._arithmetic(ptx.SqrtOp, a)

    def neg(self, a: SSAValue) -> SSAValue:
        """-a."""
        return self.emit(ptx.NegOp, self.type, a)

    def abs(self, a: SSAValue) -> SSAValue:
        """|a|."""
        return self.emit(ptx.AbsOp, self.type, a)

    def trunc(self, a: SSAValue) -> SSAValue:
        """a without its fraction."""
        return self.emit(ptx.CvtOp, f"rzi.{self.type}.{self.type}", a)

    def with_sign_of(self, sign: SSAValue, a: SSAValue) -> SSAValue:
        """|a| with the sign of another number."""
        return self.emit(ptx.CopysignOp, self.type, sign, a)

    def is_(self, comparison: str, a: Operand, b: Operand) -> SSAValue:
        """The predicate of a comparison (`lt`, `ge`, `nan`, ...)."""
        return self.emit(
            ptx.SetpOp, f"{comparison}.{self.type}", self.register(a), self.register(b)
        )

    def select(self, condition: SSAValue, if_true: Operand, if_false: Operand) -> SSAValue:
        """One of two numbers."""
        return self.emit(
            ptx.SelpOp, self.bits, self.register(if_true), self.register(if_false), condition
        )

    def polynomial(self, coefficients: Sequence[float], t: SSAValue) -> SSAValue:
        """The value at t of a polynomial, given from the power 0 up, by Horner's rule."""
        *lower, result = coefficients
        value: Operand = result
        for coefficient in reversed(lower):
            value = self.fma(value, t, coefficient)
        return self.register(value)

    def product(self, a: SSAValue, b: Operand) -> tuple[SSAValue, SSAValue]:
        """a * b as the sum of two floats, exactly."""
        high = self.mul(a, b)
        return high, self.fma(a, b, self.neg(high))

    def ordered_sum(self, larger: Operand, smaller: SSAValue) -> tuple[SSAValue, SSAValue]:
        """A sum as two floats, exactly if |larger| >= |smaller| (Dekker)."""
        high = self.add(larger, smaller)
        return high, self.add(self.sub(larger, high), smaller)

    def any_sum(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        """A sum as two floats, exactly (Knuth)."""
        high = self.add(a, b)
        b_part = self.sub(high, a)
        a_part = self.sub(high, b_part)
        return high, self.add(self.sub(a, a_part), self.sub(b, b_part))

    def approximate(self, cls: type[Instruction], a: SSAValue) -> SSAValue:
        """One of the special functions of f32 that the hardware has; flushes subnormals."""
        return self.emit(cls, "approx.ftz.f32", a)


ROUND_TO_INTEGER = 12582912.0
"""1.5 * 2^23: an f32 of this size has no fraction bits, so that adding it rounds to integers.

The low 22 bits of the sum's pattern are the integer."""


def each(function: Function) -> Functions:
    """A function that is applied to each row on its own."""
    return lambda code, rows: [function(code, *row) for row in rows]


def integer_to_float(code: FloatCode, value: SSAValue) -> SSAValue:
    """A signed 32-bit integer as a float."""
    return code.emit(ptx.CvtOp, f"rn.{code.type}.s32", value, result=code.kind.register)
