"""Expressions: literals, names, `ctx`, operators, subscripts and which built-in a call is of."""

from __future__ import annotations

import numpy as np

from phobos.frontend import ast
from tools.fuzz import elementwise
from tools.fuzz.access import axes_of, memory_of, read_elements, read_run
from tools.fuzz.machine import LANES, Machine, Variable
from tools.fuzz.scalars import BOOL, INDEX, is_literal
from tools.fuzz.values import Kind, Misuse, Value, literal

_LITERAL_NAMES = {"inf": float("inf"), "nan": float("nan")}


def expression(machine: Machine, node: ast.Expression) -> Value:
    """The value of an expression in the active threads."""
    match node:
        case ast.IntLiteral(value=value) | ast.FloatLiteral(value=value):
            return literal(value)
        case ast.BoolLiteral(value=value):
            return machine.scalar(BOOL, value)
        case ast.Name():
            return _name(machine, node)
        case ast.Member():
            return _context(machine, node)
        case ast.Unary():
            return _unary(machine, node)
        case ast.Binary():
            return _binary(machine, node)
        case ast.Subscript():
            return _subscript(machine, node)
        case ast.Call():
            from tools.fuzz.calls import call

            return call(machine, node)
        case _:
            raise Misuse(f"{node} is no value")


def _name(machine: Machine, node: ast.Name) -> Value:
    entry = machine.lookup(node.name)
    if isinstance(entry, Variable):
        return machine.read(entry)
    if isinstance(entry, Value):
        return entry
    if entry is None and node.name in _LITERAL_NAMES:
        return literal(_LITERAL_NAMES[node.name])
    raise Misuse(f"{node.name} is no value")


def _context(machine: Machine, node: ast.Member) -> Value:
    threads = machine.threads
    number = np.arange(threads)
    if isinstance(node.base, ast.Member):
        block = machine.block if node.base.name == "block" else machine.blocks
        return machine.scalar(INDEX, block["xyz".index(node.name)])
    constants = {"threads": threads, "warps": -(-threads // LANES), "lanes": LANES}
    if node.name in constants:
        return machine.scalar(INDEX, constants[node.name], constant=constants[node.name])
    own = {"thread": number, "warp": number // LANES, "lane": number % LANES}
    return machine.per_thread(INDEX, own[node.name])


def _unary(machine: Machine, node: ast.Unary) -> Value:
    value = expression(machine, node.operand)
    if is_literal(value.type):
        number = value.number
        if node.op is ast.UnaryOp.NEGATE:
            return literal(-number)
        return literal(~int(number))
    if node.op is ast.UnaryOp.NEGATE:
        return elementwise.negate(value)
    return elementwise.invert(value)


# Operators ---------------------------------------------------------------------------------------


def _binary(machine: Machine, node: ast.Binary) -> Value:
    left = expression(machine, node.left)
    if node.op.is_logical:
        return _logical(machine, node, left)
    return operate(machine, node.op.value, left, expression(machine, node.right))


def operate(machine: Machine, op: str, left: Value, right: Value) -> Value:
    """`left op right`, in the type in which the two meet."""
    if is_literal(left.type) and is_literal(right.type):
        return _literals(machine, op, left.number, right.number)
    type_, (a, b) = machine.together((left, right))
    return finished(
        machine, elementwise.binary(op, type_, a, b, is_contracted=machine.is_contracted)
    )


def finished(machine: Machine, value: Value) -> Value:
    """The result of an operation; one of literals alone is a scalar."""
    return machine.settle(value) if value.kind is Kind.LITERAL else value


def _literals(machine: Machine, op: str, left: float, right: float) -> Value:
    compared = {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    if op in compared:
        return machine.scalar(BOOL, compared[op])
    if isinstance(left, float) or isinstance(right, float):
        a, b = np.float64(left), np.float64(right)
        return literal(float({"+": a + b, "-": a - b, "*": a * b, "/": a / b}[op]))
    if op in ("/", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return literal(quotient if op == "/" else left - quotient * right)
    whole = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "&": lambda: left & right,
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "<<": lambda: left << right,
        ">>": lambda: left >> right,
    }
    return literal(whole[op]())


def _logical(machine: Machine, node: ast.Binary, left: Value) -> Value:
    is_and = node.op is ast.BinaryOp.AND
    if left.kind is Kind.SCALAR:
        # The right side of a scalar is looked at by the threads that need it alone.
        taken = machine.condition(left)
        needed = taken if is_and else machine.active & ~taken
        with machine.only(needed if needed.any() else machine.active):
            right = expression(machine, node.right)
        if right.kind is Kind.SCALAR:
            data = left.data & right.data if is_and else left.data | right.data
            error = None if right.error is None else np.where(needed, right.error, 0.0)
            return Value(BOOL, Kind.SCALAR, data, error)
    else:
        right = expression(machine, node.right)
    type_, (a, b) = machine.together((left, right))
    return elementwise.binary("&" if is_and else "|", type_, a, b)


# Subscripts --------------------------------------------------------------------------------------


def _subscript(machine: Machine, node: ast.Subscript) -> Value:
    memory = memory_of(machine, node.base)
    has_span = any(isinstance(index, ast.Span | ast.Range) for index in node.indices)
    if machine.in_run and has_span:
        return read_run(machine, memory, axes_of(machine, node, memory.data.shape, is_run=True))
    return read_elements(machine, memory, axes_of(machine, node, memory.data.shape))
