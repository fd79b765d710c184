"""The one-line text of a layout, without knowing what a layout is.

    register=[[0, 1], [1, 0]] lane=[[0, 2], [0, 4]] warp=[] -> [2, 8]

Each input dimension lists one coordinate vector a bit, lowest bit first; behind the arrow
stand the sizes of the output dimensions.  Output dimensions called dim0, dim1, ... in that
order print as bare sizes, others as `name=size`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar


class LayoutError(ValueError):
    """A layout, or a question asked of one, that makes no sense; says what was expected."""


T = TypeVar("T")

Bases = dict[str, tuple[tuple[int, ...], ...]]

_LONGEST_NUMBER = 18  # decimal digits; more is a typing error and not a tile
_TOKEN = re.compile(r"\s*(->|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[=\[\],]|\S)")


def default_names(rank: int) -> tuple[str, ...]:
    """The usual names of `rank` tile axes.

    >>> default_names(2)
    ('dim0', 'dim1')
    """
    return tuple(f"dim{axis}" for axis in range(rank))


def format_layout(bases: Bases, names: Sequence[str], sizes: Sequence[int]) -> str:
    """Print the parts of a layout on one line."""
    inputs = " ".join(f"{name}={_vectors(vectors)}" for name, vectors in bases.items())
    if tuple(names) == default_names(len(names)):
        outputs = ", ".join(map(str, sizes))
    else:
        outputs = ", ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))
    return f"{inputs} -> [{outputs}]".lstrip()


def _vectors(vectors: Sequence[Sequence[int]]) -> str:
    return "[" + ", ".join("[" + ", ".join(map(str, vector)) + "]" for vector in vectors) + "]"


def parse_layout(text: str) -> tuple[Bases, dict[str, int]]:
    """Parse what `format_layout` prints into bases and output sizes.

    Raises LayoutError with the offending token; whether the numbers fit together is for the
    layout's own constructor to check.
    """
    reader = _Reader(text)
    bases: Bases = {}
    while reader.peek() != "->":
        name = reader.name("an input dimension such as 'register' or '->'")
        if name in bases:
            raise LayoutError(f"input dimension '{name}' appears twice in layout '{text}'")
        reader.expect("=")
        bases[name] = reader.list_of(lambda: reader.list_of(reader.number))
    reader.expect("->")
    outputs = _sizes(reader, text)
    reader.expect("")
    return bases, outputs


def _sizes(reader: _Reader, text: str) -> dict[str, int]:
    named = reader.list_of(reader.size)
    outputs: dict[str, int] = {}
    for axis, (name, size) in enumerate(named):
        name = name or f"dim{axis}"
        if name in outputs:
            raise LayoutError(f"output dimension '{name}' appears twice in layout '{text}'")
        outputs[name] = size
    return outputs


class _Reader:
    """A token stream over one layout text; the empty string marks its end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _TOKEN.findall(text)
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def fail(self, expected: str) -> LayoutError:
        got = f"'{self.peek()}'" if self.peek() else "the end"
        return LayoutError(f"expected {expected} but got {got} in layout '{self.text}'")

    def expect(self, token: str) -> None:
        if self.peek() != token:
            raise self.fail(f"'{token}'" if token else "the end")
        self.position += 1

    def name(self, expected: str) -> str:
        token = self.peek()
        if not token.isidentifier():
            raise self.fail(expected)
        self.position += 1
        return token

    def number(self) -> int:
        token = self.peek()
        if not token.isdecimal() or len(token) > _LONGEST_NUMBER:
            raise self.fail("a number")
        self.position += 1
        return int(token)

    def size(self) -> tuple[str, int]:
        """`size` or `name=size`; the name is empty where it is left out."""
        if not self.peek().isidentifier():
            return "", self.number()
        name = self.name("a name")
        self.expect("=")
        return name, self.number()

    def list_of(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Items in square brackets, separated by commas."""
        self.expect("[")
        items: list[T] = []
        while self.peek() != "]":
            if items:
                self.expect(",")
            items.append(item())
        self.expect("]")
        return tuple(items)
