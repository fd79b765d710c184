"""Loads and stores, prefetches and fences."""

from __future__ import annotations

from phobos.emulator.arithmetic.wide import join_wide, split_wide
from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.memory.access import Access
from phobos.emulator.memory.dispatch import address_reader, in_space
from phobos.emulator.memory.form import MemoryForm, memory_form
from phobos.emulator.memory.spaces import Space
from phobos.emulator.types import B64, ScalarType, Selection
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Operand, Sink

_UNIT = {8: 1, 16: 2, 32: 4, 64: 8}


def do_nothing(wave: Wave, sel: Selection) -> None:
    """The step of instructions that change nothing that the emulator models."""


def _elements(ops: Operands, operand: Operand, form: MemoryForm) -> tuple[Operand, ...]:
    elements = ops.elements(operand)
    if len(elements) != form.vector:
        ops.refuse(f"moves {form.vector} elements, got {len(elements)} registers")
    return elements


@decodes("ld", "ldu")
def _ld(ops: Operands) -> Step:
    form = memory_form(ops)
    ops.expect_count(3 if form.has_cache_hint else 2)
    if form.operation:
        ops.refuse(f"unknown modifier `.{form.operation[0]}`")
    if form.type.bits == 128:
        return _load_wide(ops, form)
    elements = _elements(ops, ops.operand(0), form)
    writers = [
        None if isinstance(element, Sink) else ops.writer(element, form.type)
        for element in elements
    ]
    read = address_reader(ops, 1)
    access = _load_access(ops, form)
    size, dtype = _UNIT[form.type.bits], form.type.dtype

    def make(space: Space) -> Step:
        def step(wave: Wave, sel: Selection) -> None:
            store, index = space.open(wave, sel, read(wave, sel), access)
            for element, write in enumerate(writers):
                if write is not None:
                    write(wave, sel, store.load(index, size, element).view(dtype))

        return step

    return in_space(ops, form.space, 1, make)


@decodes("st")
def _st(ops: Operands) -> Step:
    form = memory_form(ops)
    ops.expect_count(3 if form.has_cache_hint else 2)
    if form.operation:
        ops.refuse(f"unknown modifier `.{form.operation[0]}`")
    if form.type.bits == 128:
        return _store_wide(ops, form)
    elements = _elements(ops, ops.operand(1), form)
    readers = [ops.reader(element, _raw(ops, form.type)) for element in elements]
    read = address_reader(ops, 0)
    access = _store_access(ops, form)
    size = _UNIT[form.type.bits]

    def make(space: Space) -> Step:
        def step(wave: Wave, sel: Selection) -> None:
            values = [reader(wave, sel) for reader in readers]
            store, index = space.open(wave, sel, read(wave, sel), access, values)
            for element, value in enumerate(values):
                store.store(index, size, value, element)
            wave.memory_version += 1

        return step

    return in_space(ops, form.space, 0, make)


def _store_access(ops: Operands, form: MemoryForm) -> Access:
    return Access(
        ops,
        "writes",
        form.bytes,
        is_write=True,
        is_strong=form.is_strong,
        is_read=False,
        order=form.order,
    )


def _load_access(ops: Operands, form: MemoryForm) -> Access:
    return Access(
        ops, "reads", form.bytes, is_write=False, is_strong=form.is_strong, order=form.order
    )


def _raw(ops: Operands, kind: ScalarType) -> ScalarType:
    return ops.type(f"b{kind.bits}")


def _load_wide(ops: Operands, form: MemoryForm) -> Step:
    """`ld.b128`: two 64-bit halves."""
    write, read = ops.write(0, form.type), address_reader(ops, 1)
    access = _load_access(ops, form)

    def make(space: Space) -> Step:
        def step(wave: Wave, sel: Selection) -> None:
            store, index = space.open(wave, sel, read(wave, sel), access)
            halves = (store.load(index, 8, element) for element in (0, 1))
            write(wave, sel, join_wide(wave.count(sel), *halves))

        return step

    return in_space(ops, form.space, 1, make)


def _store_wide(ops: Operands, form: MemoryForm) -> Step:
    value, read = ops.read(1, form.type), address_reader(ops, 0)
    access = _store_access(ops, form)

    def make(space: Space) -> Step:
        def step(wave: Wave, sel: Selection) -> None:
            low, high = split_wide(value(wave, sel))
            store, index = space.open(wave, sel, read(wave, sel), access)
            store.store(index, 8, low, 0)
            store.store(index, 8, high, 1)
            wave.memory_version += 1

        return step

    return in_space(ops, form.space, 0, make)


# Hints and fences --------------------------------------------------------------------------------


@decodes("prefetch", "prefetchu", "applypriority", "discard", "nanosleep", "pmevent")
def _hint(ops: Operands) -> Step:
    return do_nothing


@decodes("fence", "membar")
def _fence(ops: Operands) -> Step:
    """The emulator's memory is always up to date; only the race check cares for fences."""
    if ops.instruction.suffix[:2] == ("proxy", "async"):
        return _proxy_fence(ops)
    if ops.instruction.suffix == ("mbarrier_init", "release", "cluster"):
        return _mbarrier_fence(ops)

    def step(wave: Wave, sel: Selection) -> None:
        if wave.monitor is not None:
            wave.monitor.fence(wave, sel)

    return step


def _mbarrier_fence(ops: Operands) -> Step:
    """`fence.mbarrier_init`: shows mbarriers that were initialised to copies and other CTAs."""
    ops.expect_count(0)

    def step(wave: Wave, sel: Selection) -> None:
        if wave.monitor is not None:
            wave.monitor.mbarrier_fence(wave, sel)

    return step


def _proxy_fence(ops: Operands) -> Step:
    """`fence.proxy.async`: orders ordinary accesses before asynchronous ones, not threads."""
    ops.expect_count(0)
    space = ops.instruction.suffix[2:]
    if space not in ((), ("global",), ("shared::cta",), ("shared::cluster",)):
        ops.refuse("takes .global, .shared::cta or .shared::cluster")
    if space == ("global",):
        return do_nothing

    def step(wave: Wave, sel: Selection) -> None:
        if wave.monitor is not None:
            wave.monitor.proxy_fence(wave, sel)

    return step


@decodes("createpolicy")
def _createpolicy(ops: Operands) -> Step:
    """Cache policies are opaque; 0 will do."""
    write = ops.write(0, B64)
    zero = B64.storage.type(0)
    return lambda wave, sel: write(wave, sel, zero)
