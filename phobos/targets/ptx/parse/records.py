"""What the parser makes of PTX text: frozen records, names resolved, nothing interpreted.

A `Module` holds variables and functions, a `Function` a flat list of `Instruction`s whose labels
are indices into it. The nested scopes of the text are gone: every register and variable has a
name of its own, so a name that two scopes declare appears as `temp` and `temp@1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the PTX text; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SourcePoint:
    """A place in the source that a `.loc` directive names; `file` indexes `Module.files`."""

    file: int
    line: int
    column: int


# Operands ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register: its declared type (`b32`, `pred`, `f64`, ...) and number in the function.

    The number counts the registers that the function uses, from 0 and without gaps.
    """

    name: str
    type: str
    index: int


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A predefined register, named without the percent sign: `tid.x`, `laneid`, `clock64`."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """An integer constant, as written: it may be negative or need the whole 64 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class FloatImmediate:
    """A floating-point constant as the bit pattern of a float of `width` bits, 32 or 64.

    `0f3F800000` has width 32; `0d...` and decimal spellings have width 64.
    """

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, parameter, function, label or table, plus an offset in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    """The operand `_`: a result that nobody wants."""


@dataclass(frozen=True, slots=True)
class Negated:
    """A predicate operand with a `!` before it."""

    operand: Register


@dataclass(frozen=True, slots=True)
class Vector:
    """Operands in braces: `{%r1, %r2}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two results joined by a bar: `%r1|%p1`."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand `[base+offset]`, or `[base, {coordinates}]` for a tensor map."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Arguments:
    """Operands in parentheses: the results or arguments of a call."""

    elements: tuple[Operand, ...]


Operand: TypeAlias = (
    Register
    | SpecialRegister
    | Immediate
    | FloatImmediate
    | Symbol
    | Sink
    | Negated
    | Vector
    | Pair
    | Address
    | Arguments
)


# Statements --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate that an instruction runs under: `@%p` or `@!%p`."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    `opcode` is the first word and `suffix` the rest, dots removed: `ld.global.v4.b32` has opcode
    `ld` and suffix `("global", "v4", "b32")`. `source` is what the last `.loc` said.
    """

    opcode: str
    suffix: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    position: Position
    source: SourcePoint | None = None

    @property
    def mnemonic(self) -> str:
        """Opcode and suffix as PTX spells them."""
        return ".".join((self.opcode, *self.suffix))


Initial: TypeAlias = int | FloatImmediate | Symbol
"""One element of a variable's initialiser."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable or parameter: `count` elements of `vector` values of `type`, or a scalar.

    `space` is `global`, `const`, `shared`, `local`, `param` or `reg` (a device function's
    register parameter, then `register` holds it). `count` is None for an array without a size.
    """

    name: str
    space: str
    type: str
    align: int
    count: int | None
    position: Position
    is_array: bool = False
    is_extern: bool = False
    initial: tuple[Initial, ...] = ()
    register: Register | None = None
    attributes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes; 0 for an array without a size."""
        return TYPE_BYTES[self.type] * (self.count or 0)


@dataclass(frozen=True, slots=True)
class Function:
    """An entry or device function.

    `labels` maps a label to the index of the instruction behind it (one past the last at the
    end). `tables` holds `.branchtargets`, `directives` the launch bounds and their like.
    """

    name: str
    is_entry: bool
    position: Position
    parameters: tuple[Variable, ...] = ()
    results: tuple[Variable, ...] = ()
    directives: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    registers: tuple[Register, ...] = ()
    body: tuple[Instruction, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_declaration: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    """A whole PTX module. `name` is what messages call the text, `text` the text itself."""

    name: str
    text: str
    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    files: Mapping[int, str]
    variables: tuple[Variable, ...]
    functions: Mapping[str, Function]

    @property
    def chip(self) -> str:
        """The chip that `.target` names, such as `sm_80`."""
        return self.target[0]

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels, in the order of the text."""
        return tuple(f for f in self.functions.values() if f.is_entry and not f.is_declaration)


TYPE_BYTES: Mapping[str, int] = {
    "pred": 1,
    **{f"{kind}8": 1 for kind in "usb"},
    **{f"{kind}16": 2 for kind in "usbf"},
    "bf16": 2,
    **{f"{kind}32": 4 for kind in "usbf"},
    **dict.fromkeys(("f16x2", "bf16x2", "tf32"), 4),
    **{f"{kind}64": 8 for kind in "usbf"},
    "b128": 16,
    **dict.fromkeys(("texref", "samplerref", "surfref"), 8),
}
"""Bytes of one value of a type that a declaration may name."""
