"""f16 and bf16 arithmetic, single and packed in pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from phobos.emulator.arithmetic import floats
from phobos.emulator.arithmetic.exact import add_odd
from phobos.emulator.arithmetic.formats import (
    CANONICAL_NAN,
    FORMATS,
    half_from,
    is_tiny,
    pack_half,
    unpack_half,
)
from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import Family, decodes
from phobos.emulator.instructions.shape import last_type, modifiers
from phobos.emulator.types import F32, ScalarType, Selection, Value
from phobos.emulator.wave import Wave

Compute = Callable[..., Value]


def _element(kind: ScalarType) -> str:
    return kind.name.removesuffix("x2")


def _flush(value: Value, name: str) -> Value:
    """Subnormal numbers of the half format become zeros of their sign."""
    small = (np.abs(value) < 2.0 ** FORMATS[name].lowest) & (value != 0)
    return np.where(small, np.copysign(value.dtype.type(0), value), value)


def half_step(
    ops: Operands,
    kind: ScalarType,
    arity: int,
    compute: Compute,
    *,
    flush: bool = False,
    saturate: bool = False,
    relu: bool = False,
) -> Step:
    """A step on each element: `compute` maps float32 elements to float64, rounded to odd."""
    ops.expect_count(arity + 1)
    write = ops.write(0, kind)
    readers = [ops.read(index, kind) for index in range(1, arity + 1)]
    name = _element(kind)

    def one(elements: tuple[Value, ...]) -> Value:
        if flush:
            elements = tuple(_flush(element, name) for element in elements)
        result = compute(*elements)
        if flush:
            tiny = is_tiny(result, FORMATS[name])
            result = np.where(tiny, np.copysign(0.0, result), result)
        if saturate:
            result = floats.saturate_unit(result)
        if relu:
            result = np.where(result <= 0, 0.0, result)
        return half_from(result, name)

    def step(wave: Wave, sel: Selection) -> None:
        operands = [unpack_half(read(wave, sel), kind) for read in readers]
        write(wave, sel, pack_half([one(e) for e in zip(*operands, strict=True)], kind))

    return step


def _flush_bits(bits: Value, name: str) -> Value:
    exponent = np.uint16(0x7C00 if name == "f16" else 0x7F80)
    return np.where((bits & exponent) == 0, bits & np.uint16(0x8000), bits)


def _add(a: Value, b: Value) -> Value:
    return add_odd(a.astype(np.float64), b.astype(np.float64))


def _subtract(a: Value, b: Value) -> Value:
    return add_odd(a.astype(np.float64), -b.astype(np.float64))


def _multiply(a: Value, b: Value) -> Value:
    return a.astype(np.float64) * b.astype(np.float64)


def _fma(a: Value, b: Value, c: Value) -> Value:
    return add_odd(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))


_BASIC: Mapping[str, tuple[int, Compute]] = {
    "add": (2, _add),
    "sub": (2, _subtract),
    "mul": (2, _multiply),
    "fma": (3, _fma),
}


@decodes("add", "sub", "mul", "fma", family=Family.HALF)
def _basic(ops: Operands) -> Step:
    if ops.instruction.suffix[-2:-1] == ("f32",):
        return _mixed(ops)
    kind = last_type(ops)
    parts = modifiers(ops, frozenset({"rn", "ftz", "sat", "relu", "oob"}))
    arity, compute = _BASIC[ops.instruction.opcode]
    if "oob" in parts:
        ops.refuse("`.oob` is not supported")
    return half_step(
        ops,
        kind,
        arity,
        compute,
        flush="ftz" in parts,
        saturate="sat" in parts,
        relu="relu" in parts,
    )


def _mixed(ops: Operands) -> Step:
    """`add`, `sub` and `fma` of halves into f32: `fma.rn.f32.f16 d, a, b, c`."""
    kind = last_type(ops)
    parts = modifiers(ops, frozenset({"rn", "rz", "rm", "rp", "sat"}), types=2)
    mode = next(iter(parts - {"sat"}), "rn")
    opcode = ops.instruction.opcode
    if opcode == "mul":
        ops.refuse("has no mixed-precision form")
    is_fma = opcode == "fma"
    ops.expect_count(4 if is_fma else 3)
    write, last = ops.write(0, F32), ops.read(3 if is_fma else 2, F32)
    halves = [ops.read(index, kind) for index in ((1, 2) if is_fma else (1,))]

    def step(wave: Wave, sel: Selection) -> None:
        factors = [unpack_half(read(wave, sel), kind)[0] for read in halves]
        addend = last(wave, sel)
        if is_fma:
            result = floats.fused_multiply_add(factors[0], factors[1], addend, mode)
        else:
            result = floats.add(factors[0], -addend if opcode == "sub" else addend, mode)
        if "sat" in parts:
            result = floats.saturate_unit(result)
        write(wave, sel, floats.canonical(result))

    return step


@decodes("neg", "abs", family=Family.HALF)
def _sign(ops: Operands) -> Step:
    kind = last_type(ops)
    flush = "ftz" in modifiers(ops, frozenset({"ftz"}))
    ops.expect_count(2)
    write, read = ops.write(0, kind), ops.read(1, kind)
    name, negates = _element(kind), ops.instruction.opcode == "neg"
    sign = np.uint16(0x8000)

    largest = np.uint16(0x7C00 if name == "f16" else 0x7F80)

    def one(value: Value) -> Value:
        bits = value ^ sign if negates else value & ~sign
        missing = (bits & ~sign) > largest
        bits = np.where(missing, np.uint16(CANONICAL_NAN[name]), bits)
        return _flush_bits(bits, name) if flush else bits

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, pack_half([one(bits) for bits in _raw(read(wave, sel), kind)], kind))

    return step


def _raw(value: Value, kind: ScalarType) -> list[Value]:
    """The 16-bit patterns of an operand's elements, low first."""
    if kind.bits == 16:
        return [value.view(np.uint16)]
    return [value.astype(np.uint16), (value >> np.uint32(16)).astype(np.uint16)]


@decodes("min", "max", family=Family.HALF)
def _minmax(ops: Operands) -> Step:
    kind = last_type(ops)
    parts = modifiers(ops, frozenset({"ftz", "NaN", "xorsign", "abs"}))
    extreme = floats.minimum if ops.instruction.opcode == "min" else floats.maximum
    propagate = "NaN" in parts

    def compute(a: Value, b: Value) -> Value:
        if "abs" not in parts:
            return extreme(a, b, propagate_nan=propagate).astype(np.float64)
        result = extreme(np.abs(a), np.abs(b), propagate_nan=propagate)
        negative = np.signbit(a) != np.signbit(b)
        return np.where(negative & ~np.isnan(result), -result, result).astype(np.float64)

    return half_step(ops, kind, 2, compute, flush="ftz" in parts)


_APPROXIMATE: Mapping[str, Callable[[Value], Value]] = {"ex2": np.exp2, "tanh": np.tanh}


@decodes("ex2", "tanh", family=Family.HALF)
def _transcendental(ops: Operands) -> Step:
    kind = last_type(ops)
    parts = modifiers(ops, frozenset({"approx", "ftz"}))
    if "approx" not in parts:
        ops.refuse("needs `.approx`")
    function = _APPROXIMATE[ops.instruction.opcode]
    return half_step(ops, kind, 1, lambda a: function(a.astype(np.float64)), flush="ftz" in parts)
