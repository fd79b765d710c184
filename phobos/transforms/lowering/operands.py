"""Operands of contractions: in registers, or loaded from shared buffers when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import SSAValue

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.layout import LinearLayout
from phobos.layout.queries import register_coordinates
from phobos.transforms.lowering.accesses import load
from phobos.transforms.lowering.registers import Kind
from phobos.transforms.lowering.shared_tiles import MatrixLoads, SharedAccess, matrix_plan
from phobos.transforms.lowering.state import Lowering

Coordinate = tuple[int, ...]


class Operand(Protocol):
    """An operand as fragments: the registers that start at a coordinate of its layout."""

    def fragment(self, register: int, count: int) -> Sequence[SSAValue]:
        """`count` registers (elements, or words where packed) from a register's number on."""
        ...


class InRegisters:
    """An operand that each thread already has in the layout that the instruction wants."""

    def __init__(self, registers: Sequence[SSAValue]):
        self._registers = registers

    def fragment(self, register: int, count: int) -> Sequence[SSAValue]:
        """`count` of its registers from a number on."""
        return self._registers[register : register + count]


class ElementLoads:
    """An operand in a shared buffer, loaded in the widest vectors that its layout allows."""

    def __init__(
        self,
        low: Lowering,
        mem: SSAValue,
        layout: LinearLayout,
        kind: Kind,
        packed: int,
        access: SharedAccess | None = None,
    ):
        self._low, self._kind, self._packed = low, kind, packed
        self._mem, self._layout = mem, layout
        self._access = access or SharedAccess(low, mem, layout, kind)
        self._groups = self._access.groups()
        self._group_of = {
            member: number for number, (_, members) in enumerate(self._groups) for member in members
        }
        self._elements: dict[int, SSAValue] = {}
        self._loaded: dict[int, Sequence[SSAValue]] = {}
        self._words: dict[int, SSAValue] = {}

    def moved(self, by: SSAValue, bits: int) -> ElementLoads:
        """The same of what lies elsewhere in the buffer: offsets XOR `by`, which has these bits."""
        access = self._access.moved(by, bits)
        return ElementLoads(self._low, self._mem, self._layout, self._kind, self._packed, access)

    def fragment(self, register: int, count: int) -> Sequence[SSAValue]:
        """`count` registers from a number on, loaded when first asked for."""
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


def kind_of(low: Lowering, op: DotOp, operand: SSAValue) -> Kind:
    """An operand's elements, whether it is a tile or a buffer."""
    assert isinstance(operand.type, TensorType | MemRefType)
    return low.kind(operand.type.element_type, op)


def places(layout: LinearLayout) -> Sequence[Coordinate]:
    """The row and column of each register of thread 0, behind the number of its matrix."""
    return register_coordinates(layout)


def words_of(
    low: Lowering, value: SSAValue, layout: LinearLayout, kind: Kind, packed: int
) -> Operand:
    """An operand of an `mma`, loaded by `ldmatrix` where it can."""
    if not tile.is_shared(value):
        return InRegisters(low.words(value) if packed > 1 else low.elements(value))
    plan = matrix_plan(layout, tile.shared_layout_of(value), kind)
    if plan is not None:
        return MatrixLoads(low, value, plan, kind)
    return ElementLoads(low, value, layout, kind, packed)
