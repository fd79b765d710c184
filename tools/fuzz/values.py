"""The values of a program under evaluation, with how far each element may rightly be off.

A scalar is an array with an element for each thread of the CTA, a tile an array of its shape, a
run an array [threads, n]; a literal is a Python number. `error` bounds the distance of another
right result from `data`: None means none at all, so that an element must be equal; infinity means
that any value is right, which is how undefined integers and bools are told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np

from tools.fuzz.scalars import (
    BOOL,
    FLOAT_LITERAL,
    INDEX,
    INT_LITERAL,
    Array,
    Doubles,
    array_dtype,
    is_float,
    is_literal,
    promote,
    round_to,
)
from tools.fuzz.terms import Terms


class Undecided(Exception):
    """The program does different, equally right things, as `if` on an inexact comparison does."""


class Misuse(Exception):
    """The program breaks a rule of the language; a fault of whoever wrote it."""


class Kind(Enum):
    """What a value is a value of."""

    LITERAL = auto()
    SCALAR = auto()
    TILE = auto()
    RUN = auto()


@dataclass(frozen=True, slots=True)
class Value:
    """A value; `constant` is what it is at compile time where that is known of an index.

    `terms` are those of a product of matrices, for as long as nothing was done to it.
    """

    type: str
    kind: Kind
    data: Array
    error: Doubles | None = None
    constant: int | None = None
    terms: Terms | None = None

    @property
    def number(self) -> int | float:
        """The number of a literal."""
        return self.data.item()

    def with_error(self, error: Doubles | None) -> Value:
        """The value with another bound."""
        return replace(self, error=error)


def literal(number: int | float) -> Value:
    """A number that has met no type."""
    type_ = FLOAT_LITERAL if isinstance(number, float) else INT_LITERAL
    return Value(type_, Kind.LITERAL, np.array(number, dtype=object))


def convert_literal(value: Value, type_: str) -> Value:
    """A literal in the type that it meets; it stays one number for all elements."""
    number = value.data.item()
    if is_float(type_):
        data = np.asarray(number if type_ == FLOAT_LITERAL else float(number))
        if type_ == FLOAT_LITERAL:
            return literal(float(number))
        return Value(type_, Kind.LITERAL, np.asarray(round_to(data.astype(np.float64), type_)))
    if type_ == INT_LITERAL:
        return literal(int(number))
    return Value(
        type_,
        Kind.LITERAL,
        np.asarray(number).astype(array_dtype(type_)),
        constant=int(number) if type_ == INDEX else None,
    )


def join(error: Doubles | None, other: Doubles | None) -> Doubles | None:
    """The larger of two bounds."""
    if error is None or other is None:
        return other if error is None else error
    return np.maximum(error, other)


def errors(value: Value) -> Doubles:
    """The bounds of all elements."""
    return np.zeros(value.data.shape) if value.error is None else value.error


def settled(error: Doubles | None, shape: tuple[int, ...]) -> Doubles | None:
    """A bound of its own shape; None where it is 0 everywhere."""
    if error is None or not np.any(error):
        return None
    return np.broadcast_to(error, shape)


def common_type(values: list[Value]) -> str:
    """The type in which values meet; index constants take the integer type of tiles and runs."""
    shaped = [v.type for v in values if v.kind in (Kind.TILE, Kind.RUN)]
    element = shaped[0] if shaped else None
    is_counted = element is not None and not is_float(element) and element != BOOL
    types = [
        element if is_counted and v.constant is not None and element is not None else v.type
        for v in values
    ]
    together = types[0]
    for type_ in types[1:]:
        try:
            together = promote(together, type_)
        except ValueError as error:
            raise Misuse(str(error)) from None
    return together


def default_type(type_: str) -> str:
    """The type of a literal that meets nothing."""
    if not is_literal(type_):
        return type_
    return INDEX if type_ == INT_LITERAL else "f32"
