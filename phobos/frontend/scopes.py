"""Names and what they stand for."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.diagnostics import Location
from phobos.frontend import ast
from phobos.frontend.builtins import BUILTIN_FUNCTIONS
from phobos.frontend.typed import TensorParameter, Variable
from phobos.frontend.types import NAMED
from phobos.record import Record, record


@record
class NamedConstant(Record):
    """An `@autotune` name, or a dim of a function's tile parameter: a constant index."""

    name: str
    value: int
    declared: Location


@record
class NamedExtent(Record):
    """A dim name that the launch gives its value: the size of `tensor` along `axis`."""

    name: str
    tensor: TensorParameter
    axis: int
    declared: Location


@record
class Poisoned(Record):
    """A name whose declaration has an error; its uses report nothing more."""

    name: str
    declared: Location


@record
class Builtin(Record):
    """A built-in function, a conversion, `ctx`, `inf` or `nan`."""

    name: str


Symbol = (
    Variable
    | TensorParameter
    | NamedConstant
    | NamedExtent
    | Poisoned
    | Builtin
    | ast.Function
    | ast.Kernel
)

CONTEXT = "ctx"
FLOAT_CONSTANTS = {"inf": float("inf"), "nan": float("nan")}

BUILTINS: dict[str, Builtin] = {
    name: Builtin(name) for name in (*BUILTIN_FUNCTIONS, *NAMED, CONTEXT, *FLOAT_CONSTANTS)
}
"""What the outermost scope holds; a program may declare any of these names anew."""


class Scope:
    """The names declared in one block, inside those of the blocks around it."""

    __slots__ = ("_names", "_parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self._parent = parent
        self._names: dict[str, Symbol] = {}

    def local(self, name: str) -> Symbol | None:
        """What this block itself declares under a name."""
        return self._names.get(name)

    def declare(self, name: str, symbol: Symbol) -> None:
        """Gives a name a meaning from here to the end of the block."""
        self._names[name] = symbol

    def lookup(self, name: str) -> Symbol | None:
        """What a name stands for here, or None."""
        scope: Scope | None = self
        while scope is not None:
            symbol = scope._names.get(name)
            if symbol is not None:
                return symbol
            scope = scope._parent
        return BUILTINS.get(name)

    def declared(self) -> Iterator[tuple[str, Symbol]]:
        """What this block itself declares."""
        yield from self._names.items()

    def names(self) -> Iterator[str]:
        """The names that can be used here, nearest first, then the built-ins in order."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope._names
            scope = scope._parent
        yield from sorted(BUILTINS)


def place_of(symbol: Symbol) -> Location | None:
    """Where a symbol is declared, or None if it is built in."""
    match symbol:
        case Builtin():
            return None
        case ast.Function() | ast.Kernel():
            return symbol.name_span
        case _:
            return symbol.declared


def describe(symbol: Symbol) -> str:
    """What a symbol is, as part of a sentence."""
    match symbol:
        case Variable():
            return symbol.role.value
        case TensorParameter():
            return "a tensor"
        case NamedConstant():
            return "a compile-time constant"
        case NamedExtent():
            return "the extent of a tensor"
        case Builtin():
            return "a built-in"
        case ast.Function():
            return "a function"
        case ast.Kernel():
            return "a kernel"
        case Poisoned():
            return "an erroneous name"
