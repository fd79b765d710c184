"""Calls of device functions.

A function's registers exist once a thread, so recursion is refused. Parameters in `.param` space
live in local memory; a call copies them there and the results back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.emulator.blocks import Onward, Terminator
from phobos.emulator.decode import Operands, Step
from phobos.emulator.externs import ASSERTIONS, assertion_terminator, print_terminator
from phobos.emulator.types import Selection
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Arguments, Function, Operand, Symbol, Variable

if TYPE_CHECKING:
    from phobos.emulator.control import Places
    from phobos.emulator.schedule import Scheduler


class ReturnBlocks:
    """Where each thread goes on when it leaves a device function."""

    def __init__(self, wave: Wave) -> None:
        self._wave = wave
        self._blocks: dict[str, npt.NDArray[np.int64]] = {}
        self._results: dict[int, Step] = {}

    def enter(self, name: str, block: int, copy_results: Step, sel: Selection) -> None:
        """Note that the threads enter function `name` and go on at `block`."""
        blocks = self._blocks.setdefault(name, np.zeros(self._wave.size, dtype=np.int64))
        blocks[self._wave.selected(sel)] = block
        self._results[block] = copy_results

    def leave(self, scheduler: Scheduler, name: str, sel: Selection) -> Onward:
        """Send threads back to their callers, results copied."""
        wave = self._wave
        threads = wave.selected(sel)
        blocks = self._blocks[name][threads]
        numbers = np.unique(blocks).tolist()
        for number in numbers:
            group = sel if len(numbers) == 1 else threads[blocks == number]
            self._results[number](wave, group)
            if len(numbers) == 1:
                return number, sel
            scheduler.add(number, group)
        return None


def called_functions(function: Function) -> list[str]:
    """The names of the functions that a function calls directly."""
    return [
        operand.name
        for instruction in function.body
        if instruction.opcode == "call"
        for operand in instruction.operands
        if isinstance(operand, Symbol)
    ]


def call_terminator(ops: Operands, places: Places) -> Terminator:
    """The terminator of a `call`."""
    results, name, arguments = _call_parts(ops)
    if name in ASSERTIONS:
        return assertion_terminator(ops, arguments)
    if name == "vprintf":
        return print_terminator(ops, results, arguments, places)
    callee = ops.environment.module.functions.get(name)
    if callee is None or callee.is_declaration:
        ops.refuse(f"function `{name}` has no body in this module")
    if len(arguments) != len(callee.parameters) or len(results) != len(callee.results):
        ops.refuse(
            f"`{name}` takes {len(callee.parameters)} arguments and gives "
            f"{len(callee.results)} results"
        )
    inner = ops.of_function(callee)
    copies_in = [
        _copy(inner, parameter, ops, argument, into_callee=True)
        for parameter, argument in zip(callee.parameters, arguments, strict=True)
    ]
    copies_out = [
        _copy(inner, result, ops, target, into_callee=False)
        for result, target in zip(callee.results, results, strict=True)
    ]

    def finish(wave: Wave, sel: Selection) -> None:
        for copy in copies_out:
            copy(wave, sel)

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        for copy in copies_in:
            copy(scheduler.wave, sel)
        scheduler.calls.enter(name, places.following, finish, sel)
        return places.functions[name], sel

    return terminate


def _call_parts(ops: Operands) -> tuple[tuple[Operand, ...], str, tuple[Operand, ...]]:
    operands = list(ops.instruction.operands)
    results: tuple[Operand, ...] = ()
    if operands and isinstance(operands[0], Arguments):
        results = operands[0].elements
        operands = operands[1:]
    if not operands or not isinstance(operands[0], Symbol):
        ops.refuse("indirect calls are not supported")
    name = operands[0].name
    arguments: tuple[Operand, ...] = ()
    if len(operands) > 1 and isinstance(operands[1], Arguments):
        arguments = operands[1].elements
    return results, name, arguments


def _copy(
    inner: Operands, formal: Variable, outer: Operands, actual: Operand, *, into_callee: bool
) -> Step:
    """A step that copies an argument to a parameter, or a result to its target."""
    if formal.register is not None:
        kind = outer.type(f"b{inner.register_type(formal.register).bits}")
        if formal.type == "pred":
            kind = outer.type("pred")
        source, target = (outer, inner) if into_callee else (inner, outer)
        read = source.reader(actual if into_callee else formal.register, kind)
        write = target.writer(formal.register if into_callee else actual, kind)
        return lambda wave, sel: write(wave, sel, read(wave, sel).copy())
    if not isinstance(actual, Symbol):
        outer.refuse("arguments in `.param` space must be variables in `.param` space")
    layout = inner.environment.layout
    there = layout.address_of(inner, Symbol(formal.name))
    here = layout.address_of(outer, actual)
    start, stop = (here, there) if into_callee else (there, here)
    size = formal.size

    def step(wave: Wave, sel: Selection) -> None:
        memory = wave.memories.local
        base = wave.selected(sel) * memory.stride
        memory.store.copy(base + start, base + stop, size)

    return step
