"""`wmma`: products of pieces in shared memory, and accumulators on their way from and to tiles.

A fragment's registers are elements of an order that PTX does not tell, so they are only handed
from one `wmma` instruction to the next, or all converted alike. A tile takes the way through the
scratch row of its warp, piece by piece; the lanes of a warp wait for each other between.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.contraction import OPERAND_FORMS, DotOp, Instruction
from phobos.dialects.fragments import FromFragmentsOp, ToFragmentsOp
from phobos.dialects.ptx import B32, B64
from phobos.dialects.ptx.matrix import WMMA_SHAPES, WmmaShape
from phobos.layout import LinearLayout
from phobos.layout.build import LANE, LANE_BITS, OFFSET, REGISTER, WARP, log2
from phobos.layout.contraction import Contraction, wmma_piece
from phobos.layout.queries import register_coordinates
from phobos.transforms.lowering.accesses import load, store
from phobos.transforms.lowering.conversions import round_to_tf32
from phobos.transforms.lowering.registers import Kind, Share
from phobos.transforms.lowering.shared_tiles import SharedAccess
from phobos.transforms.lowering.state import Handler, Lowering

_ALL_LANES = 0xFFFFFFFF


def _row_of(instruction: Instruction) -> WmmaShape:
    element, total = OPERAND_FORMS[instruction.a].ptx, instruction.accumulator
    return next(
        row
        for row in WMMA_SHAPES
        if (row.m, row.n, row.k) == instruction.shape
        and (row.element, row.accumulator) == (element, total)
    )


def _registers(row: WmmaShape, count: int):
    return (B64 if row.register == "b64" else B32,) * count


# ---- products


class _Pieces:
    """An operand in a shared buffer: its fragments by the place where they start."""

    def __init__(
        self, low: Lowering, mem: SSAValue, starts: LinearLayout, role: str, row: WmmaShape
    ):
        assert isinstance(mem.type, MemRefType)
        kind = low.kind(mem.type.element_type, mem.owner)  # pyright: ignore[reportArgumentType]
        self._low, self._role, self._row = low, role, row
        self._access = SharedAccess(low, mem, starts, kind)
        places = register_coordinates(starts)
        self._at = {place[-2:]: number for number, place in reversed(list(enumerate(places)))}
        self.layout, self._stride = _rows_of(tile.shared_layout_of(mem))
        self._loaded: dict[int, list[SSAValue]] = {}

    def fragment(self, place: tuple[int, int]) -> list[SSAValue]:
        """The registers of the piece that starts at a place, loaded when first asked for."""
        number = self._at[place]
        if number not in self._loaded:
            self._loaded[number] = self._load(self._access.registers[number])
        return self._loaded[number]

    def _load(self, offset: int) -> list[SSAValue]:
        row, address = self._row, self._access.address(offset)
        count = row.registers["ab".index(self._role)]
        registers = self._low.build.emit_multi(
            ptx.WmmaLoadOp,
            f"{self._role}.sync.aligned.{self.layout}.{row.shape}.shared.{row.element}",
            address.base,
            self._stride,
            results=_registers(row, count),
            offset=address.offset,
        )
        if row.element != "tf32":
            return list(registers)
        return [round_to_tf32(self._low, register) for register in registers]


def _rows_of(shared: LinearLayout) -> tuple[str, int]:
    """How an operand's buffer runs, as PTX says it, and the elements from a line to the next."""
    places = [place[-2:] for place in shared.bases(OFFSET)]
    by_row = places[0] == (0, 1)
    return ("row", 1 << places.index((1, 0))) if by_row else ("col", 1 << places.index((0, 1)))


def fragment_products(
    low: Lowering,
    op: DotOp,
    instruction: Instruction,
    layouts: Contraction,
) -> Share:
    """The sums, as fragments, of a contraction whose operands are in shared memory."""
    a_layout, b_layout, c_layout = layouts.a, layouts.b, layouts.c
    row = _row_of(instruction)
    a = _Pieces(low, op.a, a_layout, "a", row)
    b = _Pieces(low, op.b, b_layout, "b", row)
    suffix = f"sync.aligned.{a.layout}.{b.layout}.{row.shape}.{row.types}"
    totals = list(_words(low, op.c, row))
    count = row.registers[2]
    places = [place[-2:] for place in register_coordinates(c_layout)]
    pieces = places[:: _piece_registers(row)]
    for step in range(0, a_layout.shape[-1], row.k):
        for number, (m, n) in enumerate(pieces):
            mine = slice(number * count, (number + 1) * count)
            totals[mine] = low.build.emit_multi(
                ptx.WmmaMmaOp,
                suffix,
                *a.fragment((m, step)),
                *b.fragment((step, n)),
                *totals[mine],
                results=_registers(row, count),
            )
    return _share(totals, row)


def _piece_registers(row: WmmaShape) -> int:
    """Elements of a piece that a lane holds."""
    return row.m * row.n >> LANE_BITS


def _words(low: Lowering, value: SSAValue, row: WmmaShape) -> Sequence[SSAValue]:
    return low.words(value) if row.accumulator == "f16" else low.elements(value)


def _share(registers: Sequence[SSAValue], row: WmmaShape) -> Share:
    return Share(words=registers) if row.accumulator == "f16" else Share(registers)


# ---- from and to tiles


class _Scratch:
    """The scratch row of the calling thread's warp, which holds one piece."""

    def __init__(self, low: Lowering, op: ToFragmentsOp | FromFragmentsOp, kind: Kind):
        assert op.scratch is not None
        assert isinstance(op.scratch.type, MemRefType)
        row = _row_of(op.instruction.data)
        self._low, self._kind, self._row = low, kind, row
        shape = op.scratch.type.get_shape()
        piece = wmma_piece(row.m, row.n)

        def number(place: Sequence[int]) -> tuple[int, int]:
            return 0, place[0] * row.n + place[1]

        warps = [(1 << bit, 0) for bit in range(log2(shape[0]))]
        lanes = [number(place) for place in piece.bases(LANE)]
        mine = [number(place) for place in piece.bases(REGISTER)]
        own = {REGISTER: mine, LANE: lanes, WARP: warps}
        whole = {REGISTER: [], LANE: [(0, 0)] * LANE_BITS, WARP: warps}
        self._own = SharedAccess(low, op.scratch, LinearLayout.from_bases(own, shape), kind)
        start = SharedAccess(low, op.scratch, LinearLayout.from_bases(whole, shape), kind)
        self._start = start.address(0)

    def _suffix(self, role: str) -> str:
        return f"{role}.sync.aligned.row.{self._row.shape}.shared.{self._row.accumulator}"

    def wait(self) -> None:
        """Waits for the other lanes of the warp."""
        everyone = self._low.build.imm(_ALL_LANES, B32)
        self._low.build.emit_multi(ptx.BarOp, "warp.sync", everyone, results=())

    def put_elements(self, elements: Sequence[SSAValue]) -> None:
        """Stores this lane's elements of a piece."""
        for offset, members in self._own.groups():
            part = Share([elements[member] for member in members])
            store(self._low, self._own.address(offset), self._kind, part, None)

    def elements(self) -> list[SSAValue]:
        """Loads this lane's elements of a piece."""
        found: dict[int, SSAValue] = {}
        for offset, members in self._own.groups():
            part = load(self._low, self._own.address(offset), self._kind, self._own.width)
            values = part.elements or self._low.unpack(part.words or (), self._kind)
            found.update(zip(members, values, strict=True))
        return [found[member] for member in sorted(found)]

    def put_fragment(self, registers: Sequence[SSAValue]) -> None:
        """Stores a fragment."""
        self._low.build.emit_multi(
            ptx.WmmaStoreOp,
            self._suffix("d"),
            self._start.base,
            *registers,
            self._row.n,
            results=(),
            offset=self._start.offset,
        )

    def fragment(self) -> Sequence[SSAValue]:
        """Loads a fragment."""
        return self._low.build.emit_multi(
            ptx.WmmaLoadOp,
            self._suffix("c"),
            self._start.base,
            self._row.n,
            results=_registers(self._row, self._row.registers[2]),
            offset=self._start.offset,
        )


def _to_fragments(low: Lowering, op: Operation) -> None:
    assert isinstance(op, ToFragmentsOp)
    if op.scratch is None:
        low.set_share(op.result, low.share(op.value))  # all elements are equal
        return
    assert isinstance(op.value.type, TensorType)
    row = _row_of(op.instruction.data)
    scratch = _Scratch(low, op, low.kind(op.value.type, op))
    elements, count = low.elements(op.value), _piece_registers(row)
    registers: list[SSAValue] = []
    for first in range(0, len(elements), count):
        scratch.put_elements(elements[first : first + count])
        scratch.wait()
        registers += scratch.fragment()
        scratch.wait()
    low.set_share(op.result, _share(registers, row))


def _from_fragments(low: Lowering, op: Operation) -> None:
    assert isinstance(op, FromFragmentsOp)
    row = _row_of(op.instruction.data)
    scratch = _Scratch(low, op, low.kind(op.value.type, op))
    registers, count = _words(low, op.value, row), row.registers[2]
    elements: list[SSAValue] = []
    for first in range(0, len(registers), count):
        scratch.put_fragment(registers[first : first + count])
        scratch.wait()
        elements += scratch.elements()
        scratch.wait()
    low.set(op.result, *elements)


HANDLERS: dict[type[Operation], Handler] = {
    ToFragmentsOp: _to_fragments,
    FromFragmentsOp: _from_fragments,
}
