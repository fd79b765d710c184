"""How the lanes of a warp share out memory, from the IR with layouts.

For each place of the source that accesses a tensor: the sectors of 32 bytes that one instruction
of a warp touches, against the fewest that hold its data, and what keeps a thread from moving 16
bytes at a time. A tensor is taken to start at the beginning of a sector, and rows of unknown
length to share none. For accesses of shared memory: the passes that banks make of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects import gpu, memref, vector
from xdsl.dialects.builtin import MemRefType, TensorType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from phobos.analysis.ranges import analyze as analyze_ranges
from phobos.analysis.uniformity import analyze
from phobos.dialects import tile
from phobos.dialects.atomics import AtomicOp, CompareExchangeOp, LoadAcquireOp, StoreReleaseOp
from phobos.dialects.contraction import DotOp
from phobos.dialects.elements import element_bytes
from phobos.dialects.gathering import GatherOp, ScatterOp
from phobos.dialects.staging import AsyncCopyOp
from phobos.dialects.tensor_copies import TensorCopyOp
from phobos.explain.banks import BufferCost, buffer_cost, lane_cost, operand_cost, worse
from phobos.explain.lanes import Lanes
from phobos.explain.masks import Limits
from phobos.explain.places import tensor_name
from phobos.explain.records import Boxes, Coalesced
from phobos.explain.tiles import element_name
from phobos.ir.kernel import extent_multiple_of, index_bits_of, threads_of
from phobos.ir.locations import location_of
from phobos.layout import contiguous_vector
from phobos.layout.build import LANE, OFFSET, WARP
from phobos.layout.linear import LinearLayout
from phobos.layout.queries import SECTOR_BYTES
from phobos.record import Record, record
from phobos.transforms.analyze_extents import MAX_VECTOR_BYTES
from phobos.transforms.lowering.addresses import static_stride

Key = tuple[int, int, bool, bool]
"""Line and column of an op's location, whether it writes, and whether to shared memory."""


@record
class Facts(Record):
    """What is known of the accesses of one place."""

    coalesced: Coalesced | None = None
    narrow: str | None = None
    banks: BufferCost | None = None
    boxes: Boxes | None = None


def access_facts(kernel: gpu.FuncOp, limits: Limits) -> dict[Key, Facts]:
    """Facts about every place that accesses a tensor in global memory.

    `limits` are what was proven of slices. Of a place that is found twice (a loop that was split)
    the first is told.
    """
    ranges = analyze_ranges(kernel, index_bits_of(kernel), extent_multiple_of(kernel))
    lanes = Lanes(analyze(kernel), ranges, threads_of(kernel))
    found: dict[Key, Facts] = {}
    for op in kernel.walk():
        facts = _facts(op, lanes, limits)
        is_shared = facts is not None and facts.banks is not None
        key = key_of(op, writes=isinstance(op, _WRITES), is_shared=is_shared)
        if facts is not None and key is not None:
            known = found.get(key)
            found[key] = facts if known is None else _worse(known, facts)
    return found


def _worse(known: Facts, other: Facts) -> Facts:
    """Of two accesses of one place the one with more conflicts, or that of which more is known."""
    if known.banks is not None and other.banks is not None:
        return Facts(banks=worse(known.banks, other.banks))
    return replace(other if known.coalesced is None else known, boxes=known.boxes or other.boxes)


def key_of(op: Operation, *, writes: bool, is_shared: bool) -> Key | None:
    """The key of an op's place."""
    place = location_of(op)
    return None if place is None else (place.line, place.column, writes, is_shared)


_WRITES = (tile.StoreOp, ScatterOp, memref.StoreOp, vector.StoreOp, AtomicOp, CompareExchangeOp,
           StoreReleaseOp)  # fmt: skip
_TileAccess = tile.LoadOp | tile.StoreOp | AsyncCopyOp | GatherOp | ScatterOp


def _facts(op: Operation, lanes: Lanes, limits: Limits) -> Facts | None:
    match op:
        case tile.LoadOp() | GatherOp():
            return _tile_facts(op, op.result.type, limits)
        case tile.StoreOp() | ScatterOp():
            return _tile_facts(op, op.value.type, limits)
        case DotOp():
            return Facts(banks=operand_cost(op, lanes.threads))
        case AsyncCopyOp():
            return _tile_facts(op, op.tile_type, limits)
        case TensorCopyOp():
            return Facts(boxes=_boxes(op))
        case memref.LoadOp() | memref.StoreOp():
            return _point_facts(op.memref, op.indices, 1, lanes)
        case AtomicOp() | CompareExchangeOp() | LoadAcquireOp() | StoreReleaseOp():
            return _point_facts(op.mem, op.indices, 1, lanes)
        case vector.LoadOp():
            return _run_facts(op, op.base, op.indices, op.result.type, lanes, limits)
        case vector.StoreOp():
            return _run_facts(op, op.base, op.indices, op.vector.type, lanes, limits)
        case _:
            return None


_FAR = 1 << 40
"""The distance of rows whose length is not known, in elements: no two share a sector."""


# ---- tiles


def _tile_facts(op: _TileAccess, type_: Attribute, limits: Limits) -> Facts | None:
    assert isinstance(type_, TensorType)
    encoding = type_.encoding
    if not isinstance(encoding, tile.LayoutAttr):
        return None
    layout, size = encoding.data, element_bytes(type_)
    if tile.is_shared(op.mem):
        assert isinstance(op, tile.LoadOp | tile.StoreOp)
        return Facts(banks=buffer_cost(op))
    proven = op.vector.value.data if op.vector is not None else 1
    own = contiguous_vector(layout, layout.rank - 1)
    width = min(proven, own, MAX_VECTOR_BYTES // size)
    starts = _tile_places(layout, type_.get_shape(), width, _strides(op.mem))
    coalesced = _touched([size * start for start in starts], width * size)
    narrow = None
    if width * size < MAX_VECTOR_BYTES:
        narrow = _short_words(op, layout, own) if own < proven else limits.narrow(op)
    return Facts(coalesced, narrow)


def _short_words(op: _TileAccess, layout: LinearLayout, own: int) -> str:
    """Why threads have few elements in a row."""
    if isinstance(op, AsyncCopyOp) and _turns(op):
        return "the copy turns the tile, so that products load neighbours along M or N at once"
    threads = layout.in_size(LANE) * layout.in_size(WARP)
    if layout.elements <= own * threads:
        return f"{layout.elements} elements for {threads} threads are {own} for each"
    if own == 1:
        return "the tile's layout gives neighbours to different threads"
    return f"the tile's layout gives a thread {own} in a row"


def _turns(copy: AsyncCopyOp) -> bool:
    """Whether neighbours in memory are none in the buffer that a copy fills."""
    nearest = tile.shared_layout_of(copy.buffer).bases(OFFSET)[0]
    return not nearest[-1 if copy.transposed is None else -2]


def _strides(mem: SSAValue) -> tuple[int, ...]:
    """Elements between neighbours along each axis of a tensor."""
    assert isinstance(mem.type, MemRefType)
    rank = len(mem.type.get_shape())
    known = (static_stride(mem, axis) for axis in range(rank))
    return tuple(
        _FAR << (rank - axis) if stride is None else stride for axis, stride in enumerate(known)
    )


def _tile_places(
    layout: LinearLayout, shape: Sequence[int], width: int, strides: Sequence[int]
) -> set[int]:
    """Where the lanes of a warp find their first `width` elements, in elements."""
    places: set[int] = set()
    for lane in range(layout.in_size(LANE) if LANE in layout.in_names else 1):
        found = layout.apply(**{LANE: lane}) if LANE in layout.in_names else (0,) * layout.rank
        coordinates = (*found[:-1], found[-1] // width * width)
        if all(c < extent for c, extent in zip(coordinates, shape, strict=True)):
            places.add(sum(c * s for c, s in zip(coordinates, strides, strict=True)))
    return places


def _touched(starts: Iterable[int], size: int) -> Coalesced:
    """What accesses of `size` bytes touch that begin at these bytes."""
    pieces: list[list[int]] = []
    for start in sorted(set(starts)):
        if pieces and start <= pieces[-1][1]:
            pieces[-1][1] = start + size
        else:
            pieces.append([start, start + size])
    lengths = {end - begin for begin, end in pieces}
    many = f"{len(pieces)} pieces of " if len(pieces) > 1 else ""
    some = " and more" if len(lengths) > 1 else " side by side" if not many else ""
    sectors = {
        sector
        for begin, end in pieces
        for sector in range(begin // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1)
    }
    total = sum(end - begin for begin, end in pieces)
    ideal = -(-total // SECTOR_BYTES)
    return Coalesced(f"{many}{_bytes(min(lengths))}{some}", len(sectors), ideal)


def _bytes(number: int) -> str:
    return f"{number} byte" if number == 1 else f"{number} bytes"


def _boxes(op: TensorCopyOp) -> Boxes:
    assert isinstance(op.mem.type, MemRefType)
    element = element_name(op.mem) if op.rounded is None else op.rounded.data
    count = prod(op.tile_shape) // prod(op.box_shape)
    return Boxes(tensor_name(op.mem), element, op.box_shape, count, op.moved_bytes)


# ---- single elements and runs


def _point_facts(
    mem: SSAValue, indices: Sequence[SSAValue], width: int, lanes: Lanes
) -> Facts | None:
    assert isinstance(mem.type, MemRefType)
    places = _lane_places(mem, indices, lanes)
    size = element_bytes(mem.type)
    if tile.is_shared(mem):
        return None if places is None else Facts(banks=lane_cost(places, size, width))
    if places is None:
        return Facts(Coalesced("not known how the places of its lanes lie"))
    if len(set(places)) == 1 and len(places) > 1:
        sectors = -(-width * size // SECTOR_BYTES)
        return Facts(Coalesced("all lanes at one place", sectors, sectors))
    return Facts(_touched([size * place for place in places], width * size))


def _run_facts(
    op: Operation,
    mem: SSAValue,
    indices: Sequence[SSAValue],
    type_: Attribute,
    lanes: Lanes,
    limits: Limits,
) -> Facts | None:
    assert isinstance(type_, VectorType)
    facts = _point_facts(mem, indices, type_.get_shape()[-1], lanes)
    return None if facts is None else Facts(facts.coalesced, limits.narrow(op))


def _lane_places(
    mem: SSAValue, indices: Sequence[SSAValue], lanes: Lanes
) -> tuple[int, ...] | None:
    """Where each lane's element is, from the lowest; None if that is not known."""
    places = (0,) * lanes.count
    for index, stride in zip(indices, _strides(mem), strict=True):
        spread = lanes.of(index)
        if spread is None:
            return None
        places = tuple(p + own * stride for p, own in zip(places, spread.own, strict=True))
    lowest = min(places)
    return tuple(place - lowest for place in places)
