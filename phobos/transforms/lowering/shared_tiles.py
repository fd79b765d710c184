"""Tile accesses to shared buffers, whose layout may be swizzled.

An element's offset is the XOR of what the thread and what the register contribute, so the
thread's part is computed once and each access adds or XORs a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from phobos.dialects import ptx, tile
from phobos.layout import LinearLayout
from phobos.layout.build import OFFSET, REGISTER
from phobos.layout.exchange import best_access
from phobos.layout.queries import is_additive, register_coordinates, vector_bits
from phobos.layout.shared import offsets
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
    """Where the registers of one tile lie in one buffer."""

    def __init__(self, low: Lowering, mem: SSAValue, layout: LinearLayout, kind: Kind):
        self.low = low
        self.kind = kind
        shared = tile.shared_layout_of(mem)
        self.offsets = offsets(layout, shared)
        self.width, _ = best_access(layout, shared, kind.bytes)
        self.steps = vector_bits(self.offsets, OFFSET)[: self.width.bit_length() - 1]
        self.registers = [where for (where,) in register_coordinates(self.offsets)]
        self.base, self.start = shared_base(low, mem)
        (self.thread,) = thread_coordinates(low, self.offsets)
        self.additive = is_additive(self.offsets, OFFSET)
        self._moved: dict[int, SSAValue] = {}

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
            return Address(self.base, self.start + offset * size, "shared")
        moved = 0 if self.additive else offset
        if moved not in self._moved:
            thread = self.thread
            if moved:
                thread = build.emit(ptx.XorOp, "b32", thread, moved)
            self._moved[moved] = build.emit(ptx.MadOp, "lo.s32", thread, size, self.base)
        constant = offset * size if self.additive else 0
        return Address(self._moved[moved], self.start + constant, "shared")


def load_shared(low: Lowering, mem: SSAValue, layout: LinearLayout, kind: Kind) -> Share:
    """A tile from a buffer; no masks, since a buffer holds the whole layout."""
    access = SharedAccess(low, mem, layout, kind)
    result: list[SSAValue | None] = [None] * layout.in_size(REGISTER)
    done: dict[int, Sequence[SSAValue]] = {}
    for offset, members in access.groups():
        if offset not in done:
            part = load(low, access.address(offset), kind, access.width)
            done[offset] = part.elements or low.unpack(part.words or (), kind)
        for member, element in zip(members, done[offset], strict=True):
            result[member] = element
    return Share([element for element in result if element is not None])


def store_shared(
    low: Lowering, mem: SSAValue, layout: LinearLayout, kind: Kind, value: SSAValue
) -> None:
    """A tile into a buffer, each element by the thread that owns it."""
    access = SharedAccess(low, mem, layout, kind)
    owner = owner_predicate(low, layout)
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
