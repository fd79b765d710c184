"""Tile accesses at places that tiles of subscripts name, and views; part of the `tile` dialect.

Along an axis, an access either has a scalar subscript, the start of a span, or a tile of
subscripts in the shape of the moved tile, one for each of its elements:

    %t = tile.gather %table[%rows, %c0] : memref<?x?xf32>, tensor<64x128xi32>, index
        -> tensor<64x128xf32>
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

_SUBSCRIPT_BITS = (32, 64)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Reads the elements that tiles of subscripts name.

    Subscripts are signed; an element outside the tensor reads as 0. `in_bounds` and `vector`
    are those of `tile.load`; a vector needs subscripts that are the same for all its elements.
    """

    name = "tile.gather"

    mem = operand_def(MemRefType)
    indices = var_operand_def()
    result = result_def(TensorType)
    in_bounds = opt_prop_def(ArrayAttr[BoolAttr])
    vector = opt_prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$mem `[` $indices `]` (`in_bounds` $in_bounds^)? (`vector` $vector^)? attr-dict"
        " `:` type($mem) `,` type($indices) `->` type($result)"
    )

    def __init__(self, mem: SSAValue, indices: Sequence[SSAValue], result_type: TensorType):
        super().__init__(operands=[mem, indices], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses subscripts, ranks and element types that do not match."""
        _check(self.name, self.mem.type, self.indices, self.result.type)


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Writes the elements that tiles of subscripts name; those outside the tensor are skipped.

    Of several elements with one place some one is written.
    """

    name = "tile.scatter"

    value = operand_def(TensorType)
    mem = operand_def(MemRefType)
    indices = var_operand_def()
    in_bounds = opt_prop_def(ArrayAttr[BoolAttr])
    vector = opt_prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $mem `[` $indices `]` (`in_bounds` $in_bounds^)? (`vector` $vector^)? attr-dict"
        " `:` type($value) `,` type($mem) `,` type($indices)"
    )

    def __init__(self, value: SSAValue, mem: SSAValue, indices: Sequence[SSAValue]):
        super().__init__(operands=[value, mem, indices])

    def verify_(self) -> None:
        """Refuses subscripts, ranks and element types that do not match."""
        _check(self.name, self.mem.type, self.indices, self.value.type)


def _check(name: str, mem: Attribute, indices: Sequence[SSAValue], tile: Attribute) -> None:
    mem, tile = cast(MemRefType, mem), cast(TensorType, tile)
    rank = len(mem.get_shape())
    if len(indices) != rank or len(tile.get_shape()) != rank:
        raise VerifyException(f"{name}: {rank} subscripts and a tile of {rank} axes expected")
    if mem.element_type != tile.element_type:
        raise VerifyException(
            f"{name}: the tensor holds {mem.element_type}, the tile {tile.element_type}"
        )
    for index in indices:
        type_ = index.type
        if isinstance(type_, IndexType):
            continue
        if not isinstance(type_, TensorType) or type_.get_shape() != tile.get_shape():
            raise VerifyException(
                f"{name}: a subscript is an index or a tile of the shape of {tile}, not {type_}"
            )
        element = type_.element_type
        if not isinstance(element, IntegerType) or element.width.data not in _SUBSCRIPT_BITS:
            raise VerifyException(f"{name}: subscripts are i32 or i64, not {element}")


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The elements of a shared buffer, row-major and dense, in another shape.

    `%v = tile.view %b : memref<3x5xf32, #tile.shared> -> memref<15xf32, #tile.shared>`
    """

    name = "tile.view"

    buffer = operand_def(MemRefType)
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = "$buffer attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, result_type: MemRefType):
        super().__init__(operands=[buffer], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses another number of elements, other elements, and buffers with a layout."""
        source = cast(MemRefType, self.buffer.type)
        result = cast(MemRefType, self.result.type)
        if prod(source.get_shape()) != prod(result.get_shape()):
            raise VerifyException(f"tile.view of {source} does not give {result}")
        if source.element_type != result.element_type:
            raise VerifyException("tile.view does not convert elements")
        if not isinstance(source.layout, NoneAttr) or not isinstance(result.layout, NoneAttr):
            raise VerifyException("tile.view is of buffers that are row-major")


GATHERING = (GatherOp, ScatterOp, ViewOp)
"""The ops of this file, for the dialect."""
