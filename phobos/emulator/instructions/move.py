"""Moves, packing and unpacking, selection, and conversions between address spaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from phobos.emulator.arithmetic.wide import join_wide, split_wide
from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.instructions.shape import last_type, modifiers
from phobos.emulator.memory import regions
from phobos.emulator.types import (
    B128,
    PRED,
    S32,
    TYPES,
    U64,
    UNSIGNED,
    Kind,
    ScalarType,
    Selection,
    Value,
)
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Operand, Vector

_NONE: frozenset[str] = frozenset()


def _storage_type(kind: ScalarType) -> ScalarType:
    """The untyped type of a type's width: moves copy bits."""
    return PRED if kind.kind is Kind.PREDICATE else TYPES[f"b{kind.bits}"]


@decodes("mov")
def _mov(ops: Operands) -> Step:
    ops.expect_count(2)
    modifiers(ops, _NONE)
    kind = _storage_type(last_type(ops))
    target, source = ops.operand(0), ops.operand(1)
    if isinstance(source, Vector):
        return _pack(ops, kind, target, source.elements)
    if isinstance(target, Vector):
        return _unpack(ops, kind, target.elements, source)
    return copy_step(ops, kind, target, source)


def copy_step(ops: Operands, kind: ScalarType, target: Operand, source: Operand) -> Step:
    """A plain move. A source that was never written leaves the target as never written."""
    write, read = ops.writer(target, kind), ops.reader(source, kind, undefined_ok=True)
    undefined, forget = ops.undefined_mask(source), ops.undefine(target)

    def step(wave: Wave, sel: Selection) -> None:
        mask = undefined(wave, sel)
        value = read(wave, sel)
        write(wave, sel, value.copy() if sel is None and value.ndim else value)
        if mask is not None:
            forget(wave, sel, mask)

    return step


def _part_type(ops: Operands, kind: ScalarType, count: int) -> ScalarType:
    if count == 0 or kind.bits % count or kind.bits // count < 8:
        ops.refuse(f"cannot split .{kind.name} into {count} parts")
    return TYPES[f"b{kind.bits // count}"]


def _pack(ops: Operands, kind: ScalarType, target: Operand, elements: Sequence[Operand]) -> Step:
    part = _part_type(ops, kind, len(elements))
    write = ops.writer(target, kind)
    readers = [ops.reader(element, part) for element in elements]
    if kind is B128:
        return _pack_wide(ops, target, elements)
    dtype, width = kind.storage, part.bits

    def step(wave: Wave, sel: Selection) -> None:
        value = readers[0](wave, sel).astype(dtype)
        for place, read in enumerate(readers[1:], 1):
            value = value | (read(wave, sel).astype(dtype) << dtype.type(place * width))
        write(wave, sel, value)

    return step


def _pack_wide(ops: Operands, target: Operand, elements: Sequence[Operand]) -> Step:
    if len(elements) != 2:
        ops.refuse(".b128 is made of two 64-bit parts")
    write = ops.writer(target, B128)
    low, high = (ops.reader(element, U64) for element in elements)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, join_wide(wave.count(sel), low(wave, sel), high(wave, sel)))

    return step


def _unpack(ops: Operands, kind: ScalarType, elements: Sequence[Operand], source: Operand) -> Step:
    part = _part_type(ops, kind, len(elements))
    writers = [ops.writer(element, part) for element in elements]
    read = ops.reader(source, kind)
    dtype, width = kind.storage, part.bits
    if kind is B128:
        return _unpack_wide(ops, elements, source)
    narrow = UNSIGNED[width]

    def step(wave: Wave, sel: Selection) -> None:
        value = read(wave, sel)
        for place, write in enumerate(writers):
            write(wave, sel, (value >> dtype.type(place * width)).astype(narrow))

    return step


def _unpack_wide(ops: Operands, elements: Sequence[Operand], source: Operand) -> Step:
    if len(elements) != 2:
        ops.refuse(".b128 is made of two 64-bit parts")
    writers = [ops.writer(element, U64) for element in elements]
    read = ops.reader(source, B128)

    def step(wave: Wave, sel: Selection) -> None:
        for half, write in zip(split_wide(read(wave, sel)), writers, strict=True):
            write(wave, sel, half)

    return step


# Selection ---------------------------------------------------------------------------------------


@decodes("selp")
def _selp(ops: Operands) -> Step:
    ops.expect_count(4)
    modifiers(ops, _NONE)
    kind = _storage_type(last_type(ops))
    return _select(ops, kind, PRED, lambda condition: condition)


@decodes("slct")
def _slct(ops: Operands) -> Step:
    ops.expect_count(4)
    suffix = ops.instruction.suffix
    if len(suffix) < 2:
        ops.refuse("needs two types")
    kind, control = ops.type(suffix[-2]), ops.type(suffix[-1])
    flush = "ftz" in modifiers(ops, frozenset({"ftz"}), types=2)
    if control is S32:
        return _select(ops, _storage_type(kind), S32, lambda value: value >= 0)
    if control.name != "f32":
        ops.refuse("the third operand is .s32 or .f32")
    # -0 counts as at least 0, and with .ftz so do negative subnormals; NaN picks the second.
    floor = np.float32(-1.1754942e-38) if flush else np.float32(0)
    return _select(ops, _storage_type(kind), control, lambda value: value >= floor)


def _select(
    ops: Operands, kind: ScalarType, control: ScalarType, test: Callable[[Value], Value]
) -> Step:
    write = ops.write(0, kind)
    first, second = ops.operand(1), ops.operand(2)
    read_a = ops.reader(first, kind, undefined_ok=True)
    read_b = ops.reader(second, kind, undefined_ok=True)
    read_control = ops.read(3, control)
    undefined_a, undefined_b = ops.undefined_mask(first), ops.undefined_mask(second)
    forget = ops.undefine(ops.operand(0))

    def step(wave: Wave, sel: Selection) -> None:
        chosen = test(read_control(wave, sel))
        missing_a, missing_b = undefined_a(wave, sel), undefined_b(wave, sel)
        write(wave, sel, np.where(chosen, read_a(wave, sel), read_b(wave, sel)))
        if missing_a is None and missing_b is None:
            return
        # Only what was selected counts: a value never written and not taken is no fault.
        missing = np.zeros(wave.count(sel), dtype=np.bool_)
        if missing_a is not None:
            missing |= missing_a & chosen
        if missing_b is not None:
            missing |= missing_b & ~chosen
        if missing.any():
            forget(wave, sel, missing)

    return step


# Addresses ---------------------------------------------------------------------------------------

_WINDOWS = {
    "shared": regions.SHARED_WINDOW,
    "shared::cta": regions.SHARED_WINDOW,
    "shared::cluster": regions.SHARED_WINDOW,
    "local": regions.LOCAL_WINDOW,
    "global": 0,
    "const": 0,
    "param": 0,
}


@decodes("cvta")
def _cvta(ops: Operands) -> Step:
    ops.expect_count(2)
    parts = ops.instruction.suffix[:-1]
    kind = last_type(ops)
    spaces = [part for part in parts if part != "to"]
    if len(spaces) != 1 or spaces[0] not in _WINDOWS or kind.bits != 64:
        ops.refuse("takes one of the spaces global, shared, local, const and param, and .u64")
    window = np.uint64(_WINDOWS[spaces[0]])
    if window == 0:
        return copy_step(ops, TYPES["b64"], ops.operand(0), ops.operand(1))
    write, read = ops.write(0, U64), ops.read(1, U64)
    if "to" in parts:
        return lambda wave, sel: write(wave, sel, read(wave, sel) & regions.LOW_32)
    return lambda wave, sel: write(wave, sel, read(wave, sel) | window)


@decodes("isspacep")
def _isspacep(ops: Operands) -> Step:
    ops.expect_count(2)
    space = ops.part(-1)
    numbers = {
        "shared": regions.SHARED_REGION,
        "shared::cta": regions.SHARED_REGION,
        "shared::cluster": regions.SHARED_REGION,
        "local": regions.LOCAL_REGION,
        "global": regions.GLOBAL_REGION,
        "const": regions.GLOBAL_REGION,
        "param": regions.GLOBAL_REGION,
    }
    if space not in numbers:
        ops.refuse(f"unknown state space `.{space}`")
    region = np.uint64(numbers[space])
    write, read = ops.write(0, PRED), ops.read(1, U64)
    layout = ops.environment.layout

    def step(wave: Wave, sel: Selection) -> None:
        address = read(wave, sel)
        inside = (address >> np.uint64(regions.REGION_SHIFT)) == region
        if region == regions.GLOBAL_REGION:
            inside = inside & layout.is_in_space(address, space)
        write(wave, sel, inside)

    return step
