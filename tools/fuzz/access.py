"""Subscripts: which elements of a tensor or tile they name, and reading and writing those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phobos.frontend import ast
from tools.fuzz.machine import Machine, Tensor, Variable
from tools.fuzz.memory import Memory, inside, places, point, read_masked, write_masked
from tools.fuzz.scalars import Array
from tools.fuzz.values import Kind, Misuse, Undecided, Value, errors, settled


@dataclass(frozen=True, slots=True)
class Axis:
    """What a subscript takes along an axis: numbers of elements, or a point of each thread."""

    line: Array | None
    point: Value | None = None
    gathered: Value | None = None


def memory_of(machine: Machine, base: ast.Expression) -> Memory:
    """The elements that a subscript is of."""
    if isinstance(base, ast.Name):
        entry = machine.lookup(base.name)
        if isinstance(entry, Tensor):
            return entry.memory
        if isinstance(entry, Variable) and entry.memory is not None:
            return entry.memory
    return Memory.holding(machine.expression(base))


def axes_of(
    machine: Machine, node: ast.Subscript, shape: tuple[int, ...], *, is_run: bool = False
) -> list[Axis]:
    """The subscripts of an access; in a run each thread has a start of its own."""
    before, machine.in_run = machine.in_run, False
    try:
        found = [
            _axis(machine, index, extent, is_run)
            for index, extent in zip(node.indices, shape, strict=True)
        ]
    finally:
        machine.in_run = before
    return found


def _axis(machine: Machine, index: ast.Index, extent: int, is_run: bool) -> Axis:
    match index:
        case ast.FullAxis():
            return Axis(np.arange(extent))
        case ast.Point():
            value = machine.expression(index.index)
            if value.kind is Kind.TILE:
                return Axis(value.data.reshape(-1).astype(np.int64), gathered=value)
            return Axis(None, machine.settle(value))
        case ast.Span():
            start = machine.settle(machine.expression(index.start))
            length = machine.number(machine.expression(index.length))
            return _span(machine, start, length, is_run)
        case ast.Range():
            begin = ast.IntLiteral(0) if index.start is None else index.start
            start, stop = (machine.expression(node) for node in (begin, index.stop))
            length = _distance(machine, stop, start)
            return _span(machine, machine.settle(start), length, is_run)


def _distance(machine: Machine, stop: Value, start: Value) -> int:
    ends = [machine.settle(value).data[machine.active] for value in (stop, start)]
    return int((ends[0] - ends[1])[0])


def _span(machine: Machine, start: Value, length: int, is_run: bool) -> Axis:
    if is_run:
        return Axis(np.arange(length), start)
    return Axis(machine.number(start) + np.arange(length))


def read_elements(machine: Machine, memory: Memory, axes: list[Axis]) -> Value:
    """A point of each thread, or a tile."""
    if all(axis.line is None for axis in axes):
        subscripts = point(memory, [_point(machine, axis) for axis in axes], machine.active)
        data, error = memory.data[subscripts], memory.error[subscripts]
        error = np.where(machine.active, error, 0.0)
        return Value(memory.type, Kind.SCALAR, data, settled(error, data.shape))
    machine.must_be_uniform("a tile is read")
    subscripts, valid = places(memory.data.shape, lines_of(machine, axes))
    data, error = read_masked(memory, subscripts, valid)
    return Value(memory.type, Kind.TILE, data, settled(error, data.shape))


def write_elements(machine: Machine, memory: Memory, axes: list[Axis], value: Value) -> None:
    """Writes a point of each active thread, or a tile."""
    if all(axis.line is None for axis in axes):
        subscripts = point(memory, [_point(machine, axis) for axis in axes], machine.active)
        where = tuple(line[machine.active] for line in subscripts)
        memory.data[where] = value.data[machine.active]
        memory.error[where] = errors(value)[machine.active]
        return
    machine.must_be_uniform("a tile is written")
    subscripts, valid = places(memory.data.shape, lines_of(machine, axes))
    write_masked(memory, subscripts, valid, machine.uniform(value))


def _point(machine: Machine, axis: Axis) -> Value:
    assert axis.point is not None
    return axis.point


def lines_of(machine: Machine, axes: list[Axis]) -> list[Array]:
    """The numbers of the elements that a slice takes along each axis."""
    lines: list[Array] = []
    for axis in axes:
        if axis.gathered is not None and axis.gathered.error is not None:
            raise Undecided("a subscript is not defined")
        if axis.line is not None:
            lines.append(axis.line)
        else:
            lines.append(np.array([machine.number(_point(machine, axis))]))
    return lines


def read_run(machine: Machine, memory: Memory, axes: list[Axis]) -> Value:
    """Each thread's own neighbouring elements along the last axis."""
    subscripts, valid = _run_places(machine, memory, axes)
    data, error = read_masked(memory, subscripts, valid)
    return Value(memory.type, Kind.RUN, data, settled(error, data.shape))


def write_run(machine: Machine, memory: Memory, axes: list[Axis], value: Value) -> None:
    """Writes each active thread's own neighbouring elements."""
    subscripts, valid = _run_places(machine, memory, axes)
    write_masked(memory, subscripts, valid & machine.active[:, None], value)


def _run_places(machine: Machine, memory: Memory, axes: list[Axis]) -> tuple[Any, np.ndarray]:
    *leading, last = axes
    assert last.line is not None
    assert last.point is not None
    starts = [_point(machine, axis) for axis in (*leading, last)]
    lines = [np.where(machine.active, start.data, 0)[:, None] for start in starts]
    lines[-1] = lines[-1] + last.line
    subscripts, valid = inside(memory.data.shape, lines)
    if not np.all(valid[machine.active]):
        raise Misuse("a run that leaves its tensor")
    return subscripts, valid
