"""Names of values in PTX text: registers, constants and symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from xdsl.ir import SSAValue

from phobos.dialects.ptx.moves import ImmOp, SymbolOp
from phobos.dialects.ptx.signatures import Literal
from phobos.dialects.ptx.types import RegisterType

_SMALL = 65536
"""Numbers below this are written in decimal, others in hex."""


class Constant:
    """A constant, which PTX mostly takes in place of a register."""

    __slots__ = ("pattern", "register")

    def __init__(self, pattern: int, register: RegisterType) -> None:
        self.pattern = pattern
        self.register = register

    def text(self, literal: Literal) -> str:
        """The constant in the notation of its place."""
        pattern = self.pattern
        match literal:
            case Literal.F32:
                return f"0f{pattern:08X}"
            case Literal.F64:
                return f"0d{pattern:016X}"
            case Literal.SIGNED:
                bits = self.register.bits
                signed = pattern - (1 << bits) if pattern >> (bits - 1) else pattern
                return str(signed) if -_SMALL < signed < _SMALL else hex(pattern)
            case _:
                return str(pattern) if pattern < _SMALL else hex(pattern)


class Symbol:
    """The address of a variable, which PTX takes as the base of an address."""

    __slots__ = ("register", "text")

    def __init__(self, text: str, register: RegisterType) -> None:
        self.text = text
        self.register = register


Name = str | Constant | Symbol


_PREFIXES = {"pred": "%p", "b16": "%h", "b32": "%r", "b64": "%rd", "b128": "%rq"}
"""What the names of registers start with, by class; declarations come in this order."""


class Names:
    """The name of each value; registers are numbered when they are first asked for.

    ``shared`` gives the value that stands for all that have its register, by their identities.
    """

    def __init__(self, shared: Mapping[int, SSAValue]) -> None:
        self._shared = shared
        self.table: dict[int, Name] = {}
        """Names by the identity of the value, which outlives the printing."""
        self._counts = dict.fromkeys(_PREFIXES, 0)
        self._materialised: dict[int, tuple[str, Constant | Symbol]] = {}

    def __getitem__(self, value: SSAValue) -> Name:
        name = self.table.get(id(value))
        return self._add(value) if name is None else name

    def _add(self, value: SSAValue) -> Name:
        register = value.type
        assert isinstance(register, RegisterType), f"{value} is in no register"
        name: Name
        match value.owner:
            case ImmOp() as op:
                name = Constant(op.pattern, register)
            case SymbolOp() as op:
                name = Symbol(op.symbol, register)
            case _:
                name = self._register_of(value, register)
        self.table[id(value)] = name
        return name

    def result(self, value: SSAValue) -> str:
        """The register of an instruction's result."""
        key = id(value)
        name = self.table.get(key)
        if type(name) is str:
            return name
        register = cast(RegisterType, value.type)
        name = self._register_of(value, register) if key in self._shared else self.fresh(register)
        self.table[key] = name
        return name

    def _register_of(self, value: SSAValue, register: RegisterType) -> str:
        """The register of a value that has no name yet, perhaps that of another one."""
        owner = self._shared.get(id(value), value)
        name = self.table.get(id(owner))
        if name is None:
            name = self.table[id(owner)] = self.fresh(register)
        assert type(name) is str
        return name

    def fresh(self, register: RegisterType) -> str:
        """A register that nothing uses yet."""
        kind = register.data
        number = self._counts[kind] = self._counts[kind] + 1
        return f"{_PREFIXES[kind]}{number}"

    def operand(self, value: SSAValue, literal: Literal | None) -> str:
        """A value as an operand, in the notation of its place (None: a register)."""
        name = self[value]
        if type(name) is str:
            return name
        if type(name) is Symbol:
            return name.text if literal is Literal.ADDRESS else self._materialise(value, name)
        assert type(name) is Constant
        if literal is None or literal is Literal.ADDRESS:
            return self._materialise(value, name)
        return name.text(literal)

    def register(self, value: SSAValue) -> str:
        """A value as a register; a constant or an address is put in one."""
        name = self[value]
        return name if isinstance(name, str) else self._materialise(value, name)

    def _materialise(self, value: SSAValue, name: Constant | Symbol) -> str:
        found = self._materialised.get(id(value))
        if found is None:
            found = self._materialised[id(value)] = (self.fresh(name.register), name)
        return found[0]

    def definitions(self) -> Iterator[str]:
        """Moves that put constants and symbols in the registers that were asked for."""
        for register, name in self._materialised.values():
            text = name.text if isinstance(name, Symbol) else name.text(Literal.BITS)
            yield f"mov.{name.register.data} {register}, {text};"

    def declarations(self) -> Iterator[str]:
        """Declarations of all registers, one line a class."""
        for kind, count in self._counts.items():
            if count:
                yield f".reg .{kind} {_PREFIXES[kind]}<{count + 1}>;"
