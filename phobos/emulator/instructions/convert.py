"""Conversions: every form of `cvt`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from phobos.emulator.arithmetic import conversions, integers
from phobos.emulator.arithmetic.formats import half_to_single
from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.types import B32, Kind, ScalarType, Selection, Value
from phobos.emulator.wave import Wave

_FLOAT_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp", "rna"})
_INTEGER_ROUNDINGS: Mapping[str, str] = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}
_FLAGS = frozenset({"ftz", "sat", "relu", "satfinite"})
_PAIRS = frozenset({"f16x2", "bf16x2", "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue8m0x2"})


@decodes("cvt")
def _cvt(ops: Operands) -> Step:
    suffix = ops.instruction.suffix
    if suffix[:1] == ("pack",):
        return _pack(ops)
    if suffix[:1] == ("rs",):
        ops.refuse("stochastic rounding is not supported")
    if len(suffix) < 2:
        ops.refuse("needs two types")
    target, source = ops.type(suffix[-2]), ops.type(suffix[-1])
    flags = suffix[:-2]
    for flag in flags:
        if flag not in _FLOAT_ROUNDINGS | _FLAGS and flag not in _INTEGER_ROUNDINGS:
            ops.refuse(f"unknown modifier `.{flag}`")
    if target.name in _PAIRS or source.name in _PAIRS:
        return _pairs(ops, target, source, flags)
    ops.expect_count(2)
    function = _scalar(ops, target, source, flags)
    write, read = ops.write(0, target), ops.read(1, source)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, function(read(wave, sel)))

    return step


def _scalar(
    ops: Operands, target: ScalarType, source: ScalarType, flags: tuple[str, ...]
) -> Callable[[Value], Value]:
    integral = next((_INTEGER_ROUNDINGS[f] for f in flags if f in _INTEGER_ROUNDINGS), None)
    mode = next((f for f in flags if f in _FLOAT_ROUNDINGS), None)
    is_float = (target.is_float, source.is_float)
    if is_float == (False, False):
        return _integer_to_integer(ops, target, source, saturate="sat" in flags)
    if is_float == (False, True):
        if integral is None:
            ops.refuse("float to integer needs .rni, .rzi, .rmi or .rpi")
        flush = "ftz" in flags
        return lambda value: conversions.float_to_integer(
            conversions.to_double(value, source, flush=flush), target, source, integral
        )
    if is_float == (True, False):
        if mode is None:
            ops.refuse("integer to float needs a rounding mode")
        saturate = "sat" in flags
        return lambda value: conversions.integer_to_float(value, target, mode, saturate=saturate)
    return _float_to_float(ops, target, source, flags, integral, mode)


def _integer_to_integer(
    ops: Operands, target: ScalarType, source: ScalarType, *, saturate: bool
) -> Callable[[Value], Value]:
    for kind in (target, source):
        if kind.kind is Kind.PREDICATE:
            ops.refuse("does not convert predicates")
    if saturate:
        return lambda value: integers.saturate(value, target.dtype)
    return lambda value: value.astype(target.dtype)


def _float_to_float(
    ops: Operands,
    target: ScalarType,
    source: ScalarType,
    flags: tuple[str, ...],
    integral: str | None,
    mode: str | None,
) -> Callable[[Value], Value]:
    narrows = target.bits < source.bits or {target.name, source.name} == {"f16", "bf16"}
    if (narrows or target.name == "tf32") and mode is None:
        ops.refuse(f"needs a rounding mode from .{source.name} to .{target.name}")
    if target.name == "tf32" and mode == "rna":
        saturate = "satfinite" in flags
        return lambda value: conversions.round_away_tf32(value, saturate=saturate)
    if (target.name, source.name, flags) == ("f32", "bf16", ()):
        # The bits move up and NaN stays as it is.
        return lambda value: half_to_single(value, "bf16")
    conversion = conversions.FloatConversion(
        target=target,
        source=source,
        mode=mode or "rn",
        integral=integral,
        flush="ftz" in flags,
        saturate="sat" in flags,
        satfinite="satfinite" in flags,
        relu="relu" in flags,
    )
    # The hardware does not flush what it narrows to f16, whatever `.ftz` says.
    flush = conversion.flush and target.name != "f16"
    return lambda value: conversion.apply(conversions.to_double(value, source, flush=flush))


# Pairs -------------------------------------------------------------------------------------------


def _pairs(ops: Operands, target: ScalarType, source: ScalarType, flags: tuple[str, ...]) -> Step:
    """Two elements at once. Of two f32 sources, the first becomes the upper element."""
    mode = next((f for f in flags if f in _FLOAT_ROUNDINGS), None)
    if mode is None or target.name not in _PAIRS:
        ops.refuse("needs a rounding mode and a packed result")
    element = target.name.removesuffix("x2")
    convert = conversions.element_encoder(
        element, mode, saturate="satfinite" in flags, relu="relu" in flags
    )
    width = target.bits // 2
    storage = target.storage
    flush = "ftz" in flags
    write = ops.write(0, target)

    def combine(low: Value, high: Value) -> Value:
        upper = convert(high).astype(storage) << storage.type(width)
        return convert(low).astype(storage) | upper

    if source.name == "f32":
        ops.expect_count(3)
        read_high, read_low = ops.read(1, source), ops.read(2, source)

        def step_two(wave: Wave, sel: Selection) -> None:
            high, low = (
                conversions.to_double(read(wave, sel), source, flush=flush)
                for read in (read_high, read_low)
            )
            write(wave, sel, combine(low, high))

        return step_two
    if source.name not in _PAIRS:
        ops.refuse(f"cannot make .{target.name} from .{source.name}")
    ops.expect_count(2)
    read = ops.read(1, source)
    part = conversions.element_decoder(source.name.removesuffix("x2"))
    half = source.bits // 2
    mask = source.storage.type((1 << half) - 1)

    def step(wave: Wave, sel: Selection) -> None:
        value = read(wave, sel)
        low, high = part(value & mask), part(value >> source.storage.type(half))
        write(wave, sel, combine(low, high))

    return step


# Packed integers ---------------------------------------------------------------------------------

_NARROW: Mapping[str, tuple[int, bool]] = {
    "u16": (16, False),
    "s16": (16, True),
    "u8": (8, False),
    "s8": (8, True),
    "u4": (4, False),
    "s4": (4, True),
    "u2": (2, False),
    "s2": (2, True),
}


def _pack(ops: Operands) -> Step:
    """`cvt.pack.sat.T.s32{.b32} d, a, b{, c}`: d = c << 2n | a << n | b, clamped to n bits."""
    suffix = ops.instruction.suffix
    if len(suffix) < 4 or suffix[1] != "sat" or suffix[2] not in _NARROW:
        ops.refuse("unknown form of cvt.pack")
    bits, signed = _NARROW[suffix[2]]
    source = ops.type(suffix[3])
    with_base = len(suffix) == 5
    ops.expect_count(4 if with_base else 3)
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    write, read_a, read_b = ops.write(0, B32), ops.read(1, source), ops.read(2, source)
    read_c = ops.read(3, B32) if with_base else None
    mask = np.uint32((1 << bits) - 1)

    def clamp(value: Value) -> Value:
        return np.clip(value.astype(np.int64), low, high).astype(np.uint32) & mask

    def step(wave: Wave, sel: Selection) -> None:
        value = (clamp(read_a(wave, sel)) << np.uint32(bits)) | clamp(read_b(wave, sel))
        if read_c is not None:
            value = value | (read_c(wave, sel) << np.uint32(2 * bits))
        write(wave, sel, value)

    return step
