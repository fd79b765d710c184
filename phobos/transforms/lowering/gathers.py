"""Tile accesses at places that tiles of subscripts name.

A thread's elements whose subscripts are in the same registers form one access, whose
coordinates along the gathered axes are these registers; else it is as for a slice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx
from phobos.dialects.gathering import GatherOp, ScatterOp, ViewOp
from phobos.layout.queries import register_coordinates
from phobos.transforms.lowering.accesses import join, load, part_of, store
from phobos.transforms.lowering.addresses import Address, extent, owner_predicate
from phobos.transforms.lowering.registers import I64, Kind, Share
from phobos.transforms.lowering.state import Handler, Lowering
from phobos.transforms.lowering.tiles import Access, Addresses, Masks, access_of

_Subscripts = tuple[SSAValue | None, ...]
"""The registers that hold an element's subscripts; None along an axis of a span."""


class _GatherMasks(Masks):
    """The predicates of the elements that share their subscripts."""

    def __init__(self, access: Access, owner: SSAValue | None, wide: dict[int, SSAValue]):
        super().__init__(access, owner)
        self.wide = wide
        """64-bit subscripts, before they were cut to the width of an index."""

    def inside_tensor(self, axis: int, offset: int) -> SSAValue:
        """Whether the coordinate at an offset is one of the tensor's."""
        if isinstance(self.access.op.indices[axis].type, IndexType):
            return super().inside_tensor(axis, offset)
        if axis not in self.wide:
            return super().inside_tensor(axis, 0)
        low = self.access.low
        size = extent(low, self.access.mem, axis)
        size = low.build.emit(ptx.CvtOp, "u64.u32", size)
        return low.build.emit(ptx.SetpOp, "lt.u64", self.wide[axis], size)


@dataclass
class _Gather:
    """A gather or scatter in the making: a slice access for each set of subscripts."""

    low: Lowering
    op: GatherOp | ScatterOp
    value: SSAValue
    owner: SSAValue | None = None
    parts: dict[_Subscripts, tuple[_GatherMasks, Addresses]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        low = self.low
        zero = low.build.imm(0, low.index_kind.register)
        self.is_span = [isinstance(index.type, IndexType) for index in self.op.indices]
        starts = [
            low.scalar(index) if span else zero
            for index, span in zip(self.op.indices, self.is_span, strict=True)
        ]
        self.access = access_of(low, self.op, self.value.type, starts)
        self.offsets = register_coordinates(self.access.layout)
        if isinstance(self.op, ScatterOp):
            self.owner = owner_predicate(low, self.access.layout)

    def subscripts(self, register: int) -> _Subscripts:
        """The registers of the subscripts of a thread's element."""
        return tuple(
            None if span else self.low.elements(index)[register]
            for index, span in zip(self.op.indices, self.is_span, strict=True)
        )

    def reach(self, register: int) -> tuple[Address, SSAValue | None]:
        """The address of the access that starts with an element, and its guard."""
        masks, addresses = self._part(self.subscripts(register))
        place = self.offsets[register]
        in_spans = tuple(
            offset if span else 0 for offset, span in zip(place, self.is_span, strict=True)
        )
        return addresses.of(in_spans), masks.of(place)

    def _part(self, subscripts: _Subscripts) -> tuple[_GatherMasks, Addresses]:
        if subscripts not in self.parts:
            coordinates, wide = list(self.access.coordinates), dict[int, SSAValue]()
            for axis, subscript in enumerate(subscripts):
                if subscript is None:
                    continue
                kind = self.low.kind(self.op.indices[axis].type, self.op)
                if kind is I64 and self.low.index_bits < I64.bits:
                    wide[axis] = subscript
                coordinates[axis] = self._index(subscript, kind)
            access = replace(self.access, coordinates=coordinates)
            self.parts[subscripts] = (_GatherMasks(access, self.owner, wide), Addresses(access))
        return self.parts[subscripts]

    def _index(self, subscript: SSAValue, kind: Kind) -> SSAValue:
        """A signed subscript at the width of an index; what does not fit is masked."""
        emit, bits = self.low.build.emit, self.low.index_bits
        if kind.bits == bits:
            return subscript
        return emit(ptx.CvtOp, "s64.s32" if bits == I64.bits else "u32.u64", subscript)


def _gather(low: Lowering, op: Operation) -> None:
    assert isinstance(op, GatherOp)
    gather = _Gather(low, op, op.result)
    access = gather.access
    done: dict[tuple[_Subscripts, tuple[int, ...]], Share] = {}
    parts: list[Share] = []
    for register in range(0, len(gather.offsets), access.width):
        key = (gather.subscripts(register), gather.offsets[register])
        if key not in done:
            address, guard = gather.reach(register)
            done[key] = load(low, address, access.kind, access.width, guard)
        parts.append(done[key])
    low.set_share(op.result, join(low, parts, access.kind))


def _scatter(low: Lowering, op: Operation) -> None:
    assert isinstance(op, ScatterOp)
    gather = _Gather(low, op, op.value)
    access = gather.access
    done: set[tuple[int, ...]] = set()
    for register in range(0, len(gather.offsets), access.width):
        place = gather.offsets[register]
        if place not in done:
            done.add(place)
            address, guard = gather.reach(register)
            part = part_of(low, op.value, access.kind, register, access.width)
            store(low, address, access.kind, part, guard)


def _view(low: Lowering, op: Operation) -> None:
    """A buffer has its place already; accesses compute from it."""


HANDLERS: dict[type[Operation], Handler] = {
    GatherOp: _gather,
    ScatterOp: _scatter,
    ViewOp: _view,
}
