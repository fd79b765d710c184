"""Tile accesses, and the ops that change a tile's shape without arithmetic.

A thread walks its registers in groups that lie next to each other in memory. Each group is
one access, guarded by the predicates of the axes that are not `in_bounds`, at an address
that differs from the thread's first one by a constant or by whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, MemRefType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.gathering import GatherOp, ScatterOp
from phobos.dialects.staging import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    NextStageOp,
    StageOp,
)
from phobos.ir.locations import error_at
from phobos.layout import LinearLayout, contiguous_vector
from phobos.layout.build import OFFSET
from phobos.layout.queries import is_additive, register_coordinates
from phobos.transforms.assign_layouts import turned
from phobos.transforms.lowering.accesses import (
    MAX_BYTES,
    join,
    load,
    part_of,
    split_constant,
    store,
)
from phobos.transforms.lowering.addresses import (
    Address,
    element_address,
    extent,
    owner_predicate,
    static_stride,
    stride,
    thread_coordinates,
    times_bytes,
)
from phobos.transforms.lowering.elementwise import constant_bits
from phobos.transforms.lowering.registers import Kind, Share
from phobos.transforms.lowering.shared_tiles import SharedAccess, load_shared, store_shared
from phobos.transforms.lowering.state import Handler, Lowering
from phobos.transforms.tile_parts import PART

_COPY_SIZES = (4, 8, 16)

_Op = tile.LoadOp | tile.StoreOp | AsyncCopyOp | GatherOp | ScatterOp


@dataclass
class Access:
    """One tile access in the making."""

    low: Lowering
    op: _Op
    kind: Kind
    layout: LinearLayout
    shape: tuple[int, ...]
    width: int
    """Elements of one instruction."""
    coordinates: list[SSAValue]
    """The index in the tensor of the thread's register 0, along each axis."""
    inside_tile: list[SSAValue | None]
    """The thread's own part of the coordinates in the tile."""
    shift: tuple[int, ...]
    """What is still to be added to the coordinates."""

    @property
    def mem(self) -> SSAValue:
        """The tensor that is accessed."""
        return self.op.mem


def _layout(op: Operation, type_: Attribute) -> LinearLayout:
    encoding = type_.encoding if isinstance(type_, TensorType) else None
    if not isinstance(encoding, tile.LayoutAttr):
        raise error_at(op, f"`{op.name}` needs a layout: run ph-assign-layouts first")
    return encoding.data


def access_of(
    low: Lowering,
    op: _Op,
    type_: Attribute,
    starts: Sequence[SSAValue],
    shift: tuple[int, ...] | None = None,
) -> Access:
    """What a tile access does in one thread.

    `starts` are its first element's subscripts, but for what is to be added to them.
    """
    layout = _layout(op, type_)
    if not all(is_additive(layout, axis) for axis in range(layout.rank)):
        raise error_at(op, "a swizzled register layout cannot access memory directly yet")
    assert isinstance(type_, TensorType)
    shape = type_.get_shape()
    kind = low.kind(type_, op)
    thread = thread_coordinates(low, layout)
    coordinates = [
        start if part is None else _plus(low, start, low.to_index(part))
        for start, part in zip(starts, thread, strict=True)
    ]
    proven = op.vector.value.data if op.vector is not None else 1
    width = min(proven, MAX_BYTES // kind.bytes, contiguous_vector(layout, len(shape) - 1))
    shift = shift or (0,) * len(starts)
    return Access(low, op, kind, layout, shape, width, coordinates, thread, shift)


def _access(low: Lowering, op: _Op, type_: Attribute) -> Access:
    """Parts of a tile may have one address, and the rows that are between them."""
    split = [(index, 0) for index in op.indices]
    if PART in op.attributes:
        split = [_split_row(op.mem, axis, index) for axis, index in enumerate(op.indices)]
    starts = [low.scalar(start) for start, _ in split]
    return access_of(low, op, type_, starts, tuple(rows for _, rows in split))


def _split_row(mem: SSAValue, axis: int, index: SSAValue) -> tuple[SSAValue, int]:
    """A subscript as a value and a number of rows that is added to it."""
    return split_constant(index) if static_stride(mem, axis) is None else (index, 0)


def _plus(low: Lowering, a: SSAValue, b: SSAValue | int) -> SSAValue:
    return low.build.emit(ptx.AddOp, low.index_kind.name, a, b)


class Masks:
    """The predicates of an access, each made once."""

    def __init__(self, access: Access, owner: SSAValue | None):
        self.access = access
        self.owner = owner
        flags = access.op.in_bounds
        self.masked = [
            flags is None or not flags.data[axis].value.data for axis in range(len(access.shape))
        ]
        self._axis: dict[tuple[int, int], SSAValue | None] = {}
        self._all: dict[tuple[int, ...], SSAValue | None] = {}

    def of(self, offsets: tuple[int, ...]) -> SSAValue | None:
        """Whether the elements at these offsets from register 0 exist; None for always."""
        found = self._all.get(offsets)
        if found is None and offsets not in self._all:
            found = self.owner
            for axis, offset in enumerate(offsets):
                found = both(self.access.low, found, self._axis_mask(axis, offset))
            self._all[offsets] = found
        return found

    def _axis_mask(self, axis: int, offset: int) -> SSAValue | None:
        key = (axis, offset)
        if key not in self._axis:
            low = self.access.low
            inside = self.inside_tensor(axis, offset) if self.masked[axis] else None
            self._axis[key] = both(low, inside, self._inside_tile(axis, offset))
        return self._axis[key]

    def inside_tensor(self, axis: int, offset: int) -> SSAValue:
        """Whether the index at an offset is one of the tensor's."""
        # One unsigned comparison: an index below 0 is large.
        low, access = self.access.low, self.access
        index = access.coordinates[axis]
        offset += access.shift[axis]
        if offset:
            index = _plus(low, index, offset)
        size = extent(low, access.mem, axis)
        return low.build.emit(ptx.SetpOp, f"lt.u{low.index_bits}", index, size)

    def _inside_tile(self, axis: int, offset: int) -> SSAValue | None:
        """The overhang: a layout covers the next power of two of an extent."""
        access = self.access
        extent = access.shape[axis]
        if extent == access.layout.shape[axis]:
            return None
        thread = access.inside_tile[axis]
        build = access.low.build
        if thread is None:
            return None if offset < extent else build.false()
        if offset >= extent:
            return build.false()
        return build.emit(ptx.SetpOp, "lt.u32", thread, extent - offset)


def both(low: Lowering, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
    """Whether two predicates hold; None stands for one that always does."""
    if a is None or b is None:
        return a if b is None else b
    return low.build.emit(ptx.AndOp, "pred", a, b)


class Addresses:
    """The addresses of an access: the thread's first one, and rows from it."""

    def __init__(self, access: Access):
        self.access = access
        self.low = access.low
        self.bytes = access.kind.bytes
        self.first = element_address(access.low, access.mem, access.coordinates, access.kind.bytes)
        self._rows: dict[tuple[int, ...], SSAValue] = {}
        self._strides: dict[int, SSAValue] = {}

    def of(self, offsets: tuple[int, ...]) -> Address:
        """The address of the element at these offsets from register 0."""
        constant, moving = self.first.offset, [0] * len(offsets)
        for axis, offset in enumerate(offsets):
            step = static_stride(self.access.mem, axis)
            if step is None:
                moving[axis] = offset + self.access.shift[axis]
            else:
                constant += offset * step * self.bytes
        return Address(self._row(tuple(moving)), constant, self.first.space)

    def _row(self, offsets: tuple[int, ...]) -> SSAValue:
        """The base for offsets along axes of run-time stride, from the row a bit lower."""
        if not any(offsets):
            return self.first.base
        found = self._rows.get(offsets)
        if found is None:
            axis = next(axis for axis, offset in enumerate(offsets) if offset)
            bit = (offsets[axis] & -offsets[axis]).bit_length() - 1
            nearer = list(offsets)
            nearer[axis] -= 1 << bit
            found = self.low.build.emit(
                ptx.AddOp, "s64", self._row(tuple(nearer)), self._step(axis, bit)
            )
            self._rows[offsets] = found
        return found

    def _step(self, axis: int, bit: int) -> SSAValue:
        """2^bit rows along an axis in bytes."""
        rows = self._strides.get(axis)
        if rows is None:
            register = stride(self.low, self.access.mem, axis)
            if self.low.index_bits == 32:
                register = self.low.build.emit(ptx.CvtOp, "u64.u32", register)
            rows = self._strides[axis] = times_bytes(self.low, register, self.bytes)
        return self.low.build.emit(ptx.ShlOp, "b64", rows, bit) if bit else rows


def is_whole_buffer(mem: SSAValue, indices: Sequence[SSAValue], moved: Attribute) -> bool:
    """Whether an access moves all of a shared buffer, so that bits of offsets do for addresses.

    The buffer then has a layout of its own or is row-major over powers of two.
    """
    if not tile.is_shared(mem):
        return False
    assert isinstance(mem.type, MemRefType)
    assert isinstance(moved, TensorType)
    if isinstance(mem.type.layout, tile.SharedLayoutAttr):
        return True
    shape = mem.type.get_shape()
    is_binary = all(size & (size - 1) == 0 for size in shape)
    return is_binary and shape == moved.get_shape() and all(map(_is_zero, indices))


def _is_zero(index: SSAValue) -> bool:
    constant = getattr(index.owner, "value", None)
    return isinstance(constant, IntegerAttr) and constant.value.data == 0


def _load(low: Lowering, op: Operation) -> None:
    assert isinstance(op, tile.LoadOp)
    if is_whole_buffer(op.mem, op.indices, op.result.type):
        layout, kind = _layout(op, op.result.type), low.kind(op.result.type, op)
        at, is_operand = _constants(op), feeds_products(op.result)
        low.set_share(op.result, load_shared(low, op.mem, layout, kind, at, is_operand=is_operand))
        return
    access = _access(low, op, op.result.type)
    masks, addresses = Masks(access, None), Addresses(access)
    offsets = register_coordinates(access.layout)
    fill = constant_bits(op.fill.value.data, access.kind) if op.fill is not None else 0
    done: dict[tuple[int, ...], Share] = {}
    parts: list[Share] = []
    for register in range(0, len(offsets), access.width):
        place = offsets[register]
        if place not in done:
            guard = masks.of(place)
            done[place] = load(low, addresses.of(place), access.kind, access.width, guard, fill)
        parts.append(done[place])
    low.set_share(op.result, join(low, parts, access.kind))


def feeds_products(value: SSAValue) -> bool:
    """Whether `mma` alone takes a tile, as an operand: then all lanes of all warps are there."""
    users = [use.operation for use in value.uses]
    return bool(users) and all(
        isinstance(user, DotOp)
        and user.c is not value
        and user.instruction is not None
        and user.instruction.data.name == "mma"
        for user in users
    )


def _constants(op: tile.LoadOp | tile.StoreOp) -> list[int]:
    """The subscripts of an access to a buffer, which are constants."""
    values: list[int] = []
    for index in op.indices:
        known = getattr(index.owner, "value", None)
        if not isinstance(known, IntegerAttr):
            raise error_at(op, f"{op.name} of a buffer has constant subscripts")
        values.append(known.value.data)
    return values


def _store(low: Lowering, op: Operation) -> None:
    assert isinstance(op, tile.StoreOp)
    if is_whole_buffer(op.mem, op.indices, op.value.type):
        layout, kind = _layout(op, op.value.type), low.kind(op.value.type, op)
        store_shared(low, op.mem, layout, kind, op.value, _constants(op))
        return
    access = _access(low, op, op.value.type)
    masks = Masks(access, owner_predicate(low, access.layout))
    addresses = Addresses(access)
    offsets = register_coordinates(access.layout)
    done: set[tuple[int, ...]] = set()
    for register in range(0, len(offsets), access.width):
        place = offsets[register]
        if place in done:
            continue
        done.add(place)
        part = part_of(low, op.value, access.kind, register, access.width)
        store(low, addresses.of(place), access.kind, part, masks.of(place))


def _async_copy(low: Lowering, op: Operation) -> None:
    """Copies 4, 8 or 16 bytes an instruction; past the tensor's end it writes zeros."""
    assert isinstance(op, AsyncCopyOp)
    access = _access(low, op, op.tile_type)
    in_buffer = access.layout if op.transposed is None else turned(access.layout)
    shared = SharedAccess(low, op.buffer, in_buffer, access.kind)
    width = min(access.width, contiguous_vector(shared.offsets, OFFSET))
    size = width * access.kind.bytes
    if size not in _COPY_SIZES:
        raise error_at(op, f"an asynchronous copy moves 4, 8 or 16 bytes, not {size}")
    masks, addresses = Masks(access, None), Addresses(access)
    guard = owner_predicate(low, access.layout)
    if low.copies_if is not None:
        is_owner, guard = guard, low.copies_if
        if is_owner is not None:
            guard = low.build.emit(ptx.AndOp, "pred", is_owner, guard)
    cache = "cg" if size == MAX_BYTES else "ca"
    done: set[tuple[int, ...]] = set()
    places = register_coordinates(access.layout)
    for register in range(0, len(places), width):
        place = places[register]
        if place in done:
            continue
        done.add(place)
        inside = masks.of(place)
        read = () if inside is None else (low.build.emit(ptx.SelpOp, "b32", size, 0, inside),)
        source, target = addresses.of(place), shared.address(shared.registers[register])
        low.build.emit_multi(
            ptx.CpAsyncOp,
            f"{cache}.shared.global",
            target.base,
            source.base,
            *read,
            results=(),
            imm=size,
            offsets=(target.offset, source.offset),
            guard=guard,
        )


def _async_commit(low: Lowering, op: Operation) -> None:
    low.build.emit_multi(ptx.CpAsyncCommitGroupOp, "", results=())


def _async_wait(low: Lowering, op: Operation) -> None:
    assert isinstance(op, AsyncWaitOp)
    pending = op.pending.value.data
    low.build.emit_multi(ptx.CpAsyncWaitGroupOp, "", results=(), imm=pending)


def _stage(low: Lowering, op: Operation) -> None:
    """Accesses compute the stage's address themselves."""


def _next_stage(low: Lowering, op: Operation) -> None:
    """It told `ph-insert-barriers` where the stages change."""


def _splat(low: Lowering, op: Operation) -> None:
    assert isinstance(op, tile.SplatOp)
    low.set(op.result, *(low.scalar(op.value),) * low.share_size(op.result))


def _broadcast(low: Lowering, op: Operation) -> None:
    """The operand has the result's layout with axes dropped: the registers are the same."""
    assert isinstance(op, tile.BroadcastOp)
    low.set_share(op.result, low.share(op.value))


HANDLERS: dict[type[Operation], Handler] = {
    tile.LoadOp: _load,
    tile.StoreOp: _store,
    tile.SplatOp: _splat,
    tile.BroadcastOp: _broadcast,
    AsyncCopyOp: _async_copy,
    AsyncCommitOp: _async_commit,
    AsyncWaitOp: _async_wait,
    StageOp: _stage,
    NextStageOp: _next_stage,
}
