"""Takes typed fields out of the JSON of a launch contract, and names those that are wrong.

The module needs the standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from phobos.diagnostics import PhobosError
from phobos.record import Record, record

_T = TypeVar("_T")


@record
class Reader(Record):
    """Takes typed fields out of a JSON object; a wrong one is an error that names its path."""

    data: Any
    file: str
    path: str

    def __post_init__(self) -> None:
        if not isinstance(self.data, dict):
            place = f" at {self.path.rstrip('.')}" if self.path else ""
            raise PhobosError.at(None, f"{self.file} is no launch contract: no object{place}")

    def error(self, key: str, expected: str, got: object) -> PhobosError:
        """What to raise for a field that is not as expected."""
        shown = "nothing" if got is None else json.dumps(got)[:60]
        return PhobosError.at(
            None,
            f"{self.file} is no launch contract: `{self.path}{key}` must be {expected}, "
            f"and is {shown}",
        )

    def _get(self, key: str, expected: str, is_valid: Callable[[Any], bool]) -> Any:
        value = self.data.get(key)
        if not is_valid(value):
            raise self.error(key, expected, value)
        return value

    def text(self, key: str) -> str:
        """A string."""
        return self._get(key, "a string", lambda value: isinstance(value, str))

    def boolean(self, key: str) -> bool:
        """True or false."""
        return self._get(key, "true or false", lambda value: isinstance(value, bool))

    def integer(self, key: str, least: int | None = None) -> int:
        """An integer, at least `least`."""
        expected = "an integer" if least is None else f"an integer of at least {least}"
        return self._get(
            key, expected, lambda value: type(value) is int and (least is None or value >= least)
        )

    def one_of(self, key: str, values: tuple[_T, ...]) -> _T:
        """One of these values, of the same type."""
        expected = f"one of {', '.join(map(str, values))}"
        return self._get(
            key, expected, lambda value: any(value == v and type(value) is type(v) for v in values)
        )

    def choice(self, key: str, enum: Callable[[str], _T]) -> _T:
        """A member of an enum, by its value."""
        value = self.text(key)
        try:
            return enum(value)
        except ValueError:
            raise self.error(key, "a known value", value) from None

    def texts(self, key: str) -> list[str]:
        """A list of strings."""
        return self._get(
            key,
            "a list of strings",
            lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
        )

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of integers."""
        return tuple(self._get(key, "a list of integers", is_integer_list))

    def object(self, key: str) -> Reader:
        """A reader of the object in a field."""
        value = self._get(key, "an object", lambda value: isinstance(value, dict))
        return Reader(value, self.file, f"{self.path}{key}.")

    def objects(self, key: str) -> Iterator[Reader]:
        """A reader for each object of a list."""
        values = self._get(key, "a list", lambda value: isinstance(value, list))
        for index, value in enumerate(values):
            yield Reader(value, self.file, f"{self.path}{key}[{index}].")

    def mapping(self, expected: str, is_valid: Callable[[Any], bool]) -> dict[str, Any]:
        """All fields, each of which must be valid."""
        for key in self.data:
            self._get(key, expected, is_valid)
        return dict(self.data)

    def optional(self, key: str, read: Callable[[str], _T]) -> _T | None:
        """What `read` makes of a field; None where it is missing or null."""
        return None if self.data.get(key) is None else read(key)


def is_number(value: object) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_positive(value: object) -> bool:
    """Whether a JSON value is a positive integer."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def is_integer_list(value: object) -> bool:
    """Whether a JSON value is a list of integers."""
    return isinstance(value, list) and all(type(item) is int for item in value)
