"""Tile ops that fold axes or move elements about; part of the `tile` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, i1, i32, i64
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.collective import ReduceKind, ReduceKindAttr


@irdl_attr_definition
class AxesAttr(Data[tuple[int, ...]]):
    """Axes of a tile, ascending: `[0, 2]`."""

    name = "tile.axes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        """Parses `[0, 2]`."""
        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        )

    def print_parameter(self, printer: Printer) -> None:
        """Prints `[0, 2]`."""
        printer.print_string(f"[{', '.join(map(str, self.data))}]")


def _shapes(op: IRDLOperation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    source, result = cast(TensorType, op.operands[0].type), cast(TensorType, op.results[0].type)
    return source.get_shape(), result.get_shape()


def _check_axes(name: str, axes: tuple[int, ...], rank: int) -> None:
    if not axes or list(axes) != sorted(set(axes)) or not 0 <= axes[0] <= axes[-1] < rank:
        raise VerifyException(
            f"{name}: axes are different, ascending numbers below {rank}, got {list(axes)}"
        )


def _check_elements(name: str, kind: ReduceKind, source: Attribute, result: Attribute) -> None:
    wanted = i32 if kind is ReduceKind.COUNT else source
    if result != wanted:
        raise VerifyException(f"{name}: `{kind}` of {source} gives {wanted}, not {result}")
    is_flag = kind in (ReduceKind.ANY, ReduceKind.ALL, ReduceKind.COUNT)
    if is_flag and source != i1:
        raise VerifyException(f"{name}: `{kind}` folds i1, not {source}")
    integers = (ReduceKind.UMAX, ReduceKind.UMIN, ReduceKind.AND, ReduceKind.OR, ReduceKind.XOR)
    if kind in integers and not isinstance(source, IntegerType):
        raise VerifyException(f"{name}: `{kind}` folds integers, not {source}")


class _Fold(IRDLOperation):
    """Base class of the folds of a tile along axes."""

    kind = prop_def(ReduceKindAttr)
    axes = prop_def(AxesAttr)
    value = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$kind $value `over` $axes attr-dict `:` type($value) `->` type($result)"

    def __init__(
        self, kind: ReduceKind, value: SSAValue, axes: Sequence[int], result_type: TensorType
    ):
        super().__init__(
            operands=[value],
            result_types=[result_type],
            properties={"kind": ReduceKindAttr(kind), "axes": AxesAttr(tuple(axes))},
        )

    def _check(self) -> None:
        source, result = _shapes(self)
        _check_axes(self.name, self.axes.data, len(source))
        if len(source) != len(result):
            raise VerifyException(f"{self.name} keeps the rank")
        for axis, (old, new) in enumerate(zip(source, result, strict=True)):
            if axis not in self.axes.data and old != new:
                raise VerifyException(f"{self.name}: axis {axis} keeps its extent {old}, not {new}")
        elements = (
            cast(TensorType, self.value.type).element_type,
            cast(TensorType, self.result.type).element_type,
        )
        _check_elements(self.name, self.kind.data, *elements)


@irdl_op_definition
class ReduceOp(_Fold):
    """Folds a tile along axes, which stay with extent 1.

    `max` and `min` of floats ignore NaN. A sum adds neighbours in the registers first, then
    lanes, then warps; the order is fixed by the layout.
    `%m = tile.reduce max %t over [1] : tensor<8x64xf32> -> tensor<8x1xf32>`
    """

    name = "tile.reduce"

    def verify_(self) -> None:
        """Refuses wrong axes, shapes and element types."""
        self._check()
        for axis in self.axes.data:
            if _shapes(self)[1][axis] != 1:
                raise VerifyException(f"tile.reduce: axis {axis} becomes 1")


@irdl_op_definition
class PartialReduceOp(_Fold):
    """Folds within each warp: the first axis keeps an element for each group of warps.

    The layouts say which elements a warp has; `ph-expand-exchanges` makes this op on the way
    through shared memory.
    `%p = tile.partial_reduce add %t over [1] : tensor<8x256xf32, ..> -> tensor<8x4xf32, ..>`
    """

    name = "tile.partial_reduce"

    def verify_(self) -> None:
        """Refuses wrong axes, shapes and element types."""
        self._check()


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """Exchanges the last two axes of a tile: `%u = tile.transpose %t : A -> B`."""

    name = "tile.transpose"

    value = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, result_type: TensorType):
        super().__init__(operands=[value], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses a result that is not the transpose."""
        source, result = _shapes(self)
        if len(source) < 2 or result != (*source[:-2], source[-1], source[-2]):
            raise VerifyException(f"tile.transpose of {source} does not give {result}")
        if (
            cast(TensorType, self.value.type).element_type
            != cast(TensorType, self.result.type).element_type
        ):
            raise VerifyException("tile.transpose does not convert elements")


def keeps_bits(source: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """Whether a reshape moves whole bits of the coordinates and so is linear.

    Both shapes are cut where their products from the left agree; in each piece all axes but the
    first of more than one element must be powers of two.
    """
    left, right = list(source), list(result)
    while left and right:
        one, other = [left.pop(0)], [right.pop(0)]
        while prod(one) != prod(other):
            shorter, rest = (one, left) if prod(one) < prod(other) else (other, right)
            if not rest:
                return False
            shorter.append(rest.pop(0))
        if one != other and not (_is_binary(one) and _is_binary(other)):
            return False
    return all(extent == 1 for extent in (*left, *right))


def _is_binary(extents: Sequence[int]) -> bool:
    inner = [extent for extent in extents if extent != 1][1:]
    return all(extent & (extent - 1) == 0 for extent in inner)


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The elements of a tile in row-major order in another shape of as many elements.

    Only where this moves whole bits of the coordinates (`keeps_bits`), as it does between
    extents that are powers of two.
    `%u = tile.reshape %t : tensor<4x16xf32> -> tensor<64xf32>`
    """

    name = "tile.reshape"

    value = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, result_type: TensorType):
        super().__init__(operands=[value], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses another number of elements, other elements, and shapes that mix bits."""
        source, result = _shapes(self)
        if prod(source) != prod(result):
            raise VerifyException(f"tile.reshape of {source} does not give {result}")
        if not keeps_bits(source, result):
            raise VerifyException(f"tile.reshape of {source} to {result} is not linear in bits")
        if (
            cast(TensorType, self.value.type).element_type
            != cast(TensorType, self.result.type).element_type
        ):
            raise VerifyException("tile.reshape does not convert elements")


@irdl_op_definition
class IotaOp(IRDLOperation):
    """The coordinate of each element along an axis, as i32: `%i = tile.iota [1] : T`.

    `%i = tile.iota [1] within 4 : T` may give that of any element of the aligned group of 4, for
    a user to whom these are equal: the registers of a group then hold one value.
    """

    name = "tile.iota"

    axes = prop_def(AxesAttr)
    within = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$axes (`within` $within^)? attr-dict `:` type($result)"

    def __init__(self, axis: int, result_type: TensorType, within: int = 1):
        group = IntegerAttr(within, i64) if within > 1 else None
        super().__init__(
            result_types=[result_type], properties={"axes": AxesAttr((axis,)), "within": group}
        )

    @property
    def group(self) -> int:
        """How many neighbours the coordinate may be of; a power of two."""
        return self.within.value.data if self.within is not None else 1

    def verify_(self) -> None:
        """Refuses more than one axis, elements other than i32, and groups of another size."""
        result = cast(TensorType, self.result.type)
        _check_axes(self.name, self.axes.data, len(result.get_shape()))
        if len(self.axes.data) != 1 or result.element_type != i32:
            raise VerifyException("tile.iota counts in i32 along one axis")
        if self.group < 1 or self.group & (self.group - 1):
            raise VerifyException(f"tile.iota within {self.group}: a group is a power of two")


SHAPING = (ReduceOp, PartialReduceOp, TransposeOp, ReshapeOp, IotaOp)
"""The ops of this file, for the dialect."""
