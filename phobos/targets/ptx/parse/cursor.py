"""A cursor over tokens, and the constant expressions that may stand where a number may."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import NoReturn

from phobos.targets.ptx.parse.lexer import Text, Token, tokenize
from phobos.targets.ptx.parse.records import FloatImmediate, Immediate, Position

_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "|": (1, operator.or_),
    "^": (2, operator.xor),
    "&": (3, operator.and_),
    "<<": (4, operator.lshift),
    ">>": (4, operator.rshift),
    "+": (5, operator.add),
    "-": (5, operator.sub),
    "*": (6, operator.mul),
    "/": (6, lambda a, b: int(a / b) if b else 0),
    "%": (6, lambda a, b: a - b * int(a / b) if b else 0),
}
_WARP_SIZE = 32


class Cursor:
    """Where the parser stands in the tokens."""

    def __init__(self, source: Text) -> None:
        self.source = source
        self._tokens = tokenize(source)
        self._next = 0

    @property
    def token(self) -> Token:
        """The token ahead."""
        return self._tokens[self._next]

    def ahead(self, distance: int) -> Token:
        """The token `distance` behind the one ahead, or the end."""
        return self._tokens[min(self._next + distance, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Take the token ahead."""
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def position(self, token: Token) -> Position:
        """The place of a token."""
        return self.source.position(token.offset)

    def at(self, text: str) -> bool:
        """Whether the token ahead is spelled `text` (and is no string)."""
        token = self._tokens[self._next]
        return token.text == text and token.kind != "string"

    def accept(self, text: str) -> bool:
        """Take the token ahead if it is spelled `text`."""
        if not self.at(text):
            return False
        self._next += 1
        return True

    def expect(self, text: str, context: str) -> Token:
        """Take a token spelled `text`, or fail saying where it was expected."""
        if not self.at(text):
            self.fail(f"expected `{text}` {context}, got {self.describe()}")
        return self.advance()

    def expect_word(self, what: str) -> Token:
        """Take a name."""
        if self.token.kind != "word":
            self.fail(f"expected {what}, got {self.describe()}")
        return self.advance()

    def describe(self) -> str:
        """The token ahead, for messages."""
        return "the end of the text" if self.token.kind == "end" else f"`{self.token.text}`"

    def fail(self, message: str, help: str | None = None) -> NoReturn:
        """Raise a PhobosError at the token ahead."""
        self.source.fail(self.token, message, help)

    # Numbers -------------------------------------------------------------------------------------

    def at_number(self) -> bool:
        """Whether a constant starts here."""
        token = self.token
        if token.kind in ("int", "float") or token.text == "WARP_SZ":
            return True
        if token.text in ("-", "+", "~"):
            return True
        following = self.ahead(1)
        return token.text in ("!", "(") and (
            following.kind in ("int", "float") or following.text in ("-", "~", "(", "!")
        )

    def integer(self, what: str) -> int:
        """Take a constant integer expression."""
        token = self.token
        value = self.constant()
        if isinstance(value, FloatImmediate):
            self.source.fail(token, f"expected {what}, an integer, got a floating-point constant")
        return value.value

    def constant(self) -> Immediate | FloatImmediate:
        """Take a constant expression; floating-point ones are literals with an optional sign."""
        if self.token.kind == "float":
            return _float_literal(self.advance().text)
        if self.token.text in ("-", "+") and self.ahead(1).kind == "float":
            sign = self.advance().text
            literal = _float_literal(self.advance().text)
            flip = 1 << (literal.width - 1) if sign == "-" else 0
            return FloatImmediate(literal.bits ^ flip, literal.width)
        return Immediate(self._binary(0))

    def _binary(self, floor: int) -> int:
        left = self._unary()
        while self.token.kind == "punct" and self.token.text in _BINARY:
            precedence, function = _BINARY[self.token.text]
            if precedence <= floor:
                break
            self.advance()
            left = function(left, self._binary(precedence))
        return left

    def _unary(self) -> int:
        token = self.advance()
        if token.kind == "int":
            return _int_literal(token.text)
        match token.text:
            case "-":
                return -self._unary()
            case "+":
                return self._unary()
            case "~":
                return ~self._unary()
            case "!":
                return int(not self._unary())
            case "WARP_SZ":
                return _WARP_SIZE
            case "(":
                value = self._binary(0)
                self.expect(")", "behind this expression")
                return value
        self.source.fail(token, f"expected a number, got `{token.text}`")


def _int_literal(text: str) -> int:
    digits = text.rstrip("U")
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return int(digits, 8) if is_octal else int(digits, 0)


def _float_literal(text: str) -> FloatImmediate:
    if text[:2] in ("0f", "0F"):
        return FloatImmediate(int(text[2:], 16), 32)
    if text[:2] in ("0d", "0D"):
        return FloatImmediate(int(text[2:], 16), 64)
    return FloatImmediate(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
