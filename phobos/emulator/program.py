"""From parsed functions to blocks: leaders, guards, terminators."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phobos.emulator.blocks import Block, Terminator
from phobos.emulator.calls import called_functions
from phobos.emulator.checks.overflow import address_slice, overflow_step
from phobos.emulator.checks.registers import WatchedRegisters
from phobos.emulator.control import (
    Places,
    branch,
    branch_target,
    control_terminator,
    gate_of,
    guard_reader,
    is_control,
    is_gated,
    jump,
)
from phobos.emulator.decode import Environment, Operands, Reader, Step
from phobos.emulator.instructions.registry import find_decoder, is_known
from phobos.emulator.types import Selection
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Function, Instruction, Module

_FAMILIES = (
    "integer",
    "logic",
    "move",
    "compare",
    "floating",
    "half",
    "convert",
    "memory",
    "atomic",
    "warp",
    "matrix",
    "matrix_memory",
    "copy",
    "mbarrier",
    "cluster",
    "wmma",
    "warpgroup",
)
for _family in _FAMILIES:
    importlib.import_module(f"phobos.emulator.instructions.{_family}")

_POLLING_LOADS = frozenset({"volatile", "acquire", "relaxed"})
_POLLING = frozenset({"atom", "mbarrier", "nanosleep"})


def reachable_functions(module: Module, entry: Function) -> list[Function]:
    """The entry and every function with a body that it calls, directly or not."""
    found: dict[str, Function] = {}
    queue = [entry.name]
    while queue:
        name = queue.pop(0)
        function = module.functions.get(name)
        if name in found or function is None or function.is_declaration:
            continue
        found[name] = function
        queue += called_functions(function)
    return list(found.values())


@dataclass(frozen=True)
class Program:
    """The blocks of a kernel and the functions it calls, and the widths of their registers.

    `watched` are the registers that products of warpgroups hold, `smallest_access` the bytes of
    the narrowest access to memory.
    """

    blocks: Sequence[Block]
    register_bits: list[int]
    watched: WatchedRegisters
    smallest_access: int


class _FunctionPlan:
    """Where the blocks of one function start."""

    def __init__(self, function: Function, first_block: int, first_register: int) -> None:
        self.function = function
        self.first_block = first_block
        self.first_register = first_register
        self.leaders = sorted(_leaders(function))
        self.number: dict[int, int] = {}
        number = first_block
        for leader in self.leaders:
            self.number[leader] = number
            # A guarded instruction with a gate has a block apart that tests the guard.
            number += 2 if _needs_guard_block(function, leader) else 1
        self.end = number


def _needs_guard_block(function: Function, leader: int) -> bool:
    if leader >= len(function.body):
        return False
    instruction = function.body[leader]
    return instruction.guard is not None and _splits(instruction)


def _splits(instruction: Instruction) -> bool:
    """Whether a guarded instruction needs its guard tested in a block of its own."""
    if is_gated(instruction):
        return True
    return is_control(instruction) and instruction.opcode != "bra"


def _leaders(function: Function) -> set[int]:
    count = len(function.body)
    leaders = {0, count, *function.labels.values()}
    for index, instruction in enumerate(function.body):
        if is_gated(instruction) or (is_control(instruction) and _splits(instruction)):
            leaders |= {index, index + 1}
        elif is_control(instruction):
            leaders.add(index + 1)
    return leaders


def build_program(environment: Environment, functions: Sequence[Function]) -> Program:
    """Decode functions; the first is the entry and starts at block 0.

    Raises:
        PhobosError: An instruction is malformed or unknown, or functions call each other in
            circles.
    """
    _refuse_recursion(environment, functions)
    plans: list[_FunctionPlan] = []
    register_bits: list[int] = []
    first_block = 0
    for function in functions:
        plan = _FunctionPlan(function, first_block, len(register_bits))
        plans.append(plan)
        first_block = plan.end
        register_bits += [_bits(register.type) for register in function.registers]
    environment.register_bases.update({plan.function.name: plan.first_register for plan in plans})
    environment.watched.collect(functions, environment.register_bases)
    starts = {plan.function.name: plan.first_block for plan in plans}
    blocks: list[Block] = []
    for plan in plans:
        blocks += _FunctionBuilder(environment, plan, starts).build()
    return Program(blocks, register_bits, environment.watched, environment.smallest_access)


def _bits(type_name: str) -> int:
    digits = "".join(c for c in type_name.split("x")[0] if c.isdigit())
    return 1 if type_name == "pred" else int(digits) * (2 if type_name.endswith("x2") else 1)


def _refuse_recursion(environment: Environment, functions: Sequence[Function]) -> None:
    by_name = {function.name: function for function in functions}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        function = by_name.get(name)
        if function is None or name in done:
            return
        if name in path:
            call = next(i for i in function.body if i.opcode == "call")
            Operands(environment, function, call).refuse("recursive calls are not supported")
        for callee in called_functions(function):
            visit(callee, (*path, name))
        done.add(name)

    visit(functions[0].name, ())


class _FunctionBuilder:
    def __init__(
        self, environment: Environment, plan: _FunctionPlan, starts: dict[str, int]
    ) -> None:
        self._environment = environment
        self._plan = plan
        self._function = plan.function
        self._starts = starts
        checks_overflow = "overflow" in environment.checks
        self._index_arithmetic = address_slice(plan.function) if checks_overflow else frozenset()
        self._labels = {name: plan.number[index] for name, index in plan.function.labels.items()}

    def build(self) -> list[Block]:
        blocks: list[Block] = []
        plan, body = self._plan, self._function.body
        for leader, stop in zip(plan.leaders, [*plan.leaders[1:], len(body)], strict=True):
            number = plan.number[leader]
            if leader == len(body):
                blocks.append(self._end_block())
            elif _needs_guard_block(self._function, leader):
                following = plan.number[leader + 1]
                blocks.append(self._guard_block(body[leader], number + 1, following))
                blocks.append(self._block(leader, stop, number + 1))
            else:
                blocks.append(self._block(leader, stop, number))
        return blocks

    def _operands(self, instruction: Instruction) -> Operands:
        return Operands(self._environment, self._function, instruction)

    def _guard_block(self, instruction: Instruction, inside: int, following: int) -> Block:
        ops = self._operands(instruction)
        assert instruction.guard is not None
        condition = guard_reader(ops, instruction.guard)
        return Block((), branch(condition, inside, following), (ops,))

    def _end_block(self) -> Block:
        """What lies behind the last instruction: a return."""
        position = self._function.position
        ops = self._operands(Instruction("ret", (), (), None, position))
        return Block((), control_terminator(ops, self._places(0)), (ops,))

    def _places(self, following: int) -> Places:
        return Places(following, self._labels, self._starts)

    def _block(self, start: int, stop: int, number: int) -> Block:
        body = self._function.body
        following = self._plan.number.get(stop, self._plan.end - 1)
        steps: list[Step] = []
        terminator: Terminator = jump(following)
        instructions = [self._operands(body[index]) for index in range(start, stop)]
        gate = gate_of(instructions[0])
        for ops in instructions:
            self._environment.requirements.check(ops)
            if is_control(ops.instruction):
                terminator = self._terminator(ops, following)
                terminator = self._environment.watched.terminator(ops, terminator)
            else:
                steps.append(self._step(ops, start + len(steps)))
        spin = self._is_spin(start, stop, number)
        return Block(tuple(steps), terminator, tuple(instructions), gate, spin)

    def _terminator(self, ops: Operands, following: int) -> Terminator:
        places = self._places(following)
        guard = ops.instruction.guard
        if ops.instruction.opcode == "bra" and guard is not None:
            return branch(guard_reader(ops, guard), branch_target(ops, places), following)
        return control_terminator(ops, places)

    def _step(self, ops: Operands, place: int) -> Step:
        instruction = ops.instruction
        decoder = find_decoder(instruction.opcode, instruction.suffix)
        if decoder is None:
            reason = "has no such form" if is_known(instruction.opcode) else "is not supported"
            ops.refuse(f"{reason} in the emulator")
        step = decoder(ops)
        if place in self._index_arithmetic:
            step = overflow_step(ops, ops.type(instruction.suffix[-1]), step)
        step = self._environment.watched.step(ops, step)
        if instruction.guard is None or is_gated(instruction):
            return step
        return guarded(step, guard_reader(ops, instruction.guard))

    def _is_spin(self, start: int, stop: int, number: int) -> bool:
        """Whether a block ends a loop that polls memory which other threads write."""
        last = self._function.body[stop - 1]
        if last.opcode != "bra":
            return False
        target = self._function.labels.get(getattr(last.operands[0], "name", ""), stop)
        if target > start:
            return False
        return any(_polls(instruction) for instruction in self._function.body[target:stop])


def _polls(instruction: Instruction) -> bool:
    if instruction.opcode in _POLLING:
        return True
    return instruction.opcode == "ld" and not _POLLING_LOADS.isdisjoint(instruction.suffix)


def guarded(step: Step, condition: Reader) -> Step:
    """The step, done only in threads where the condition holds."""

    def run(wave: Wave, sel: Selection) -> None:
        flags = condition(wave, sel)
        if flags.ndim == 0:
            if flags:
                step(wave, sel)
            return
        count = int(np.count_nonzero(flags))
        if count == len(flags):
            step(wave, sel)
        elif count:
            step(wave, wave.narrow(sel, flags))

    return run
