"""A position in the token stream, and how syntax errors are worded, placed and survived.

A statement ends at a newline, but inside ( ) and [ ] newlines are free. The tokens only say
which of them begin a line, so the cursor shows a token of kind NEWLINE before these wherever
newlines count. `free` says how many brackets are open; it is zero only directly in a block.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from phobos.diagnostics import DiagnosticCollector, Location, Note, SourceMap
from phobos.frontend.lexer import END, ERROR, NAME, RESERVED, STRING, Token, shortened

NEWLINE = "end of line"

MAX_DEPTH = 100
"""Levels that an expression may nest, counting operators, calls, subscripts and parentheses.

The limit keeps recursive walks over the tree, here and in later stages, within Python's stack.
"""

MAX_BLOCK_DEPTH = 50
"""Levels that blocks may nest, counting each `else if` of a chain."""

STATEMENT_WORDS = frozenset({"let", "var", "if", "for", "while", "break", "continue", "return"})
DECLARATION_WORDS = frozenset({"kernel", "fn"})

_CLOSING = {"(": ")", "[": "]", "<": ">", "{": "}"}


class SyntaxFailure(Exception):
    """Leaves a construct whose error has been reported, up to where parsing can go on."""


class DeclarationFailure(SyntaxFailure):
    """Leaves all blocks up to the next kernel or function."""


class ProgramFailure(SyntaxFailure):
    """Gives the program up."""


class Cursor:
    """Walks over the tokens; the base of the parser's classes.

    `token` is the next token and `kind` its kind, or NEWLINE if a significant newline comes
    first.
    """

    def __init__(
        self, tokens: list[Token], file: str, errors: DiagnosticCollector, sources: SourceMap
    ) -> None:
        self.tokens = tokens
        self.file = file
        self.errors = errors
        self.sources = sources
        self.position = 0
        self.previous = Token(NEWLINE, "", 1, 1, False)
        self.token = tokens[0]
        self.kind = self.token.kind
        self.free = 1
        self.depth = 0

    # Moving --------------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Step over the next token (and a newline before it), and return it."""
        token = self.token
        if token.kind == END:
            return token
        self.previous = token
        self.position += 1
        self.token = following = self.tokens[self.position]
        self.kind = NEWLINE if following.first_on_line and not self.free else following.kind
        return token

    def skip_newline(self) -> None:
        """Step over a newline, if one comes next."""
        if self.kind == NEWLINE:
            self.kind = self.token.kind

    def open_bracket(self) -> Token:
        """Step over an opening bracket; newlines are free until `close_bracket`."""
        self.free += 1
        return self.advance()

    def close_bracket(self, opening: Token, *separators: str) -> Token:
        """Step over the bracket that closes `opening`, or report what stands there instead."""
        closing = _CLOSING[opening.text]
        if self.kind != closing:
            wanted = " or ".join(f"`{sign}`" for sign in (*separators, closing))
            self.fail_unclosed(wanted, opening)
        self.free -= 1
        return self.advance()

    def accept(self, kind: str) -> bool:
        """Step over the next token if it is of this kind; whether it was."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, *, after: str = "", help: str | None = None) -> Token:
        """Step over a token that must come next."""
        if self.kind != kind:
            self.fail_expected(f"`{kind}`{after}", help=help)
        return self.advance()

    def expect_name(self, what: str) -> Token:
        """Step over a name; `what` says what it names, with its article."""
        if self.kind == NAME:
            return self.advance()
        if self.kind in RESERVED:
            self.fail(
                self.place(self.token),
                f"`{self.kind}` is a reserved word and cannot name {what}",
            )
        self.fail_expected(f"the name of {what}")

    def peek(self, distance: int) -> Token:
        """The token `distance` places behind the next one (before it if negative)."""
        index = self.position + distance
        return self.tokens[max(0, min(index, len(self.tokens) - 1))]

    def enter(self) -> None:
        """Go one level deeper into an expression; `depth` is to be counted down on the way back."""
        self.depth += 1
        self.check_depth(0)

    def check_depth(self, height: int) -> None:
        """Give up if a tree of this height would be too deep here."""
        if self.depth + height <= MAX_DEPTH:
            return
        self.errors.error(
            self.place(self.token),
            f"this expression is nested too deeply: more than {MAX_DEPTH} levels",
            help="name parts of it with `let`",
        )
        raise ProgramFailure

    # Places --------------------------------------------------------------------------------------

    def place(self, token: Token) -> Location:
        """Where a token is."""
        _, text, line, column, _ = token
        return Location(self.file, line, column, line, column + len(text))

    def span_from(self, start: Token) -> Location:
        """From the beginning of `start` to the end of the token stepped over last."""
        _, text, line, column, _ = self.previous
        return Location(self.file, start.line, start.column, line, column + len(text))

    def next_place(self) -> Location:
        """Where the next token is; behind the previous one if no token is left on its line."""
        if self.kind == NEWLINE or self.kind == END:
            _, text, line, column, _ = self.previous
            column += len(text)
            return Location(self.file, line, column, line, column + 1)
        return self.place(self.token)

    # Errors --------------------------------------------------------------------------------------

    def found(self) -> str:
        """The next token in words."""
        if self.kind == NEWLINE or self.kind == END:
            return self.kind
        if self.kind == STRING:
            return f"the string {shortened(self.token.text)}"
        return f"`{shortened(self.token.text)}`"

    def fail(
        self,
        place: Location,
        message: str,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
    ) -> NoReturn:
        """Report an error and leave the construct."""
        self.errors.error(place, message, notes=notes, help=help)
        if self.errors.is_full:
            raise ProgramFailure
        raise SyntaxFailure

    def fail_expected(
        self, wanted: str, *, notes: Iterable[Note] = (), help: str | None = None
    ) -> NoReturn:
        """Report that something else than `wanted` comes next, and leave the construct."""
        if self.kind == ERROR:
            raise SyntaxFailure
        message = f"expected {wanted}, found {self.found()}"
        self.fail(self.next_place(), message, notes=notes, help=help)

    def fail_unclosed(self, wanted: str, opening: Token, *, help: str | None = None) -> NoReturn:
        """Report what stands where a bracket should close, with a note at the opening one."""
        note = Note(f"`{opening.text}` opened here", self.place(opening))
        self.fail_expected(wanted, notes=[note], help=help)
