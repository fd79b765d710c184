"""Writing a program line by line: parameters, names and blocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from tools.fuzz.generator.inputs import CONTENTS, make_number
from tools.fuzz.generator.terms import (
    BYTES,
    NUMBERS,
    UNIFORM,
    VARYING,
    WHOLE_LIMITS,
    FunctionName,
    Region,
    ScalarParameter,
    Shape,
    TensorParameter,
    Term,
    Variable,
)
from tools.fuzz.scalars import BOOL, INDEX, integer_limits, is_float

Drawn = TypeVar("Drawn")
MAX_TENSORS = 8


class Writer:
    """The state of a program under construction."""

    def __init__(
        self, seed: int, threads: int, grid: tuple[int, int], *, is_large: bool = False
    ) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.threads, self.grid = threads, grid
        self.tensors: list[TensorParameter] = []
        self.scalars: list[ScalarParameter] = []
        self.functions: list[str] = []
        self.calls: list[FunctionName] = []
        self.lines: list[str] = []
        self.variables: list[Variable] = []
        self.flow = UNIFORM
        self.is_large = is_large or self.chance(0.02)
        """Whether the program has many statements."""
        self.most_elements = self.pick((16, 32, 48, 64, 64, 64, 64, 256, 512))
        if is_large:
            self.most_elements = self.pick((64, 256, 512, 1024))
        """How many elements a tile has at most."""
        self.multiple = self.pick((1, 1, 1, 4, 8, 16))
        """What divides the extents of tensors."""
        self.palette = [*self.random.sample(NUMBERS, 2), "i32"]
        """The types that most values have, so that values meet."""
        self.constants: dict[str, int] = {}
        """The names that `@autotune` binds."""
        self.regions: list[Region] = []
        """The parts of tensors that the CTA may read and write."""
        self.walks: dict[str, int] = {}
        """Counters of loops that go along an axis, and their steps."""
        self.is_closed = False
        """Whether a function is being written, which knows its parameters alone."""
        self._count = 0

    # Choice --------------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        """Whether a coin with this probability falls so."""
        return self.random.random() < probability

    def pick(self, choices: Sequence[Drawn]) -> Drawn:
        """One of several."""
        return self.random.choice(choices)

    def fresh(self, stem: str) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"{stem}{self._count}"

    def number(self, choices: Sequence[str] = NUMBERS) -> str:
        """A type out of several, mostly one that the program likes."""
        liked = [type_ for type_ in self.palette if type_ in choices]
        return self.pick(liked if liked and self.chance(0.7) else choices)

    # Lines ---------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """A line of the kernel's body."""
        self.lines.append(text)

    @contextmanager
    def block(self, head: str, flow: int | None = None) -> Iterator[None]:
        """A block behind a head; names of the block are gone after it."""
        self.line(head + " {")
        known, before = len(self.variables), self.flow
        self.flow = max(before, UNIFORM if flow is None else flow)
        yield
        del self.variables[known:]
        self.flow = before
        self.line("}")

    def branches(
        self, condition: Term, then: Callable[[], None], otherwise: Callable[[], None] | None
    ) -> None:
        """An `if` with one or two blocks."""
        with self.block(f"if {condition.text}", condition.level):
            then()
        if otherwise is not None:
            self.lines.pop()
            with self.block("} else", condition.level):
                otherwise()

    # Names ---------------------------------------------------------------------------------------

    def declare(self, value: Term, *, is_mutable: bool, written_type: str = "") -> Variable:
        """A variable with a value."""
        name = self.fresh("v" if is_mutable else "c")
        word = "var" if is_mutable else "let"
        self.line(f"{word} {name}{written_type} = {value.text}")
        level = value.level if not is_mutable else max(value.level, self.flow)
        cap = level if not is_mutable or self.chance(0.5) else VARYING
        size = None if is_mutable else value.size
        term = Term(name, value.type, value.shape, cap, size, value.is_exact)
        variable = Variable(term, is_mutable, cap, value.is_exact)
        self.variables.append(variable)
        return variable

    def known(
        self, type_: str | None, shape: Shape | None, level: int, *, is_mutable: bool = False
    ) -> list[Variable]:
        """The variables of a type and shape that differ no further than asked."""
        return [
            variable
            for variable in self.variables
            if (type_ is None or variable.term.type == type_)
            and variable.term.shape == shape
            and variable.term.level <= level
            and (variable.is_mutable or not is_mutable)
        ]

    def extent(self, number: int) -> str:
        """A constant extent: as a number, or by a name that is bound to it."""
        names = [name for name, bound in self.constants.items() if bound == number]
        if names and self.chance(0.6):
            return names[0]
        if number > 1 and len(self.constants) < 2 and not self.is_closed and self.chance(0.05):
            self.constants[self.fresh("T")] = number
        return str(number)

    # Parameters ----------------------------------------------------------------------------------

    def input(self, type_: str, extents: Shape) -> TensorParameter:
        """A tensor to read, of a type and about these extents; often one that there is."""
        fitting = [
            tensor
            for tensor in self.tensors
            if tensor.is_input and tensor.type == type_ and len(tensor.extents) == len(extents)
        ]
        if fitting and (self.chance(0.7) or len(self.tensors) >= MAX_TENSORS):
            return self.pick(fitting)
        chosen = tuple(
            -(-max(1, extent + self.random.randint(-3, 4)) // self.multiple) * self.multiple
            for extent in extents
        )
        content = "whole" if type_ in BYTES else self.pick(CONTENTS)
        return self.tensor("x", type_, chosen, content, is_input=True)

    def tensor(
        self, stem: str, type_: str, extents: Shape, content: str, *, is_input: bool
    ) -> TensorParameter:
        """A new tensor parameter; its extents are names or numbers."""
        dims = tuple(str(extent) if self.chance(0.35) else self._dim(extent) for extent in extents)
        made = TensorParameter(self.fresh(stem), type_, dims, extents, content, is_input)
        self.tensors.append(made)
        return made

    def _dim(self, extent: int) -> str:
        """A name for an extent: one that has it already, or a new one."""
        for tensor in self.tensors:
            for name, known in zip(tensor.dims, tensor.extents, strict=True):
                if known == extent and not name.isdigit() and self.chance(0.5):
                    return name
        return self.fresh("N")

    def extents(self) -> list[Term]:
        """The extents that have names, as values."""
        names = {dim for tensor in self.tensors for dim in tensor.dims if not dim.isdigit()}
        return [Term(name, INDEX) for name in sorted(names)]

    def scalar_parameter(self, type_: str) -> Term:
        """A number that the kernel takes; often one that there is."""
        fitting = [parameter for parameter in self.scalars if parameter.type == type_]
        if not fitting or (len(self.scalars) < 4 and self.chance(0.3)):
            value = make_number(self.numbers, type_)
            fitting = [ScalarParameter(self.fresh("p"), type_, value)]
            self.scalars += fitting
        chosen = self.pick(fitting)
        size = None
        if is_float(type_) and float(chosen.value).is_integer() and abs(chosen.value) <= 4:
            size = 4.0
        return Term(chosen.name, type_, size=size)

    # Literals ------------------------------------------------------------------------------------

    def literal(self, type_: str) -> Term:
        """A literal that is of a type where it meets one."""
        if type_ == BOOL:
            return Term(self.pick(("true", "false")), BOOL)
        if not is_float(type_):
            return Term(self._whole(type_), type_)
        if self.chance(0.7) or type_ in BYTES:
            number = self.random.randint(-4, 4)
            return Term(str(number) if number >= 0 else f"({number})", type_, size=4.0)
        if self.chance(0.1):
            return Term(self.pick(("inf", "(-inf)", "nan", "(1.0 / 4)", "(0.1 * 3)")), type_)
        return Term(self.pick(("0.5", "1.5", "0.1", "3e-3", "(-2.25)", "100.0")), type_)

    def _whole(self, type_: str) -> str:
        low, high = integer_limits("i8" if type_ == INDEX else type_)
        if self.chance(0.8) or type_ == INDEX:
            low, high = max(low, -3), 9
        number = self.pick((low, high, self.random.randint(low, high), 1, 2))
        if low < number < high and self.chance(0.1):
            return self._folded(number)
        return str(number) if number >= 0 else f"({number})"

    def _folded(self, number: int) -> str:
        """An integer as an expression of literals, which only the compiler works out."""
        # A literal itself must fit in 64 bits; what comes of some may leave them for a while.
        other = min(self.random.randint(1, 9), (1 << 64) // (abs(number) + 1))
        sign = "-" if number < 0 else ""
        return self.pick(
            (
                f"({number} + {other} - {other})",
                f"({sign}{abs(number) * other + self.random.randrange(other)} / {other})",
                f"({number} * {other} / {other})",
                f"(({number} << 1) >> 1)",
                f"(~(~({number})))",
                f"({number} ^ {other} ^ {other})",
            )
        )

    def divisor(self, type_: str) -> str:
        """A literal to divide by: often near a power of two."""
        low, high = integer_limits("i8" if type_ == INDEX else type_)
        power = 1 << self.random.randrange(high.bit_length())
        number = self.pick((self.random.randint(1, 12), power, power + 1, power - 1, high, 10, 100))
        number = max(1, min(number, high))
        if low < 0 and self.chance(0.25):
            return f"(-{number})" if self.chance(0.8) else f"({low})"
        return str(number)

    def compound(self, type_: str) -> str:
        """A compound assignment that takes no number but a literal."""
        if is_float(type_):
            return f"/= {self.pick((2, 3, 0.5))}"
        return self.pick(("/= 3", "%= 5", "<<= 1", ">>= 2", "/= 7", "%= 8"))

    def typed_literal(self, type_: str) -> Term:
        """A literal with a conversion, which is of its type wherever it stands."""
        plain = self.literal(type_)
        text = plain.text if type_ == BOOL else f"{type_}({plain.text})"
        return Term(text, type_, size=plain.size)

    def whole_limit(self, type_: str) -> float:
        """Up to where whole numbers of a float type are exact."""
        return WHOLE_LIMITS.get(type_, 0.0)
