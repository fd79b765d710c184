"""Opaque fragments: what `wmma` holds of a tile, in an order that PTX does not tell.

    %f = tile.to_fragments %t using <"wmma m16n16k16 f16 f32 warps 2x2"> with %s : memref<..>
      : tensor<64x64xf32, #L> -> vector<32xf32>
    %t = tile.from_fragments %f using <..> with %s : memref<..>
      : vector<32xf32> -> tensor<64x64xf32, #L>

A fragment is a vector of one thread's elements. Each warp takes its pieces of the tile through
its own row of the scratch buffer. Without one, all elements of the tile are equal. Part of the
`tile` dialect.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType, TensorType, VectorType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.contraction import InstructionAttr


def _check(name: str, tile: TensorType, fragment: VectorType) -> None:
    if tile.element_type != fragment.element_type:
        raise VerifyException(f"{name}: {tile} and {fragment} have other elements")


@irdl_op_definition
class ToFragmentsOp(IRDLOperation):
    """A tile as fragments of accumulators."""

    name = "tile.to_fragments"

    value = operand_def(TensorType)
    scratch = opt_operand_def(MemRefType)
    result = result_def(VectorType)
    instruction = prop_def(InstructionAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$value `using` $instruction (`with` $scratch^ `:` type($scratch))? attr-dict"
        " `:` type($value) `->` type($result)"
    )

    def __init__(self, value: SSAValue, instruction: InstructionAttr, result_type: VectorType):
        super().__init__(
            operands=[value, None],
            result_types=[result_type],
            properties={"instruction": instruction},
        )

    def verify_(self) -> None:
        """Refuses fragments of another element type."""
        _check(self.name, cast(TensorType, self.value.type), cast(VectorType, self.result.type))


@irdl_op_definition
class FromFragmentsOp(IRDLOperation):
    """Fragments of accumulators as a tile."""

    name = "tile.from_fragments"

    value = operand_def(VectorType)
    scratch = opt_operand_def(MemRefType)
    result = result_def(TensorType)
    instruction = prop_def(InstructionAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$value `using` $instruction (`with` $scratch^ `:` type($scratch))? attr-dict"
        " `:` type($value) `->` type($result)"
    )

    def __init__(self, value: SSAValue, instruction: InstructionAttr, result_type: TensorType):
        super().__init__(
            operands=[value, None],
            result_types=[result_type],
            properties={"instruction": instruction},
        )

    def verify_(self) -> None:
        """Refuses fragments of another element type."""
        _check(self.name, cast(TensorType, self.result.type), cast(VectorType, self.value.type))


FRAGMENTS = (ToFragmentsOp, FromFragmentsOp)
