"""Source locations on operations.

An op carries a builtin location attribute: a place (`FileLineColLoc`), a place inside an
inlined function (`CallSiteLoc`), or several places that one op stands for (`FusedLoc`, the
first is the primary one).
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    NameLoc,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from phobos.diagnostics import Diagnostic, Location, Note, PhobosError

UNKNOWN = UnknownLoc()


@lru_cache(maxsize=8192)
def location_attr(file: str, line: int, column: int) -> FileLineColLoc:
    """The attribute for a place in a source; lines and columns count from 1."""
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def resolve_location(attr: Attribute) -> Location | None:
    """The primary place that a location attribute names, or None if it names none."""
    match attr:
        case FileLineColLoc():
            return Location(attr.filename.data, attr.line.data, attr.column.data)
        case FusedLoc(locations=ArrayAttr(data=parts)):
            places = (resolve_location(part) for part in parts)
            return next((place for place in places if place is not None), None)
        case NameLoc():
            return resolve_location(attr.location)
        case CallSiteLoc():
            return resolve_location(attr.callee)
        case _:
            return None


def location_of(op: Operation | None) -> Location | None:
    """Where in the source an op comes from; its parents' place if it has none of its own."""
    while op is not None:
        place = resolve_location(op.location)
        if place is not None:
            return place
        op = op.parent_op()
    return None


def location_of_value(value: SSAValue) -> Location | None:
    """Where a value comes from: its op, or the argument's own place, or the op around it."""
    owner = value.owner
    if isinstance(owner, Operation):
        return location_of(owner)
    if isinstance(value, BlockArgument):
        place = resolve_location(value.location)
        if place is not None:
            return place
    assert isinstance(owner, Block)
    return location_of(owner.parent_op())


def error_at(
    op: Operation, message: str, *, notes: tuple[Note, ...] = (), help: str | None = None
) -> PhobosError:
    """A PhobosError with one diagnostic at the place of `op`."""
    return PhobosError(Diagnostic.error(message, location_of(op), notes=notes, help=help))
