"""Contractions as multiply-adds: a loop over K around as much code as the caches like.

    %c = tile.dot %a, %b, %c0 using "fma ..."     // 16 results a thread, K = 128
    -->
    $L_products_1:                                 // %k = 0, 1: 64 steps along K each
      ld.shared.v4.f32 ..., [%a + ...]             // where the first element is needed
      fma.rn.f32 ...
      ...
      add.s32 %k, %k, 1
      @%p bra $L_products_1

Long contractions of operands in shared buffers are rolled up: unrolled they would not fit the
instruction cache. On an H200, 4096^3 in f32 in steps of 8 took 4 % less time than in steps of 16,
and half the time of steps of 32 (without copies and barriers, 128 results a thread).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from xdsl.ir import SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.contraction import DotOp, Instruction
from phobos.dialects.ptx import B32
from phobos.layout import LinearLayout
from phobos.layout.contraction import Contraction
from phobos.layout.shared import as_part
from phobos.transforms.assign_layouts import contraction_of
from phobos.transforms.lowering.conversions import clean, widen_half
from phobos.transforms.lowering.operands import (
    Coordinate,
    ElementLoads,
    InRegisters,
    Operand,
    kind_of,
    places,
)
from phobos.transforms.lowering.registers import Kind, Share
from phobos.transforms.lowering.shared_tiles import offset_at
from phobos.transforms.lowering.state import Lowering

CODE_LIMIT = 1024
"""Multiply-adds of a thread in a row: 16 KB of code."""
MIN_STEPS = 4
"""Steps along K that are unrolled at least: elements of a 16-byte load of f32."""


def multiply_adds(
    low: Lowering, op: DotOp, instruction: Instruction, layouts: Contraction
) -> Share:
    """The sums of a contraction without tensor cores."""
    totals = list(low.elements(op.c))
    depth = layouts.a.shape[-1]
    part = _depth_of_part(op, layouts)
    if part == depth:
        operands = (_whole(low, op, op.a, layouts.a), _whole(low, op, op.b, layouts.b))
        return Share(_products(low, op, instruction, layouts, operands, totals))
    layouts = contraction_of(op, low.threads, part)
    rolled = (
        _Rolled(low, op, op.a, layouts.a, axis=-1, steps=depth // part),
        _Rolled(low, op, op.b, layouts.b, axis=-2, steps=depth // part),
    )

    def body(number: SSAValue, sums: list[SSAValue]) -> list[SSAValue]:
        operands = (rolled[0].part(number), rolled[1].part(number))
        return _products(low, op, instruction, layouts, operands, sums)

    return Share(_repeat(low, depth // part, totals, body))


def _depth_of_part(op: DotOp, layouts: Contraction) -> int:
    """How much of K is unrolled."""
    depth, held = layouts.a.shape[-1], places(layouts.c)
    in_memory = tile.is_shared(op.a) and tile.is_shared(op.b)
    if not in_memory or len(set(held)) < len(held):
        return depth
    while depth > MIN_STEPS and depth * len(held) > CODE_LIMIT:
        depth //= 2
    return depth


def _repeat(
    low: Lowering,
    count: int,
    totals: list[SSAValue],
    body: Callable[[SSAValue, list[SSAValue]], list[SSAValue]],
) -> list[SSAValue]:
    """Sums that a loop of `count` iterations carries."""
    build = low.build
    head = build.block([B32, *(total.type for total in totals)], "products")  # pyright: ignore[reportArgumentType]
    done = build.block((), "summed")
    build.bra(head, build.imm(0, B32), *totals)
    build.at(head)
    number, *sums = head.args
    sums = body(number, list(sums))
    following = build.emit(ptx.AddOp, "s32", number, 1)
    is_left = build.emit(ptx.SetpOp, "lt.s32", following, count)
    build.cond_bra(is_left, head, done, (following, *sums), (), uniform=True)
    build.at(done)
    return sums


_Part = tuple[Operand, dict[Coordinate, int]]


class _Rolled:
    """An operand in a shared buffer, of which a part along K is loaded in each iteration."""

    def __init__(
        self, low: Lowering, op: DotOp, mem: SSAValue, layout: LinearLayout, axis: int, steps: int
    ):
        shared = tile.shared_layout_of(mem)
        self._low = low
        self._at = {at: register for register, at in enumerate(places(layout))}
        self._moves: list[int] = []
        """What each bit of the iteration's number moves the offset by; all moves are XORed."""
        rank, part = layout.rank, layout.shape[axis]
        for bit in range(steps.bit_length() - 1):
            at = [0] * rank
            at[axis] = part << bit
            self._moves.append(offset_at(at, shared))
        self._moved_bits = reduce(or_, self._moves)
        self._loads = ElementLoads(low, mem, as_part(layout, shared), kind_of(low, op, mem), 1)

    def part(self, number: SSAValue) -> _Part:
        """The operand of one iteration, and the register of each place."""
        return self._loads.moved(self._moved(number), self._moved_bits), self._at

    def _moved(self, number: SSAValue) -> SSAValue:
        """The offset of an iteration's part."""
        emit, first = self._low.build.emit, self._moves[0]
        if self._moves == [first << bit for bit in range(len(self._moves))]:
            return emit(ptx.MulOp, "lo.s32", number, first)
        total: SSAValue | None = None
        for bit, move in enumerate(self._moves):
            is_set = emit(ptx.AndOp, "b32", number, 1 << bit)
            factor = emit(ptx.ShrOp, "u32", is_set, bit) if bit else is_set
            part = emit(ptx.MulOp, "lo.s32", factor, move)
            total = part if total is None else emit(ptx.XorOp, "b32", total, part)
        assert total is not None
        return total


def _whole(low: Lowering, op: DotOp, value: SSAValue, layout: LinearLayout) -> _Part:
    kind = kind_of(low, op, value)
    at = {place: r for r, place in reversed(list(enumerate(places(layout))))}
    if tile.is_shared(value):
        return ElementLoads(low, value, layout, kind, 1), at
    return InRegisters(low.elements(value)), at


def _products(
    low: Lowering,
    op: DotOp,
    instruction: Instruction,
    layouts: Contraction,
    operands: tuple[_Part, _Part],
    totals: list[SSAValue],
) -> list[SSAValue]:
    (a, a_at), (b, b_at) = operands
    a_kind, b_kind = kind_of(low, op, op.a), kind_of(low, op, op.b)
    totals = list(totals)
    widened: dict[tuple[SSAValue, str], SSAValue] = {}

    def factor(operand: Operand, register: int, kind: Kind, name: str) -> SSAValue:
        (value,) = operand.fragment(register, 1)
        if name == instruction.accumulator:
            return value
        if (value, name) not in widened:
            widened[value, name] = _widen(low, value, kind, signed=name != "u8")
        return widened[value, name]

    walk = _winding(places(layouts.c))
    for k in range(layouts.a.shape[-1]):
        # Values by their identities, as here is where most of the time goes.
        done: dict[tuple[int, Coordinate], SSAValue] = {}
        for register, place in walk:
            *stack, m, n = place
            total = totals[register]
            key = (id(total), place)
            if key not in done:
                left = factor(a, a_at[(*stack, m, k)], a_kind, instruction.a)
                right = factor(b, b_at[(*stack, k, n)], b_kind, instruction.b)
                done[key] = _multiply_add(low, instruction.accumulator, left, right, total)
            totals[register] = done[key]
    return totals


def _winding(held: Sequence[Coordinate]) -> list[tuple[int, Coordinate]]:
    """Registers of sums and their places, such that each shares a factor with the one before.

    Of each two rows one is walked there and the other back, of the next two the other way round.
    A multiply-add that shares a factor reads two registers, its sum and the other factor, and the
    register file delivers two in a cycle, of an even and an odd number. ptxas keeps to that order
    best: on an H200, 4096^3 in f32 (tiles of 128 x 256 x 16) took 2634 us, and 2741 us with all
    rows walked there and back without a break.
    """
    rows, columns = (sorted({at[axis] for at in held}) for axis in (-2, -1))
    row_of = {m: i for i, m in enumerate(rows)}
    column_of = {n: j for j, n in enumerate(columns)}

    def turn(entry: tuple[int, Coordinate]) -> tuple[Coordinate, int, int]:
        *_, m, n = at = entry[1]
        row, column = row_of[m], column_of[n]
        is_back = (row + row // 2) % 2
        return at[:-2], row, -column if is_back else column

    return sorted(enumerate(held), key=turn)


def _widen(low: Lowering, value: SSAValue, kind: Kind, *, signed: bool) -> SSAValue:
    if kind.is_half:
        return widen_half(low, value, kind)
    return clean(low, value, kind, signed=signed)


def _multiply_add(low: Lowering, type_: str, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    if type_.startswith("f"):
        return low.build.emit(ptx.FmaOp, f"rn.{type_}", a, b, c)
    return low.build.emit(ptx.MadOp, f"lo.{type_}", a, b, c)
