"""Contractions: multiply-adds of registers, or `mma` on fragments.

The steps along K are outermost, and an operand in a shared buffer is loaded where its first
element is needed, so that loads of the next step can overlap the products of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.contraction import OPERAND_FORMS, DotOp, Instruction
from phobos.dialects.ptx import B32, B64
from phobos.layout import LinearLayout
from phobos.layout.queries import register_coordinates
from phobos.transforms.assign_layouts import contraction_of, operand_packing
from phobos.transforms.lowering.accesses import load
from phobos.transforms.lowering.conversions import clean, round_to_tf32, widen_half
from phobos.transforms.lowering.fragments import fragment_products
from phobos.transforms.lowering.registers import Kind, Share
from phobos.transforms.lowering.shared_tiles import MatrixLoads, SharedAccess, matrix_plan
from phobos.transforms.lowering.state import Handler, Lowering

Coordinate = tuple[int, int]


class _Operand(Protocol):
    """An operand as fragments: the registers that start at a coordinate of its layout."""

    def fragment(self, register: int, count: int) -> Sequence[SSAValue]:
        """`count` registers (elements, or words where packed) from a register's number on."""
        ...


class _InRegisters:
    """An operand that each thread already has in the layout that the instruction wants."""

    def __init__(self, registers: Sequence[SSAValue]):
        self._registers = registers

    def fragment(self, register: int, count: int) -> Sequence[SSAValue]:
        return self._registers[register : register + count]


class _ElementLoads:
    """An operand in a shared buffer, loaded in the widest vectors that its layout allows."""

    def __init__(self, low: Lowering, mem: SSAValue, layout: LinearLayout, kind: Kind, packed: int):
        self._low, self._kind, self._packed = low, kind, packed
        self._access = SharedAccess(low, mem, layout, kind)
        self._groups = self._access.groups()
        self._group_of = {
            member: number for number, (_, members) in enumerate(self._groups) for member in members
        }
        self._elements: dict[int, SSAValue] = {}
        self._loaded: dict[int, Sequence[SSAValue]] = {}
        self._words: dict[int, SSAValue] = {}

    def fragment(self, register: int, count: int) -> Sequence[SSAValue]:
        if self._packed == 1:
            return [self._element(register + i) for i in range(count)]
        return [self._word(register + i) for i in range(count)]

    def _word(self, number: int) -> SSAValue:
        if number not in self._words:
            first = number * self._packed
            elements = [self._element(first + i) for i in range(self._packed)]
            (self._words[number],) = self._low.pack(elements, self._kind)
        return self._words[number]

    def _element(self, register: int) -> SSAValue:
        if register not in self._elements:
            offset, members = self._groups[self._group_of[register]]
            if offset not in self._loaded:
                part = load(self._low, self._access.address(offset), self._kind, self._access.width)
                self._loaded[offset] = part.elements or self._low.unpack(
                    part.words or (), self._kind
                )
            self._elements.update(zip(members, self._loaded[offset], strict=True))
        return self._elements[register]


def _dot(low: Lowering, op: Operation) -> None:
    assert isinstance(op, DotOp)
    layouts = contraction_of(op, low.threads)
    assert op.instruction is not None
    instruction = op.instruction.data
    lower = _BY_NAME[instruction.name]
    low.set_share(op.result, lower(low, op, instruction, layouts.a, layouts.b, layouts.c))


# ---- multiply-adds


def _multiply_adds(
    low: Lowering,
    op: DotOp,
    instruction: Instruction,
    a_layout: LinearLayout,
    b_layout: LinearLayout,
    c_layout: LinearLayout,
) -> Share:
    a_kind, b_kind = _kind(low, op, op.a), _kind(low, op, op.b)
    a = _elements_of(low, op.a, a_layout, a_kind)
    b = _elements_of(low, op.b, b_layout, b_kind)
    a_at = {at: r for r, at in reversed(list(enumerate(_places(a_layout))))}
    b_at = {at: r for r, at in reversed(list(enumerate(_places(b_layout))))}
    totals = list(low.elements(op.c))
    widened: dict[tuple[SSAValue, str], SSAValue] = {}

    def factor(operand: _Operand, register: int, kind: Kind, name: str) -> SSAValue:
        (value,) = operand.fragment(register, 1)
        if name == instruction.accumulator:
            return value
        if (value, name) not in widened:
            widened[value, name] = _widen(low, value, kind, signed=name != "u8")
        return widened[value, name]

    for k in range(a_layout.shape[-1]):
        done: dict[tuple[SSAValue, Coordinate], SSAValue] = {}
        for register, (m, n) in enumerate(_places(c_layout)):
            key = (totals[register], (m, n))
            if key not in done:
                left = factor(a, a_at[(m, k)], a_kind, instruction.a)
                right = factor(b, b_at[(k, n)], b_kind, instruction.b)
                done[key] = _multiply_add(low, instruction.accumulator, left, right, key[0])
            totals[register] = done[key]
    return Share(totals)


def _widen(low: Lowering, value: SSAValue, kind: Kind, *, signed: bool) -> SSAValue:
    if kind.is_half:
        return widen_half(low, value, kind)
    return clean(low, value, kind, signed=signed)


def _multiply_add(low: Lowering, type_: str, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    if type_.startswith("f"):
        return low.build.emit(ptx.FmaOp, f"rn.{type_}", a, b, c)
    return low.build.emit(ptx.MadOp, f"lo.{type_}", a, b, c)


# ---- matrix products


def _matrix_products(
    low: Lowering,
    op: DotOp,
    instruction: Instruction,
    a_layout: LinearLayout,
    b_layout: LinearLayout,
    c_layout: LinearLayout,
) -> Share:
    packed = operand_packing(instruction)
    in_words = instruction.accumulator == "f16"
    c_packed = 2 if in_words else 1
    k = instruction.shape[-1]
    a_count, b_count, c_count = _fragment_sizes(instruction, packed, c_packed)
    a = _words_of(low, op.a, a_layout, _kind(low, op, op.a), packed)
    b = _words_of(low, op.b, b_layout, _kind(low, op, op.b), packed)
    a_at = _fragments_at(a_layout, a_count * packed)
    b_at = _fragments_at(b_layout, b_count * packed)
    c_at = _fragments_at(c_layout, c_count * c_packed)
    suffix = _mma_suffix(instruction)
    register = B64 if instruction.accumulator == "f64" else B32
    totals = list(low.words(op.c) if in_words else low.elements(op.c))
    ready = _Parts(low, instruction.a)

    def product(left: Sequence[SSAValue], right: Sequence[SSAValue], total: Sequence[SSAValue]):
        kinds = (register,) * c_count
        return low.build.emit_multi(ptx.MmaOp, suffix, *left, *right, *total, results=kinds)

    for step in range(0, a_layout.shape[-1], k):
        for (row, column), element in c_at.items():
            first = element // c_packed
            left = ready.of(a.fragment(a_at[(row, step)] // packed, a_count))
            right = ready.of(b.fragment(b_at[(step, column)] // packed, b_count))
            total = totals[first : first + c_count]
            if len(left) == 1:
                totals[first : first + c_count] = product(left[0], right[0], total)
            else:
                totals[first : first + c_count] = _add_parts(low, left, right, total, product)
    totals = _with_copies(totals, _places(c_layout)[::c_packed])
    return Share(words=totals) if in_words else Share(totals)


def _add_parts(
    low: Lowering,
    left: Sequence[Sequence[SSAValue]],
    right: Sequence[Sequence[SSAValue]],
    total: Sequence[SSAValue],
    product: Callable[..., Sequence[SSAValue]],
) -> list[SSAValue]:
    """The product of operands in a large and a small part, the small terms first.

    Small by small is left out: it is below 2^-22 of the product. An `mma` cuts its sum where an
    addition rounds it, so the step is summed from zero and added to the total as f32.
    """
    (large_a, small_a), (large_b, small_b) = left, right
    part: Sequence[SSAValue] = [low.build.imm_f32(0.0)] * len(total)
    for one, other in ((small_a, large_b), (large_a, small_b), (large_a, large_b)):
        part = product(one, other, part)
    return [
        low.build.emit(ptx.AddOp, "rn.f32", old, new) for old, new in zip(total, part, strict=True)
    ]


class _Parts:
    """The words that an instruction takes for the words of a fragment, each made once."""

    def __init__(self, low: Lowering, operand: str):
        self._low, self._form = low, OPERAND_FORMS[operand]
        self._made: dict[SSAValue, tuple[SSAValue, ...]] = {}

    def of(self, words: Sequence[SSAValue]) -> list[list[SSAValue]]:
        """The fragment's words for each part."""
        if self._form.ptx != "tf32":
            return [list(words)]
        for word in words:
            if word not in self._made:
                self._made[word] = self._split(word)
        return [[self._made[word][part] for word in words] for part in range(self._form.parts)]

    def _split(self, word: SSAValue) -> tuple[SSAValue, ...]:
        large = round_to_tf32(self._low, word)
        if self._form.parts == 1:
            return (large,)
        rest = self._low.build.emit(ptx.SubOp, "rn.f32", word, large)
        return large, round_to_tf32(self._low, rest)


def _with_copies(totals: list[SSAValue], places: Sequence[Coordinate]) -> list[SSAValue]:
    """Registers that hold copies get the one result that was computed."""
    first_at: dict[Coordinate, SSAValue] = {}
    for total, place in zip(totals, places, strict=True):
        first_at.setdefault(place, total)
    return [first_at[place] for place in places]


def _fragment_sizes(instruction: Instruction, packed: int, c_packed: int) -> tuple[int, int, int]:
    """Registers of one lane for A, B and the accumulator."""
    m, n, k = instruction.shape
    return m * k // 32 // packed, n * k // 32 // packed, m * n // 32 // c_packed


def _fragments_at(layout: LinearLayout, size: int) -> dict[Coordinate, int]:
    """The first register of each fragment, by the coordinate that it starts at."""
    places = _places(layout)
    result: dict[Coordinate, int] = {}
    for register in range(0, len(places), size):
        result.setdefault(places[register], register)
    return result


def _mma_suffix(instruction: Instruction) -> str:
    m, n, k = instruction.shape
    a, b = OPERAND_FORMS[instruction.a].ptx, OPERAND_FORMS[instruction.b].ptx
    total = instruction.accumulator
    return f"sync.aligned.m{m}n{n}k{k}.row.col.{total}.{a}.{b}.{total}"


# ---- operands


def _kind(low: Lowering, op: DotOp, operand: SSAValue) -> Kind:
    """An operand's elements, whether it is a tile or a buffer."""
    assert isinstance(operand.type, TensorType | MemRefType)
    return low.kind(operand.type.element_type, op)


def _places(layout: LinearLayout) -> list[Coordinate]:
    return [(place[-2], place[-1]) for place in register_coordinates(layout)]


def _elements_of(low: Lowering, value: SSAValue, layout: LinearLayout, kind: Kind) -> _Operand:
    if tile.is_shared(value):
        return _ElementLoads(low, value, layout, kind, 1)
    return _InRegisters(low.elements(value))


def _words_of(
    low: Lowering, value: SSAValue, layout: LinearLayout, kind: Kind, packed: int
) -> _Operand:
    if not tile.is_shared(value):
        return _InRegisters(low.words(value) if packed > 1 else low.elements(value))
    plan = matrix_plan(layout, tile.shared_layout_of(value), kind)
    if plan is not None:
        return MatrixLoads(low, value, plan, kind)
    return _ElementLoads(low, value, layout, kind, packed)


_BY_NAME = {"fma": _multiply_adds, "mma": _matrix_products, "wmma": fragment_products}
"""The name of an instruction -> what lowers a contraction that is made of it."""

HANDLERS: dict[type[Operation], Handler] = {DotOp: _dot}
