"""Addresses, and which element of a tile a thread's registers stand for.

An address is a base pointer plus a 64-bit offset. Indices are of index width and are
multiplied by strides with widening, so that a tensor of more than 2^31 elements is reached
although each index has 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType
from xdsl.ir import SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.gathering import ViewOp
from phobos.dialects.ptx import B32
from phobos.dialects.staging import StageOp
from phobos.ir.kernel import kernel_name
from phobos.layout import LinearLayout
from phobos.layout.overhang import owner_mask
from phobos.layout.queries import BitField, thread_fields
from phobos.record import Record, record
from phobos.transforms.lowering.state import Lowering
from phobos.transforms.place_tiles import OFFSET, buffer_bytes


@record
class Address(Record):
    """A base register and what is added to it in bytes."""

    base: SSAValue
    offset: int
    space: str
    """The state space of the access: `global` or `shared`."""


def shared_symbol(kernel: gpu.FuncOp) -> str:
    """The name of the variable that holds a kernel's shared memory."""
    return f"{kernel_name(kernel)}_shared"


def static_stride(mem: SSAValue, axis: int) -> int | None:
    """The elements between neighbours along an axis, if the type says so."""
    assert isinstance(mem.type, MemRefType)
    stride = 1
    for extent in mem.type.get_shape()[axis + 1 :]:
        if extent == DYNAMIC_INDEX:
            return None
        stride *= extent
    return stride


def element_address(
    low: Lowering, mem: SSAValue, indices: Sequence[SSAValue], element_bytes: int
) -> Address:
    """Where the element at `indices` (registers of index width) is."""
    if tile.is_shared(mem):
        return _shared_address(low, mem, indices, element_bytes)
    base = low.tensors[mem].base
    row = row_offset(low, mem, indices)
    if row is not None:
        base = low.build.emit(ptx.AddOp, "s64", base, times_bytes(low, row, element_bytes))
    return Address(_add_index(low, base, indices[-1], element_bytes), 0, "global")


def row_offset(low: Lowering, mem: SSAValue, indices: Sequence[SSAValue]) -> SSAValue | None:
    """The elements before the row that all but the last index name, 64 bits; None for 0."""
    total: SSAValue | None = None
    for axis, index in enumerate(indices[:-1]):
        total = _multiply_add(low, index, stride(low, mem, axis), total)
    return total


def stride(low: Lowering, mem: SSAValue, axis: int) -> SSAValue:
    """The stride of an axis in elements, of index width; read from the launch if need be."""
    known = static_stride(mem, axis)
    if known is not None:
        return low.build.imm(known, low.index_kind.register)
    return low.tensors[mem].strides[axis]


def extent(low: Lowering, mem: SSAValue, axis: int) -> SSAValue:
    """The size of an axis, of index width; of a shared buffer, what its type says."""
    if not tile.is_shared(mem):
        return low.tensors[mem].sizes[axis]
    assert isinstance(mem.type, MemRefType)
    return low.build.imm(mem.type.get_shape()[axis], low.index_kind.register)


def times_bytes(low: Lowering, elements: SSAValue, element_bytes: int) -> SSAValue:
    """64-bit elements as bytes; element sizes are powers of two."""
    if element_bytes == 1:
        return elements
    return low.build.emit(ptx.ShlOp, "b64", elements, element_bytes.bit_length() - 1)


def _multiply_add(
    low: Lowering, index: SSAValue, factor: SSAValue, addend: SSAValue | None
) -> SSAValue:
    """index * factor + addend in 64 bits."""
    emit = low.build.emit
    if low.index_bits == 32:
        if addend is None:
            return emit(ptx.MulOp, "wide.s32", index, factor)
        return emit(ptx.MadOp, "wide.s32", index, factor, addend)
    if addend is None:
        return emit(ptx.MulOp, "lo.s64", index, factor)
    return emit(ptx.MadOp, "lo.s64", index, factor, addend)


def _add_index(low: Lowering, base: SSAValue, index: SSAValue, element_bytes: int) -> SSAValue:
    factor = low.build.imm(element_bytes, low.index_kind.register)
    return _multiply_add(low, index, factor, base)


def _shared_address(
    low: Lowering, mem: SSAValue, indices: Sequence[SSAValue], element_bytes: int
) -> Address:
    """Shared memory: static strides and 32-bit addresses."""
    emit = low.build.emit
    base, offset = shared_base(low, mem)
    for axis, index in enumerate(indices):
        step = static_stride(mem, axis)
        assert step is not None
        if low.index_bits == 64:
            index = emit(ptx.CvtOp, "u32.u64", index)
        base = emit(ptx.MadOp, "lo.s32", index, step * element_bytes, base)
    return Address(base, offset, "shared")


def shared_base(low: Lowering, mem: SSAValue) -> tuple[SSAValue, int]:
    """The address of the CTA's shared memory, and a buffer's offset in it."""
    owner = mem.owner
    if isinstance(owner, ViewOp):
        return shared_base(low, owner.buffer)
    if isinstance(owner, StageOp):
        base, start = shared_base(low, owner.buffer)
        stage = low.scalar(owner.index)
        if low.index_bits == 64:
            stage = low.build.emit(ptx.CvtOp, "u32.u64", stage)
        return low.build.emit(ptx.MadOp, "lo.s32", stage, buffer_bytes(mem), base), start
    assert isinstance(owner, memref.AllocaOp)
    offset = owner.attributes[OFFSET]
    assert isinstance(offset, IntegerAttr)
    return low.build.symbol(shared_symbol(low.kernel), B32), offset.value.data


# ---- coordinates of a thread's registers


def thread_coordinates(low: Lowering, layout: LinearLayout) -> list[SSAValue | None]:
    """Along each axis, the coordinate of the thread's register 0, 32 bits; None for 0."""
    return [_gather(low, thread_fields(layout, axis)) for axis in range(layout.rank)]


def _gather(low: Lowering, fields: Sequence[BitField]) -> SSAValue | None:
    """The XOR of bit fields of the thread index, each moved to its place."""
    emit = low.build.emit
    total: SSAValue | None = None
    for field in fields:
        part = low.thread
        mask = ((1 << field.width) - 1) << field.source
        if mask & _bits_up_to(low.threads - 1) != _bits_up_to(low.threads - 1):
            part = emit(ptx.AndOp, "b32", part, mask)
        distance = field.target - field.source
        if distance > 0:
            part = emit(ptx.ShlOp, "b32", part, distance)
        elif distance < 0:
            part = emit(ptx.ShrOp, "u32", part, -distance)
        total = part if total is None else emit(ptx.XorOp, "b32", total, part)
    return total


def owner_predicate(low: Lowering, layout: LinearLayout) -> SSAValue | None:
    """Whether the thread is the one that stores what several hold; None if each is."""
    mask = owner_mask(layout, low.threads)
    if mask == 0:
        return None
    masked = low.build.emit(ptx.AndOp, "b32", low.thread, mask)
    return low.build.emit(ptx.SetpOp, "eq.b32", masked, 0)


def _bits_up_to(number: int) -> int:
    return (1 << number.bit_length()) - 1
