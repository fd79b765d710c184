"""Runs a kernel as the language defines it: on the syntax tree, CTA by CTA, with NumPy.

The threads of a CTA go through the program together, one statement after the other; `active` says
which of them take part. This is an independent reading of the language: nothing of the compiler
is used but the syntax tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phobos.frontend import ast
from tools.fuzz import elementwise
from tools.fuzz.memory import Memory
from tools.fuzz.scalars import (
    BOOL,
    INDEX,
    Array,
    array_dtype,
    is_float,
    is_literal,
    promote,
)
from tools.fuzz.values import (
    Kind,
    Misuse,
    Undecided,
    Value,
    common_type,
    convert_literal,
    default_type,
    errors,
    settled,
)

LANES = 32
MAX_STEPS = 20_000


@dataclass(slots=True)
class Tensor:
    """A tensor parameter."""

    memory: Memory


@dataclass(slots=True)
class Variable:
    """A name with a value; a tile that is written piece by piece lies in memory."""

    value: Value | None
    memory: Memory | None = None


@dataclass(slots=True)
class Loop:
    """The threads that left a loop, and those that left an iteration."""

    broken: np.ndarray
    continued: np.ndarray


@dataclass(slots=True)
class Frame:
    """A kernel's or function's body under execution."""

    returned: np.ndarray
    result: ast.Type | None = None
    value: Value | None = None
    loops: list[Loop] = field(default_factory=list)


Entry = Tensor | Variable | Value


class Machine:
    """One CTA of a kernel; `run` goes through the body once."""

    def __init__(
        self,
        program: ast.Program,
        kernel: ast.Kernel,
        threads: int,
        names: Mapping[str, Entry],
        block: tuple[int, int, int],
        blocks: tuple[int, int, int],
        *,
        is_contracted: bool = False,
    ) -> None:
        self.functions = {function.name: function for function in program.functions}
        self.kernel = kernel
        self.threads = threads
        self.block, self.blocks = block, blocks
        self.scopes: list[dict[str, Entry]] = [dict(names)]
        self.active = np.ones(threads, bool)
        self.frames: list[Frame] = []
        self.in_run = False
        self.is_contracted = is_contracted
        self.steps = 0

    # Scopes --------------------------------------------------------------------------------------

    @contextmanager
    def scope(self, names: Mapping[str, Entry] | None = None) -> Iterator[None]:
        """A block's names."""
        self.scopes.append(dict(names or {}))
        try:
            yield
        finally:
            self.scopes.pop()

    @contextmanager
    def only(self, active: np.ndarray) -> Iterator[None]:
        """Lets some threads go on alone."""
        before, self.active = self.active, active
        try:
            yield
        finally:
            self.active = before

    def lookup(self, name: str) -> Entry | None:
        """What a name stands for."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    # Values --------------------------------------------------------------------------------------

    def scalar(self, type_: str, number: Any, constant: int | None = None) -> Value:
        """The same number in each thread."""
        data = np.full(self.threads, number, array_dtype(type_))
        return Value(type_, Kind.SCALAR, data, constant=constant)

    def per_thread(self, type_: str, data: Array) -> Value:
        """A number for each thread."""
        return Value(type_, Kind.SCALAR, data.astype(array_dtype(type_)))

    def settle(self, value: Value, type_: str | None = None) -> Value:
        """A value with a type of its own and an element for each thread or place."""
        if is_literal(value.type):
            number = value.number
            value = convert_literal(value, type_ or default_type(value.type))
            if value.type == INDEX:
                return self.scalar(INDEX, number, constant=int(number))
        elif type_ is not None:
            value = elementwise.convert(value, type_)
        if value.kind is not Kind.LITERAL:
            return value
        data = np.broadcast_to(value.data, (self.threads,))
        error = None if value.error is None else np.broadcast_to(value.error, (self.threads,))
        return Value(value.type, Kind.SCALAR, data, error, constant=value.constant)

    def fit(self, value: Value, type_: str) -> Value:
        """A value where one of a type is wanted: widened, never narrowed."""
        allowed = value.type == type_ or value.constant is not None
        if is_literal(value.type):
            allowed = is_float(type_) or not is_float(value.type)
        elif not allowed:
            try:
                allowed = promote(value.type, type_) == type_
            except ValueError:
                allowed = False
        if not allowed:
            raise Misuse(f"{value.type} where {type_} is wanted")
        return self.settle(value, type_)

    def uniform(self, value: Value) -> Value:
        """A scalar that all threads here agree on, as one number."""
        if value.kind is not Kind.SCALAR:
            return value
        data = value.data[self.active]
        if value.error is not None and np.any(value.error[self.active]):
            if not np.all(value.error[self.active] == value.error[self.active][0]):
                raise Undecided("threads may differ")
            return Value(
                value.type,
                Kind.LITERAL,
                np.asarray(data[0]),
                np.asarray(value.error[self.active][0]),
            )
        same = data == data[0]
        if is_float(value.type):
            same |= np.isnan(data) & np.isnan(data[0])
        if not np.all(same):
            raise Misuse("a tile takes a scalar that differs between threads")
        return Value(
            value.type,
            Kind.LITERAL,
            np.asarray(data[0]),
            constant=value.constant,
        )

    def number(self, value: Value) -> int:
        """An integer that all threads here agree on."""
        if is_literal(value.type):
            return int(value.number)
        one = self.uniform(value)
        if one.error is not None and np.any(one.error):
            raise Undecided("a number that is not defined")
        return int(one.data)

    def together(self, values: Sequence[Value]) -> tuple[str, list[Value]]:
        """The operands of an operation in one type, in shapes that NumPy broadcasts."""
        type_ = common_type(list(values))
        kinds = {value.kind for value in values}
        if Kind.TILE in kinds and Kind.RUN in kinds:
            raise Misuse("a run meets a tile")
        return type_, [self.shaped(self._as(value, type_), kinds) for value in values]

    def shaped(self, value: Value, kinds: set[Kind]) -> Value:
        """A scalar among tiles or runs in a shape that goes with theirs."""
        if Kind.TILE in kinds:
            return self.uniform(value)
        if Kind.RUN in kinds and value.kind is Kind.SCALAR:
            error = None if value.error is None else value.error[:, None]
            return Value(value.type, Kind.RUN, value.data[:, None], error)
        return value

    def _as(self, value: Value, type_: str) -> Value:
        if is_literal(value.type):
            return convert_literal(value, type_)
        return elementwise.convert(value, type_)

    def condition(self, value: Value) -> np.ndarray:
        """Which of the active threads find a bool true."""
        if value.type != BOOL or value.kind is not Kind.SCALAR:
            raise Misuse("a condition is one bool")
        if value.error is not None and np.any(value.error[self.active]):
            raise Undecided("a condition is not defined")
        return value.data & self.active

    def must_be_uniform(self, what: str) -> None:
        """Refuse what all threads of the CTA have to do together."""
        if not np.all(self.active):
            raise Misuse(f"{what} where some threads are missing")

    def expression(self, node: ast.Expression) -> Value:
        """The value of an expression."""
        from tools.fuzz.expressions import expression

        return expression(self, node)

    def evaluate(self, node: ast.Expression) -> None:
        """Runs an expression for its effect."""
        from tools.fuzz.effects import effect

        effect(self, node)

    def variable(self, value: Value) -> Variable:
        """A variable that holds a value."""
        if value.kind is Kind.TILE:
            return Variable(None, Memory.holding(value))
        return Variable(value)

    def type_name(self, type_: ast.Type) -> str:
        """The scalar type, or that of the elements."""
        return type_.name if isinstance(type_, ast.ScalarType) else type_.element.name

    def dim(self, dim: ast.Dim) -> int:
        """An extent of a type."""
        if isinstance(dim, ast.DimSize):
            return dim.value
        found = self.lookup(dim.name)
        assert isinstance(found, Value)
        return self.number(found)

    def spread(self, value: Value, shape: tuple[int, ...]) -> Value:
        """A scalar or tile over all elements of a shape."""
        value = self.uniform(value)
        data = np.broadcast_to(value.data, shape)
        return Value(value.type, Kind.TILE, data, settled(value.error, shape))

    def merged(self, new: Value, old: Value) -> Value:
        """The new value in active threads, the old one in the others."""
        active = self.active if new.kind is Kind.SCALAR else self.active[:, None]
        data = np.where(active, new.data, old.data)
        error = None
        if new.error is not None or old.error is not None:
            error = settled(np.where(active, errors(new), errors(old)), data.shape)
        return Value(old.type, old.kind, data, error)

    def read(self, variable: Variable) -> Value:
        """The value of a variable."""
        if variable.memory is None:
            assert variable.value is not None
            return variable.value
        memory = variable.memory
        error = settled(memory.error.copy(), memory.data.shape)
        return Value(memory.type, Kind.TILE, memory.data.copy(), error)

    def operate(self, op: str, left: Value, right: Value) -> Value:
        """`left op right`."""
        from tools.fuzz.expressions import operate

        return operate(self, op, left, right)
