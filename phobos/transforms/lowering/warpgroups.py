"""`wgmma`: products that a warpgroup starts, on tiles that the hardware reads from shared memory.

An operand in a buffer is named by a descriptor: the address of the piece, and how rows follow each
other. The address moves by a constant from one step along K to the next, and so does the
descriptor. Accumulators stay in the registers of the sum, whose layout is that of the fragments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.contraction import DotOp, Instruction
from phobos.dialects.ptx import B32
from phobos.dialects.ptx.warpgroup import WARPGROUP_ROWS, WGMMA_SHAPES, WgmmaShape
from phobos.dialects.staging import AwaitProductsOp
from phobos.ir.locations import error_at
from phobos.layout import LinearLayout
from phobos.layout.build import REGISTER
from phobos.layout.contraction import Contraction, add_units, drop_units, wgmma_starts
from phobos.layout.fragments import WARPGROUP_WARPS
from phobos.layout.queries import register_coordinates
from phobos.layout.text import LayoutError
from phobos.layout.warpgroup import descriptor_of
from phobos.record import Record, record
from phobos.targets.ptx.chips import WARP_LANES
from phobos.transforms.lowering.operands import kind_of
from phobos.transforms.lowering.registers import Share
from phobos.transforms.lowering.shared_tiles import SharedAccess
from phobos.transforms.lowering.state import Handler, Lowering

Place = tuple[int, int]
_ALIGNED = "sync.aligned"
_PLUS = 1
"""The literal of an operand that is not negated."""
_ADDRESS_SHIFT = 4
"""Descriptors count addresses in units of 16 bytes."""
_SUM = 2
"""The operand of a contraction that it adds to."""
_A_REGISTERS = 4
"""Of one piece of A: 64 rows of 32 bytes over 128 threads."""


def row_of(instruction: Instruction) -> WgmmaShape:
    """The row of the table that an instruction is of."""
    wanted = (instruction.a, instruction.b, instruction.accumulator)
    return next(row for row in WGMMA_SHAPES if (row.a, row.b, row.accumulator) == wanted)


class _Descriptors:
    """An operand in a buffer: the descriptors of its pieces, by where these start."""

    def __init__(self, low: Lowering, op: DotOp, mem: SSAValue, starts: LinearLayout, k_axis: int):
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
        self._offsets = dict(zip(_places(starts), access.registers, strict=True))
        address = access.address(0)
        emit = low.build.emit
        first = emit(ptx.AddOp, "s32", address.base, address.offset)
        units = emit(ptx.ShrOp, "u32", first, _ADDRESS_SHIFT)
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


def _places(layout: LinearLayout) -> list[Place]:
    return [(place[-2], place[-1]) for place in register_coordinates(layout)]


class _Fragments:
    """A left operand in registers, by where its pieces start."""

    is_turned = False

    def __init__(self, words: Sequence[SSAValue], layout: LinearLayout):
        self._words = words
        starts = _places(layout)[:: layout.in_size(REGISTER) * _A_REGISTERS // len(words)]
        self._number = {place: number for number, place in enumerate(starts)}

    def of(self, place: Place) -> Sequence[SSAValue]:
        """The registers of the piece that starts at a place."""
        first = self._number[place] * _A_REGISTERS
        return self._words[first : first + _A_REGISTERS]


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
        self._b = _Descriptors(low, op, op.b, layouts.b, 0)
        if tile.is_shared(op.a):
            m, k = layouts.a.shape[-2:]
            one = wgmma_starts((m, k), instruction.shape, instruction.warps)
            self._a = _Descriptors(low, op, op.a, add_units(one, layouts.a.rank - 2), 1)
        else:
            self._a = _Fragments(low.words(op.a), layouts.a)
        given = (self._a, self._b)
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
        extent, whole = op.c.type.get_shape()[-1], instruction.shape[1]
        count = self.row.accumulator_registers(whole)
        elements = WARPGROUP_ROWS * whole // (WARPGROUP_WARPS * WARP_LANES)
        for number, place in enumerate(_places(layout)[::elements]):
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
        left = self._a.of((m, step))
        return self._low.build.emit_multi(
            ptx.WgmmaMmaAsyncOp,
            self.row.suffix(piece.columns),
            *totals,
            *((left,) if isinstance(left, SSAValue) else left),
            self._b.of((step, n)),
            results=(B32,) * len(totals),
            imm=(int(added), *self._literals),
        )

    def commit(self) -> None:
        """Makes a group of those that were started since the last one."""
        self._low.build.emit_multi(ptx.WgmmaCommitGroupOp, _ALIGNED, results=())


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
    totals = list(_fence(low, totals))
    for step in steps:
        for piece in products.pieces:
            mine = piece.registers
            totals[mine] = products.emit(totals[mine], piece, step)
    products.commit()
    if op.in_flight is None:
        totals = _wait(low, totals, 0)
    else:
        _check_awaited(op)
    return Share(words=totals) if in_words else Share(totals)


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
