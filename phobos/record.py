"""Records: what the front end's trees and tables are made of.

The two trees have a hundred kinds of node, and every process that compiles defines them all.
A frozen dataclass generates six methods for each, which together takes longer than compiling a
small kernel; a record generates its constructor and inherits the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: _Class) -> _Class:
    """A dataclass that is immutable by contract: type checkers refuse assignments to fields."""
    return dataclass(slots=True, eq=False, repr=False)(cls)


@record
class Record:
    """Shown by its fields, compared by identity."""

    def __repr__(self) -> str:
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
        return f"{type(self).__name__}({', '.join(shown)})"


@record
class Value(Record):
    """A record that equals another of its class whose compared fields are equal."""

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, one.name) for one in fields(self) if one.compare)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Value)
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((type(self), self._compared()))
