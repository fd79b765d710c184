"""Whole programs: a kernel with its parameters, and what it is launched on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from phobos.frontend import parse
from phobos.frontend.printer import print_program
from phobos.targets.ptx import chips
from tools.fuzz.generator import product_statements
from tools.fuzz.generator.inputs import make_array
from tools.fuzz.generator.product_statements import TENSOR_COPIES_CHIP, ProductProgram
from tools.fuzz.generator.statements import TileProgram
from tools.fuzz.generator.thread_statements import ThreadProgram
from tools.fuzz.generator.writer import Writer
from tools.fuzz.scalars import Array

CHIPS = tuple(chips.CHIPS)
_FLAGS = ("@dynshared", "@pipeline(1)", "@swizzle", "@registers")
"""Attributes that change how a kernel does what it does."""
_PRODUCTS = 0.015
"""How many programs are products of tiles that fill tensor cores: they take a while."""
_THREADS = (32, 32, 64, 64, 96, 128, 33, 48, 7)


@dataclass(frozen=True, slots=True)
class Case:
    """A program and a launch of it."""

    seed: int
    source: str
    arguments: dict[str, Array | int | float | bool]
    grid: tuple[int, int, int]
    chip: str
    index_bits: int
    kind: str = field(default="tile")
    check_bounds: bool = False
    tensor_maps: bool = True
    """Whether the kernel may take tensor maps, on chips that have them."""


def generate(
    seed: int, chip: str | None = None, *, is_large: bool = False, is_product: bool = False
) -> Case:
    """The program of a seed; the same one on every machine.

    `is_product` asks for a program of products of tiles, which a few are without.
    """
    if is_product or np.random.default_rng([seed, 11]).random() < _PRODUCTS:
        return _product_case(seed, chip)
    choose = np.random.default_rng([seed, 7])
    threads = int(choose.choice(_THREADS))
    grid = (int(choose.integers(1, 4)), int(choose.integers(1, 3)))
    writer = Writer(seed, threads, grid, is_large=is_large)
    is_tile = bool(choose.random() < 0.6)
    program = TileProgram(writer) if is_tile else ThreadProgram(writer)
    program.write()
    return Case(
        seed,
        _text(writer, [flag for flag in _FLAGS if writer.chance(0.06)]),
        _arguments(writer),
        (*grid, 1),
        chip or CHIPS[seed % len(CHIPS)],
        int(choose.choice([32, 32, 32, 64])),
        "tile" if is_tile else "thread",
        check_bounds=bool(choose.random() < 0.1),
    )


def _product_case(seed: int, chip: str | None) -> Case:
    """Products of tiles, mostly on the chip that feeds them by tensor copies."""
    choose = np.random.default_rng([seed, 13])
    grid = (int(choose.choice([1, 1, 2])), int(choose.choice([1, 1, 2])))
    writer = Writer(seed, int(choose.choice(product_statements.THREADS)), grid)
    program = ProductProgram(writer)
    program.write()
    own = CHIPS[seed % len(CHIPS)] if choose.random() < 0.15 else TENSOR_COPIES_CHIP
    bits = int(choose.choice([32, 32, 32, 64]))
    is_checked = bool(choose.random() < 0.1)
    text = _text(writer, program.attributes)
    return Case(
        seed, text, _arguments(writer), (*grid, 1), chip or own, bits, "product", is_checked
    )


def _arguments(writer: Writer) -> dict[str, Array | int | float | bool]:
    arrays = {
        tensor.name: make_array(writer.numbers, tensor.type, tensor.extents, tensor.content)
        for tensor in writer.tensors
    }
    numbers = {parameter.name: parameter.value for parameter in writer.scalars}
    return {**arrays, **numbers}


def _text(writer: Writer, flags: Sequence[str]) -> str:
    """The text in the layout of the printer, which leaves out parentheses that do nothing."""
    tensors = [f"{t.name}: tensor<{t.type}>[{', '.join(t.dims)}]" for t in writer.tensors]
    numbers = [f"{parameter.name}: {parameter.type}" for parameter in writer.scalars]
    bound = [f"{name} in [{number}]" for name, number in writer.constants.items()]
    autotune = f"@autotune({', '.join(bound)})\n" if bound else ""
    autotune += "".join(f"{flag}\n" for flag in flags)
    head = f"{autotune}@launch({writer.threads})\nkernel k({', '.join(tensors + numbers)}) {{"
    text = "\n".join([*writer.functions, head, *writer.lines, "}", ""])
    return print_program(parse(text, "generated.ph"))
