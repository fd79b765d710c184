"""Atomic operations: atom and red, on integers, floats, halves and vectors of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phobos.emulator.arithmetic.atomics import AtomicOperation, atomic_operation, update
from phobos.emulator.arithmetic.wide import join_wide, split_wide
from phobos.emulator.decode import Operands, Reader, Step, Writer
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.memory.access import Access
from phobos.emulator.memory.dispatch import address_reader, in_space
from phobos.emulator.memory.form import MemoryForm, memory_form
from phobos.emulator.memory.spaces import GLOBAL, Space
from phobos.emulator.memory.store import SHIFTS, ByteStore
from phobos.emulator.types import TYPES, ScalarType, Selection, Value
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Operand, Sink

_NAMES = frozenset({"add", "and", "or", "xor", "min", "max", "exch", "cas", "inc", "dec"})


@decodes("atom", "red")
def _atom(ops: Operands) -> Step:
    form = memory_form(ops)
    if len(form.operation) != 1 or form.operation[0] not in _NAMES:
        ops.refuse(f"unknown atomic operation `.{'.'.join(form.operation)}`")
    name = form.operation[0]
    first = 0 if ops.instruction.opcode == "red" else 1
    operands = 2 if name == "cas" else 1
    counts = [first + 1 + operands]
    if form.has_cache_hint or name == "exch":
        counts.append(counts[0] + 1)
    ops.expect_count(*counts)
    if form.type.bits == 128:
        return _wide(ops, form, name)
    return _elements_step(ops, form, name, first, operands)


def _elements_step(ops: Operands, form: MemoryForm, name: str, first: int, operands: int) -> Step:
    element = _element_type(form.type)
    if atomic_operation(name, element, is_global=True) is None:
        ops.refuse(f"`.{name}` does not exist for .{form.type.name}")
    writers = _writers(ops, form, first)
    readers = [
        [ops.reader(operand, form.type) for operand in _vector(ops, index, form.vector)]
        for index in range(first + 1, first + 1 + operands)
    ]
    read = address_reader(ops, first)
    access = Access(
        ops, "updates", form.bytes, is_write=True, is_strong=True, is_atomic=True, order=form.order
    )

    def make(space: Space) -> Step:
        operation = atomic_operation(name, element, is_global=space is GLOBAL)
        assert operation is not None
        if element.name == "f16":
            operation = _on_patterns(operation, element)
        return _AtomicStep(access, space, form.type, element, operation, read, readers, writers)

    return in_space(ops, form.space, first, make)


def _element_type(kind: ScalarType) -> ScalarType:
    return TYPES[kind.name.removesuffix("x2")]


def _vector(ops: Operands, index: int, count: int) -> tuple[Operand, ...]:
    elements = ops.elements(ops.operand(index))
    if len(elements) != count:
        ops.refuse(f"works on {count} elements, got {len(elements)}")
    return elements


def _writers(ops: Operands, form: MemoryForm, first: int) -> list[Writer | None]:
    if first == 0:
        return [None] * form.vector
    return [
        None if isinstance(element, Sink) else ops.writer(element, form.type)
        for element in _vector(ops, 0, form.vector)
    ]


class _AtomicStep:
    """An atomic on one state space; called as a step."""

    def __init__(
        self,
        access: Access,
        space: Space,
        kind: ScalarType,
        element: ScalarType,
        operation: AtomicOperation,
        read: Reader,
        readers: Sequence[Sequence[Reader]],
        writers: Sequence[Writer | None],
    ) -> None:
        self._access, self._space = access, space
        self._kind, self._element = kind, element
        self._operation, self._read = operation, read
        self._readers, self._writers = readers, writers

    def __call__(self, wave: Wave, sel: Selection) -> None:
        operands = [[read(wave, sel) for read in vector] for vector in self._readers]
        store, index = self._space.open(wave, sel, self._read(wave, sel), self._access)
        size = self._kind.bytes
        count = wave.count(sel)
        where = np.array(np.broadcast_to(index, (count,)))
        for place, write in enumerate(self._writers):
            values = [np.broadcast_to(vector[place], (count,)) for vector in operands]
            old = self._update(store, where + place * size, values)
            if write is not None:
                write(wave, sel, old)
        wave.memory_version += 1

    def _update(self, store: ByteStore, index: np.ndarray, values: Sequence[np.ndarray]) -> Value:
        """Update one element of each thread's vector; returns the old values."""
        kind, element = self._kind, self._element
        size = element.bytes
        view = store.views[size].view(element.dtype)
        where = index >> SHIFTS[size]
        if kind is element:
            return update(view, where, self._operation, values)
        halves = []
        for half in (0, 1):
            shift = np.uint32(16 * half)
            parts = [(value >> shift).astype(np.uint16).view(element.dtype) for value in values]
            old = update(view, where + half, self._operation, parts)
            halves.append(old.view(np.uint16).astype(np.uint32) << shift)
        return (halves[0] | halves[1]).view(kind.dtype)


def _on_patterns(operation: AtomicOperation, element: ScalarType) -> AtomicOperation:
    """An f16 operation, which works on bit patterns, for a view of float16."""

    def combine(*values: Value) -> Value:
        patterns = (value.view(np.uint16) for value in values)
        return operation.combine(*patterns).view(element.dtype)

    return AtomicOperation(combine, operation.operands)


def _wide(ops: Operands, form: MemoryForm, name: str) -> Step:
    """`atom.exch.b128` and `atom.cas.b128`, thread by thread."""
    if name not in ("exch", "cas"):
        ops.refuse(f"`.{name}` does not exist for .b128")
    write, read = ops.write(0, form.type), address_reader(ops, 1)
    readers = [ops.read(index, form.type) for index in range(2, 4 if name == "cas" else 3)]
    access = Access(
        ops, "updates", 16, is_write=True, is_strong=True, is_atomic=True, order=form.order
    )

    def make(space: Space) -> Step:
        def step(wave: Wave, sel: Selection) -> None:
            count = wave.count(sel)
            operands = [split_wide(reader(wave, sel)) for reader in readers]
            store, index = space.open(wave, sel, read(wave, sel), access)
            view = store.views[8].reshape(-1, 2)
            old = np.empty((count, 2), dtype=np.uint64)
            for thread, place in enumerate(np.broadcast_to(index >> 4, (count,)).tolist()):
                old[thread] = view[place]
                new = [part[min(thread, len(part) - 1)] for part in operands[-1]]
                expected = [part[min(thread, len(part) - 1)] for part in operands[0]]
                if name == "exch" or (old[thread] == expected).all():
                    view[place] = new
            write(wave, sel, join_wide(count, old[:, 0], old[:, 1]))
            wave.memory_version += 1

        return step

    return in_space(ops, form.space, 1, make)
