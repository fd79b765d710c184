"""The front end: the text of a program becomes a syntax tree, and that tile-level IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phobos.frontend.options import FrontendOptions

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from phobos.diagnostics import SourceMap
    from phobos.frontend import ast

__all__ = ["FrontendOptions", "parse", "to_ir"]


def parse(text: str, name: str, sources: SourceMap | None = None) -> ast.Program:
    """The syntax tree of a program; raises PhobosError with all errors in its syntax."""
    from phobos.frontend.parser import parse as parse_program

    return parse_program(text, name, sources)


def to_ir(text: str, name: str, options: FrontendOptions | None = None) -> ModuleOp:
    """The tile-level IR of a program.

    Raises PhobosError with all errors that were found, and with the sources attached.
    """
    from phobos.frontend.translate import translate

    return translate(text, name, options or FrontendOptions())
