"""Masks that stay, and what keeps accesses narrow: what could not be proven, and what would help.

`Limits.gather` reads the IR in which `ph-analyze-extents` has written what it proved, before
loops are split; `masks` joins it with the IR after that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import gpu, scf, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, VectorType
from xdsl.ir import Operation, SSAValue

from phobos.analysis.ranges import Facts, Ranges, analyze
from phobos.dialects import tile
from phobos.dialects.elements import element_bytes
from phobos.dialects.gathering import GatherOp, ScatterOp
from phobos.dialects.staging import AsyncCopyOp
from phobos.dialects.tensor_copies import TensorCopyOp
from phobos.explain.places import Places, order_of, tensor_name
from phobos.explain.records import Mask, Place
from phobos.ir.kernel import dim_name_of, extent_multiple_of, index_bits_of
from phobos.ir.locations import location_of
from phobos.transforms.analyze_extents import MAX_VECTOR_BYTES, WidthLimit, width_limits

_Access = tile.LoadOp | tile.StoreOp | GatherOp | ScatterOp
_Spot = tuple[int, int, str]
"""Line and column of an access, and the class of the op."""


def _spot(op: Operation) -> _Spot | None:
    place = location_of(op)
    return None if place is None else (place.line, place.column, op.name)


@dataclass
class Limits:
    """What was proven of the slices of one kernel."""

    masks: dict[tuple[_Spot, int], Mask] = field(default_factory=dict)
    narrows: dict[tuple[int, int], str] = field(default_factory=dict)

    @classmethod
    def gather(cls, kernel: gpu.FuncOp, places: Places) -> Limits:
        """Asks the range analysis again for what it could not prove."""
        found = cls()
        ranges = analyze(kernel, index_bits_of(kernel), extent_multiple_of(kernel))
        for op in kernel.walk():
            if isinstance(op, _Access) and not tile.is_shared(op.mem):
                found._tile(op, ranges, places)
            elif isinstance(op, vector.LoadOp | vector.StoreOp) and not tile.is_shared(op.base):
                moved = op.result.type if isinstance(op, vector.LoadOp) else op.vector.type
                assert isinstance(moved, VectorType)
                length = moved.get_shape()[-1]
                limits = width_limits(op.base, op.indices, length, ranges, masked=False)
                found._narrow(op, op.base, length, limits, ranges)
        return found

    def narrow(self, op: Operation) -> str | None:
        """What kept the access at an op's place from 16 bytes, if it is what was proven."""
        place = location_of(op)
        return None if place is None else self.narrows.get((place.line, place.column))

    def _tile(self, op: _Access, ranges: Ranges, places: Places) -> None:
        value = op.result if isinstance(op, tile.LoadOp | GatherOp) else op.value
        assert isinstance(value.type, TensorType)
        lengths = value.type.get_shape()
        spot, flags = _spot(op), _flags(op)
        if spot is None:
            return
        for axis, (start, length) in enumerate(zip(op.indices, lengths, strict=True)):
            if not flags[axis]:
                is_write = isinstance(op, tile.StoreOp | ScatterOp)
                place = places.of_target(op) if is_write else places.of(op)
                mask = _mask(op.mem, axis, start, length, ranges, place)
                self.masks[spot, axis] = mask
        if not isinstance(op.indices[-1].type, TensorType):
            limits = width_limits(op.mem, op.indices, lengths[-1], ranges, masked=not flags[-1])
            self._narrow(op, op.mem, lengths[-1], limits, ranges)

    def _narrow(
        self,
        op: Operation,
        mem: SSAValue,
        length: int,
        limits: dict[WidthLimit, int],
        ranges: Ranges,
    ) -> None:
        place = location_of(op)
        limit = min(limits, key=limits.__getitem__)
        width = limits[limit]
        if place is None or width in (limits.get(WidthLimit.BYTES), length):
            return
        words = _narrow_words(limit, width, length, mem, ranges)
        self.narrows[place.line, place.column] = words


def _flags(op: _Access) -> tuple[bool, ...]:
    """Which axes of an access need no mask."""
    rank = len(op.indices)
    if op.in_bounds is None:
        return (False,) * rank
    return tuple(bool(flag.value.data) for flag in op.in_bounds.data)


def _narrow_words(limit: WidthLimit, width: int, length: int, mem: SSAValue, ranges: Ranges) -> str:
    match limit:
        case WidthLimit.LENGTH:
            return f"the slice is {length} elements long"
        case WidthLimit.START:
            if width == 1:
                return "it may start at any element"
            return f"its start is only known to be a multiple of {width}"
        case _:
            extent = _extent_name(mem, len(_shape(mem)) - 1)
            remedy = ""
            last = len(_shape(mem)) - 1
            if ranges.multiple_of(mem, last) == width and _shape(mem)[-1] == DYNAMIC_INDEX:
                name = dim_name_of(mem, last)
                assert isinstance(mem.type, MemRefType)
                wanted = MAX_VECTOR_BYTES // element_bytes(mem.type)
                option = f"{name}={wanted}" if name else str(wanted)
                remedy = f"; `--extent-multiple {option}` promises more"
            return f"{extent} is only known to be a multiple of {width}{remedy}"


def _shape(mem: SSAValue) -> tuple[int, ...]:
    assert isinstance(mem.type, MemRefType)
    return mem.type.get_shape()


def _extent_name(mem: SSAValue, axis: int) -> str:
    extent = _shape(mem)[axis]
    return dim_name_of(mem, axis) or (
        str(extent) if extent != DYNAMIC_INDEX else f"extent {axis} of {tensor_name(mem)}"
    )


def _mask(
    mem: SSAValue, axis: int, start: SSAValue, length: int, ranges: Ranges, place: Place | None
) -> Mask:
    reason, remedy = _why(mem, axis, start, length, ranges)
    return Mask(place, tensor_name(mem), axis, _extent_name(mem, axis), reason, remedy)


def _why(
    mem: SSAValue, axis: int, start: SSAValue, length: int, ranges: Ranges
) -> tuple[str, str | None]:
    """Why an axis needs its mask, and what would spare it."""
    if isinstance(start.type, TensorType):
        return "a subscript is a tile, whose elements may be any numbers", None
    extent, facts = _shape(mem)[axis], ranges.of(start)
    if extent != DYNAMIC_INDEX:
        return _range_words(facts, length, extent), None
    name = dim_name_of(mem, axis)
    called = _extent_name(mem, axis)
    if not facts.divisible_by(length):
        known = f", only at one of {facts.divisor}" if facts.divisor > 1 else ""
        return f"the slice need not start at a multiple of its length {length}{known}", None
    promise = ranges.aligned.get(name or "")
    if promise is not None:
        return f"`@aligned` makes {called} a multiple of {promise}, not of {length}", (
            f"@aligned({called} = {length})"
        )
    if length == 1:
        reason = f"nothing says that the subscript is less than {called}"
    else:
        reason = f"nothing says that {called} is a multiple of {length}"
    return reason, None if name is None else f"@aligned({name} = {length})"


def _range_words(facts: Facts, length: int, extent: int) -> str:
    if facts.low < 0:
        return "the slice may start below 0, as far as is known"
    return f"the slice may start behind {extent - length}, as far as is known"


def masks(limits: Limits, kernel: gpu.FuncOp, places: Places) -> tuple[Mask, ...]:
    """The masks that stay, in the order of the source, from the IR with loops split.

    Where a copy of an access goes without a mask, the mask tells of the loop that was split.
    """
    whole: dict[tuple[_Spot, int], Place | None] = {}
    left: set[tuple[_Spot, int]] = set()
    for op in kernel.walk():
        if not isinstance(op, _Access):
            continue
        spot = _spot(op)
        if spot is None:
            continue
        for axis, flag in enumerate(_flags(op)):
            if flag:
                whole[spot, axis] = places.of(_loop_around(op))
            else:
                left.add((spot, axis))
    found = [
        Mask(
            mask.place, mask.tensor, mask.axis, mask.extent, mask.reason, mask.remedy,
            whole.get(key),
        )
        for key, mask in limits.masks.items()
        if key in left
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: (*order_of(one.place), one.axis)))


def without_tensor_copies(
    found: Iterable[Mask], kernel: gpu.FuncOp, places: Places
) -> tuple[Mask, ...]:
    """The masks of slices that threads access, from the IR with stages.

    Tensor copies compare nothing: the hardware puts zeros past a tensor's end.
    """
    by_threads = {places.of(op) for op in kernel.walk() if isinstance(op, _Access | AsyncCopyOp)}
    copied = {places.of(op) for op in kernel.walk() if isinstance(op, TensorCopyOp)}
    return tuple(one for one in found if one.place not in copied - by_threads)


def _loop_around(op: Operation) -> Operation:
    current: Operation | None = op
    while current is not None and not isinstance(current, scf.ForOp):
        current = current.parent_op()
    return op if current is None else current
