"""The IR of `assert` and `print`, which only debug builds have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import StringAttr

from phobos.dialects.debugging import PrintOp, RequireOp
from phobos.frontend.emitter import Emitter
from phobos.frontend.typed import Stmt
from phobos.frontend.typed_debugging import Assert, Print


def _assert(emitter: Emitter, stmt: Assert) -> None:
    if emitter.assertions:
        condition = emitter.expression(stmt.condition)
        emitter.add(RequireOp, (condition,), (), stmt.place, {"text": StringAttr(stmt.text)})


def _print(emitter: Emitter, stmt: Print) -> None:
    if emitter.assertions:
        values = [emitter.expression(value) for value in stmt.values]
        emitter.add(PrintOp, values, (), stmt.place, {"text": StringAttr(stmt.text)})


DEBUG_STATEMENTS: dict[type[Stmt], Callable[[Emitter, Any], None]] = {
    Assert: _assert,
    Print: _print,
}
"""How the statements of `typed_debugging` are emitted."""
