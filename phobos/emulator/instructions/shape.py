"""Helpers that most decoders share: plain one-, two- and three-operand steps."""

from __future__ import annotations

from collections.abc import Callable

from phobos.emulator.decode import Operands, Step
from phobos.emulator.types import ScalarType, Selection, Value
from phobos.emulator.wave import Wave


def unary(
    ops: Operands,
    kind: ScalarType,
    function: Callable[[Value], Value],
    result: ScalarType | None = None,
) -> Step:
    """`d = function(a)`; operand and result of type `kind` unless `result` says otherwise."""
    ops.expect_count(2)
    write, read = ops.write(0, result or kind), ops.read(1, kind)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, function(read(wave, sel)))

    return step


def binary(
    ops: Operands,
    kind: ScalarType,
    function: Callable[[Value, Value], Value],
    result: ScalarType | None = None,
) -> Step:
    """`d = function(a, b)`."""
    ops.expect_count(3)
    write = ops.write(0, result or kind)
    read_a, read_b = ops.read(1, kind), ops.read(2, kind)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, function(read_a(wave, sel), read_b(wave, sel)))

    return step


def ternary(
    ops: Operands,
    kind: ScalarType,
    function: Callable[[Value, Value, Value], Value],
    result: ScalarType | None = None,
) -> Step:
    """`d = function(a, b, c)`."""
    ops.expect_count(4)
    write = ops.write(0, result or kind)
    read_a, read_b, read_c = (ops.read(index, kind) for index in (1, 2, 3))

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, function(read_a(wave, sel), read_b(wave, sel), read_c(wave, sel)))

    return step


def last_type(ops: Operands) -> ScalarType:
    """The type that ends the suffix."""
    suffix = ops.instruction.suffix
    if not suffix:
        ops.refuse("needs a type")
    return ops.type(suffix[-1])


def modifiers(ops: Operands, known: frozenset[str], *, types: int = 1) -> frozenset[str]:
    """The suffix parts before the last `types`; refuses those that are not `known`."""
    suffix = ops.instruction.suffix
    found = suffix[: len(suffix) - types]
    for part in found:
        if part not in known:
            ops.refuse(f"unknown modifier `.{part}`")
    return frozenset(found)
