"""Elementwise ops on tiles and runs that arith has for scalars only in xDSL.

`tile.sitofp %t : tensor<8xi32> to tensor<8xf32>` converts each element as `arith.sitofp`
converts a scalar; float to integer saturates and turns NaN into 0.
`tile.cmpf olt, %a, %b : tensor<8xf32>` compares each pair and gives a `tensor<8xi1>`.
All other arithmetic on tiles and runs is arith's and math's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


class ElementCast(IRDLOperation):
    """Base class: converts the elements and keeps the shape."""

    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, input: SSAValue, result_type: Attribute):
        super().__init__(operands=[input], result_types=[result_type])

    def _elements(self) -> tuple[Attribute, Attribute]:
        source, result = self.input.type, self.result.type
        if isinstance(source, TensorType | VectorType):
            same_kind = type(source) is type(result)
            if same_kind and source.get_shape() == result.get_shape():  # pyright: ignore
                return source.element_type, result.element_type  # pyright: ignore
        raise VerifyException(f"{self.name} keeps the shape of a tile or run: {source} to {result}")


class _IntegerCast(ElementCast):
    """Base class of casts between integers; `WIDENS` says in which direction."""

    WIDENS: ClassVar[bool] = True

    def verify_(self) -> None:
        """Refuses other elements, another shape, and the wrong direction."""
        source, result = self._elements()
        if not isinstance(source, IntegerType) or not isinstance(result, IntegerType):
            raise VerifyException(f"{self.name} is between integers, not {source} and {result}")
        if source.width.data == result.width.data or (
            (result.width.data > source.width.data) != self.WIDENS
        ):
            direction = "wider" if self.WIDENS else "narrower"
            raise VerifyException(f"{self.name} makes integers {direction}: {source} to {result}")


class _FloatCast(ElementCast):
    """Base class of casts between integers and floats."""

    TO_FLOAT: ClassVar[bool] = True

    def verify_(self) -> None:
        """Refuses other elements and another shape."""
        source, result = self._elements()
        integer, number = (source, result) if self.TO_FLOAT else (result, source)
        if not isinstance(integer, IntegerType | IndexType) or not isinstance(number, AnyFloat):
            raise VerifyException(f"{self.name} does not convert {source} to {result}")


@irdl_op_definition
class ExtSIOp(_IntegerCast):
    """Widens integers by their sign."""

    name = "tile.extsi"


@irdl_op_definition
class ExtUIOp(_IntegerCast):
    """Widens integers by zeros."""

    name = "tile.extui"


@irdl_op_definition
class TruncIOp(_IntegerCast):
    """Keeps the low bits of integers."""

    name = "tile.trunci"
    WIDENS: ClassVar[bool] = False


@irdl_op_definition
class SIToFPOp(_FloatCast):
    """Signed integers as the nearest floats."""

    name = "tile.sitofp"


@irdl_op_definition
class UIToFPOp(_FloatCast):
    """Unsigned integers as the nearest floats."""

    name = "tile.uitofp"


@irdl_op_definition
class FPToSIOp(_FloatCast):
    """Floats as signed integers, toward zero."""

    name = "tile.fptosi"
    TO_FLOAT: ClassVar[bool] = False


@irdl_op_definition
class FPToUIOp(_FloatCast):
    """Floats as unsigned integers, toward zero."""

    name = "tile.fptoui"
    TO_FLOAT: ClassVar[bool] = False


@irdl_op_definition
class BitcastOp(ElementCast):
    """The bits of each element as another type of the same width."""

    name = "tile.bitcast"

    def verify_(self) -> None:
        """Refuses another shape and elements of another width."""
        source, result = self._elements()
        widths = [getattr(type_, "bitwidth", None) for type_ in (source, result)]
        if widths[0] is None or widths[0] != widths[1]:
            raise VerifyException(f"{self.name} keeps the width: {source} to {result}")


class _Bits(IRDLOperation):
    """Base class of what moves the bits of integers, of scalars, runs and tiles."""

    _T: ClassVar = VarConstraint("T", AnyAttr())

    def _check(self, wanted: int | None) -> None:
        type_ = self.results[0].type
        element = type_.element_type if isinstance(type_, TensorType | VectorType) else type_
        if not isinstance(element, IntegerType) or wanted not in (None, element.width.data):
            raise VerifyException(f"{self.name} moves bits of integers, not of {type_}")


@irdl_op_definition
class ReverseBitsOp(_Bits):
    """The bits of an integer in the opposite order: `%b = tile.brev %a : i32`."""

    name = "tile.brev"

    value = operand_def(_Bits._T)
    result = result_def(_Bits._T)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[value.type])

    def verify_(self) -> None:
        """Refuses what has no bits to move."""
        self._check(None)


@irdl_op_definition
class PermuteBytesOp(_Bits):
    """Four of the eight bytes of b:a: nibble i of the selector names the one for byte i.

    A nibble of 8 and more copies the sign of the byte that its lower three bits name.
    `%d = tile.byteperm %a, %b, %selector : i32`
    """

    name = "tile.byteperm"

    a = operand_def(_Bits._T)
    b = operand_def(_Bits._T)
    selector = operand_def(_Bits._T)
    result = result_def(_Bits._T)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b `,` $selector attr-dict `:` type($a)"

    def __init__(self, a: SSAValue, b: SSAValue, selector: SSAValue):
        super().__init__(operands=[a, b, selector], result_types=[a.type])

    def verify_(self) -> None:
        """Refuses anything but 32-bit integers."""
        self._check(32)


@irdl_op_definition
class RemainderOp(IRDLOperation):
    """What a division of floats leaves if its quotient is truncated, exactly, as C's fmod.

    It has the sign of the dividend: `%r = tile.remf %a, %b : tensor<8xf32>`
    """

    name = "tile.remf"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        """Refuses what is no float."""
        type_ = self.result.type
        element = type_.element_type if isinstance(type_, TensorType | VectorType) else type_
        if not isinstance(element, AnyFloat):
            raise VerifyException(f"{self.name} is of floats, not of {type_}")


@irdl_op_definition
class RoundTF32Op(IRDLOperation):
    """f32 with the bits that tf32 has, to nearest: `%r = tile.round_tf32 %a : tensor<8xf32>`."""

    name = "tile.round_tf32"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[value.type])

    def verify_(self) -> None:
        """Refuses anything but f32."""
        type_ = self.result.type
        element = type_.element_type if isinstance(type_, TensorType | VectorType) else type_
        if not isinstance(element, Float32Type):
            raise VerifyException(f"{self.name} is of f32, not of {type_}")


class Comparison(IRDLOperation):
    """Base class: compares two tiles or runs element by element."""

    PREDICATES: ClassVar[Sequence[str]] = ()

    predicate = prop_def(IntegerAttr.constr(i64))
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, predicate: str):
        number = IntegerAttr(self.PREDICATES.index(predicate), i64)
        super().__init__(
            operands=[lhs, rhs],
            result_types=[with_elements(lhs.type, i1)],
            properties={"predicate": number},
        )

    def verify_(self) -> None:
        """Refuses operands of two types and a result that is not their i1."""
        if self.lhs.type != self.rhs.type:
            raise VerifyException(f"{self.name} compares {self.lhs.type} with {self.rhs.type}")
        if self.result.type != with_elements(self.lhs.type, i1):
            raise VerifyException(f"{self.name} of {self.lhs.type} gives {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses `olt, %a, %b : tensor<8xf32>`."""
        start = parser.pos
        name = parser.parse_identifier()
        if name not in cls.PREDICATES:
            known = ", ".join(cls.PREDICATES)
            parser.raise_error(f"`{name}` is no predicate; expected {known}", start, parser.pos)
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, TensorType | VectorType):
            parser.raise_error(f"{cls.name} compares tiles or runs", start, parser.pos)
        operands = parser.resolve_operands([lhs, rhs], [type_, type_], start)
        op = cls(operands[0], operands[1], name)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        """Prints `olt, %a, %b : tensor<8xf32>`."""
        printer.print_string(f" {self.PREDICATES[self.predicate.value.data]}, ")
        printer.print_operand(self.lhs)
        printer.print_string(", ")
        printer.print_operand(self.rhs)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class CmpIOp(Comparison):
    """Compares integers, as `arith.cmpi`."""

    name = "tile.cmpi"
    PREDICATES: ClassVar[Sequence[str]] = tuple(arith.CMPI_COMPARISON_OPERATIONS)


@irdl_op_definition
class CmpFOp(Comparison):
    """Compares floats, as `arith.cmpf`."""

    name = "tile.cmpf"
    PREDICATES: ClassVar[Sequence[str]] = tuple(arith.CMPF_COMPARISON_OPERATIONS)


def with_elements(type_: Attribute, element: Attribute) -> Attribute:
    """A tile or run type with other elements, and the same layout."""
    if isinstance(type_, TensorType):
        return TensorType(element, type_.get_shape(), type_.encoding)
    if isinstance(type_, VectorType):
        return VectorType(element, type_.get_shape())
    raise VerifyException(f"a tile or run expected, not {type_}")


ELEMENTWISE: dict[type[Operation], type[IRDLOperation]] = {
    arith.ExtSIOp: ExtSIOp,
    arith.ExtUIOp: ExtUIOp,
    arith.TruncIOp: TruncIOp,
    arith.SIToFPOp: SIToFPOp,
    arith.UIToFPOp: UIToFPOp,
    arith.FPToSIOp: FPToSIOp,
    arith.FPToUIOp: FPToUIOp,
    arith.CmpiOp: CmpIOp,
    arith.CmpfOp: CmpFOp,
    arith.BitcastOp: BitcastOp,
}
"""arith's op on scalars -> the op on tiles and runs that means the same."""


MORE = (ReverseBitsOp, PermuteBytesOp, RemainderOp, RoundTF32Op)
"""Ops on scalars, runs and tiles that arith and math do not have."""


def elementwise_class(scalar: type[Operation], operand: Attribute) -> type[Operation]:
    """The op class that does what `scalar` does, for operands of this type."""
    if isinstance(operand, TensorType | VectorType):
        return ELEMENTWISE.get(scalar, scalar)
    return scalar
