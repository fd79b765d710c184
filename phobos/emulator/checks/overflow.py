"""Overflow of index arithmetic: signed sums and products that an address is made from.

Which instructions those are follows from the text: the registers of an address, what computes
them, and so on backwards, whatever the path. Arithmetic that ends in no address may wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from phobos.emulator.arithmetic import integers
from phobos.emulator.checks.registers import registers_in
from phobos.emulator.decode import Operands, Step
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import ScalarType, Selection, Value
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import (
    Address,
    Function,
    Instruction,
    Register,
)

_NOT_CARRIED = frozenset(
    {"ld", "ldu", "atom", "shfl", "ldmatrix", "mma", "wmma", "wgmma", "setp", "call"}
)
"""Instructions whose result is no function of an index in the sense of this check."""


def address_slice(function: Function) -> frozenset[int]:
    """Places in the body of the instructions that addresses are computed by."""
    writers: dict[int, list[int]] = {}
    for place, instruction in enumerate(function.body):
        if instruction.opcode in _NOT_CARRIED or not instruction.operands:
            continue
        for register in registers_in(instruction.operands[:1], addresses=False):
            writers.setdefault(register.index, []).append(place)
    queue = [
        operand.base.index
        for instruction in function.body
        for operand in instruction.operands
        if isinstance(operand, Address) and isinstance(operand.base, Register)
    ]
    seen, found = set(queue), set()
    while queue:
        for place in writers.get(queue.pop(), ()):
            found.add(place)
            for register in registers_in(function.body[place].operands[1:], addresses=False):
                if register.index not in seen:
                    seen.add(register.index)
                    queue.append(register.index)
    return frozenset(found)


def _sum_overflows(a: Value, b: Value) -> Value:
    total = a + b
    return ((a ^ total) & (b ^ total)) < 0


def _difference_overflows(a: Value, b: Value) -> Value:
    total = a - b
    return ((a ^ b) & (a ^ total)) < 0


def _product_overflows(a: Value, b: Value) -> Value:
    low, high = a * b, integers.multiply_high(a, b)
    return high != low >> a.dtype.type(integers.bits_of(a) - 1)


def _mad_overflows(a: Value, b: Value, c: Value) -> Value:
    return _product_overflows(a, b) | _sum_overflows(a * b, c)


_TESTS: Mapping[tuple[str, ...], Callable[..., Value]] = {
    ("add",): _sum_overflows,
    ("sub",): _difference_overflows,
    ("mul", "lo"): _product_overflows,
    ("mad", "lo"): _mad_overflows,
}


def _test_of(instruction: Instruction) -> Callable[..., Value] | None:
    return _TESTS.get((instruction.opcode, *instruction.suffix[:-1]))


def overflow_step(ops: Operands, kind: ScalarType, step: Step) -> Step:
    """The step, with a finding where its signed result does not fit."""
    test = _test_of(ops.instruction)
    if test is None or not kind.is_signed:
        return step
    readers = [ops.read(index, kind) for index in range(1, ops.count)]

    def run(wave: Wave, sel: Selection) -> None:
        operands = [read(wave, sel) for read in readers]
        wrong = np.atleast_1d(test(*operands))
        if wrong.any():
            place = int(np.argmax(wrong))
            values = ", ".join(str(int(v if v.ndim == 0 else v[place])) for v in operands)
            ops.report(
                FindingKind.OVERFLOW,
                wave,
                int(wave.selected(sel)[place]),
                f"computes an index by `{ops.instruction.mnemonic}` of {values}, which does not "
                f"fit in {kind.bits} bits",
            )
        step(wave, sel)

    return run
