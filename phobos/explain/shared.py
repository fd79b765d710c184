"""What is in shared memory and why, from the IR in which every buffer has its place."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import cluster, tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.fragments import FromFragmentsOp, ToFragmentsOp
from phobos.dialects.gathering import ViewOp
from phobos.dialects.scanning import PartialScanOp
from phobos.dialects.shaping import PartialReduceOp
from phobos.dialects.staging import AsyncCopyOp, StageOp
from phobos.dialects.tensor_copies import OpenRingOp, TensorCopyOp
from phobos.explain.places import Places
from phobos.explain.records import MBARRIER, Place, SharedMemory, SharedTile
from phobos.explain.tiles import element_name
from phobos.layout.shared import row_major
from phobos.targets.ptx.chips import MAX_STATIC_SHARED, Chip
from phobos.transforms.loop_stages import DYNAMIC, stores_to_stage
from phobos.transforms.place_tiles import OFFSET, SHARED_BYTES, buffer_bytes


def shared_memory(kernel: gpu.FuncOp, target: Chip, places: Places) -> SharedMemory:
    """The shared buffers of a kernel in the order of their offsets."""
    dynamic = DYNAMIC in kernel.attributes
    limit = target.max_dynamic_shared if dynamic else MAX_STATIC_SHARED
    buffers = [
        _buffer(op, places)
        for op in kernel.walk()
        if isinstance(op, memref.AllocaOp) and tile.is_shared(op.memref)
    ]
    total = kernel.attributes.get(SHARED_BYTES)
    size = total.value.data if isinstance(total, IntegerAttr) else 0
    # A loop that was split or unrolled has a buffer for each copy.
    distinct = sorted(dict.fromkeys(buffers), key=lambda one: one.offset)
    return SharedMemory(tuple(distinct), size, dynamic, limit)


def _buffer(op: memref.AllocaOp, places: Places) -> SharedTile:
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    users = list(_users(op.memref))
    stages = [user for user in users if isinstance(user, StageOp)]
    ring = next((user for user in users if isinstance(user, OpenRingOp)), None)
    shape, count = type_.get_shape(), 1
    if stages:
        count, shape = shape[0], shape[1:]
    if ring is not None:
        count, shape = ring.stages, (2,)
    place, purpose = _purpose(op, users, places)
    offset = op.attributes.get(OFFSET)
    return SharedTile(
        place,
        element_name(op.memref) if ring is None else MBARRIER,
        tuple(shape),
        count,
        offset.value.data if isinstance(offset, IntegerAttr) else 0,
        buffer_bytes(op.memref),
        purpose,
        _order(stages[0].result if stages else op.memref),
    )


def _users(buffer: SSAValue) -> Iterator[Operation]:
    """What uses a buffer, itself or through views of it or its stages."""
    for use in buffer.uses:
        yield use.operation
        if isinstance(use.operation, ViewOp | StageOp):
            yield from _users(use.operation.results[0])


def _purpose(
    op: memref.AllocaOp, users: list[Operation], places: Places
) -> tuple[Place | None, str]:
    """What a buffer is for, and the place of the source that needs it."""
    copy = next((user for user in users if isinstance(user, AsyncCopyOp | TensorCopyOp)), None)
    if copy is not None:
        return places.of(copy), "copied ahead for a product"
    if any(isinstance(user, OpenRingOp) for user in users):
        return places.of(op), "tells which stages are full and which empty"
    stored_ahead = next((user for user in users if stores_to_stage(user)), None)
    if stored_ahead is not None:
        return places.of(stored_ahead), "loaded ahead for a product"
    dot = next((user for user in users if isinstance(user, DotOp)), None)
    name = op.memref.name_hint
    if name is not None:
        return places.of(
            op
        ), f"`{name}`: single elements of it are accessed, or parts at run-time places"
    if dot is not None:
        left = any(_root(value) is op for value in (dot.a,))
        return places.of(dot), f"{'left' if left else 'right'} operand, shared by the warps"
    stored = [user.value.owner for user in users if isinstance(user, tile.StoreOp)]
    if any(isinstance(value, PartialReduceOp | PartialScanOp) for value in stored):
        return places.of(op), "what each warp has found"
    if any(isinstance(user, ToFragmentsOp | FromFragmentsOp) for user in users):
        return places.of(op), "each warp's way between tiles and fragments"
    if any(isinstance(user, memref.StoreOp) for user in users):
        return places.of(op), "what each warp has found"
    if any(isinstance(user, cluster.LoadOp) for user in users):
        return places.of(op), "what the CTAs of a cluster add up"
    return places.of(op), "elements on their way from thread to thread"


def _root(value: SSAValue) -> Operation | None:
    """The allocation that a buffer, a view of it or one of its stages belongs to."""
    owner = value.owner
    while isinstance(owner, ViewOp | StageOp):
        owner = owner.operands[0].owner
    return owner if isinstance(owner, Operation) else None


def _order(buffer: SSAValue) -> str:
    layout = tile.shared_layout_of(buffer)
    if layout.is_equivalent(row_major(layout.shape)):
        return "row by row"
    columns = "" if layout.bases(layout.in_names[0])[0][-1] else "column by column, "
    mixed = any(sum(map(bool, base)) > 1 for base in layout.bases(layout.in_names[0]))
    return columns + ("swizzled" if mixed else "reordered")
