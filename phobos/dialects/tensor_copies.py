"""Stages that tensor copies fill, and the barriers in shared memory that tell when.

    %ring = memref.alloca() : memref<8xi64, #tile.shared>           // 4 stages
    tile.open_ring %ring : memref<8xi64, #tile.shared>
    tile.fill_stage %ring[%w] after %phase bytes 6144 {
      %one = tile.stage %all[%w] : memref<4x64x32xf16, ..> -> memref<64x32xf16, #L, #tile.shared>
      tile.tensor_copy %A[%m, %k] to %one swizzle 64
        : memref<?x?xf16>, memref<64x32xf16, #L, #tile.shared>
      ..
    } : memref<8xi64, #tile.shared>
    tile.await_stage %ring[%r] phase %phase : memref<8xi64, #tile.shared>
    tile.release_stage %ring[%r] : memref<8xi64, #tile.shared>
    tile.close_ring %ring : memref<8xi64, #tile.shared>

A ring of n stages has n barriers that say that a stage is full, and behind them n that say that it
is empty. The phase of a use of a stage is 0 the first time, 1 the second, 0 the third, and so on.

Part of the `tile` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    f32,
    i64,
)
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator, is_side_effect_free
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.elements import element_bytes
from phobos.layout.shared import HARDWARE_PHASES

BARRIER_BYTES = 8
SWIZZLES = tuple(sorted(HARDWARE_PHASES))
"""Bytes of the rows in which a tensor copy exchanges chunks of 16 bytes."""
MAX_BOX = 256
"""Elements of a tensor copy along each axis."""
TF32 = "tf32"
"""What f32 elements are rounded to as they are copied."""


class _RingOp(IRDLOperation):
    """An op on a ring of stages."""

    @property
    def stages(self) -> int:
        """How many stages the ring has."""
        ring = self.operands[0].type
        assert isinstance(ring, MemRefType)
        return ring.get_shape()[0] // 2

    def verify_(self) -> None:
        """Refuses anything but two barriers a stage, eight bytes each."""
        ring = self.operands[0].type
        assert isinstance(ring, MemRefType)
        shape = ring.get_shape()
        if ring.element_type != i64 or len(shape) != 1 or shape[0] < 2 or shape[0] % 2:
            raise VerifyException(f"{self.name}: a ring is two i64 a stage, not {ring}")


@irdl_op_definition
class OpenRingOp(_RingOp):
    """Makes the barriers of a ring, all of whose stages are empty."""

    name = "tile.open_ring"

    ring = operand_def(MemRefType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$ring attr-dict `:` type($ring)"

    def __init__(self, ring: SSAValue):
        super().__init__(operands=[ring])


@irdl_op_definition
class CloseRingOp(_RingOp):
    """Gives the memory of a ring back: nobody waits at its barriers any more."""

    name = "tile.close_ring"

    ring = operand_def(MemRefType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$ring attr-dict `:` type($ring)"

    def __init__(self, ring: SSAValue):
        super().__init__(operands=[ring])


@irdl_op_definition
class FillStageOp(_RingOp):
    """Starts the copies that fill a stage, `bytes` together; one thread does so for the CTA.

    With `after` it first waits until all warps have released the stage so often that the phase of
    the empty stage is over; without, the stage is known to be empty. The body has `tensor_copy`
    and what they need.
    """

    name = "tile.fill_stage"

    ring = operand_def(MemRefType)
    stage = operand_def(IndexType)
    after = opt_operand_def(IndexType)
    bytes = prop_def(IntegerAttr.constr(i64))
    body = region_def("single_block")
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), NoTerminator())
    assembly_format = (
        "$ring `[` $stage `]` (`after` $after^)? `bytes` $bytes $body attr-dict `:` type($ring)"
    )

    def __init__(
        self, ring: SSAValue, stage: SSAValue, after: SSAValue | None, bytes: int, body: Region
    ):
        super().__init__(
            operands=[ring, stage, after],
            properties={"bytes": IntegerAttr(bytes, i64)},
            regions=[body],
        )

    @property
    def copies(self) -> list[TensorCopyOp]:
        """The copies that it starts."""
        return [op for op in self.body.block.ops if isinstance(op, TensorCopyOp)]

    def verify_(self) -> None:
        """Refuses a number of bytes other than what the copies move, and ops with other effects.

        One lane runs the body: it must neither wait there nor make what others read.
        """
        super().verify_()
        for op in self.body.block.ops:
            if isinstance(op, TensorCopyOp):
                op.verify_()
            elif op.regions or not is_side_effect_free(op):
                raise VerifyException(f"{self.name}: one lane copies here, and `{op.name}` is more")
        moved = sum(copy.moved_bytes for copy in self.copies)
        if moved != self.bytes.value.data:
            raise VerifyException(
                f"{self.name}: its copies move {moved} bytes, not {self.bytes.value.data}"
            )


@irdl_op_definition
class TensorCopyOp(IRDLOperation):
    """Copies a tile from a tensor to a shared buffer, in boxes that lie one after the other.

    A box has rows of `swizzle` bytes, whose chunks of 16 bytes are exchanged, and up to 256 of
    them; the boxes follow each other along the last axis but one, then along the last. Axes before
    these have extent 1. Elements outside the tensor are written as 0.
    With `transposed` the buffer holds the tile with its last two axes exchanged. With
    `rounded "tf32"` elements are rounded on the way.
    """

    name = "tile.tensor_copy"

    mem = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    buffer = operand_def(MemRefType)
    swizzle = prop_def(IntegerAttr.constr(i64))
    transposed = opt_prop_def(UnitAttr)
    rounded = opt_prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$mem `[` $indices `]` `to` $buffer `swizzle` $swizzle (`transposed` $transposed^)?"
        " (`rounded` $rounded^)? attr-dict `:` type($mem) `,` type($buffer)"
    )

    def __init__(
        self,
        mem: SSAValue,
        indices: Sequence[SSAValue],
        buffer: SSAValue,
        swizzle: int,
        *,
        transposed: bool = False,
        rounded: str | None = None,
    ):
        super().__init__(
            operands=[mem, indices, buffer],
            properties={
                "swizzle": IntegerAttr(swizzle, i64),
                "transposed": UnitAttr() if transposed else None,
                "rounded": None if rounded is None else StringAttr(rounded),
            },
        )

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The elements of a box along each axis of the tensor."""
        *units, rows, _ = self.tile_shape
        width = self.swizzle.value.data // element_bytes(self.mem.type)
        return (*(1 for _ in units), min(rows, MAX_BOX), width)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """The extents of the tile that is copied, as the tensor has it."""
        shape = cast(MemRefType, self.buffer.type).get_shape()
        return shape if self.transposed is None else (*shape[:-2], shape[-1], shape[-2])

    @property
    def moved_bytes(self) -> int:
        """The bytes that the copy fills, of elements outside the tensor too."""
        buffer = cast(MemRefType, self.buffer.type)
        return element_bytes(buffer) * prod(buffer.get_shape())

    def verify_(self) -> None:
        """Refuses boxes that the hardware does not copy or that do not fill the buffer."""
        mem, buffer = cast(MemRefType, self.mem.type), cast(MemRefType, self.buffer.type)
        if not buffer.has_static_shape():
            raise VerifyException(f"{self.name}: the extents of a tile are known, unlike {buffer}")
        rank, shape = len(mem.get_shape()), self.tile_shape
        if not 2 <= rank <= 5 or len(self.indices) != rank or len(shape) != rank:
            raise VerifyException(f"{self.name}: a subscript and an extent for each of 2 to 5 axes")
        if mem.element_type != buffer.element_type:
            raise VerifyException(f"{self.name} does not convert elements")
        if self.swizzle.value.data not in SWIZZLES:
            raise VerifyException(f"{self.name}: rows of a swizzle have 32, 64 or 128 bytes")
        if any(whole % part for whole, part in zip(shape, self.box_shape, strict=True)) or any(
            extent > 1 for extent in shape[:-2]
        ):
            raise VerifyException(f"{self.name}: boxes of {self.box_shape} do not fill {shape}")
        if self.rounded is not None and (self.rounded.data, mem.element_type) != (TF32, f32):
            raise VerifyException(f"{self.name}: only f32 is rounded, to tf32")


@irdl_op_definition
class AwaitStageOp(_RingOp):
    """Every thread waits until the copies of a stage's use in this phase are there."""

    name = "tile.await_stage"

    ring = operand_def(MemRefType)
    stage = operand_def(IndexType)
    phase = operand_def(IndexType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$ring `[` $stage `]` `phase` $phase attr-dict `:` type($ring)"

    def __init__(self, ring: SSAValue, stage: SSAValue, phase: SSAValue):
        super().__init__(operands=[ring, stage, phase])


@irdl_op_definition
class ReleaseStageOp(_RingOp):
    """Each warp says that it has read a stage; when all have, it is empty."""

    name = "tile.release_stage"

    ring = operand_def(MemRefType)
    stage = operand_def(IndexType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$ring `[` $stage `]` attr-dict `:` type($ring)"

    def __init__(self, ring: SSAValue, stage: SSAValue):
        super().__init__(operands=[ring, stage])


TENSOR_COPIES = (
    OpenRingOp,
    CloseRingOp,
    FillStageOp,
    TensorCopyOp,
    AwaitStageOp,
    ReleaseStageOp,
)
"""The ops of this file, for the dialect."""
