"""Tile accesses to shared buffers, whose layout may be swizzled.

An element's offset is the XOR of what the thread and what the register contribute, so the
thread's part is computed once and each access adds or XORs a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import reduce
from operator import or_

from xdsl.ir import SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.ptx import B32
from phobos.layout import LinearLayout
from phobos.layout.build import OFFSET, REGISTER
from phobos.layout.contraction import drop_units
from phobos.layout.exchange import best_access
from phobos.layout.matrix_access import MatrixAccess, plan_matrix_access
from phobos.layout.queries import (
    THREAD,
    register_coordinates,
    thread_layout,
    vector_bits,
)
from phobos.layout.shared import as_part, offsets
from phobos.transforms.lowering.accesses import load, part_of, store
from phobos.transforms.lowering.addresses import (
    Address,
    owner_predicate,
    shared_base,
    thread_coordinates,
)
from phobos.transforms.lowering.registers import Kind, Share
from phobos.transforms.lowering.state import Lowering


class SharedAccess:
    """Where the registers of one tile lie in one buffer.

    `start` is the offset of the tile's first element, whose bits the tile's own do not use.
    """

    def __init__(
        self, low: Lowering, mem: SSAValue, layout: LinearLayout, kind: Kind, start: int = 0
    ):
        self.low = low
        self.kind = kind
        self.space = "shared"
        shared = tile.shared_layout_of(mem)
        self.offsets = offsets(layout, shared)
        self.width, _ = best_access(layout, shared, kind.bytes)
        self.steps = vector_bits(self.offsets, OFFSET)[: self.width.bit_length() - 1]
        self.registers = [where ^ start for (where,) in register_coordinates(self.offsets)]
        self.base, self.start = shared_base(low, mem)
        (self.thread,) = thread_coordinates(low, self.offsets)
        self._moved_by_threads = reduce(or_, thread_layout(self.offsets).packed(THREAD), 0)
        self._moved: dict[int, SSAValue] = {}

    def moved(self, by: SSAValue, bits: int) -> SharedAccess:
        """The access to what lies elsewhere: offsets XOR `by`, a number of no bits but these."""
        other = copy(self)
        other.thread = by
        if self.thread is not None:
            other.thread = self.low.build.emit(ptx.XorOp, "b32", self.thread, by)
        other._moved_by_threads = self._moved_by_threads | bits
        other._moved = {}
        return other

    def of_cta(self, rank: SSAValue) -> SharedAccess:
        """The access to the same places in the CTA of a rank in the cluster."""
        other = copy(self)
        other.space = "shared::cluster"
        other.base = self.low.build.emit(ptx.MapaOp, "shared::cluster.u32", self.base, rank)
        other._moved = {}
        return other

    def groups(self) -> list[tuple[int, list[int]]]:
        """(offset, registers) of each vector; copies of a vector have the same offset."""
        inside = 0
        for step in self.steps:
            inside |= step
        groups: list[tuple[int, list[int]]] = []
        seen: set[int] = set()
        for register in range(len(self.registers)):
            if register in seen:
                continue
            members = [register]
            for step in self.steps:
                members += [member ^ step for member in members]
            members.sort(key=lambda member: self.registers[member] & (self.width - 1))
            seen.update(members)
            groups.append((self.registers[members[0]], members))
        return groups

    def address(self, offset: int) -> Address:
        """The address of the element at an offset from the thread's own."""
        build, size = self.low.build, self.kind.bytes
        if self.thread is None:
            return Address(self.base, self.start + offset * size, self.space)
        # Bits that the thread moves too (a swizzle) are XORed in, the others simply added.
        moved = offset & self._moved_by_threads
        if moved not in self._moved:
            thread = self.thread
            if moved:
                thread = build.emit(ptx.XorOp, "b32", thread, moved)
            self._moved[moved] = build.emit(ptx.MadOp, "lo.s32", thread, size, self.base)
        return Address(self._moved[moved], self.start + (offset - moved) * size, self.space)


class MatrixLoads:
    """A tile in a shared buffer whose words `ldmatrix` delivers.

    `start` is the offset of the tile's first element, whose bits the tile does not use.
    """

    def __init__(
        self, low: Lowering, mem: SSAValue, plan: MatrixAccess, kind: Kind, start: int = 0
    ):
        self._low, self._plan, self._bytes = low, plan, kind.bytes
        self._first = start
        base, self._start = shared_base(low, mem)
        (thread,) = thread_coordinates(low, plan.rows)
        self._base = base
        if thread is not None:
            self._base = low.build.emit(ptx.MadOp, "lo.s32", thread, kind.bytes, base)
        moved = 0
        for name in ("lane", "warp"):
            for vector in plan.rows.packed(name):
                moved |= vector
        self._moved_by_threads = moved
        self._instruction_of: dict[int, int] = {}
        for instruction in range(plan.instructions):
            for matrix in range(plan.count):
                word = plan.first_element(instruction, matrix) // plan.packed
                self._instruction_of[word] = instruction
        self._words: dict[int, SSAValue] = {}
        self._bases: dict[int, SSAValue] = {0: self._base}

    def fragment(self, register: int, count: int) -> Sequence[SSAValue]:
        """`count` words from a word's number on, loaded when first asked for."""
        return [self._word(register + i) for i in range(count)]

    def _word(self, number: int) -> SSAValue:
        if number not in self._words:
            self._load(self._instruction_of[number])
        return self._words[number]

    def _load(self, instruction: int) -> None:
        plan = self._plan
        (offset,) = plan.rows.apply(instruction=instruction)
        offset ^= self._first
        # Where the thread moves a bit too (a swizzle), the constant is XORed in. Buffers are
        # aligned to the rows of the swizzle, so the base has no such bit.
        swizzled = offset & self._moved_by_threads
        if swizzled not in self._bases:
            self._bases[swizzled] = self._low.build.emit(
                ptx.XorOp, "b32", self._base, swizzled * self._bytes
            )
        turn = ".trans" if plan.transposed else ""
        words = self._low.build.emit_multi(
            ptx.LdmatrixOp,
            f"sync.aligned.m8n8.x{plan.count}{turn}.shared.b16",
            self._bases[swizzled],
            results=(B32,) * plan.count,
            offset=self._start + (offset - swizzled) * self._bytes,
        )
        for matrix, word in enumerate(words):
            self._words[plan.first_element(instruction, matrix) // plan.packed] = word


def matrix_plan(layout: LinearLayout, shared: LinearLayout, kind: Kind) -> MatrixAccess | None:
    """How `ldmatrix` loads a tile, plain or transposed; None if it cannot."""
    for transposed in (False, True):
        plan = plan_matrix_access(
            drop_units(layout), drop_units(shared), kind.bytes, transposed=transposed
        )
        if plan is not None:
            return plan
    return None


def offset_at(at: Sequence[int], shared: LinearLayout) -> int:
    """The offset in a buffer of the element at a coordinate."""
    point = LinearLayout.from_bases({REGISTER: [tuple(at)]}, dict(shared.outputs))
    (offset,) = offsets(point, shared).apply(**{REGISTER: 1})
    return offset


def load_shared(
    low: Lowering,
    mem: SSAValue,
    layout: LinearLayout,
    kind: Kind,
    at: Sequence[int],
    *,
    is_operand: bool,
) -> Share:
    """A tile from a buffer, whole or a part that starts at `at`; no masks.

    A part starts at multiples of its sizes, which are powers of two. Parts, and whole tiles that
    are operands of `mma`, come by `ldmatrix` where that can load them.
    """
    shared = tile.shared_layout_of(mem)
    start = 0
    if layout.shape != shared.shape:
        is_operand = True
        layout, start = as_part(layout, shared), offset_at(at, shared)
    plan = matrix_plan(layout, shared, kind) if is_operand else None
    if plan is not None:
        loads = MatrixLoads(low, mem, plan, kind, start)
        return Share(words=loads.fragment(0, layout.in_size(REGISTER) // plan.packed))
    return load_parts(low, SharedAccess(low, mem, layout, kind, start))


def load_parts(low: Lowering, access: SharedAccess) -> Share:
    """All registers of an access, each vector by one instruction."""
    kind = access.kind
    result: list[SSAValue | None] = [None] * len(access.registers)
    done: dict[int, Sequence[SSAValue]] = {}
    for offset, members in access.groups():
        if offset not in done:
            part = load(low, access.address(offset), kind, access.width)
            done[offset] = part.elements or low.unpack(part.words or (), kind)
        for member, element in zip(members, done[offset], strict=True):
            result[member] = element
    return Share([element for element in result if element is not None])


def store_shared(
    low: Lowering,
    mem: SSAValue,
    layout: LinearLayout,
    kind: Kind,
    value: SSAValue,
    at: Sequence[int],
) -> None:
    """A tile into a buffer, or a part of it that starts at `at` as in `load_shared`.

    Each element is stored by the thread that owns it.
    """
    owner = owner_predicate(low, layout)
    shared = tile.shared_layout_of(mem)
    start = 0
    if layout.shape != shared.shape:
        layout, start = as_part(layout, shared), offset_at(at, shared)
    access = SharedAccess(low, mem, layout, kind, start)
    done: set[int] = set()
    for offset, members in access.groups():
        if offset in done:
            continue
        done.add(offset)
        first = members[0]
        if members == list(range(first, first + access.width)):
            part = part_of(low, value, kind, first, access.width)  # words stay packed
        else:
            elements = low.elements(value)
            part = Share([elements[member] for member in members])
        store(low, access.address(offset), kind, part, owner)
