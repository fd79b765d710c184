"""Integer arithmetic: add to mad, division, bit counts and fields, dot products."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from phobos.emulator.arithmetic import integers
from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import Family, decodes
from phobos.emulator.instructions.shape import binary, last_type, modifiers, ternary, unary
from phobos.emulator.types import (
    B32,
    SIGNED,
    TYPES,
    U32,
    UNSIGNED,
    Kind,
    ScalarType,
    Selection,
    Value,
    scalar,
)
from phobos.emulator.wave import Wave

_NONE: frozenset[str] = frozenset()
_NO_CARRY = scalar(np.bool_(False))


def _integer(ops: Operands) -> ScalarType:
    kind = last_type(ops)
    if not kind.is_integer:
        ops.refuse(f"takes integers, not .{kind.name}")
    return kind


# Sums and products -------------------------------------------------------------------------------


@decodes("add", "sub", family=Family.INTEGER)
def _add(ops: Operands) -> Step:
    kind = _integer(ops)
    flags = modifiers(ops, frozenset({"sat", "cc"}))
    subtracts = ops.instruction.opcode == "sub"
    if "cc" in flags:
        return _carry_step(ops, kind, subtracts=subtracts, takes=False, gives=True)
    if "sat" in flags:
        if kind.name != "s32":
            ops.refuse("`.sat` needs .s32")
        clamp = integers.subtract_saturating if subtracts else integers.add_saturating
        return binary(ops, kind, clamp)
    return binary(ops, kind, np.subtract if subtracts else np.add)


@decodes("addc", "subc")
def _add_carry(ops: Operands) -> Step:
    kind = _integer(ops)
    gives = "cc" in modifiers(ops, frozenset({"cc"}))
    subtracts = ops.instruction.opcode == "subc"
    return _carry_step(ops, kind, subtracts=subtracts, takes=True, gives=gives)


def _carry_step(
    ops: Operands, kind: ScalarType, *, subtracts: bool, takes: bool, gives: bool
) -> Step:
    ops.expect_count(3)
    unsigned = ops.unsigned(kind)
    write, read_a, read_b = ops.write(0, unsigned), ops.read(1, unsigned), ops.read(2, unsigned)
    function = integers.subtract_with_borrow if subtracts else integers.add_with_carry

    def step(wave: Wave, sel: Selection) -> None:
        carry = wave.read_carry(sel) if takes else _NO_CARRY
        value, out = function(read_a(wave, sel), read_b(wave, sel), carry)
        write(wave, sel, value)
        if gives:
            wave.write_carry(sel, out)

    return step


def _multiply_low(a: Value, b: Value) -> Value:
    return a * b


def _multiply_wide(a: Value, b: Value) -> Value:
    return integers.widen(a) * integers.widen(b)


_PRODUCTS: Mapping[str, Callable[[Value, Value], Value]] = {
    "lo": _multiply_low,
    "hi": integers.multiply_high,
    "wide": _multiply_wide,
}


def _product(ops: Operands, parts: frozenset[str]) -> tuple[str, Callable[[Value, Value], Value]]:
    chosen = [part for part in _PRODUCTS if part in parts]
    if len(chosen) != 1:
        ops.refuse("needs one of `.lo`, `.hi` and `.wide`")
    return chosen[0], _PRODUCTS[chosen[0]]


def _wide_type(ops: Operands, kind: ScalarType) -> ScalarType:
    if kind.bits == 64:
        ops.refuse("`.wide` has no 128-bit result")
    return TYPES[f"{kind.name[0]}{kind.bits * 2}"]


@decodes("mul", family=Family.INTEGER)
def _mul(ops: Operands) -> Step:
    kind = _integer(ops)
    which, product = _product(ops, modifiers(ops, frozenset(_PRODUCTS)))
    result = _wide_type(ops, kind) if which == "wide" else kind
    return binary(ops, kind, product, result)


@decodes("mad", family=Family.INTEGER)
def _mad(ops: Operands) -> Step:
    kind = _integer(ops)
    parts = modifiers(ops, frozenset(_PRODUCTS) | {"sat", "cc"})
    which, product = _product(ops, parts)
    if "cc" in parts:
        return _mad_carry(ops, kind, product, takes=False, gives=True)
    if "sat" in parts:
        if kind.name != "s32" or which != "hi":
            ops.refuse("`.sat` needs .hi.s32")
        return ternary(ops, kind, lambda a, b, c: integers.add_saturating(product(a, b), c))
    ops.expect_count(4)
    result = _wide_type(ops, kind) if which == "wide" else kind
    write, read_c = ops.write(0, result), ops.read(3, result)
    read_a, read_b = ops.read(1, kind), ops.read(2, kind)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, product(read_a(wave, sel), read_b(wave, sel)) + read_c(wave, sel))

    return step


@decodes("madc", family=Family.INTEGER)
def _madc(ops: Operands) -> Step:
    kind = _integer(ops)
    parts = modifiers(ops, frozenset({"lo", "hi", "cc"}))
    _, product = _product(ops, parts)
    return _mad_carry(ops, kind, product, takes=True, gives="cc" in parts)


def _mad_carry(
    ops: Operands,
    kind: ScalarType,
    product: Callable[[Value, Value], Value],
    *,
    takes: bool,
    gives: bool,
) -> Step:
    ops.expect_count(4)
    unsigned = ops.unsigned(kind)
    write, read_c = ops.write(0, unsigned), ops.read(3, unsigned)
    read_a, read_b = ops.read(1, kind), ops.read(2, kind)

    def step(wave: Wave, sel: Selection) -> None:
        carry = wave.read_carry(sel) if takes else _NO_CARRY
        part = integers.as_unsigned(product(read_a(wave, sel), read_b(wave, sel)))
        value, out = integers.add_with_carry(part, read_c(wave, sel), carry)
        write(wave, sel, value)
        if gives:
            wave.write_carry(sel, out)

    return step


def _low_24(value: Value) -> Value:
    """The low 24 bits as a number, in 64 bits."""
    wide = value.astype(np.int64)
    if value.dtype.kind == "i":
        return wide << 40 >> 40
    return wide & 0xFFFFFF


def _product_24(ops: Operands, parts: frozenset[str]) -> Callable[[Value, Value], Value]:
    if "hi" in parts:
        # The upper 32 of the 48 bits of the product.
        return lambda a, b: (_low_24(a) * _low_24(b) >> 16).astype(a.dtype)
    if "lo" in parts:
        return lambda a, b: (_low_24(a) * _low_24(b)).astype(a.dtype)
    ops.refuse("needs `.lo` or `.hi`")


@decodes("mul24")
def _mul24(ops: Operands) -> Step:
    return binary(ops, _integer(ops), _product_24(ops, modifiers(ops, frozenset({"lo", "hi"}))))


@decodes("mad24")
def _mad24(ops: Operands) -> Step:
    parts = modifiers(ops, frozenset({"lo", "hi", "sat"}))
    product = _product_24(ops, parts)
    if "sat" in parts:
        return ternary(
            ops, _integer(ops), lambda a, b, c: integers.add_saturating(product(a, b), c)
        )
    return ternary(ops, _integer(ops), lambda a, b, c: product(a, b) + c)


@decodes("sad")
def _sad(ops: Operands) -> Step:
    modifiers(ops, _NONE)
    return ternary(ops, _integer(ops), lambda a, b, c: c + np.where(a < b, b - a, a - b))


@decodes("div", family=Family.INTEGER)
def _div(ops: Operands) -> Step:
    modifiers(ops, _NONE)
    return binary(ops, _integer(ops), integers.divide)


@decodes("rem", family=Family.INTEGER)
def _rem(ops: Operands) -> Step:
    modifiers(ops, _NONE)
    return binary(ops, _integer(ops), integers.remainder)


@decodes("min", "max", family=Family.INTEGER)
def _minmax(ops: Operands) -> Step:
    kind = _integer(ops)
    function = np.minimum if ops.instruction.opcode == "min" else np.maximum
    if "relu" in modifiers(ops, frozenset({"relu"})):
        zero = kind.dtype.type(0)
        return binary(ops, kind, lambda a, b: np.maximum(function(a, b), zero))
    return binary(ops, kind, function)


@decodes("abs", family=Family.INTEGER)
def _abs(ops: Operands) -> Step:
    modifiers(ops, _NONE)
    return unary(ops, _integer(ops), np.abs)


@decodes("neg", family=Family.INTEGER)
def _neg(ops: Operands) -> Step:
    kind = _integer(ops)
    modifiers(ops, _NONE)
    zero = kind.dtype.type(0)
    return unary(ops, kind, lambda a: zero - a)


# Bits --------------------------------------------------------------------------------------------


@decodes("popc")
def _popc(ops: Operands) -> Step:
    return unary(ops, _unsigned_of(ops), integers.population_count, U32)


@decodes("clz")
def _clz(ops: Operands) -> Step:
    return unary(ops, _unsigned_of(ops), integers.leading_zeros, U32)


@decodes("brev")
def _brev(ops: Operands) -> Step:
    return unary(ops, _unsigned_of(ops), integers.reverse_bits)


def _unsigned_of(ops: Operands) -> ScalarType:
    modifiers(ops, _NONE)
    return ops.unsigned(last_type(ops))


@decodes("bfind")
def _bfind(ops: Operands) -> Step:
    shifts = "shiftamt" in modifiers(ops, frozenset({"shiftamt"}))
    return unary(ops, _integer(ops), lambda a: integers.find_leading(a, shift_amount=shifts), U32)


@decodes("bfe")
def _bfe(ops: Operands) -> Step:
    ops.expect_count(4)
    kind = _integer(ops)
    write, read = ops.write(0, kind), ops.read(1, kind)
    position, length = ops.read(2, U32), ops.read(3, U32)

    def step(wave: Wave, sel: Selection) -> None:
        write(
            wave,
            sel,
            integers.extract_field(read(wave, sel), position(wave, sel), length(wave, sel)),
        )

    return step


@decodes("bfi")
def _bfi(ops: Operands) -> Step:
    ops.expect_count(5)
    kind = last_type(ops)
    write, field, base = ops.write(0, kind), ops.read(1, kind), ops.read(2, kind)
    position, length = ops.read(3, U32), ops.read(4, U32)

    def step(wave: Wave, sel: Selection) -> None:
        value = integers.insert_field(
            field(wave, sel), base(wave, sel), position(wave, sel), length(wave, sel)
        )
        write(wave, sel, value)

    return step


@decodes("bmsk")
def _bmsk(ops: Operands) -> Step:
    clamp = "clamp" in modifiers(ops, frozenset({"clamp", "wrap"}))
    return binary(ops, U32, lambda a, b: integers.bit_mask(a, b, clamp=clamp))


@decodes("szext")
def _szext(ops: Operands) -> Step:
    ops.expect_count(3)
    clamp = "clamp" in modifiers(ops, frozenset({"clamp", "wrap"}))
    kind = _integer(ops)
    write, read, width = ops.write(0, kind), ops.read(1, kind), ops.read(2, U32)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, integers.extend_from_bit(read(wave, sel), width(wave, sel), clamp=clamp))

    return step


@decodes("fns")
def _fns(ops: Operands) -> Step:
    ops.expect_count(4)
    write = ops.write(0, U32)
    mask, base, offset = ops.read(1, U32), ops.read(2, U32), ops.read(3, "s32")

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, integers.nth_set(mask(wave, sel), base(wave, sel), offset(wave, sel)))

    return step


# Dot products ------------------------------------------------------------------------------------


def _lanes(value: Value, bits: int, *, signed: bool) -> list[Value]:
    """The 8- or 16-bit fields of 32-bit values, low first, as 32-bit integers."""
    table = SIGNED if signed else UNSIGNED
    return [
        (value >> np.uint32(shift)).astype(UNSIGNED[bits]).view(table[bits]).astype(np.int32)
        for shift in range(0, 32, bits)
    ]


def _dot_types(ops: Operands) -> tuple[ScalarType, ScalarType, ScalarType]:
    a, b = ops.type(ops.part(-2)), ops.type(ops.part(-1))
    if not {a.name, b.name} <= {"s32", "u32"}:
        ops.refuse("takes .s32 and .u32")
    result = TYPES["s32"] if Kind.SIGNED in (a.kind, b.kind) else U32
    return a, b, result


@decodes("dp4a")
def _dp4a(ops: Operands) -> Step:
    ops.expect_count(4)
    kind_a, kind_b, result = _dot_types(ops)
    write, read_c = ops.write(0, result), ops.read(3, result)
    read_a, read_b = ops.read(1, B32), ops.read(2, B32)

    def step(wave: Wave, sel: Selection) -> None:
        total = read_c(wave, sel).view(np.int32)
        left = _lanes(read_a(wave, sel), 8, signed=kind_a.is_signed)
        right = _lanes(read_b(wave, sel), 8, signed=kind_b.is_signed)
        for a, b in zip(left, right, strict=True):
            total = total + a * b
        write(wave, sel, total.view(result.dtype))

    return step


@decodes("dp2a")
def _dp2a(ops: Operands) -> Step:
    ops.expect_count(4)
    kind_a, kind_b, result = _dot_types(ops)
    start = 2 if "hi" in modifiers(ops, frozenset({"lo", "hi"}), types=2) else 0
    write, read_c = ops.write(0, result), ops.read(3, result)
    read_a, read_b = ops.read(1, B32), ops.read(2, B32)

    def step(wave: Wave, sel: Selection) -> None:
        total = read_c(wave, sel).view(np.int32)
        left = _lanes(read_a(wave, sel), 16, signed=kind_a.is_signed)
        right = _lanes(read_b(wave, sel), 8, signed=kind_b.is_signed)[start : start + 2]
        for a, b in zip(left, right, strict=True):
            total = total + a * b
        write(wave, sel, total.view(result.dtype))

    return step
