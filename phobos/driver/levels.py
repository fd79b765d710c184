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


CACHED_LEVELS = frozenset({Level.PTX, Level.CONTRACT})
"""The levels that the kernel cache holds."""

EXPLAINED_LEVELS = (Level.PTX, Level.CUBIN)
"""The levels that an explanation can go as far as."""
