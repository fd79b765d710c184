"""Calls: of functions and conversions, of built-ins on elements, tiles and threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from phobos.frontend import ast
from tools.fuzz import elementwise, folds, functions
from tools.fuzz.access import axes_of, lines_of, memory_of
from tools.fuzz.expressions import expression, finished, operate
from tools.fuzz.machine import Machine, Tensor
from tools.fuzz.memory import inside, places, read_masked
from tools.fuzz.scalars import (
    BOOL,
    INDEX,
    STORED,
    Array,
    array_dtype,
    is_float,
    is_literal,
    memory_dtype,
    promote,
)
from tools.fuzz.statements import call_function
from tools.fuzz.threads import THREAD_CALLS, over_threads
from tools.fuzz.values import Kind, Misuse, Undecided, Value, convert_literal, literal, settled

Rule = Callable[[Machine, ast.Call], Value]

_ROWS = {"rowsum": "sum", "rowmax": "max", "rowmin": "min", "rowargmax": "argmax"}


def call(machine: Machine, node: ast.Call) -> Value:
    """The value of a call."""
    assert isinstance(node.callee, ast.Name)
    name = node.callee.name
    function = machine.functions.get(name)
    if function is not None:
        result = call_function(machine, function, node)
        if result is None:
            raise Misuse(f"{name} gives no value")
        return result
    if name in STORED or name == INDEX:
        return _conversion(machine, node, name)
    match node.generic:
        case ast.OverScope(scope=scope):
            value = machine.settle(expression(machine, node.args[0]))
            return over_threads(machine, name, scope, value)
        case ast.OverAxes(axes=axes):
            return over_axes(machine, name, axes, expression(machine, node.args[0]))
        case _:
            pass
    if name in functions.ELEMENTWISE:
        return _elementwise(machine, name, [expression(machine, arg) for arg in node.args])
    if name in THREAD_CALLS:
        return THREAD_CALLS[name](machine, node)
    if name in _ROWS:
        return over_axes(machine, _ROWS[name], (1,), expression(machine, node.args[0]))
    if name in _RULES:
        return _RULES[name](machine, node)
    raise Misuse(f"{name} is not known")


# Elements ----------------------------------------------------------------------------------------


def _conversion(machine: Machine, node: ast.Call, type_: str) -> Value:
    value = expression(machine, node.args[0])
    if is_literal(value.type):
        number = value.number
        if is_float(value.type) and not is_float(type_):
            value = machine.settle(value, "f64")
        else:
            return finished(machine, convert_literal(literal(number), type_))
    return elementwise.convert(value, type_)


def _elementwise(machine: Machine, name: str, values: list[Value]) -> Value:
    if all(is_literal(value.type) for value in values):
        type_ = (
            "f32" if any(is_float(v.type) for v in values) or name not in _OF_INTEGERS else INDEX
        )
        values = [machine.settle(value, type_) for value in values]
    type_, aligned = machine.together(values)
    functions.check_operands(name, type_)
    return finished(machine, functions.apply(name, type_, aligned))


_OF_INTEGERS = ("min", "max", "abs", "clamp")


def _where(machine: Machine, node: ast.Call) -> Value:
    condition, *choices = (expression(machine, argument) for argument in node.args)
    if all(is_literal(value.type) for value in choices):
        is_real = any(is_float(value.type) for value in choices)
        choices = [machine.settle(value, "f32" if is_real else INDEX) for value in choices]
    _, choices = machine.together(choices)
    kinds = {value.kind for value in (condition, *choices)}
    parts = [machine.shaped(value, kinds) for value in (condition, *choices)]
    return finished(machine, functions.select(*parts))


def _bitcast(machine: Machine, node: ast.Call) -> Value:
    assert isinstance(node.generic, ast.TypeArgument)
    value = machine.settle(expression(machine, node.args[0]))
    return elementwise.bitcast(value, machine.type_name(node.generic.type))


def _f16bits(machine: Machine, node: ast.Call) -> Value:
    value = machine.settle(expression(machine, node.args[0]))
    return elementwise.bitcast(elementwise.convert(value, "u16"), "f16")


def _extent(machine: Machine, node: ast.Call) -> Value:
    axis = machine.number(expression(machine, node.args[1]))
    assert isinstance(node.args[0], ast.Name)
    shape = memory_of(machine, node.args[0]).data.shape
    is_tensor = isinstance(machine.lookup(node.args[0].name), Tensor)
    return machine.scalar(INDEX, shape[axis], None if is_tensor else shape[axis])


# Tiles -------------------------------------------------------------------------------------------


def over_axes(machine: Machine, name: str, axes: tuple[int, ...], value: Value) -> Value:
    """`name<over axes>(value)` of a tile."""
    machine.must_be_uniform(name)
    if value.kind is not Kind.TILE:
        raise Misuse(f"{name} of no tile")
    if name in folds.FOLDS:
        return folds.fold(name, value, axes, Kind.TILE)
    (axis,) = axes
    if name in folds.POSITIONS:
        return folds.position(name, value, axis, Kind.TILE)
    return folds.scan(name, value, axis, Kind.TILE)


def _tile(machine: Machine, node: ast.Call, number: int = 0) -> Value:
    machine.must_be_uniform("a tile built-in")
    value = expression(machine, node.args[number])
    if value.kind is not Kind.TILE:
        raise Misuse(f"{node.callee} of no tile")
    return value


def _shape(machine: Machine, nodes: tuple[ast.Expression, ...]) -> tuple[int, ...]:
    return tuple(machine.number(expression(machine, node)) for node in nodes)


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    error = None if value.error is None else value.error.reshape(shape)
    return replace(value, data=value.data.reshape(shape), error=error, terms=None)


def _transpose(machine: Machine, node: ast.Call) -> Value:
    value = _tile(machine, node)
    error = None if value.error is None else np.swapaxes(value.error, -1, -2)
    return replace(value, data=np.swapaxes(value.data, -1, -2), error=error, terms=None)


def _full(machine: Machine, node: ast.Call) -> Value:
    value = expression(machine, node.args[0])
    if isinstance(node.generic, ast.TypeArgument):
        value = machine.fit(value, machine.type_name(node.generic.type))
    elif value.type == INDEX or value.type == "int":
        value = machine.settle(value, "i32")
    return machine.spread(machine.settle(value), _shape(machine, node.args[1:]))


def _iota(machine: Machine, node: ast.Call) -> Value:
    shape = _shape(machine, node.args)
    axis = node.generic.value if isinstance(node.generic, ast.IntArgument) else 0
    return Value("i32", Kind.TILE, np.indices(shape, np.int32)[axis])


def _triangle(is_lower: bool) -> Rule:
    def rule(machine: Machine, node: ast.Call) -> Value:
        value = _tile(machine, node)
        diagonal = machine.number(expression(machine, node.args[1])) if len(node.args) > 1 else 0
        rows, columns = np.indices(value.data.shape[-2:])
        kept = columns <= rows + diagonal if is_lower else columns >= rows + diagonal
        zero = Value(value.type, Kind.TILE, np.zeros((), value.data.dtype))
        return functions.select(Value(BOOL, Kind.TILE, np.asarray(kept)), value, zero)

    return rule


def _cat(machine: Machine, node: ast.Call) -> Value:
    parts = [_tile(machine, node, number) for number in range(len(node.args))]
    axis = node.generic.value if isinstance(node.generic, ast.IntArgument) else 0
    data = np.concatenate([part.data for part in parts], axis)
    bounds = [np.zeros(p.data.shape) if p.error is None else p.error for p in parts]
    return Value(parts[0].type, Kind.TILE, data, settled(np.concatenate(bounds, axis), data.shape))


def _pad(machine: Machine, node: ast.Call) -> Value:
    target = node.args[0]
    assert isinstance(target, ast.Subscript)
    read = expression(machine, target)
    inside = _inside(machine, target)
    other = machine.uniform(machine.fit(expression(machine, node.args[1]), read.type))
    return functions.select(inside, read, other)


def _valid(machine: Machine, node: ast.Call) -> Value:
    machine.must_be_uniform("valid")
    assert isinstance(node.args[0], ast.Subscript)
    return _inside(machine, node.args[0])


def _inside(machine: Machine, target: ast.Subscript) -> Value:
    memory = memory_of(machine, target.base)
    lines = lines_of(machine, axes_of(machine, target, memory.data.shape))
    return Value(BOOL, Kind.TILE, places(memory.data.shape, lines)[1].copy())


def _gather(machine: Machine, node: ast.Call) -> Value:
    machine.must_be_uniform("gather")
    memory = memory_of(machine, node.args[0])
    numbers = _tile(machine, node, 1)
    axis = machine.number(expression(machine, node.args[2]))
    if numbers.error is not None:
        raise Undecided("a gather by undefined numbers")
    subscripts: list[Array] = [np.asarray(line) for line in np.indices(numbers.data.shape)]
    subscripts[axis] = numbers.data.astype(np.int64)
    data, error = read_masked(memory, *inside(memory.data.shape, subscripts))
    return Value(memory.type, Kind.TILE, data, settled(error, data.shape))


def _dot(turn_a: bool, turn_b: bool) -> Rule:
    def rule(machine: Machine, node: ast.Call) -> Value:
        a, b = _tile(machine, node, 0), _tile(machine, node, 1)
        small = ("f8e4m3", "f8e5m2")
        left, right = ("f16" if value.type in small else value.type for value in (a, b))
        together = "i32" if {left, right} <= {"i8", "u8"} else promote(left, right)
        operand, total = folds.contraction_types(left, right, together)
        a, b = elementwise.convert(a, operand), elementwise.convert(b, operand)
        a, b = _turned(a) if turn_a else a, _turned(b) if turn_b else b
        return folds.contract(a, b, total)

    return rule


def _turned(value: Value) -> Value:
    error = None if value.error is None else np.swapaxes(value.error, -1, -2)
    return replace(value, data=np.swapaxes(value.data, -1, -2), error=error, terms=None)


# Runs --------------------------------------------------------------------------------------------


def _run(machine: Machine, node: ast.Call) -> Value:
    before, machine.in_run = machine.in_run, True
    try:
        value = expression(machine, node.args[0])
    finally:
        machine.in_run = before
    if value.kind is not Kind.RUN:
        raise Misuse(f"{node.callee} of no run")
    return value


def _run_sum(machine: Machine, node: ast.Call) -> Value:
    total = folds.fold("sum", _run(machine, node), (1,), Kind.SCALAR)
    error = None if total.error is None else total.error[:, 0]
    return replace(total, data=total.data[:, 0], error=error)


def _word(machine: Machine, node: ast.Call) -> Value:
    value = _run(machine, node)
    packed = np.ascontiguousarray(value.data.astype(memory_dtype(value.type))).view(np.int32)
    error = None if value.error is None else value.error.max(axis=1) * np.inf
    return Value("i32", Kind.SCALAR, packed[:, 0], error)


def _dp4a(machine: Machine, node: ast.Call) -> Value:
    a, b, total = (expression(machine, argument) for argument in node.args)
    total = machine.fit(total, "i32")
    a, b = (machine.settle(v, "i32") if is_literal(v.type) else v for v in (a, b))
    products = np.zeros(machine.threads, np.int32)
    for place in range(4):
        left, right = (_byte(value, place) for value in (a, b))
        products = products + left * right
    added = Value("i32", Kind.SCALAR, products.astype(np.int32), a.error)
    return operate(machine, "+", operate(machine, "+", added, total), _nothing(b))


def _byte(value: Value, place: int) -> np.ndarray:
    byte = (value.data.astype(np.int64) >> (8 * place)) & 255
    return (byte if value.type == "u32" else np.where(byte > 127, byte - 256, byte)).astype(
        np.int32
    )


def _nothing(value: Value) -> Value:
    """0 with the bounds of a value."""
    return Value("i32", Kind.SCALAR, np.zeros(value.data.shape, array_dtype("i32")), value.error)


_RULES: dict[str, Rule] = {
    "where": _where,
    "bitcast": _bitcast,
    "f16bits": _f16bits,
    "extent": _extent,
    "cumsum": lambda machine, node: over_axes(machine, "scan", (0,), _tile(machine, node)),
    "transpose": _transpose,
    "reshape": lambda machine, node: _reshaped(
        _tile(machine, node), _shape(machine, node.args[1:])
    ),
    "flat": lambda machine, node: _flat(_tile(machine, node)),
    "iota": _iota,
    "full": _full,
    "tril": _triangle(is_lower=True),
    "triu": _triangle(is_lower=False),
    "cat": _cat,
    "pad": _pad,
    "valid": _valid,
    "gather": _gather,
    "dot": _dot(turn_a=False, turn_b=False),
    "dot_t": _dot(turn_a=False, turn_b=True),
    "t_dot": _dot(turn_a=True, turn_b=False),
    "sum": _run_sum,
    "elem": _run,
    "word": _word,
    "dp4a": _dp4a,
}


def _flat(value: Value) -> Value:
    return _reshaped(value, (prod(value.data.shape),))
