"""What threads do together: collectives, shuffles, ballots; and updates of elements by many."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from phobos.frontend import ast
from tools.fuzz import folds
from tools.fuzz.access import memory_of
from tools.fuzz.expressions import expression
from tools.fuzz.machine import LANES, Machine
from tools.fuzz.memory import Memory, point
from tools.fuzz.values import Kind, Misuse, Value, errors, settled


def over_threads(machine: Machine, name: str, scope: ast.Scope, value: Value) -> Value:
    """`name<over scope>(value)`: each thread gets what the threads of its group make together."""
    if value.kind is not Kind.SCALAR:
        raise Misuse(f"{name} over threads of no scalar")
    results: list[tuple[np.ndarray, Value]] = []
    for group, numbers in _groups(machine, scope):
        part = Value(value.type, Kind.TILE, value.data[group], _at(value, group))
        if name in folds.FOLDS:
            result = folds.fold(name, part, (0,), Kind.TILE)
        elif name in folds.POSITIONS:
            found = folds.position(name, part, 0, Kind.TILE)
            result = Value("i32", Kind.TILE, numbers[found.data].astype(np.int32), found.error)
        else:
            result = folds.scan(name, part, 0, Kind.TILE)
        results.append((group, result))
    type_ = results[0][1].type
    data = np.zeros(machine.threads, results[0][1].data.dtype)
    error = np.zeros(machine.threads)
    for group, result in results:
        data[group] = result.data
        error[group] = errors(result)
    return Value(type_, Kind.SCALAR, data, settled(error, data.shape))


def _at(value: Value, group: np.ndarray) -> np.ndarray | None:
    return None if value.error is None else value.error[group]


def _groups(machine: Machine, scope: ast.Scope) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The threads of each group that take part, and their numbers in it."""
    threads = np.arange(machine.threads)
    if scope is ast.Scope.THREAD:
        machine.must_be_uniform("a collective over the CTA")
        yield threads, threads
    elif scope is ast.Scope.WARP:
        machine.must_be_uniform("a collective over warps")
        for lane in range(min(LANES, machine.threads)):
            group = threads[threads % LANES == lane]
            yield group, group // LANES
    else:
        for warp in _whole_warps(machine, "a collective over lanes"):
            yield warp, warp % LANES


def _whole_warps(machine: Machine, what: str) -> Iterator[np.ndarray]:
    """The threads of each active warp, of which none may be missing."""
    for start in range(0, machine.threads, LANES):
        warp = np.arange(start, min(start + LANES, machine.threads))
        taking = machine.active[warp]
        if taking.all():
            yield warp
        elif taking.any():
            raise Misuse(f"{what} where some lanes are missing")


# Shuffles ----------------------------------------------------------------------------------------


def _shuffle(kind: str) -> Callable[[Machine, ast.Call], Value]:
    def rule(machine: Machine, node: ast.Call) -> Value:
        value = machine.settle(expression(machine, node.args[0]))
        amount = machine.settle(expression(machine, node.args[1]))
        data, error = value.data.copy(), errors(value).copy()
        for warp in _whole_warps(machine, "a shuffle"):
            lanes, step = warp % LANES, amount.data[warp].astype(np.int64)
            wanted = {
                "shuffle": step,
                "shuffle_xor": lanes ^ step,
                "shuffle_up": lanes - step,
                "shuffle_down": lanes + step,
            }[kind]
            # Beyond the warp a thread keeps its own; a lane that does not exist has nothing.
            wanted = np.where((wanted < 0) | (wanted >= LANES), lanes, wanted)
            is_there = wanted < len(warp)
            source = warp[np.where(is_there, wanted, 0)]
            data[warp] = value.data[source]
            error[warp] = np.where(is_there, errors(value)[source], np.inf)
            error[warp] = np.maximum(error[warp], np.where(errors(amount)[warp] > 0, np.inf, 0.0))
        return Value(value.type, Kind.SCALAR, data, settled(error, data.shape))

    return rule


def _ballot(machine: Machine, node: ast.Call) -> Value:
    value = expression(machine, node.args[0])
    machine.condition(value)
    data = np.zeros(machine.threads, np.int32)
    for warp in _whole_warps(machine, "a ballot"):
        bits = (value.data[warp].astype(np.int64) << (warp % LANES)).sum()
        data[warp] = np.array(bits & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return Value("i32", Kind.SCALAR, data)


# Updates -----------------------------------------------------------------------------------------

_UPDATES: dict[str, Callable[[np.generic, np.generic], np.generic]] = {
    "atomic_add": np.add,
    "atomic_max": np.fmax,
    "atomic_min": np.fmin,
    "atomic_and": np.bitwise_and,
    "atomic_or": np.bitwise_or,
    "atomic_xor": np.bitwise_xor,
}


def _atomic(name: str) -> Callable[[Machine, ast.Call], Value]:
    def rule(machine: Machine, node: ast.Call) -> Value:
        memory = memory_of(machine, node.args[0])
        rank = memory.data.ndim
        arguments = [machine.settle(expression(machine, arg)) for arg in node.args[1 : rank + 1]]
        value = machine.fit(expression(machine, node.args[rank + 1]), memory.type)
        where = point(memory, arguments, machine.active)
        if name == "atomic_exchange":
            raise Misuse("the last of several exchanges is nowhere said")
        for thread in np.flatnonzero(machine.active):
            place = tuple(line[thread] for line in where)
            _update(memory, name, place, value, thread)
        # What was there before depends on the order in which threads come.
        loose = np.full(machine.threads, np.inf)
        return Value(memory.type, Kind.SCALAR, np.zeros(machine.threads, memory.data.dtype), loose)

    return rule


def _update(
    memory: Memory, name: str, place: tuple[int, ...], value: Value, thread: np.intp
) -> None:
    old, new = memory.data[place], value.data[thread]
    memory.data[place] = _UPDATES[name](old, new)
    memory.error[place] = max(memory.error[place], errors(value)[thread])
    if memory.data.dtype.kind == "f" and name == "atomic_add":
        pair = np.array([[old, new]], np.float64)
        memory.error[place] += folds.sum_error(memory.type, pair, (1,), 2)[0, 0]


THREAD_CALLS: dict[str, Callable[[Machine, ast.Call], Value]] = {
    **{name: _shuffle(name) for name in ("shuffle", "shuffle_xor", "shuffle_up", "shuffle_down")},
    "ballot": _ballot,
    **{name: _atomic(name) for name in (*_UPDATES, "atomic_exchange")},
}
"""The built-ins that look beyond their own thread."""
