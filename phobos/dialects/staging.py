"""Staged loops: buffers of several stages, and copies that run beside the threads.

    %all = memref.alloca() : memref<3x64x32xf16, #tile.shared>
    %one = tile.stage %all[%s] : memref<3x64x32xf16, ..> -> memref<64x32xf16, #L, #tile.shared>
    tile.async_copy %A[%m, %k] in_bounds [false, false] vector 8 to %one
      as tensor<64x32xf16, #D> : memref<?x?xf16>, memref<64x32xf16, #L, #tile.shared>
    tile.async_commit
    tile.async_wait 1
    %sum = tile.await_products 1 of %d : tensor<64x64xf32, #L> -> tensor<64x64xf32, #L>

Part of the `tile` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure, is_side_effect_free
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class StageOp(IRDLOperation):
    """One stage of a buffer: the stage is the index along the first axis."""

    name = "tile.stage"

    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = "$buffer `[` $index `]` attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, index: SSAValue, result_type: MemRefType):
        super().__init__(operands=[buffer, index], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses a result that is not the buffer without its first axis."""
        buffer, result = cast(MemRefType, self.buffer.type), cast(MemRefType, self.result.type)
        if (
            buffer.get_shape()[1:] != result.get_shape()
            or buffer.element_type != result.element_type
        ):
            raise VerifyException(f"tile.stage of {buffer} does not give {result}")


@irdl_op_definition
class AsyncCopyOp(IRDLOperation):
    """Copies a tile from a tensor to a shared buffer without passing registers.

    The copy runs until a `tile.async_wait` that its group does not outlast. Elements outside
    the tensor are written as 0. The encoding of `tile_type` says which thread copies what;
    each copies 4, 8 or 16 bytes an instruction. With `transposed` the buffer holds the tile
    with its last two axes exchanged. `ordered` is the promise of the pass that made the copy
    that a barrier separates it from the last readers of its stage.
    """

    name = "tile.async_copy"

    mem = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    buffer = operand_def(MemRefType)
    in_bounds = opt_prop_def(ArrayAttr[BoolAttr])
    vector = opt_prop_def(IntegerAttr.constr(i64))
    tile_type = prop_def(Attribute)
    transposed = opt_prop_def(UnitAttr)
    ordered = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$mem `[` $indices `]` (`in_bounds` $in_bounds^)? (`vector` $vector^)?"
        " (`transposed` $transposed^)? (`ordered` $ordered^)?"
        " `to` $buffer `as` $tile_type attr-dict"
        " `:` type($mem) `,` type($buffer)"
    )

    def __init__(
        self, mem: SSAValue, indices: Sequence[SSAValue], buffer: SSAValue, tile_type: Attribute
    ):
        super().__init__(operands=[mem, indices, buffer], properties={"tile_type": tile_type})


@irdl_op_definition
class AsyncCommitOp(IRDLOperation):
    """Makes one group of the thread's copies since the last commit."""

    name = "tile.async_commit"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class AsyncWaitOp(IRDLOperation):
    """Waits until at most `pending` of the thread's groups are still running.

    Other threads see the data after a barrier behind the wait.
    """

    name = "tile.async_wait"

    pending = prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$pending attr-dict"

    def __init__(self, pending: int):
        super().__init__(properties={"pending": IntegerAttr(pending, i64)})


@irdl_op_definition
class NextStageOp(IRDLOperation):
    """From here on, behind a barrier, stages may be read that threads stored to since the last one.

    What `tile.async_wait` is to copies, this is to a `tile.store` into a `tile.stage`: until then
    no thread reads what the store writes.
    """

    name = "tile.next_stage"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class AwaitProductsOp(IRDLOperation):
    """Waits until at most `pending` of the warpgroup's products in flight are still running.

    Gives the sum that it waits for: with `pending` 0 it is there, else it is still in flight, but
    what older products read may be overwritten.
    """

    name = "tile.await_products"

    value = operand_def(TensorType)
    pending = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$pending `of` $value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, pending: int):
        super().__init__(
            operands=[value],
            result_types=[value.type],
            properties={"pending": IntegerAttr(pending, i64)},
        )

    def verify_(self) -> None:
        """Refuses a result of another type."""
        if self.value.type != self.result.type:
            raise VerifyException(f"{self.name}: {self.value.type} and {self.result.type} differ")


STAGING = (StageOp, AsyncCopyOp, AsyncCommitOp, AsyncWaitOp, NextStageOp, AwaitProductsOp)
"""The ops of this file, for the dialect."""


def only_starts_copies(branch: scf.IfOp) -> bool:
    """Whether a conditional starts copies and does nothing else."""
    if branch.false_region.blocks:
        return False
    *inside, _ = branch.true_region.block.ops
    return all(isinstance(op, AsyncCopyOp) or is_side_effect_free(op) for op in inside) and any(
        isinstance(op, AsyncCopyOp) for op in inside
    )
