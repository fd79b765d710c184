"""f32 and f64 arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from phobos.emulator.arithmetic import approximate, floats
from phobos.emulator.decode import Operands, Reader, Step
from phobos.emulator.instructions.registry import Family, decodes
from phobos.emulator.instructions.shape import last_type, modifiers
from phobos.emulator.types import F32, F64, PRED, ScalarType, Selection, Value
from phobos.emulator.wave import Wave

Compute = Callable[..., Value]

_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})
_FLAGS = frozenset({"ftz", "sat"})
_SECOND_FIRST = (1, 2, 0)
_FIRST_FIRST = (0, 1)


def _scalar_float(ops: Operands) -> ScalarType:
    kind = last_type(ops)
    if kind not in (F32, F64):
        ops.refuse(f"takes .f32 or .f64, not .{kind.name}")
    return kind


def _rounding(ops: Operands, parts: frozenset[str], default: str = "rn") -> str:
    chosen = parts & _ROUNDINGS
    if len(chosen) > 1:
        ops.refuse("has two rounding modes")
    return next(iter(chosen), default)


def arithmetic_step(
    ops: Operands,
    kind: ScalarType,
    arity: int,
    compute: Compute,
    *,
    flush: bool = False,
    saturate: bool = False,
    nan_order: tuple[int, ...] = _SECOND_FIRST,
) -> Step:
    """A step that computes, with `.ftz` on operands and result, `.sat`, and the hardware's NaN.

    `nan_order` lists the operands in the order in which the hardware looks for a NaN to pass on.
    """
    ops.expect_count(arity + 1)
    write = ops.write(0, kind)
    readers: list[Reader] = [ops.read(index, kind) for index in range(1, arity + 1)]
    order = [place for place in nan_order if place < arity]

    def step(wave: Wave, sel: Selection) -> None:
        values = [read(wave, sel) for read in readers]
        if flush:
            values = [floats.flush_subnormals(value) for value in values]
        operands = values
        result = compute(*values)
        if flush:
            result = floats.flush_subnormals(result)
        if saturate:
            result = floats.saturate_unit(result)
        write(wave, sel, floats.settle_nan(result, [operands[place] for place in order]))

    return step


_BASIC: Mapping[str, tuple[int, Callable[..., Value]]] = {
    "add": (2, floats.add),
    "mul": (2, floats.multiply),
    "fma": (3, floats.fused_multiply_add),
    "mad": (3, floats.fused_multiply_add),
}

_FLUSHED: Mapping[str, Callable[..., Value]] = {
    "mul": floats.multiply_flushed,
    "fma": floats.fma_flushed,
    "mad": floats.fma_flushed,
}


@decodes("add", "mul", "fma", "mad", family=Family.FLOAT)
def _basic(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    parts = modifiers(ops, _ROUNDINGS | _FLAGS)
    mode = _rounding(ops, parts)
    arity, function = _BASIC[ops.instruction.opcode]
    if ops.instruction.opcode in ("fma", "mad") and not parts & _ROUNDINGS:
        ops.refuse("needs a rounding mode")
    _refuse_double_flags(ops, kind, parts)
    if "ftz" in parts:
        function = _FLUSHED.get(ops.instruction.opcode, function)
    compute = function if mode == "rn" else lambda *values: function(*values, mode)
    return arithmetic_step(ops, kind, arity, compute, flush="ftz" in parts, saturate="sat" in parts)


@decodes("sub", family=Family.FLOAT)
def _sub(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    parts = modifiers(ops, _ROUNDINGS | _FLAGS)
    mode = _rounding(ops, parts)
    _refuse_double_flags(ops, kind, parts)
    return arithmetic_step(
        ops,
        kind,
        2,
        lambda a, b: floats.add(a, -b, mode),
        flush="ftz" in parts,
        saturate="sat" in parts,
    )


def _refuse_double_flags(ops: Operands, kind: ScalarType, parts: frozenset[str]) -> None:
    if kind is F64 and parts & _FLAGS:
        ops.refuse("`.ftz` and `.sat` need .f32")


@decodes("div", family=Family.FLOAT)
def _div(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    parts = modifiers(ops, _ROUNDINGS | {"ftz", "approx", "full"})
    flush = "ftz" in parts
    if "approx" in parts:
        return arithmetic_step(ops, kind, 2, approximate.divide, flush=flush)
    if "full" in parts:
        return arithmetic_step(ops, kind, 2, floats.divide, flush=flush)
    mode = _rounding(ops, parts)
    if not parts & _ROUNDINGS:
        ops.refuse("needs a rounding mode, `.approx` or `.full`")
    divide = floats.divide_flushed if flush else floats.divide
    return arithmetic_step(
        ops, kind, 2, lambda a, b: divide(a, b, mode), flush=flush, nan_order=_FIRST_FIRST
    )


@decodes("rcp", "sqrt", family=Family.FLOAT)
def _root_or_reciprocal(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    parts = modifiers(ops, _ROUNDINGS | {"ftz", "approx"})
    flush = "ftz" in parts
    opcode = ops.instruction.opcode
    if "approx" in parts:
        if kind is F64:
            return _coarse_double(ops, approximate.reciprocal)
        function = approximate.reciprocal if opcode == "rcp" else approximate.square_root
        return arithmetic_step(ops, kind, 1, function, flush=flush)
    if not parts & _ROUNDINGS:
        ops.refuse("needs a rounding mode or `.approx`")
    mode = _rounding(ops, parts)
    if opcode == "sqrt":
        return arithmetic_step(ops, kind, 1, lambda a: floats.square_root(a, mode), flush=flush)
    one = kind.dtype.type(1)
    return arithmetic_step(
        ops, kind, 1, lambda a: floats.divide(np.full_like(a, one), a, mode), flush=flush
    )


@decodes("rsqrt", family=Family.FLOAT)
def _rsqrt(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    parts = modifiers(ops, frozenset({"ftz", "approx"}))
    if kind is F64 and "ftz" in parts:
        return _coarse_double(ops, approximate.reciprocal_root)
    return arithmetic_step(ops, kind, 1, approximate.reciprocal_root, flush="ftz" in parts)


def _coarse_double(ops: Operands, function: Callable[[Value], Value]) -> Step:
    """`rcp` and `rsqrt.approx.ftz.f64`: only the upper 32 bits count, in and out."""
    ops.expect_count(2)
    write, read = ops.write(0, F64), ops.read(1, F64)

    def step(wave: Wave, sel: Selection) -> None:
        value = floats.flush_subnormals(approximate.upper_half(read(wave, sel)))
        result = floats.flush_subnormals(function(value))
        write(wave, sel, approximate.upper_half(result))

    return step


_APPROXIMATE: Mapping[str, Callable[[Value], Value]] = {
    "ex2": approximate.exp2,
    "lg2": approximate.log2,
    "sin": approximate.sine,
    "cos": approximate.cosine,
    "tanh": approximate.tangent_h,
}


@decodes("ex2", "lg2", "sin", "cos", "tanh", family=Family.FLOAT)
def _transcendental(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    parts = modifiers(ops, frozenset({"ftz", "approx"}))
    if kind is not F32 or "approx" not in parts:
        ops.refuse("needs `.approx` and .f32")
    function = _APPROXIMATE[ops.instruction.opcode]
    return arithmetic_step(ops, kind, 1, function, flush="ftz" in parts)


@decodes("neg", "abs", family=Family.FLOAT)
def _sign(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    flush = "ftz" in modifiers(ops, frozenset({"ftz"}))
    function = np.negative if ops.instruction.opcode == "neg" else np.abs
    return arithmetic_step(ops, kind, 1, function, flush=flush)


@decodes("min", "max", family=Family.FLOAT)
def _minmax(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    parts = modifiers(ops, frozenset({"ftz", "NaN", "xorsign", "abs"}))
    extreme = floats.minimum if ops.instruction.opcode == "min" else floats.maximum
    propagate = "NaN" in parts

    def two(a: Value, b: Value) -> Value:
        if "abs" not in parts:
            return extreme(a, b, propagate_nan=propagate)
        result = extreme(np.abs(a), np.abs(b), propagate_nan=propagate)
        if "xorsign" not in parts:
            return result
        negative = np.signbit(a) != np.signbit(b)
        return np.where(negative & ~np.isnan(result), -result, result)

    if ops.count == 4:
        return arithmetic_step(
            ops, kind, 3, lambda a, b, c: two(two(a, b), c), flush="ftz" in parts
        )
    return arithmetic_step(ops, kind, 2, two, flush="ftz" in parts)


@decodes("copysign", family=Family.FLOAT)
def _copysign(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    modifiers(ops, frozenset())
    ops.expect_count(3)
    write, sign, magnitude = ops.write(0, kind), ops.read(1, kind), ops.read(2, kind)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, np.copysign(magnitude(wave, sel), sign(wave, sel)))

    return step


def _is_subnormal(a: Value) -> Value:
    smallest = np.finfo(a.dtype).smallest_normal
    return (a != 0) & (np.abs(a) < smallest)


def _is_normal(a: Value) -> Value:
    """Finite and not subnormal; zero counts as normal."""
    return np.isfinite(a) & ~_is_subnormal(a)


_TESTS: Mapping[str, Callable[[Value], Value]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": _is_normal,
    "subnormal": _is_subnormal,
}


@decodes("testp", family=Family.FLOAT)
def _testp(ops: Operands) -> Step:
    kind = _scalar_float(ops)
    ops.expect_count(2)
    function = _TESTS.get(ops.part(0))
    if function is None:
        ops.refuse(f"unknown test `.{ops.part(0)}`")
    write, read = ops.write(0, PRED), ops.read(1, kind)
    return lambda wave, sel: write(wave, sel, function(read(wave, sel)))


_PACKED: Mapping[str, Callable[..., Value]] = {
    "add": floats.add,
    "sub": lambda a, b, mode: floats.add(a, -b, mode),
    "mul": floats.multiply,
    "fma": floats.fused_multiply_add,
}


@decodes("add", "sub", "mul", "fma", family=Family.PACKED)
def _packed_singles(ops: Operands) -> Step:
    kind = last_type(ops)
    if kind.name != "f32x2":
        return packed_integer_step(ops)
    parts = modifiers(ops, _ROUNDINGS | {"ftz"})
    mode, flush = _rounding(ops, parts), "ftz" in parts
    opcode = ops.instruction.opcode
    arity = 3 if opcode == "fma" else 2
    ops.expect_count(arity + 1)
    write = ops.write(0, kind)
    readers = [ops.read(index, kind) for index in range(1, arity + 1)]
    function = _PACKED[opcode]

    def one(values: list[Value], shift: int) -> Value:
        halves = [
            (value >> np.uint64(shift)).astype(np.uint32).view(np.float32) for value in values
        ]
        if flush:
            halves = [floats.flush_subnormals(half) for half in halves]
        result = function(*halves, mode)
        result = floats.flush_subnormals(result) if flush else result
        return floats.canonical(result).view(np.uint32).astype(np.uint64) << np.uint64(shift)

    def step(wave: Wave, sel: Selection) -> None:
        values = [read(wave, sel) for read in readers]
        write(wave, sel, one(values, 0) | one(values, 32))

    return step


@decodes("min", "max", family=Family.PACKED)
def packed_integer_step(ops: Operands) -> Step:
    """add, min and max of two 16-bit integers side by side."""
    kind = last_type(ops)
    if kind.name not in ("u16x2", "s16x2") or ops.instruction.opcode in ("sub", "mul", "fma"):
        ops.refuse(f"does not exist for .{kind.name}")
    relu = "relu" in modifiers(ops, frozenset({"relu"}))
    ops.expect_count(3)
    function: Callable[[Value, Value], Value] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
    }[ops.instruction.opcode]
    dtype = np.dtype(np.int16 if kind.name == "s16x2" else np.uint16)
    write, read_a, read_b = ops.write(0, kind), ops.read(1, kind), ops.read(2, kind)

    def part(a: Value, b: Value, shift: int) -> Value:
        left, right = (
            (value >> np.uint32(shift)).astype(np.uint16).view(dtype) for value in (a, b)
        )
        result = function(left, right)
        if relu:
            result = np.maximum(result, dtype.type(0))
        return result.view(np.uint16).astype(np.uint32) << np.uint32(shift)

    def step(wave: Wave, sel: Selection) -> None:
        a, b = read_a(wave, sel), read_b(wave, sel)
        write(wave, sel, part(a, b, 0) | part(a, b, 16))

    return step
