"""Checked statements of debug builds; a continuation of `typed`."""

from __future__ import annotations

from phobos.frontend.typed import Expr, Stmt
from phobos.record import record


@record
class Assert(Stmt):
    """Ends the launch with a message where the condition is false."""

    condition: Expr
    text: str


@record
class Print(Stmt):
    """Prints values by a format of C's printf; they are i32, i64 and f64."""

    text: str
    values: tuple[Expr, ...]
