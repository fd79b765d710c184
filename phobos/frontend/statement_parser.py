"""Parses statements and blocks, and recovers at their ends."""

from __future__ import annotations

from typing import NoReturn

from phobos.diagnostics import Note
from phobos.frontend import ast
from phobos.frontend.cursor import (
    DECLARATION_WORDS,
    MAX_BLOCK_DEPTH,
    NEWLINE,
    STATEMENT_WORDS,
    DeclarationFailure,
    ProgramFailure,
    SyntaxFailure,
)
from phobos.frontend.expression_parser import ExpressionParser
from phobos.frontend.lexer import END, INTEGER, NAME, Token, integer_value
from phobos.frontend.operators import AssignOp, BinaryOp
from phobos.frontend.types import STORABLE

_ASSIGN = {op.value: op for op in AssignOp}
_BINARY = frozenset(op.value for op in BinaryOp)
_STATEMENT_ENDS = frozenset({NEWLINE, ";", "}", END})

_LOOP_HELP = "a loop runs over a range: `for i in range(0, n) { ... }`"
_BRACES_HELP = "the statements of a block stand in { }"

# Words of other languages that begin a statement, and the way to say it here.
_FOREIGN_WORDS = {
    "elif": "write `else if` on the line of the `}`",
    "elseif": "write `else if` on the line of the `}`",
    "def": "functions are declared with `fn`, outside of kernels",
    "const": "declare it with `let`",
    "auto": "declare it with `let` or `var`",
    "mut": "a variable that changes is declared with `var`",
    "int": "declare it with `let` or `var`; the type follows the name: `var i: i32 = 0`",
    "float": "declare it with `let` or `var`; the type follows the name: `var x: f32 = 0.0`",
    "loop": "an endless loop is written `while true { ... }`",
    "do": "a loop is written `while condition { ... }`",
    "switch": "write a chain of `if` and `else if`",
    "match": "write a chain of `if` and `else if`",
    "pass": "an empty block is written `{}`",
    "assert": 'it is called like a function: `assert(condition, "text")`',
    "print": 'it is called like a function: `print("x is {}", x)`',
    "import": "the built-ins are known without it",
    "from": "the built-ins are known without it",
    "shared": "the compiler decides where a tile lives: `var t: tile<f32>[64]`",
    "__shared__": "the compiler decides where a tile lives: `var t: tile<f32>[64]`",
    "static": "declare it with `let` or `var`",
}
_FOREIGN_OPERATORS = {
    "and": "did you mean `&&`?",
    "or": "did you mean `||`?",
    "@": "products are written `dot(a, b)`",
    "as": "a conversion is a call of the type, as in `f16(x)`",
    "if": "a choice between two values is written `where(condition, a, b)`",
}


class StatementParser(ExpressionParser):
    """The part of the parser that reads blocks.

    `_blocks` holds the `{` of the blocks that are open, each with the indentation of the statement
    that it belongs to, and `_level` their number plus that of the `else if` around the next token.
    `_misaligned` is the first `{` of the declaration whose `}` does not line up with it; where a
    brace is missing, it is likely there.
    """

    _blocks: list[tuple[Token, int]]
    _level = 0
    _indentation = 1
    _misaligned: tuple[Token, Token] | None = None

    # Blocks --------------------------------------------------------------------------------------

    def parse_block(self) -> ast.Block:
        """Parse `{ ... }`; newlines count within, and again as before behind it."""
        self._check_opening_brace()
        self._enter_level()
        opening = self.token
        outer_free, self.free = self.free, 0
        indentation = self._indentation
        self._blocks.append((opening, indentation))
        self.advance()
        statements = self._parse_statements()
        if self.kind != "}":
            self._fail_missing_brace()
        self._note_alignment(opening, self.token, indentation)
        self._blocks.pop()
        self._level -= 1
        self._indentation = indentation
        self.free = outer_free
        self.advance()
        return ast.Block(tuple(statements), span=self.span_from(opening))

    def _check_opening_brace(self) -> None:
        if self.kind == "{":
            return
        if self.kind == NEWLINE and self.token.kind == "{":
            place, message = self.place(self.token), "`{` stands on a line of its own"
            self.errors.error(place, message, help="write it on the line of what it belongs to")
            self.skip_newline()
            return
        help = _BRACES_HELP
        if self.kind == "=":
            help = "did you mean `==`?"
        elif self.token.text in _FOREIGN_OPERATORS:
            help = _FOREIGN_OPERATORS[self.token.text]
        elif self.previous.text == "not":
            help = "did you mean `!`?"
        self.fail_expected("`{`", help=help)

    def _parse_statements(self) -> list[ast.Statement]:
        statements: list[ast.Statement] = []
        while True:
            while self.kind in (NEWLINE, ";"):
                if self.kind == NEWLINE:
                    self.skip_newline()
                else:
                    self.advance()
            if self.kind in ("}", END):
                return statements
            position, level = self.position, self._level
            if self.token.first_on_line:
                self._indentation = self.token.column
            try:
                statements.append(self._parse_statement())
                self._check_statement_end()
            except (DeclarationFailure, ProgramFailure):
                raise
            except SyntaxFailure:
                self._level = level
                self._recover(position)

    def _check_statement_end(self) -> None:
        if self.kind in _STATEMENT_ENDS:
            return
        text, before = self.token.text, self.previous.text
        if text in (")", "]"):
            self.fail(self.place(self.token), f"this `{text}` closes nothing")
        help = "a statement ends at the end of its line or at `;`"
        help = _FOREIGN_OPERATORS.get(text, _FOREIGN_WORDS.get(text, help))
        if before == "not":
            help = "did you mean `!`?"
        elif text == "=":
            help = "assignments do not chain; for a comparison write `==`"
        elif before in _FOREIGN_WORDS and self.peek(-1).first_on_line:
            help = _FOREIGN_WORDS[before]
        elif text == "," and self.peek(-2).text in ("let", "var"):
            help = "each name has a declaration of its own"
        elif before == ")" and self.peek(-2).text in STORABLE and self.peek(-3).text == "(":
            help = f"a conversion is a call: `{self.peek(-2).text}({text})`"
        self.fail_expected("the end of the statement", help=help)

    def _recover(self, start: int) -> None:
        """Go to the end of a statement that failed; `start` is where it began.

        Brackets that were open stay open over line ends until a line that surely begins a
        statement. A block on the way is parsed for its errors.
        """
        self.depth = 0
        open_brackets, self.free = self.free, 0
        if self.position == start and self.token.kind not in ("{", "}"):
            self.advance()
        while self.token.kind not in ("}", ";", END):
            kind = self.token.kind
            if self.token.first_on_line and self.position != start:
                surely = kind in STATEMENT_WORDS or kind in DECLARATION_WORDS
                if open_brackets <= 0 or surely:
                    self.kind = NEWLINE
                    return
            if kind == "{":
                self.skip_newline()
                self.parse_block()
                if self.kind != "else":
                    return
            else:
                open_brackets += (kind in ("(", "[")) - (kind in (")", "]"))
                self.advance()

    def _note_alignment(self, opening: Token, closing: Token, indentation: int) -> None:
        if self._misaligned is not None or opening.line == closing.line:
            return
        if closing.first_on_line and closing.column != indentation:
            self._misaligned = (opening, closing)

    def _fail_missing_brace(self) -> NoReturn:
        opening, _ = self._blocks[-1]
        notes = [Note("`{` opened here", self.place(opening))]
        if self._misaligned is not None:
            opening, closing = self._misaligned
            notes = [
                Note("this `{` may lack its `}`", self.place(opening)),
                Note("since this `}` is indented differently", self.place(closing)),
            ]
        self._blocks.clear()
        try:
            self.fail_expected("`}`", notes=notes)
        except SyntaxFailure as failure:
            raise DeclarationFailure from failure

    def _fail_inner_declaration(self) -> NoReturn:
        """Report a declaration in a block; a brace is missing unless it is indented like one."""
        _, indentation = self._blocks[-1]
        if self.token.column <= indentation:
            self._fail_missing_brace()
        message = f"`{self.kind}` cannot stand in a block"
        help = "kernels and functions are declared outside of each other"
        self.fail(self.place(self.token), message, help=help)

    def _enter_level(self) -> None:
        self._level += 1
        if self._level <= MAX_BLOCK_DEPTH:
            return
        message = f"blocks are nested too deeply: more than {MAX_BLOCK_DEPTH} levels"
        self.errors.error(self.place(self.token), message, help="move the inner ones into an `fn`")
        raise ProgramFailure

    # Statements ----------------------------------------------------------------------------------

    def _parse_statement(self) -> ast.Statement:
        start = self.token
        match self.kind:
            case "let" | "var":
                return self._parse_declaration()
            case "for":
                return self._parse_for()
            case "while":
                self.advance()
                condition = self.parse_expression()
                self.remember_header(start)
                body = self.parse_block()
                return ast.While(condition, body, span=self.span_from(start))
            case "if":
                return self._parse_if()
            case "break":
                self.advance()
                return ast.Break(span=self.span_from(start))
            case "continue":
                self.advance()
                return ast.Continue(span=self.span_from(start))
            case "return":
                self.advance()
                value = None if self.kind in _STATEMENT_ENDS else self.parse_expression()
                return ast.Return(value, span=self.span_from(start))
            case _:
                return self._parse_expression_statement()

    def remember_header(self, start: Token) -> None:
        """Record the span from `start` to here as what the place of `start` stands for."""
        self.sources.remember(start.line, start.column, self.span_from(start))

    def _parse_declaration(self) -> ast.Declaration:
        start = self.advance()
        name = self.expect_name("a variable")
        written = None
        if self.accept(":"):
            if self.kind == "=":
                help = f"write `{start.text} {name.text} = ...`"
                self.fail_expected("a type", help=help)
            written = self.parse_type()
        value = self.parse_expression() if self.accept("=") else None
        self.remember_header(start)
        return ast.Declaration(
            start.text == "var",
            name.text,
            written,
            value,
            span=self.span_from(start),
            name_span=self.place(name),
        )

    def _parse_expression_statement(self) -> ast.Statement:
        start = self.token
        self._check_statement_start()
        first = self.parse_expression()
        op = _ASSIGN.get(self.kind)
        if op is None:
            return ast.Evaluate(first, span=self.span_from(start))
        outer = self.span_from(start)
        sign = self.advance()
        value = self.parse_expression()
        span = self.span_from(start)
        if not isinstance(first, ast.Name | ast.Subscript):
            help = "a variable can be assigned, or elements such as `x[i]`"
            self.errors.error(outer, "this expression cannot be assigned to", help=help)
            raise SyntaxFailure
        self.sources.remember(sign.line, sign.column, span)
        return ast.Assign(first, op, value, span=span, operator_span=self.place(sign))

    def _check_statement_start(self) -> None:
        kind = self.kind
        if kind == "else":
            self.fail(self.place(self.token), "`else` without an `if` before it")
        if kind in DECLARATION_WORDS:
            self._fail_inner_declaration()
        if kind in _BINARY and kind != "-" and self.token.first_on_line:
            help = "to go on with the expression of the line above, put it in ( )"
            self.fail_expected("a statement", help=help)
        if kind == "@":
            help = "attributes stand before `kernel`"
            self.fail_expected("a statement", help=help)
        if kind == "{":
            help = "a block belongs to `if`, `else`, `for` or `while`"
            self.fail_expected("a statement", help=help)

    # Control flow --------------------------------------------------------------------------------

    def _parse_for(self) -> ast.For:
        start = self.advance()
        unroll = self._parse_unroll() if self.kind == "<" else None
        if self.kind == "(":
            self.fail_expected("a loop variable", help=_LOOP_HELP)
        variable = self.expect_name("a loop variable")
        self.expect("in", after=" behind the loop variable", help=_LOOP_HELP)
        range_start = self.token
        if self.kind != NAME or self.token.text != "range":
            self.fail_expected("`range(...)`", help=_LOOP_HELP)
        self.advance()
        bounds = self._parse_bounds()
        range_span = self.span_from(range_start)
        self.remember_header(start)
        body = self.parse_block()
        return ast.For(
            variable.text,
            bounds[0] if len(bounds) > 1 else None,
            bounds[min(1, len(bounds) - 1)],
            bounds[2] if len(bounds) > 2 else None,
            body,
            unroll,
            span=self.span_from(start),
            variable_span=self.place(variable),
            range_span=range_span,
        )

    def _parse_bounds(self) -> list[ast.Expression]:
        if self.kind != "(":
            self.fail_expected("`(` behind `range`", help=_LOOP_HELP)
        opening = self.open_bracket()
        bounds = [self.parse_expression()]
        while self.accept(","):
            bounds.append(self.parse_expression())
        self.close_bracket(opening, ",")
        if len(bounds) > 3:
            help = "write `range(stop)`, `range(start, stop)` or `range(start, stop, step)`"
            message = f"`range` takes 1 to 3 arguments, not {len(bounds)}"
            self.errors.error(self.span_from(opening), message, help=help)
        return bounds

    def _parse_unroll(self) -> ast.Unroll:
        opening = self.advance()
        if self.token.text != "unroll":
            help = "a loop is unrolled by `for <unroll> i` or `for <unroll 4> i`"
            self.fail_expected("`unroll`", help=help)
        self.advance()
        factor = integer_value(self.advance().text) if self.kind == INTEGER else None
        if self.kind != ">":
            wanted = "`>`" if factor is not None else "an integer or `>`"
            self.fail_unclosed(wanted, opening)
        self.advance()
        return ast.Unroll(factor, span=self.span_from(opening))

    def _parse_if(self) -> ast.If:
        """Parse an `if` with all its `else if`, in a loop since chains may be long."""
        level = self._level
        arms: list[tuple[Token, ast.Expression, ast.Block]] = []
        otherwise: ast.Block | ast.If | None = None
        while True:
            start = self.advance()
            condition = self.parse_expression()
            self.remember_header(start)
            arms.append((start, condition, self.parse_block()))
            if not self._accept_else():
                break
            if self.kind != "if":
                otherwise = self.parse_block()
                break
            self._enter_level()
        self._level = level
        for start, condition, then in reversed(arms):
            span = self.span_from(start)
            otherwise = ast.If(condition, then, otherwise, span=span)
        assert isinstance(otherwise, ast.If)  # there is at least one arm
        return otherwise

    def _accept_else(self) -> bool:
        if self.kind == NEWLINE and self.token.kind == "else":
            self.errors.error(
                self.place(self.token),
                "`else` stands on a line of its own",
                notes=[Note("the `if` ends here", self.place(self.previous))],
                help="write `} else` on one line",
            )
            self.skip_newline()
        return self.accept("else")
