"""The levels that a program passes on its way to the GPU."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """A form of the program, in order."""

    AST = "ast"
    TILE = "tile"
    DIST = "dist"
    PTX_IR = "ptx-ir"
    PTX = "ptx"
    CONTRACT = "contract"
    CUBIN = "cubin"

    @property
    def is_text(self) -> bool:
        """Whether the level is text, and not machine code."""
        return self is not Level.CUBIN
