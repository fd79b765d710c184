"""The `cluster` dialect: what the CTAs of a cluster do together.

A cluster is a number of CTAs that are neighbours along x and run at the same time; each can read
the shared memory of the others. Every op but `cluster.rank` and `cluster.load` must be reached by
all threads of all CTAs of the cluster (checked by `ph-infer-uniformity`).
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from phobos.dialects import tile

SIZES = (2, 4, 8)
"""CTAs of a cluster that adds something up; more than 8 take a launch that is not portable."""

SUMMED = (Float16Type, BFloat16Type, Float32Type, Float64Type)
_INTEGER_BITS = (32, 64)
INDEX = IndexType()


@irdl_op_definition
class RankOp(IRDLOperation):
    """This CTA's number in its cluster, 0 to size - 1. Uniform in a CTA."""

    name = "cluster.rank"

    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class SumOp(IRDLOperation):
    """Adds up the tiles of all CTAs of a cluster; each CTA gets the part of its rank.

    Axis 0 counts the parts, as many as the cluster has CTAs. A CTA adds to its own tile's part
    those of the ranks behind it, one after the other and around.
    `%s = cluster.sum %t : tensor<4x32x64xf32> -> tensor<1x32x64xf32>`
    """

    name = "cluster.sum"

    value = operand_def(TensorType)
    result = result_def(TensorType)
    # Waits for other CTAs, so it stays where it is and as often as it is.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, result_type: TensorType):
        super().__init__(operands=[value], result_types=[result_type])

    @property
    def parts(self) -> int:
        """How many CTAs the cluster has."""
        return cast(TensorType, self.value.type).get_shape()[0]

    def verify_(self) -> None:
        """Refuses shapes and elements that do not match, and what has no sum."""
        source, result = cast(TensorType, self.value.type), cast(TensorType, self.result.type)
        shape = source.get_shape()
        if len(shape) < 2 or shape[0] not in SIZES:
            raise VerifyException(f"{self.name}: axis 0 counts 2, 4 or 8 parts: {source}")
        if result.get_shape() != (1, *shape[1:]):
            raise VerifyException(f"{self.name} gives one part of {source}, not {result}")
        element = source.element_type
        if result.element_type != element:
            raise VerifyException(f"{self.name} does not convert elements")
        is_integer = isinstance(element, IntegerType) and element.width.data in _INTEGER_BITS
        if not is_integer and not isinstance(element, SUMMED):
            raise VerifyException(f"{self.name} does not add elements of {element}")


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Waits for all threads of the cluster and orders their accesses of shared memory."""

    name = "cluster.barrier"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class ArriveOp(IRDLOperation):
    """Says that this thread is done with all its accesses before; a `cluster.wait` follows."""

    name = "cluster.arrive"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Waits until all threads of the cluster have arrived: no other CTA reads `buffer` any more."""

    name = "cluster.wait"

    buffer = operand_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue):
        super().__init__(operands=[buffer])

    def verify_(self) -> None:
        """Refuses what other CTAs cannot read."""
        _check_buffer(self.name, self.buffer)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Reads the part of this CTA's rank from the buffer of the CTA `ahead` ranks further, around.

    Axis 0 of the buffer counts parts.
    `%t = cluster.load %s ahead 3 : memref<4x32x64xf32, #tile.shared> -> tensor<1x32x64xf32>`
    """

    name = "cluster.load"

    mem = operand_def(MemRefType)
    ahead = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$mem `ahead` $ahead attr-dict `:` type($mem) `->` type($result)"

    def __init__(self, mem: SSAValue, ahead: int, result_type: TensorType):
        super().__init__(
            operands=[mem],
            result_types=[result_type],
            properties={"ahead": IntegerAttr(ahead, i64)},
        )

    @property
    def parts(self) -> int:
        """How many CTAs the cluster has."""
        return cast(MemRefType, self.mem.type).get_shape()[0]

    def verify_(self) -> None:
        """Refuses a CTA that is not in the cluster, and what is no part of a buffer."""
        _check_buffer(self.name, self.mem)
        mem, result = cast(MemRefType, self.mem.type), cast(TensorType, self.result.type)
        ahead = self.ahead.value.data
        if not 0 <= ahead < self.parts:
            raise VerifyException(
                f"{self.name}: nobody is {ahead} ranks ahead of {self.parts} CTAs"
            )
        part = (1, *mem.get_shape()[1:])
        if (result.element_type, result.get_shape()) != (mem.element_type, part):
            raise VerifyException(f"{self.name}: {result} is no part of {mem}")


def _check_buffer(name: str, buffer: SSAValue) -> None:
    shape = cast(MemRefType, buffer.type).get_shape()
    if not tile.is_shared(buffer) or len(shape) < 2 or shape[0] not in SIZES:
        raise VerifyException(
            f"{name} takes a buffer in shared memory whose axis 0 counts 2, 4 or 8 parts, "
            f"not {buffer.type}"
        )


MEETINGS = (SumOp, BarrierOp, ArriveOp, WaitOp)
"""What all CTAs of a cluster do together."""

Cluster = Dialect("cluster", [RankOp, SumOp, BarrierOp, ArriveOp, WaitOp, LoadOp])
