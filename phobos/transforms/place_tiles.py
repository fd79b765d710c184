"""`ph-place-tiles`: give every shared buffer its place in the CTA's shared memory.

    %s = memref.alloca() : memref<8xf32, #tile.shared>
    -->
    %s = memref.alloca() {tile.offset = 0 : i64} : memref<8xf32, #tile.shared>

Two buffers share bytes if their lives do not overlap; a buffer that is used in a loop and
made outside lives through the whole loop. Where all buffers together are small, as what the warps
of a CTA tell each other is, none shares: that would save next to nothing and take a barrier, so
that no warp writes while another still reads. Buffers are placed largest first at the lowest
offset that is free, aligned to 128 bytes, or to 1024 if `wgmma` reads them or tensor copies fill
them. The kernel gets `tile.shared_bytes`.

Precondition: shared buffers are of static shape. Cost: one walk and, for n buffers, n^2
interval comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import tile
from phobos.dialects.contraction import by_warpgroups
from phobos.dialects.elements import element_bytes
from phobos.dialects.gathering import ViewOp
from phobos.dialects.staging import StageOp
from phobos.dialects.tensor_copies import TensorCopyOp
from phobos.ir.kernel import kernels
from phobos.layout.warpgroup import ALIGNMENT as DESCRIPTOR_ALIGNMENT

OFFSET = "tile.offset"
SHARED_BYTES = "tile.shared_bytes"
ALIGNMENT = 128
"""Of every buffer, in bytes: what a swizzled row needs, so that its address bits are free."""
ALIGNED = "tile.shared_alignment"


_LITTLE = 2048
"""Bytes that all buffers may take together without sharing any: too few to cost a CTA."""


class PlaceTilesPass(ModulePass):
    """Assigns shared-memory offsets by interference."""

    name = "ph-place-tiles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Places the shared buffers of every kernel of the module."""
        for kernel in kernels(op):
            _place(kernel)


@dataclass
class Buffer:
    """A shared buffer: its size in bytes, its life as op numbers, its place."""

    op: memref.AllocaOp
    size: int
    start: int
    end: int
    alignment: int = ALIGNMENT
    offset: int = 0

    def overlaps_life(self, other: Buffer) -> bool:
        """Whether both buffers hold data at some time."""
        return self.start <= other.end and other.start <= self.end


def buffer_bytes(value: SSAValue) -> int:
    """The size of a memref of static shape in bytes."""
    assert isinstance(value.type, MemRefType)
    return element_bytes(value.type) * prod(value.type.get_shape())


def _place(kernel: gpu.FuncOp) -> None:
    buffers = lives(kernel, op_numbers(kernel))
    if not buffers:
        return
    kernel.attributes[SHARED_BYTES] = IntegerAttr(place(buffers), i64)
    alignment = max(buffer.alignment for buffer in buffers)
    if alignment > ALIGNMENT:
        kernel.attributes[ALIGNED] = IntegerAttr(alignment, i64)
    for buffer in buffers:
        buffer.op.attributes[OFFSET] = IntegerAttr(buffer.offset, i64)


def place(buffers: Sequence[Buffer]) -> int:
    """Sets the offset of each buffer; returns the bytes that all take together."""
    bytes_apart = _place_where(buffers, lambda *_: True)
    if bytes_apart <= _LITTLE:
        return bytes_apart
    return _place_where(buffers, Buffer.overlaps_life)


def _place_where(buffers: Sequence[Buffer], differ: Callable[[Buffer, Buffer], bool]) -> int:
    """As `place`; buffers that `differ` have no byte in common."""
    placed: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.start)):
        rivals = [other for other in placed if differ(other, buffer)]
        buffer.offset = _lowest_free(rivals, buffer.size, buffer.alignment)
        placed.append(buffer)
    return max((buffer.offset + buffer.size for buffer in placed), default=0)


def _lowest_free(rivals: list[Buffer], size: int, alignment: int) -> int:
    offset = 0
    for rival in sorted(rivals, key=lambda b: b.offset):
        if offset + size <= rival.offset:
            break
        end = rival.offset + rival.size
        offset = max(offset, -(-end // alignment) * alignment)
    return offset


def op_numbers(kernel: gpu.FuncOp) -> dict[Operation, int]:
    """The ops of a kernel, numbered in their order; an op comes before what is inside it."""
    return {op: i for i, op in enumerate(kernel.walk())}


def lives(kernel: gpu.FuncOp, number: Mapping[Operation, int]) -> list[Buffer]:
    """The shared buffers of a kernel, not placed yet, with their lives in `number`s."""
    buffers: list[Buffer] = []
    for op in number:
        if not isinstance(op, memref.AllocaOp) or not tile.is_shared(op.memref):
            continue
        users = list(_users(op.memref))
        uses = [_visible_from(user, op) for user in users]
        ends = [max(number[user], last_inside(user, number)) for user in uses]
        by_hardware = any(by_warpgroups(one) or isinstance(one, TensorCopyOp) for one in users)
        alignment = DESCRIPTOR_ALIGNMENT if by_hardware else ALIGNMENT
        size, start = buffer_bytes(op.memref), number[op]
        buffers.append(Buffer(op, size, start, max(ends, default=start), alignment))
    return buffers


def _users(buffer: SSAValue) -> Iterator[Operation]:
    """What uses a buffer, itself or through views and stages."""
    for use in buffer.uses:
        yield use.operation
        if isinstance(use.operation, ViewOp | StageOp):
            yield from _users(use.operation.result)


def _visible_from(user: Operation, alloc: Operation) -> Operation:
    """The op in the buffer's own block that holds a use: a loop counts as a whole."""
    current = user
    while current.parent is not alloc.parent:
        parent = current.parent_op()
        assert parent is not None
        current = parent
    return current


def last_inside(op: Operation, number: Mapping[Operation, int]) -> int:
    """The number of the last op inside an op, or its own if nothing is inside."""
    return max((number[inner] for inner in op.walk()), default=number[op])
