"""Stages that one thread fills by tensor copies (TMA), and the barriers that tell of them.

The kernel gets a parameter of 128 bytes for each tensor map that it reads: a launch makes it from
the tensor, and it holds address, extents and strides beside the shape of a box.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.elements import element_bytes, type_name
from phobos.dialects.gathering import ViewOp
from phobos.dialects.ptx import B32
from phobos.dialects.staging import StageOp
from phobos.dialects.tensor_copies import (
    BARRIER_BYTES,
    AwaitStageOp,
    CloseRingOp,
    FillStageOp,
    OpenRingOp,
    ReleaseStageOp,
    TensorCopyOp,
)
from phobos.ir.kernel import argument_attributes, argument_name
from phobos.ir.locations import error_at
from phobos.layout.boxes import swizzle_of_boxes
from phobos.targets.ptx.chips import WARP_LANES
from phobos.targets.ptx.contract import TensorMap
from phobos.transforms.assign_layouts import turned
from phobos.transforms.lowering.addresses import shared_base
from phobos.transforms.lowering.mbarriers import (
    arrive,
    copy_box,
    elected,
    expect_bytes,
    first_warp,
    initialise,
    one_lane,
    publish,
    wait,
)
from phobos.transforms.lowering.state import Handler, Lowering
from phobos.transforms.place_tiles import OFFSET

MIN_COORDINATE, MAX_COORDINATE = -(1 << 31), (1 << 31) - 1
"""Outside of every tensor that a launch makes a map of, as are boxes that begin there."""


def tensor_maps(kernel: gpu.FuncOp) -> tuple[TensorMap, ...]:
    """What a kernel's tensor copies read, each once.

    Raises PhobosError where a copy is of anything but a parameter of the kernel.
    """
    maps = (map_of(op, kernel) for op in kernel.walk() if isinstance(op, TensorCopyOp))
    return tuple(dict.fromkeys(maps))


def map_of(op: TensorCopyOp, kernel: gpu.FuncOp) -> TensorMap:
    """The tensor map that a copy reads."""
    mem = op.mem
    if not isinstance(mem, BlockArgument) or mem.block is not kernel.body.blocks[0]:
        raise error_at(op, "a tensor copy is of a tensor that is a parameter of the kernel")
    if op.rounded is not None:
        name = op.rounded.data
    else:
        named = argument_attributes(kernel, mem.index).get("phobos.type")
        assert isinstance(mem.type, MemRefType)
        name = named.data if isinstance(named, StringAttr) else type_name(mem.type.element_type)
    return TensorMap(argument_name(kernel, mem.index), name, op.box_shape, op.swizzle.value.data)


def _placed(low: Lowering, op: Operation, mem: SSAValue) -> tuple[SSAValue, int]:
    """As `shared_base`; refuses what has no place in shared memory."""
    owner = mem.owner
    while isinstance(owner, ViewOp | StageOp):
        owner = owner.buffer.owner
    if not isinstance(owner, memref.AllocaOp) or OFFSET not in owner.attributes:
        message = f"`{op.name}` wants a `memref.alloca` of shared memory that has its place"
        raise error_at(op, message, help="`ph-place-tiles` gives it one")
    return shared_base(low, mem)


def _ring(
    low: Lowering, op: CloseRingOp | AwaitStageOp | ReleaseStageOp | FillStageOp
) -> tuple[SSAValue, int]:
    """Where the barriers of a ring are; refuses one without, at which threads wait for ever."""
    if not any(isinstance(use.operation, OpenRingOp) for use in op.ring.uses):
        raise error_at(op, "nothing opens this ring", help="`tile.open_ring` makes its barriers")
    return _placed(low, op, op.ring)


def _open(low: Lowering, op: Operation) -> None:
    """The thread that copies arrives at a full stage, a lane of each warp at an empty one."""
    assert isinstance(op, OpenRingOp)
    base, offset = _placed(low, op, op.ring)
    warps = -(-low.threads // WARP_LANES)
    with elected(low):
        for number, arrivals in enumerate((1,) * op.stages + (warps,) * op.stages):
            initialise(low.build, base, arrivals, offset=offset + number * BARRIER_BYTES)
        publish(low.build)


def _close(low: Lowering, op: Operation) -> None:
    assert isinstance(op, CloseRingOp)
    base, offset = _ring(low, op)
    with elected(low):
        for number in range(2 * op.stages):
            place = offset + number * BARRIER_BYTES
            low.build.emit_multi(ptx.MbarrierOp, "inval.shared.b64", base, offset=place, results=())


def _barriers(
    low: Lowering, op: AwaitStageOp | ReleaseStageOp | FillStageOp
) -> tuple[SSAValue, int, int]:
    """The address of a stage, and the offsets from it of the barriers of full and empty ones."""
    base, offset = _ring(low, op)
    stage = _word(low, op.stage)
    address = low.build.emit(ptx.MadOp, "lo.s32", stage, BARRIER_BYTES, base)
    return address, offset, offset + op.stages * BARRIER_BYTES


def _word(low: Lowering, value: SSAValue) -> SSAValue:
    """An index that is known to be small, in 32 bits."""
    register = low.scalar(value)
    if low.index_bits == 32:
        return register
    return low.build.emit(ptx.CvtOp, "u32.u64", register)


def _await(low: Lowering, op: Operation) -> None:
    assert isinstance(op, AwaitStageOp)
    address, full, _ = _barriers(low, op)
    wait(low.build, address, _word(low, op.phase), offset=full)


def _release(low: Lowering, op: Operation) -> None:
    """The products that read the stage are done in the whole warp: their end is waited for."""
    assert isinstance(op, ReleaseStageOp)
    address, _, empty = _barriers(low, op)
    is_first = low.build.emit(ptx.SetpOp, "eq.u32", low.lane, 0)
    arrive(low.build, address, offset=empty, guard=is_first)


def _fill(low: Lowering, op: Operation) -> None:
    assert isinstance(op, FillStageOp)
    with first_warp(low):
        address, full, empty = _barriers(low, op)
        if op.after is not None:
            wait(low.build, address, _word(low, op.after), offset=empty)
        with one_lane(low):
            expect_bytes(low.build, address, op.bytes.value.data, offset=full)
            low.full_stage = address, full
            low.block(op.body.block)
            low.full_stage = None


def _copy(low: Lowering, op: Operation) -> None:
    """Box by box; the coordinates that a copy takes are signed, of 32 bits."""
    assert isinstance(op, TensorCopyOp)
    if low.full_stage is None:
        raise error_at(op, "a tensor copy belongs into a `tile.fill_stage`")
    barrier, full = low.full_stage
    emit = low.build.emit
    number = low.tensor_maps[map_of(op, low.kernel)]
    tensor_map = low.build.param_address(number)
    base, start = _placed(low, op, op.buffer)
    _check_layout(op)
    indices = [_coordinate(low, index) for index in op.indices]
    for row, column, offset in _boxes(op):
        *units, first_row, first_column = indices
        place = [
            *units,
            emit(ptx.AddOp, "s32", first_row, row) if row else first_row,
            emit(ptx.AddOp, "s32", first_column, column) if column else first_column,
        ]
        where = start + offset, full
        copy_box(low, base, tensor_map, place[::-1], barrier, offsets=where)


def _check_layout(op: TensorCopyOp) -> None:
    """Refuses a buffer whose elements are elsewhere than boxes put them."""
    shared = tile.shared_layout_of(op.buffer)
    in_tensor = shared if op.transposed is None else turned(shared)
    assert isinstance(op.mem.type, MemRefType)
    swizzle = swizzle_of_boxes(in_tensor, op.tile_shape, element_bytes(op.mem.type))
    if swizzle != op.swizzle.value.data:
        raise error_at(
            op,
            f"boxes swizzled by {op.swizzle.value.data} bytes put elements elsewhere than the"
            f" layout of {op.buffer.type} has them",
            help=None if swizzle is None else f"boxes swizzled by {swizzle} bytes have it",
        )


def _boxes(op: TensorCopyOp) -> Iterator[tuple[int, int, int]]:
    """Where the boxes of a tile start, along its last two axes and in bytes of the buffer."""
    rows, columns = op.tile_shape[-2:]
    box_rows, width = op.box_shape[-2:]
    assert isinstance(op.mem.type, MemRefType)
    row_bytes = width * element_bytes(op.mem.type)
    for column in range(0, columns, width):
        for row in range(0, rows, box_rows):
            yield row, column, (column // width * rows + row) * row_bytes


def _coordinate(low: Lowering, value: SSAValue) -> SSAValue:
    register = low.scalar(value)
    if low.index_bits == 32:
        return register
    near = low.build.emit(ptx.MinOp, "s64", register, MAX_COORDINATE)
    near = low.build.emit(ptx.MaxOp, "s64", near, MIN_COORDINATE)
    return low.build.emit(ptx.CvtOp, "u32.u64", near, result=B32)


HANDLERS: dict[type[Operation], Handler] = {
    OpenRingOp: _open,
    CloseRingOp: _close,
    AwaitStageOp: _await,
    ReleaseStageOp: _release,
    FillStageOp: _fill,
    TensorCopyOp: _copy,
}
