"""Declarations: variables, parameters and registers."""

from __future__ import annotations

from collections.abc import Callable

from phobos.targets.ptx.parse.cursor import Cursor
from phobos.targets.ptx.parse.records import (
    TYPE_BYTES,
    FloatImmediate,
    Initial,
    Symbol,
    Variable,
)

STATE_SPACES = frozenset({".global", ".const", ".shared", ".local", ".param", ".tex"})
LINKING = frozenset({".extern", ".visible", ".weak", ".common"})
_VECTORS = {".v2": 2, ".v4": 4}


def parse_type(cursor: Cursor) -> str:
    """A type directive such as `.b32`; the name without the dot."""
    name = cursor.token.text[1:]
    if cursor.token.kind != "directive" or name not in TYPE_BYTES:
        cursor.fail(f"expected a type such as `.b32`, got {cursor.describe()}")
    cursor.advance()
    return name


def parse_variables(
    cursor: Cursor, *, is_extern: bool, unique: Callable[[str], str]
) -> list[Variable]:
    """Variables from their state space to the `;`; `unique` gives each its final name."""
    space = cursor.advance().text[1:].split("::")[0]
    align, attributes = 0, []
    vector = 1
    while cursor.token.text[1:] not in TYPE_BYTES:
        if cursor.accept(".align"):
            align = cursor.integer("an alignment")
        elif cursor.accept(".attribute"):
            attributes.append(_attribute(cursor))
        elif cursor.token.text in _VECTORS:
            vector = _VECTORS[cursor.advance().text]
        else:
            parse_type(cursor)
    kind = parse_type(cursor)
    align = align or TYPE_BYTES[kind] * vector
    found = []
    while True:
        token = cursor.expect_word("the name of a variable")
        count, is_array = _dimensions(cursor)
        initial = tuple(_initialiser(cursor)) if cursor.accept("=") else ()
        if count is None and initial:
            count = len(initial)
        found.append(
            Variable(
                name=unique(token.text),
                space=space,
                type=kind,
                align=align,
                count=None if count is None else count * vector,
                position=cursor.position(token),
                is_array=is_array or vector > 1,
                is_extern=is_extern,
                initial=initial,
                attributes=tuple(attributes),
            )
        )
        if not cursor.accept(","):
            break
    cursor.expect(";", "behind this declaration")
    return found


def parse_parameters(cursor: Cursor) -> list[Variable]:
    """The parenthesised parameters or results of a function; the cursor is at the `(`."""
    cursor.expect("(", "before the parameters")
    found: list[Variable] = []
    if cursor.accept(")"):
        return found
    while True:
        found.append(_parameter(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")", "behind the parameters")
    return found


def _parameter(cursor: Cursor) -> Variable:
    if not (cursor.at(".param") or cursor.at(".reg")):
        cursor.fail(f"expected `.param` or `.reg`, got {cursor.describe()}")
    space = cursor.advance().text[1:]
    align = _parameter_alignment(cursor)
    kind = parse_type(cursor)
    attributes: list[str] = []
    if cursor.accept(".ptr"):
        while cursor.token.kind == "directive":
            directive = cursor.advance().text[1:]
            if directive == "align":
                attributes.append(f"ptr_align={cursor.integer('an alignment')}")
            else:
                attributes.append(f"ptr_space={directive}")
    align = _parameter_alignment(cursor) or align
    token = cursor.expect_word("the name of a parameter")
    count, is_array = _dimensions(cursor)
    return Variable(
        name=token.text,
        space=space,
        type=kind,
        align=align or TYPE_BYTES[kind],
        count=count,
        position=cursor.position(token),
        is_array=is_array,
        attributes=tuple(attributes),
    )


def _parameter_alignment(cursor: Cursor) -> int:
    return cursor.integer("an alignment") if cursor.accept(".align") else 0


def _dimensions(cursor: Cursor) -> tuple[int | None, bool]:
    """Element count and whether brackets were there; the count is None for `[]`."""
    count: int | None = 1
    is_array = False
    while cursor.accept("["):
        is_array = True
        if cursor.at("]"):
            count = None
        elif count is not None:
            count *= cursor.integer("the size of an array")
        cursor.expect("]", "behind the size of an array")
    return count, is_array


def _attribute(cursor: Cursor) -> str:
    cursor.expect("(", "behind `.attribute`")
    parts = []
    while not cursor.at(")"):
        if cursor.token.kind == "end":
            cursor.fail("expected `)` behind this attribute, got the end of the text")
        parts.append(cursor.advance().text)
    cursor.advance()
    return "".join(parts)


def _initialiser(cursor: Cursor) -> list[Initial]:
    if cursor.accept("{"):
        found: list[Initial] = []
        while not cursor.accept("}"):
            found.extend(_initialiser(cursor))
            if not cursor.at("}"):
                cursor.expect(",", "between initial values")
        return found
    if cursor.at_number():
        constant = cursor.constant()
        return [constant if isinstance(constant, FloatImmediate) else constant.value]
    token = cursor.expect_word("an initial value")
    name = token.text
    if name == "generic" and cursor.accept("("):
        name = cursor.expect_word("the name of a variable").text
        cursor.expect(")", "behind the name of a variable")
    offset = 0
    if cursor.at("+") or cursor.at("-"):
        cursor.accept("+")
        offset = cursor.integer("an offset")
    return [Symbol(name, offset)]
