"""Bitwise operations, shifts and byte permutations, on bits and on predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from phobos.emulator.arithmetic import integers
from phobos.emulator.arithmetic.permute import PERMUTE_MODES, permute_bytes
from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.instructions.shape import binary, last_type, modifiers, ternary, unary
from phobos.emulator.types import B32, PRED, U32, Kind, ScalarType, Selection, Value
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Pair

_NONE: frozenset[str] = frozenset()
_BITWISE: Mapping[str, Callable[[Value, Value], Value]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _bits(ops: Operands) -> ScalarType:
    kind = last_type(ops)
    if kind.kind is Kind.PREDICATE:
        return PRED
    return ops.unsigned(kind)


@decodes("and", "or", "xor")
def _bitwise(ops: Operands) -> Step:
    modifiers(ops, _NONE)
    return binary(ops, _bits(ops), _BITWISE[ops.instruction.opcode])


@decodes("not")
def _not(ops: Operands) -> Step:
    modifiers(ops, _NONE)
    return unary(ops, _bits(ops), np.invert)


@decodes("cnot")
def _cnot(ops: Operands) -> Step:
    modifiers(ops, _NONE)
    kind = _bits(ops)
    return unary(ops, kind, lambda a: (a == 0).astype(kind.dtype))


@decodes("shl", "shr")
def _shift(ops: Operands) -> Step:
    ops.expect_count(3)
    modifiers(ops, _NONE)
    kind = last_type(ops)
    if not kind.is_signed:
        kind = ops.unsigned(kind)
    function = integers.shift_left if ops.instruction.opcode == "shl" else integers.shift_right
    write, read, amount = ops.write(0, kind), ops.read(1, kind), ops.read(2, U32)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, function(read(wave, sel), amount(wave, sel)))

    return step


@decodes("shf")
def _shf(ops: Operands) -> Step:
    parts = modifiers(ops, frozenset({"l", "r", "wrap", "clamp"}))
    left, clamp = "l" in parts, "clamp" in parts
    return ternary(ops, U32, lambda a, b, c: integers.funnel_shift(a, b, c, left=left, clamp=clamp))


@decodes("lop3")
def _lop3(ops: Operands) -> Step:
    parts = modifiers(ops, frozenset({"or", "and"}))
    table = ops.immediate(4, "the truth table")
    read_a, read_b, read_c = (ops.read(index, B32) for index in (1, 2, 3))
    if not parts:
        ops.expect_count(5)
        write = ops.write(0, B32)

        def step(wave: Wave, sel: Selection) -> None:
            a, b, c = read_a(wave, sel), read_b(wave, sel), read_c(wave, sel)
            write(wave, sel, integers.lookup_3(a, b, c, table))

        return step
    ops.expect_count(6)
    target = ops.operand(0)
    if not isinstance(target, Pair):
        ops.refuse("needs a result `d|p`")
    write_d, write_p = ops.writer(target.first, B32), ops.writer(target.second, PRED)
    read_q = ops.read(5, PRED)
    combine = np.logical_or if "or" in parts else np.logical_and

    def step_with_predicate(wave: Wave, sel: Selection) -> None:
        a, b, c = read_a(wave, sel), read_b(wave, sel), read_c(wave, sel)
        value = integers.lookup_3(a, b, c, table)
        predicate = combine(value != 0, read_q(wave, sel))
        write_d(wave, sel, value)
        write_p(wave, sel, predicate)

    return step_with_predicate


@decodes("prmt")
def _prmt(ops: Operands) -> Step:
    ops.expect_count(4)
    suffix = ops.instruction.suffix
    mode = suffix[1] if len(suffix) > 1 else ""
    if suffix[:1] != ("b32",) or mode not in PERMUTE_MODES:
        ops.refuse(f"unknown mode `.{mode}`")
    write = ops.write(0, U32)
    read_a, read_b, selector = (ops.read(index, U32) for index in (1, 2, 3))

    def step(wave: Wave, sel: Selection) -> None:
        value = permute_bytes(read_a(wave, sel), read_b(wave, sel), selector(wave, sel), mode)
        write(wave, sel, value)

    return step
