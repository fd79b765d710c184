"""Running folds: of a thread's registers and of lanes, and the totals of earlier warps.

A scan goes through the bits of the coordinate from the lowest. Registers whose lower bits have
been joined form a block with one total; at a bit of the register number two blocks of a thread
join, at one of the lane number a block joins that of another lane. What the blocks before give
an element is kept for each block and folded into its elements at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import collective, ptx, tile
from phobos.dialects.collective import ReduceKind, Scope
from phobos.dialects.ctx import LANES_PER_WARP
from phobos.dialects.scanning import MergeScanOp, PartialScanOp, ScanOp
from phobos.ir.locations import error_at
from phobos.layout import LinearLayout
from phobos.layout.build import REGISTER
from phobos.layout.overhang import TileLayout
from phobos.layout.queries import register_coordinates
from phobos.layout.scan import Scan, Step, plan_scan
from phobos.transforms.lowering.collectives import combine, member_mask, shuffle
from phobos.transforms.lowering.folds import neutral
from phobos.transforms.lowering.registers import Kind
from phobos.transforms.lowering.state import Handler, Lowering


@dataclass
class _Folder:
    """How two values fold, and what changes nothing."""

    low: Lowering
    op: Operation
    kind: ReduceKind
    element: Kind

    def fold(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """`a` and `b` folded."""
        return combine(self.low, self.op, self.kind.value, self.element, a, b)

    def only_if(self, condition: SSAValue, value: SSAValue) -> SSAValue:
        """The value where the condition holds, else what changes nothing."""
        build = self.low.build
        nothing = build.imm(neutral(self.kind, self.element), self.element.register)
        return build.emit(ptx.SelpOp, self.element.untyped, value, nothing, condition)


@dataclass
class _Blocks:
    """The state of a scan; a block is known by the lowest number of its registers."""

    folder: _Folder
    values: list[SSAValue]
    joined: int = 0
    """The bits of the register number that differ inside a block."""
    settled: int | None = None
    """These bits when the first lanes joined: values are folded at once up to then."""
    totals: dict[int, SSAValue] = field(default_factory=dict)
    before: dict[int, SSAValue] = field(default_factory=dict)
    """What comes before the registers that were a block when the first lanes joined."""

    def __post_init__(self) -> None:
        self.totals = dict(enumerate(self.values))

    def join(self, step: Step) -> None:
        """Blocks that differ in a bit of the coordinate become one."""
        if step.source == REGISTER:
            self._join_registers(step.mask)
        else:
            self._join_lanes(step.mask)

    def _join_registers(self, mask: int) -> None:
        for first in [first for first in self.totals if not first & mask]:
            low, high = self.totals[first], self.totals.pop(first | mask)
            self._put_before(first | mask, low)
            self.totals[first] = self.folder.fold(low, high)
        self.joined |= mask

    def _join_lanes(self, mask: int) -> None:
        if self.settled is None:
            self.settled = self.joined
        low, folder = self.folder.low, self.folder
        bit = low.build.emit(ptx.AndOp, "b32", low.lane, mask)
        is_upper = low.build.emit(ptx.SetpOp, "ne.b32", bit, 0)
        members = member_mask(low)
        for first, total in list(self.totals.items()):
            other = shuffle(low, folder.element, "bfly", total, mask, members)
            self._put_before(first, folder.only_if(is_upper, other))
            self.totals[first] = folder.fold(total, other)

    def _put_before(self, first: int, value: SSAValue) -> None:
        """Notes that a value comes before all elements of a block."""
        fold = self.folder.fold
        if self.settled is None:
            for register in self._numbers(first, self.joined):
                self.values[register] = fold(value, self.values[register])
            return
        for block in self._numbers(first, self.joined & ~self.settled):
            known = self.before.get(block)
            self.before[block] = value if known is None else fold(value, known)

    def _numbers(self, first: int, bits: int) -> list[int]:
        """The register numbers that differ from `first` in these bits alone."""
        return [number for number in range(len(self.values)) if number & ~bits == first]

    def results(self) -> list[SSAValue]:
        """The registers, each folded with all before it."""
        settled = self.settled or 0
        results: list[SSAValue] = []
        for register, value in enumerate(self.values):
            before = self.before.get(register & ~settled)
            results.append(value if before is None else self.folder.fold(before, value))
        return results


def _layout(value: SSAValue, op: Operation) -> LinearLayout:
    layout = tile.layout_of(value)
    if layout is None:
        raise error_at(op, f"`{op.name}` needs layouts: run ph-assign-layouts first")
    return layout


def _plan(value: SSAValue, axis: int, op: Operation) -> Scan:
    plan = plan_scan(_layout(value, op), axis)
    if plan is None:
        raise error_at(op, f"`{op.name}` has a layout that no scan can use")
    return plan


def _scan(low: Lowering, op: Operation) -> None:
    assert isinstance(op, ScanOp | PartialScanOp)
    plan = _plan(op.value, op.axis, op)
    if plan.warps and isinstance(op, ScanOp):
        raise error_at(op, "a scan across warps is expanded by ph-expand-scans first")
    folder = _Folder(low, op, op.kind.data, low.kind(op.value.type, op))
    blocks = _Blocks(folder, list(low.elements(op.value)))
    for step in plan.inside:
        blocks.join(step)
    low.set(op.result, *blocks.results())
    layout = _layout(op.value, op)
    assert isinstance(op.value.type, TensorType)
    if not TileLayout(layout, op.value.type.get_shape()).has_overhang:
        places = register_coordinates(layout)
        low.scan_totals[op.parent, op.value, (op.axis,), op.kind.data] = {
            _row(places[first], op.axis): total for first, total in blocks.totals.items()
        }


def _merge(low: Lowering, op: Operation) -> None:
    """Folds the totals of the warps before this one into each element of its row."""
    assert isinstance(op, MergeScanOp)
    axis, build = op.axis, low.build
    plan = _plan(op.pieces, axis, op)
    folder = _Folder(low, op, op.kind.data, low.kind(op.pieces.type, op))
    own = _place_of_warp(low, plan.warps)
    count = 1 << len(plan.warps)
    is_before = [build.emit(ptx.SetpOp, "gt.u32", own, position) for position in range(count - 1)]
    before: dict[tuple[int, ...], SSAValue] = {}
    totals = zip(register_coordinates(_layout(op.totals, op)), low.elements(op.totals), strict=True)
    done: set[tuple[int, ...]] = set()
    for place, total in totals:
        if place in done or place[axis] == count - 1:
            continue
        done.add(place)
        row = _row(place, axis)
        term = folder.only_if(is_before[place[axis]], total)
        before[row] = folder.fold(before[row], term) if row in before else term
    places = register_coordinates(_layout(op.pieces, op))
    merged = [
        folder.fold(before[_row(place, axis)], piece)
        for place, piece in zip(places, low.elements(op.pieces), strict=True)
    ]
    low.set(op.result, *merged)


def _row(place: Sequence[int], axis: int) -> tuple[int, ...]:
    return tuple(0 if i == axis else coordinate for i, coordinate in enumerate(place))


def _place_of_warp(low: Lowering, masks: Sequence[int]) -> SSAValue:
    """This warp's place along the axis: a bit for each of the warp bits, in order."""
    build = low.build
    total: SSAValue | None = None
    for position, mask in enumerate(masks):
        bit = build.emit(ptx.BfeOp, "u32", low.warp, mask.bit_length() - 1, 1)
        part = build.emit(ptx.ShlOp, "b32", bit, position) if position else bit
        total = part if total is None else build.emit(ptx.OrOp, "b32", total, part)
    assert total is not None
    return total


# ---- values of threads


def _scan_lanes(low: Lowering, op: Operation) -> None:
    """Adds the sum that ends 1, 2, 4, ... lanes before, where there is such a lane."""
    assert isinstance(op, collective.ScanOp)
    if op.scope.data is not Scope.LANE:
        raise error_at(op, "a scan over the CTA is expanded by ph-expand-scans first")
    kind = low.kind(op.value.type, op)
    folder = _Folder(low, op, ReduceKind.ADD, kind)
    value, members = low.scalar(op.value), member_mask(low)
    distance = 1
    while distance < LANES_PER_WARP:
        other = shuffle(low, kind, "up", value, distance, members)
        has_other = low.build.emit(ptx.SetpOp, "ge.u32", low.lane, distance)
        value = folder.fold(folder.only_if(has_other, other), value)
        distance *= 2
    low.set(op.result, value)


HANDLERS: dict[type[Operation], Handler] = {
    ScanOp: _scan,
    PartialScanOp: _scan,
    MergeScanOp: _merge,
    collective.ScanOp: _scan_lanes,
}
