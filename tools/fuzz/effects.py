"""Statements that are calls: `barrier()`, `store(..)`, updates and functions without a result."""

from __future__ import annotations

from phobos.frontend import ast
from tools.fuzz.access import axes_of, memory_of, write_run
from tools.fuzz.expressions import expression
from tools.fuzz.machine import Machine
from tools.fuzz.statements import call_function
from tools.fuzz.values import Misuse


def effect(machine: Machine, node: ast.Expression) -> None:
    """Runs a call for its effect."""
    if not isinstance(node, ast.Call) or not isinstance(node.callee, ast.Name):
        raise Misuse("a statement that does nothing")
    name = node.callee.name
    if name == "barrier":
        machine.must_be_uniform("a barrier")
    elif name == "store":
        _store(machine, node)
    elif name in machine.functions:
        call_function(machine, machine.functions[name], node)
    else:
        expression(machine, node)


def _store(machine: Machine, node: ast.Call) -> None:
    target, written = node.args
    assert isinstance(target, ast.Subscript)
    before, machine.in_run = machine.in_run, True
    try:
        value = expression(machine, written)
    finally:
        machine.in_run = before
    memory = memory_of(machine, target.base)
    axes = axes_of(machine, target, memory.data.shape, is_run=True)
    write_run(machine, memory, axes, machine.fit(value, memory.type))
