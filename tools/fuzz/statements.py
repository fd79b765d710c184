"""Statements: declarations, assignments, branches, loops and calls of functions."""

from __future__ import annotations

import numpy as np

from phobos.frontend import ast
from tools.fuzz.access import axes_of, memory_of, read_elements, write_elements
from tools.fuzz.machine import Entry, Frame, Loop, Machine, Tensor, Variable
from tools.fuzz.memory import Memory
from tools.fuzz.scalars import INDEX
from tools.fuzz.values import (
    Kind,
    Misuse,
    Undecided,
    Value,
    common_type,
    default_type,
)

MAX_STEPS = 20_000


def run(machine: Machine) -> None:
    """Runs the kernel's body once, for one CTA; tensors are changed in place."""
    with np.errstate(all="ignore"):
        machine.frames.append(Frame(np.zeros(machine.threads, bool)))
        block_of(machine, machine.kernel.body)


def block_of(machine: Machine, block: ast.Block) -> np.ndarray:
    """Runs a block; gives the threads that come out at its end."""
    live = machine.active
    with machine.scope():
        for node in block.statements:
            if not live.any():
                break
            machine.steps += 1
            if machine.steps > MAX_STEPS:
                raise Misuse("the program runs for too long")
            with machine.only(live):
                live = statement(machine, node)
    return live


def statement(machine: Machine, node: ast.Statement) -> np.ndarray:
    """Runs a statement; gives the threads that go on behind it."""
    match node:
        case ast.Declaration():
            _declare(machine, node)
        case ast.Assign(target=ast.Name()):
            _assign(machine, node)
        case ast.Assign():
            _assign_elements(machine, node)
        case ast.If():
            return _if(machine, node)
        case ast.While():
            return _while(machine, node)
        case ast.For():
            return _for(machine, node)
        case ast.Break():
            loop = machine.frames[-1].loops[-1]
            loop.broken |= machine.active
            return np.zeros_like(machine.active)
        case ast.Continue():
            loop = machine.frames[-1].loops[-1]
            loop.continued |= machine.active
            return np.zeros_like(machine.active)
        case ast.Return():
            _return(machine, node)
            return np.zeros_like(machine.active)
        case ast.Evaluate():
            machine.evaluate(node.expression)
    return machine.active


def _declare(machine: Machine, node: ast.Declaration) -> None:
    shape = None
    if isinstance(node.type, ast.ShapedType):
        shape = tuple(machine.dim(dim) for dim in node.type.dims)
    element = None if node.type is None else machine.type_name(node.type)
    if node.value is None:
        assert shape is not None
        assert element is not None
        machine.scopes[-1][node.name] = Variable(None, Memory.empty(element, shape))
        return
    value = machine.expression(node.value)
    value = machine.settle(value) if element is None else machine.fit(value, element)
    if shape is not None:
        value = machine.spread(value, shape)
    if not node.mutable and value.kind is Kind.SCALAR and value.constant is not None:
        machine.scopes[-1][node.name] = value
        return
    value = Value(value.type, value.kind, value.data, value.error)
    machine.scopes[-1][node.name] = machine.variable(value)


def _assign(machine: Machine, node: ast.Assign) -> None:
    assert isinstance(node.target, ast.Name)
    variable = machine.lookup(node.target.name)
    value = machine.expression(node.value)
    assert isinstance(variable, Variable)
    operator = node.op.binary
    if operator is not None:
        old = machine.read(variable)
        value = machine.operate(operator.value, old, value)
        if value.type != old.type:
            raise Misuse("a compound assignment of another type")
    if variable.memory is not None:
        machine.must_be_uniform("a tile is assigned")
        value = machine.spread(machine.fit(value, variable.memory.type), variable.memory.data.shape)
        variable.memory = Memory.holding(value)
        return
    assert variable.value is not None
    variable.value = machine.merged(machine.fit(value, variable.value.type), variable.value)


def _assign_elements(machine: Machine, node: ast.Assign) -> None:
    assert isinstance(node.target, ast.Subscript)
    value = machine.expression(node.value)
    memory = memory_of(machine, node.target.base)
    axes = axes_of(machine, node.target, memory.data.shape)
    if node.op.binary is not None:
        old = read_elements(machine, memory, axes)
        value = machine.operate(node.op.binary.value, old, value)
    write_elements(machine, memory, axes, machine.fit(value, memory.type))


# Control flow --------------------------------------------------------------------------------


def _if(machine: Machine, node: ast.If) -> np.ndarray:
    taken = machine.condition(machine.settle(machine.expression(node.condition)))
    others = machine.active & ~taken
    if taken.any():
        with machine.only(taken):
            taken = block_of(machine, node.then)
    if others.any() and node.otherwise is not None:
        with machine.only(others):
            if isinstance(node.otherwise, ast.If):
                others = _if(machine, node.otherwise)
            else:
                others = block_of(machine, node.otherwise)
    return taken | others


def _while(machine: Machine, node: ast.While) -> np.ndarray:
    loop = Loop(np.zeros_like(machine.active), np.zeros_like(machine.active))
    machine.frames[-1].loops.append(loop)
    live, out = machine.active, np.zeros_like(machine.active)
    while live.any():
        with machine.only(live):
            go = machine.condition(machine.settle(machine.expression(node.condition)))
            out |= live & ~go
            live = _iteration(machine, node.body, go, loop)
    machine.frames[-1].loops.pop()
    return out | loop.broken


def _iteration(machine: Machine, body: ast.Block, active: np.ndarray, loop: Loop) -> np.ndarray:
    if not active.any():
        return active
    loop.continued = np.zeros_like(active)
    machine.steps += 1
    if machine.steps > MAX_STEPS:
        raise Misuse("the program runs for too long")
    with machine.only(active):
        return block_of(machine, body) | loop.continued


def _for(machine: Machine, node: ast.For) -> np.ndarray:
    begin = ast.IntLiteral(0) if node.start is None else node.start
    stride = ast.IntLiteral(1) if node.step is None else node.step
    bounds = [machine.expression(bound) for bound in (begin, node.stop, stride)]
    type_ = default_type(common_type(bounds))
    settled_bounds = [machine.settle(bound, type_) for bound in bounds]
    if any(v.error is not None and np.any(v.error[machine.active]) for v in settled_bounds):
        raise Undecided("the bounds of a loop are not defined")
    start, stop, step = (value.data.astype(np.int64) for value in settled_bounds)
    loop = Loop(np.zeros_like(machine.active), np.zeros_like(machine.active))
    machine.frames[-1].loops.append(loop)
    live, out, counter = machine.active, np.zeros_like(machine.active), start
    while live.any():
        goes = np.where(step > 0, counter < stop, (step < 0) & (counter > stop)) & live
        out |= live & ~goes
        with machine.scope({node.variable: Variable(machine.per_thread(type_, counter))}):
            live = _iteration(machine, node.body, goes, loop)
        counter = counter + step
    machine.frames[-1].loops.pop()
    return out | loop.broken


# Functions -----------------------------------------------------------------------------------


def _return(machine: Machine, node: ast.Return) -> None:
    frame = machine.frames[-1]
    frame.returned = frame.returned | machine.active
    if node.value is None:
        return
    assert frame.result is not None
    value = machine.fit(machine.expression(node.value), machine.type_name(frame.result))
    if isinstance(frame.result, ast.ShapedType):
        value = machine.spread(value, tuple(machine.dim(dim) for dim in frame.result.dims))
    if frame.value is None or value.kind is Kind.TILE:
        frame.value = value
    else:
        frame.value = machine.merged(value, frame.value)


def call_function(machine: Machine, function: ast.Function, node: ast.Call) -> Value | None:
    """Calls a function of the program."""
    names = [_argument(machine, *pair) for pair in zip(function.params, node.args, strict=True)]
    scope: dict[str, Entry] = {}
    for param, value in zip(function.params, names, strict=True):
        _bind_dims(machine, param, value, scope)
    scope.update({p.name: v for p, v in zip(function.params, names, strict=True)})
    frame = Frame(np.zeros(machine.threads, bool), function.result)
    scopes, machine.scopes = machine.scopes, [machine.scopes[0], scope]
    machine.frames.append(frame)
    before, machine.in_run = machine.in_run, False
    try:
        block_of(machine, function.body)
    finally:
        machine.in_run = before
        machine.frames.pop()
        machine.scopes = scopes
    return frame.value


def _argument(machine: Machine, param: ast.Param, written: ast.Expression) -> Entry:
    if isinstance(param.type, ast.ShapedType) and param.type.kind is ast.ShapedKind.TENSOR:
        assert isinstance(written, ast.Name)
        tensor = machine.lookup(written.name)
        assert isinstance(tensor, Tensor)
        return tensor
    value = machine.fit(machine.expression(written), machine.type_name(param.type))
    if isinstance(param.type, ast.ScalarType):
        return value if value.constant is not None else Variable(value)
    return machine.variable(value)


def _bind_dims(machine: Machine, param: ast.Param, entry: Entry, scope: dict[str, Entry]) -> None:
    if not isinstance(param.type, ast.ShapedType):
        return
    memory = entry.memory if isinstance(entry, Tensor | Variable) else None
    assert memory is not None
    for dim, extent in zip(param.type.dims, memory.data.shape, strict=True):
        if isinstance(dim, ast.DimName) and dim.name not in scope:
            scope[dim.name] = machine.scalar(INDEX, extent, constant=extent)
