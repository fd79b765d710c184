"""Two ways to run a scalar kernel of integers: from its syntax tree and from its IR.

They share nothing, so where both leave the same trace of stores, checking, structuring and
emission kept the meaning of the program. A store to `n[i]` is traced as `(i, value)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from phobos.frontend import ast
from phobos.frontend.constants import divide, remainder

Trace = list[tuple[int, int]]
MAX_STEPS = 20_000


class TooLong(Exception):
    """The program ran for too many steps, which says nothing about it."""


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class TreeInterpreter:
    """Runs a program as the language defines it, by Python's own control flow."""

    def __init__(self, program: ast.Program, memory: Sequence[int]) -> None:
        self.program = program
        self.memory = memory
        self.trace: Trace = []
        self.steps = 0
        self.functions = {function.name: function for function in program.functions}

    def run(self) -> Trace:
        with suppress(_Return):
            self.block(self.program.kernels[0].body, [{}])
        return self.trace

    def block(self, block: ast.Block, scopes: list[dict[str, Any]]) -> None:
        scopes.append({})
        try:
            for statement in block.statements:
                self.steps += 1
                if self.steps > MAX_STEPS:
                    raise TooLong
                self.statement(statement, scopes)
        finally:
            scopes.pop()

    def statement(self, node: ast.Statement, scopes: list[dict[str, Any]]) -> None:
        match node:
            case ast.Declaration(name=name, value=value):
                assert value is not None
                scopes[-1][name] = self.expression(value, scopes)
            case ast.Assign(target=ast.Name(name=name), op=op, value=value):
                scope = next(scope for scope in reversed(scopes) if name in scope)
                new = self.expression(value, scopes)
                scope[name] = new if op.binary is None else _BINARY[op.binary](scope[name], new)
            case ast.Assign(target=ast.Subscript(indices=indices), value=value):
                point = indices[0]
                assert isinstance(point, ast.Point)
                stored = self.expression(value, scopes)
                self.trace.append((self.expression(point.index, scopes), stored))
            case ast.If(condition=condition, then=then, otherwise=otherwise):
                if self.expression(condition, scopes):
                    self.block(then, scopes)
                elif isinstance(otherwise, ast.Block):
                    self.block(otherwise, scopes)
                elif otherwise is not None:
                    self.statement(otherwise, scopes)
            case ast.While(condition=condition, body=body):
                while self.expression(condition, scopes):
                    if self.iteration(body, scopes):
                        break
            case ast.For():
                self.loop(node, scopes)
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Return(value=value):
                raise _Return(None if value is None else self.expression(value, scopes))
            case _:
                raise AssertionError(node)

    def iteration(self, body: ast.Block, scopes: list[dict[str, Any]]) -> bool:
        """Runs a loop's body once; whether that left the loop."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooLong
        try:
            self.block(body, scopes)
        except _Break:
            return True
        except _Continue:
            pass
        return False

    def loop(self, node: ast.For, scopes: list[dict[str, Any]]) -> None:
        start = 0 if node.start is None else self.expression(node.start, scopes)
        stop = self.expression(node.stop, scopes)
        step = 1 if node.step is None else self.expression(node.step, scopes)
        for value in range(start, stop, step) if step else ():
            scopes.append({node.variable: value})
            try:
                if self.iteration(node.body, scopes):
                    break
            finally:
                scopes.pop()

    def expression(self, node: ast.Expression, scopes: list[dict[str, Any]]) -> Any:
        match node:
            case ast.IntLiteral(value=value) | ast.BoolLiteral(value=value):
                return value
            case ast.Name(name=name):
                return next(scope[name] for scope in reversed(scopes) if name in scope)
            case ast.Unary(op=op, operand=operand):
                value = self.expression(operand, scopes)
                return not value if op is ast.UnaryOp.NOT else -value
            case ast.Binary(op=ast.BinaryOp.AND):
                left = self.expression(node.left, scopes)
                return left and self.expression(node.right, scopes)
            case ast.Binary(op=ast.BinaryOp.OR):
                left = self.expression(node.left, scopes)
                return left or self.expression(node.right, scopes)
            case ast.Binary(op=op):
                left, right = (self.expression(n, scopes) for n in (node.left, node.right))
                return _BINARY[op](left, right)
            case ast.Subscript(indices=(ast.Point(index=index),)):
                position = self.expression(index, scopes)
                return self.memory[position]
            case ast.Call(callee=ast.Name(name="i32" | "index"), args=(argument,)):
                return self.expression(argument, scopes)
            case ast.Call(callee=ast.Name(name=name), args=args):
                function = self.functions[name]
                values = [self.expression(argument, scopes) for argument in args]
                names = [param.name for param in function.params]
                try:
                    self.block(function.body, [dict(zip(names, values, strict=True))])
                except _Return as done:
                    return done.value
                raise AssertionError(f"{name} ended without a return")
            case _:
                raise AssertionError(node)


class IrInterpreter:
    """Runs the emitted IR of a kernel: structured control flow over integers and bools."""

    def __init__(self, module: ModuleOp, memory: Sequence[int]) -> None:
        self.kernel = next(op for op in module.walk() if op.name == "gpu.func")
        self.memory = memory
        self.values: dict[SSAValue, Any] = {}
        self.trace: Trace = []
        self.steps = 0

    def run(self) -> Trace:
        self.block(self.kernel.regions[0].block, [])
        return self.trace

    def block(self, block: Block, arguments: Sequence[Any]) -> list[Any]:
        """Runs a block; the operands of its terminator."""
        if arguments:
            self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            self.steps += 1
            if self.steps > 40 * MAX_STEPS:
                raise TooLong
            if op is block.last_op:
                return [self.values[value] for value in op.operands]
            results = self.operation(op, [self.values.get(value) for value in op.operands])
            self.values.update(zip(op.results, results, strict=True))
        return []

    def operation(self, op: Operation, operands: list[Any]) -> list[Any]:
        match op:
            case arith.ConstantOp():
                value = op.value.value.data  # pyright: ignore[reportAttributeAccessIssue]
                return [bool(value) if str(op.result.type) == "i1" else value]
            case memref.StoreOp():
                value, _, position = operands
                self.trace.append((position, value))
                return []
            case memref.LoadOp():
                return [self.memory[operands[1]]]
            case scf.IfOp():
                region = op.true_region if operands[0] else op.false_region
                return self.block(region.block, []) if region.blocks else []
            case scf.ForOp():
                return self.loop(op, operands)
            case scf.WhileOp():
                return self.repeat(op, operands)
            case arith.CmpiOp():
                name = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
                return [_PREDICATES[name](*operands)]
            case _:
                return [_OPERATIONS[op.name](*operands)]

    def loop(self, op: scf.ForOp, operands: list[Any]) -> list[Any]:
        start, stop, step, *carried = operands
        assert step > 0, "scf.for counts up"
        for position in range(start, stop, step):
            carried = self.block(op.body.block, [position, *carried])
        return carried

    def repeat(self, op: scf.WhileOp, carried: list[Any]) -> list[Any]:
        while True:
            condition, *passed = self.block(op.before_region.block, carried)
            if not condition:
                return passed
            carried = self.block(op.after_region.block, passed)


_PREDICATES: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": divide,
    "arith.remsi": remainder,
    "arith.andi": lambda a, b: a and b,
    "arith.ori": lambda a, b: a or b,
    "arith.xori": lambda a, b: a != b,
    "arith.select": lambda c, a, b: a if c else b,
    "arith.index_cast": lambda a: a,
}
