"""Evaluates a kernel over a grid: what each tensor holds in the end, and how exactly."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from phobos.frontend import ast
from tools.fuzz.machine import Entry, Machine, Tensor
from tools.fuzz.memory import Memory
from tools.fuzz.scalars import INDEX, Array, array_dtype
from tools.fuzz.statements import run
from tools.fuzz.values import Kind, Value

DEFAULT_THREADS = 256
Grid = tuple[int, int, int]


def evaluate(
    program: ast.Program,
    arguments: Mapping[str, Array | int | float | bool],
    grid: Grid,
    *,
    is_contracted: bool = False,
) -> dict[str, Memory]:
    """The tensors of the program's one kernel after a launch.

    Args:
        program: The syntax tree.
        arguments: Arrays and numbers by the names of parameters; arrays stay as they are.
        grid: CTAs along x, y and z. They run one after the other.
        is_contracted: Whether a product may go into a sum unrounded, as on a GPU.

    Raises Undecided where the language leaves open what the program does, and Misuse where the
    program breaks its rules.
    """
    (kernel,) = program.kernels
    threads = _threads(kernel)
    names: dict[str, Entry] = {}
    tensors: dict[str, Memory] = {}
    for name, number in _constants(kernel).items():
        names[name] = _number(INDEX, number, threads, constant=number)
    for param in kernel.params:
        given = arguments[param.name]
        if isinstance(param.type, ast.ScalarType):
            names[param.name] = _number(param.type.name, given, threads)
            continue
        assert isinstance(given, np.ndarray)
        memory = Memory.of(param.type.element.name, given)
        tensors[param.name] = memory
        names[param.name] = Tensor(memory)
        for dim, extent in zip(param.type.dims, given.shape, strict=True):
            if isinstance(dim, ast.DimName) and dim.name not in names:
                names[dim.name] = _number(INDEX, extent, threads)
    for z, y, x in product(*(range(extent) for extent in reversed(grid))):
        machine = Machine(
            program, kernel, threads, names, (x, y, z), grid, is_contracted=is_contracted
        )
        run(machine)
    return tensors


def _number(type_: str, number: object, threads: int, constant: int | None = None) -> Value:
    data = np.full(threads, number).astype(array_dtype(type_))
    return Value(type_, Kind.SCALAR, data, constant=constant)


def _threads(kernel: ast.Kernel) -> int:
    for attribute in kernel.attributes:
        if attribute.name == "launch":
            first = attribute.args[0]
            assert isinstance(first, ast.PositionalArgument)
            assert isinstance(first.value, ast.IntLiteral)
            return first.value.value
    return DEFAULT_THREADS


def _constants(kernel: ast.Kernel) -> dict[str, int]:
    """The names that `@autotune` binds, with their first values."""
    return {
        argument.name: argument.values[0].value
        for attribute in kernel.attributes
        if attribute.name == "autotune"
        for argument in attribute.args
        if isinstance(argument, ast.ChoiceArgument)
    }
