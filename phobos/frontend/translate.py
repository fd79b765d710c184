"""The way from text to tile-level IR: parse, check, emit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp

from phobos.diagnostics import PhobosError
from phobos.frontend.check_program import check_program
from phobos.frontend.emit_module import emit_module
from phobos.frontend.options import FrontendOptions
from phobos.frontend.parser import parse

_RECURSION_LIMIT = 8000
"""Enough for expressions, blocks and expanded calls that are nested as deep as is allowed."""


def translate(text: str, name: str, options: FrontendOptions) -> ModuleOp:
    """The module of a program; raises PhobosError with the sources attached."""
    try:
        with _deep_recursion():
            program = parse(text, name, options.sources)
            checked = check_program(program, options)
            return emit_module(checked, name, options.index_bits, assertions=options.assertions)
    except PhobosError as error:
        raise error.with_sources(options.sources) from None


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Lets the recursive rules go as deep as the parser's limits on nesting allow."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
