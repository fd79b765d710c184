"""`wgmma`: products that a warpgroup starts, on tiles that the hardware reads from shared memory.

An operand in a buffer is named by a descriptor: the address of the piece, and how rows follow each
other. The address moves by a constant from one step along K to the next, and so does the
descriptor. Accumulators stay in the registers of the sum, whose layout is that of the fragments.

A product that is turned is made as C^T = B^T A^T: everything here is said of that product, whose
left operand, B^T, threads load from its buffer as fragments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.contraction import OPERAND_FORMS, DotOp, Instruction
from phobos.dialects.ptx import B32
from phobos.dialects.ptx.warpgroup import WARPGROUP_ROWS, WGMMA_SHAPES, WgmmaShape
from phobos.dialects.staging import AwaitProductsOp
from phobos.ir.kernel import cluster_size_of
from phobos.ir.locations import error_at
from phobos.layout import LinearLayout
from phobos.layout.build import REGISTER
from phobos.layout.contraction import (
    Contraction,
    add_units,
    drop_units,
    instruction_order,
    wgmma_starts,
)
from phobos.layout.fragments import REGISTER_BITS, WARPGROUP_WARPS
from phobos.layout.queries import register_coordinates
from phobos.layout.text import LayoutError
from phobos.layout.warpgroup import descriptor_of
from phobos.record import Record, record
from phobos.targets.ptx.chips import WARP_LANES
from phobos.transforms.contraction_forms import MAX_HELD_REGISTERS
from phobos.transforms.lowering.operands import kind_of, words_of
from phobos.transforms.lowering.registers import Share
from phobos.transforms.lowering.shared_tiles import SharedAccess
from phobos.transforms.lowering.state import Handler, Lowering

Place = tuple[int, int]
_ALIGNED = "sync.aligned"
_PLUS = 1
"""The literal of an operand that is not negated."""
_ADDRESS_SHIFT = 4
"""Descriptors count addresses in units of 16 bytes."""
_ADDRESS_BITS = 14
"""Of an address in these units. Above them the chip puts a CTA's rank in its cluster, which must
not get into the descriptor's next field."""
_SUM = 2
"""The operand of a contraction that it adds to."""
_FIRST = itemgetter(0)
_LEFT_REGISTERS = 4
"""Of one piece of the left operand: 64 rows of 32 bytes over 128 threads."""


def row_of(instruction: Instruction) -> WgmmaShape:
    """The row of the table that an instruction is of."""
    wanted = (instruction.a, instruction.b, instruction.accumulator)
    return next(row for row in WGMMA_SHAPES if (row.a, row.b, row.accumulator) == wanted)


class _Descriptors:
    """An operand in a buffer: the descriptors of its pieces, by where these start."""

    def __init__(
        self, low: Lowering, op: DotOp, number: int, starts: LinearLayout, *, turned: bool = False
    ):
        mem, k_axis = op.operands[number], 1 - number
        assert isinstance(mem.type, MemRefType)
        kind = kind_of(low, op, mem)
        shared = tile.shared_layout_of(mem)
        try:
            described = descriptor_of(drop_units(shared), k_axis, kind.bytes)
        except LayoutError as error:
            message = f"wgmma reads rows of 32 to 128 bytes in a swizzle of its own, not {shared}"
            raise error_at(op, message) from error
        self.is_turned = described.is_turned
        self._low, self._bytes = low, kind.bytes
        access = SharedAccess(low, mem, starts, kind)
        self._offsets = dict(zip(_places(starts, turned), access.registers, strict=True))
        address = access.address(0)
        emit = low.build.emit
        first = emit(ptx.AddOp, "s32", address.base, address.offset)
        units = (
            emit(ptx.BfeOp, "u32", first, _ADDRESS_SHIFT, _ADDRESS_BITS)
            if cluster_size_of(low.kernel) > 1
            else emit(ptx.ShrOp, "u32", first, _ADDRESS_SHIFT)
        )
        self._first = emit(ptx.OrOp, "b32", units, described.low)
        self._high = low.build.imm(described.high, B32)
        self._made: dict[Place, SSAValue] = {}

    def of(self, place: Place) -> SSAValue:
        """The descriptor of the piece that starts at a place."""
        if place not in self._made:
            emit = self._low.build.emit
            units = self._offsets[place] * self._bytes >> _ADDRESS_SHIFT
            low = emit(ptx.AddOp, "s32", self._first, units) if units else self._first
            self._made[place] = emit(ptx.PackOp, "b64", low, self._high)
        return self._made[place]


def _places(layout: LinearLayout, turned: bool) -> list[Place]:
    """Where registers are, in the coordinates of the product that is made."""
    row, column = (-1, -2) if turned else (-2, -1)
    return [(place[row], place[column]) for place in register_coordinates(layout)]


class _Fragments:
    """A left operand in registers, by where its pieces start."""

    def __init__(self, words: Sequence[SSAValue], layout: LinearLayout):
        self._words = words
        places = _places(layout, turned=False)
        starts = places[:: layout.in_size(REGISTER) * _LEFT_REGISTERS // len(words)]
        self._number = {place: number for number, place in enumerate(starts)}

    def of(self, place: Place) -> Sequence[SSAValue]:
        """The registers of the piece that starts at a place."""
        first = self._number[place] * _LEFT_REGISTERS
        return self._words[first : first + _LEFT_REGISTERS]


class _TurnedFragments:
    """B^T, the left operand of a turned product, of a few steps along K at a time."""

    def __init__(self, low: Lowering, op: DotOp, layout: LinearLayout):
        self._operand = words_of(low, op.b, layout, kind_of(low, op, op.b), 1)
        self._first: dict[Place, int] = {}
        for register, place in enumerate(_places(layout, turned=True)):
            self._first.setdefault(place, register)
        self._rows = sorted({row for row, _ in self._first if not row % WARPGROUP_ROWS})
        self._words: dict[Place, Sequence[SSAValue]] = {}

    def steps_at_once(self) -> int:
        """How many steps along K fit the registers that they may take."""
        return max(1, MAX_HELD_REGISTERS // (len(self._rows) * _LEFT_REGISTERS))

    def load(self, steps: Sequence[int]) -> list[SSAValue]:
        """The words of some steps, which stand for all of them until `hold` gives others."""
        starts = [(row, step) for step in steps for row in self._rows]
        self._words = {
            at: self._operand.fragment(self._first[at], _LEFT_REGISTERS) for at in starts
        }
        return [word for at in starts for word in self._words[at]]

    def hold(self, words: Sequence[SSAValue]) -> None:
        """Puts other values for the words that were loaded last, in the same order."""
        for number, at in enumerate(self._words):
            first = number * _LEFT_REGISTERS
            self._words[at] = words[first : first + _LEFT_REGISTERS]

    def of(self, place: Place) -> Sequence[SSAValue]:
        """The registers of the piece that starts at a place."""
        return self._words[place]


@record
class _Piece(Record):
    """What one `wgmma` makes of a sum: where it starts, its columns, and its registers."""

    place: Place
    columns: int
    registers: slice


class _Products:
    """The `wgmma` of a contraction, each by its piece of the sum and its step along K."""

    def __init__(self, low: Lowering, op: DotOp, instruction: Instruction, layouts: Contraction):
        self._low = low
        self.row = row = row_of(instruction)
        if instruction.turned:
            self.left = _TurnedFragments(low, op, layouts.b)
            self._right = _Descriptors(low, op, 0, layouts.a, turned=True)
        else:
            self.left = _left_operand(low, op, instruction, layouts.a)
            self._right = _Descriptors(low, op, 1, layouts.b)
        given = (self.left, self._right)
        turns = tuple(int(one.is_turned) for one in given if isinstance(one, _Descriptors))
        if any(turns) and not row.transposable:
            message = f"wgmma reads {row.a} and {row.b} along K, and a buffer has them across"
            raise error_at(op, message)
        signs = () if instruction.accumulator == "s32" else (_PLUS, _PLUS)
        self._literals = (*signs, *(turns if row.transposable else ()))
        self.pieces = list(self._pieces(op, instruction, layouts.c))

    def _pieces(
        self, op: DotOp, instruction: Instruction, layout: LinearLayout
    ) -> Iterator[_Piece]:
        """The pieces of a thread's sum, without the columns past the end of the tile.

        Where warpgroups are side by side, each has the columns that all of them have.
        """
        assert isinstance(op.c.type, TensorType)
        turned, whole = instruction.turned, instruction.shape[1]
        extent = op.c.type.get_shape()[-2 if turned else -1]
        count = self.row.accumulator_registers(whole)
        elements = WARPGROUP_ROWS * whole // (WARPGROUP_WARPS * WARP_LANES)
        order = instruction_order(layout) if turned else range(layout.in_size(REGISTER))
        places = _places(layout, turned)
        for number, register in enumerate(order[::elements]):
            place = places[register]
            columns = whole
            if instruction.warps[1] == 1:
                left = extent - place[1]
                columns = next((size for size in self.row.sizes if size >= left), whole)
                columns = min(whole, columns) if left > 0 else 0
            if columns:
                first = number * count
                end = first + self.row.accumulator_registers(columns)
                yield _Piece(place, columns, slice(first, end))

    def emit(
        self, totals: Sequence[SSAValue], piece: _Piece, step: int, *, added: bool = True
    ) -> Sequence[SSAValue]:
        """Starts one: what is summed so far plus the product, or the product alone."""
        m, n = piece.place
        left = self.left.of((m, step))
        return self._low.build.emit_multi(
            ptx.WgmmaMmaAsyncOp,
            self.row.suffix(piece.columns),
            *totals,
            *((left,) if isinstance(left, SSAValue) else left),
            self._right.of((step, n)),
            results=(B32,) * len(totals),
            imm=(int(added), *self._literals),
        )

    def commit(self) -> None:
        """Makes a group of those that were started since the last one."""
        self._low.build.emit_multi(ptx.WgmmaCommitGroupOp, _ALIGNED, results=())


def _left_operand(
    low: Lowering, op: DotOp, instruction: Instruction, layout: LinearLayout
) -> _Descriptors | _Fragments:
    if not tile.is_shared(op.a):
        is_wide = OPERAND_FORMS[instruction.a].bits == REGISTER_BITS
        return _Fragments(low.elements(op.a) if is_wide else low.words(op.a), layout)
    m, k = layout.shape[-2:]
    one = wgmma_starts((m, k), instruction.shape, instruction.warps)
    return _Descriptors(low, op, 0, add_units(one, layout.rank - 2))


def warpgroup_products(
    low: Lowering, op: DotOp, instruction: Instruction, layouts: Contraction
) -> Share:
    """The sums of a contraction; in flight still, if the op says so."""
    products = _Products(low, op, instruction, layouts)
    in_words = instruction.accumulator == "f16"
    totals = list(low.words(op.c) if in_words else low.elements(op.c))
    steps = range(0, layouts.a.shape[-1], instruction.shape[-1])
    if instruction.part:
        return Share(_sums_of_parts(low, products, totals, steps, instruction.part))
    if isinstance(products.left, _TurnedFragments):
        order = instruction_order(layouts.c)
        in_order = _turned_sums(low, products, products.left, [totals[i] for i in order], steps)
        totals = [total for _, total in sorted(zip(order, in_order, strict=True), key=_FIRST)]
    else:
        totals = _sums(products, list(_fence(low, totals)), steps)
    if op.in_flight is None:
        totals = _wait(low, totals, 0)
    else:
        _check_awaited(op)
    return Share(words=totals) if in_words else Share(totals)


def _sums(products: _Products, totals: list[SSAValue], steps: Sequence[int]) -> list[SSAValue]:
    """Starts the products of some steps along K, which are one group."""
    for step in steps:
        for piece in products.pieces:
            mine = piece.registers
            totals[mine] = products.emit(totals[mine], piece, step)
    products.commit()
    return totals


def _turned_sums(
    low: Lowering,
    products: _Products,
    left: _TurnedFragments,
    totals: Sequence[SSAValue],
    steps: Sequence[int],
) -> list[SSAValue]:
    """The sums of a turned product, still in flight: loads of some steps, then their products.

    The registers that the loads write are free again when these products are done.
    """
    sums = list(totals)
    each = left.steps_at_once()
    for first in range(0, len(steps), each):
        if first:
            sums = list(_wait(low, sums, 0))
        now = steps[first : first + each]
        fenced = _fence(low, [*sums, *left.load(now)])
        left.hold(fenced[len(sums) :])
        sums = _sums(products, list(fenced[: len(sums)]), now)
    return sums


def _check_awaited(product: DotOp) -> None:
    """Refuses what reads the registers of a sum in flight: they hold anything until the wait."""
    left: list[SSAValue] = [product.result]
    seen: set[SSAValue] = set()
    while left:
        value = left.pop()
        for use in value.uses if value not in seen else ():
            user = use.operation
            match user:
                case AwaitProductsOp():
                    left += [user.result] if user.pending.value.data else []
                case scf.YieldOp() if isinstance(loop := user.parent_op(), scf.ForOp):
                    left += [loop.results[use.index], loop.body.block.args[use.index + 1]]
                case DotOp() if use.index == _SUM:
                    pass
                case _:
                    help = "wait for the product first: `tile.await_products 0 of` its sum"
                    raise error_at(user, "this reads the sum of a product in flight", help=help)
        seen.add(value)


def _sums_of_parts(
    low: Lowering,
    products: _Products,
    totals: Sequence[SSAValue],
    steps: range,
    part: int,
) -> list[SSAValue]:
    """Sums of which the hardware makes `part` of K at a time, each added to the total as f32."""
    summed = list(totals)
    each = max(1, part // steps.step)
    nothing = low.build.imm_f32(0.0)
    for first in range(0, len(steps), each):
        for piece in products.pieces:
            mine = range(len(summed))[piece.registers]
            made = _fence(low, [nothing] * len(mine))
            for step in steps[first : first + each]:
                made = products.emit(made, piece, step, added=step != steps[first])
            products.commit()
            made = _wait(low, made, 0)
            for register, value in zip(mine, made, strict=True):
                summed[register] = low.build.emit(ptx.AddOp, "rn.f32", summed[register], value)
    return summed


def _fence(low: Lowering, registers: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Orders what was written to registers before the products that follow."""
    kinds = (B32,) * len(registers)
    return low.build.emit_multi(ptx.WgmmaFenceOp, _ALIGNED, *registers, results=kinds)


def _wait(low: Lowering, registers: Sequence[SSAValue], pending: int) -> Sequence[SSAValue]:
    """Waits until at most `pending` groups of products run."""
    kinds = (B32,) * len(registers)
    return low.build.emit_multi(
        ptx.WgmmaWaitGroupOp, _ALIGNED, *registers, results=kinds, imm=pending
    )


def _await_products(low: Lowering, op: Operation) -> None:
    assert isinstance(op, AwaitProductsOp)
    share, pending = low.share(op.value), op.pending.value.data
    if share.words is not None:
        low.set_share(op.result, Share(words=_wait(low, share.words, pending)))
    else:
        low.set_share(op.result, Share(_wait(low, share.elements or (), pending)))


HANDLERS: dict[type[Operation], Handler] = {AwaitProductsOp: _await_products}
