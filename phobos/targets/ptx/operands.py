"""Names of values in PTX text: registers, constants and symbols."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import OpResult, SSAValue

from phobos.dialects.ptx.moves import ImmOp, SymbolOp
from phobos.dialects.ptx.signatures import Literal
from phobos.dialects.ptx.types import PRED, RegisterType

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


class Names(dict[SSAValue, Name]):
    """The name of each value; registers are numbered when they are first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[RegisterType, int] = {}
        self._materialised: dict[SSAValue, str] = {}

    def __missing__(self, value: SSAValue) -> Name:
        name = self._new_name(value)
        self[value] = name
        return name

    def _new_name(self, value: SSAValue) -> Name:
        register = value.type
        assert isinstance(register, RegisterType), f"{value} is in no register"
        if isinstance(value, OpResult):
            if isinstance(value.op, ImmOp):
                return Constant(value.op.pattern, register)
            if isinstance(value.op, SymbolOp):
                return Symbol(value.op.symbol, register)
        return self.fresh(register)

    def fresh(self, register: RegisterType) -> str:
        """A register that nothing uses yet."""
        number = self._counts.get(register, 0) + 1
        self._counts[register] = number
        return f"{register.data.prefix}{number}"

    def operand(self, value: SSAValue, literal: Literal | None) -> str:
        """A value as an operand, in the notation of its place (None: a register)."""
        name = self[value]
        if isinstance(name, str):
            return name
        if isinstance(name, Symbol):
            return name.text if literal is Literal.ADDRESS else self._materialise(value)
        if literal is None or literal is Literal.ADDRESS:
            return self._materialise(value)
        return name.text(literal)

    def register(self, value: SSAValue) -> str:
        """A value as a register; a constant is put in one."""
        name = self[value]
        return name if isinstance(name, str) else self._materialise(value)

    def _materialise(self, value: SSAValue) -> str:
        register = self._materialised.get(value)
        if register is None:
            kind = value.type
            assert isinstance(kind, RegisterType)
            register = self._materialised[value] = self.fresh(kind)
        return register

    def definitions(self) -> Iterator[str]:
        """Moves that put constants and symbols in the registers that were asked for."""
        for value, register in self._materialised.items():
            name = self[value]
            if isinstance(name, Constant):
                yield f"mov.{name.register.data} {register}, {name.text(Literal.BITS)};"
            elif isinstance(name, Symbol):
                yield f"mov.b{name.register.bits} {register}, {name.text};"

    def declarations(self) -> Iterator[str]:
        """Declarations of all registers, one line a class."""
        for register, count in sorted(self._counts.items(), key=lambda item: item[0].bits):
            kind = "pred" if register == PRED else str(register.data)
            yield f".reg .{kind} {register.data.prefix}<{count + 1}>;"
