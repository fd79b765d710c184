"""The operators of the language: spelling, precedence and kind.

One table serves the parser, which groups by it, and the printer, which sets parentheses by it.
"""

from __future__ import annotations

from enum import StrEnum


class UnaryOp(StrEnum):
    """Prefix operators; the value is the spelling."""

    NEGATE = "-"
    NOT = "!"
    INVERT = "~"


class BinaryOp(StrEnum):
    """Infix operators; the value is the spelling."""

    OR = "||"
    AND = "&&"
    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    BIT_OR = "|"
    BIT_XOR = "^"
    BIT_AND = "&"
    SHIFT_LEFT = "<<"
    SHIFT_RIGHT = ">>"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"

    @property
    def precedence(self) -> int:
        """How tightly the operator binds, from 1 (`||`) to 9 (`* / %`)."""
        return BINARY_PRECEDENCE[self]

    @property
    def is_comparison(self) -> bool:
        """Whether it compares its operands, giving a bool; comparisons never chain."""
        return self in COMPARISONS

    @property
    def is_logical(self) -> bool:
        """Whether it is `&&` or `||`, which evaluate their right side only when it matters."""
        return self is BinaryOp.AND or self is BinaryOp.OR


_LEVELS = (
    (BinaryOp.OR,),
    (BinaryOp.AND,),
    (
        BinaryOp.EQUAL,
        BinaryOp.NOT_EQUAL,
        BinaryOp.LESS,
        BinaryOp.LESS_EQUAL,
        BinaryOp.GREATER,
        BinaryOp.GREATER_EQUAL,
    ),
    (BinaryOp.BIT_OR,),
    (BinaryOp.BIT_XOR,),
    (BinaryOp.BIT_AND,),
    (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT),
    (BinaryOp.ADD, BinaryOp.SUBTRACT),
    (BinaryOp.MULTIPLY, BinaryOp.DIVIDE, BinaryOp.REMAINDER),
)

BINARY_PRECEDENCE = {op: level for level, ops in enumerate(_LEVELS, 1) for op in ops}
"""Precedence of the infix operators; all associate to the left, except that comparisons do not."""

COMPARISON_PRECEDENCE = BINARY_PRECEDENCE[BinaryOp.EQUAL]
COMPARISONS = frozenset(_LEVELS[COMPARISON_PRECEDENCE - 1])

UNARY_PRECEDENCE = len(_LEVELS) + 1
POSTFIX_PRECEDENCE = UNARY_PRECEDENCE + 1


class AssignOp(StrEnum):
    """Assignment operators; the value is the spelling."""

    SET = "="
    ADD = "+="
    SUBTRACT = "-="
    MULTIPLY = "*="
    DIVIDE = "/="
    REMAINDER = "%="
    BIT_AND = "&="
    BIT_OR = "|="
    BIT_XOR = "^="
    SHIFT_LEFT = "<<="
    SHIFT_RIGHT = ">>="

    @property
    def binary(self) -> BinaryOp | None:
        """The operator that combines the old value with the new one; None for plain `=`."""
        return None if self is AssignOp.SET else BinaryOp(self.value[:-1])
