"""Parses types and expressions, by recursive descent and precedence climbing."""

from __future__ import annotations

from typing import NoReturn

from phobos.diagnostics import Location
from phobos.frontend import ast
from phobos.frontend.cursor import NEWLINE, Cursor
from phobos.frontend.lexer import (
    FLOAT,
    INTEGER,
    NAME,
    STRING,
    Token,
    float_value,
    integer_value,
    string_value,
)
from phobos.frontend.operators import (
    BINARY_PRECEDENCE,
    COMPARISON_PRECEDENCE,
    BinaryOp,
    UnaryOp,
)
from phobos.frontend.printer import print_expression

_BINARY = {op.value: (op, precedence) for op, precedence in BINARY_PRECEDENCE.items()}
_UNARY = {op.value: op for op in UnaryOp}
_SHAPED = {kind.value: kind for kind in ast.ShapedKind}
_SCOPES = {scope.value: scope for scope in ast.Scope}
_SHOWN_EXPRESSION = 60
_POSTFIX = frozenset({"(", "[", "."})

# Signs that were taken apart, or that C has: (sign before, sign found) -> what was meant.
_TORN_SIGNS = {
    ("=", "="): "did you mean `==`?",
    ("==", "="): "did you mean `==`?",
    ("!", "="): "did you mean `!=`?",
    ("!=", "="): "did you mean `!=`?",
    ("<", "="): "did you mean `<=`?",
    (">", "="): "did you mean `>=`?",
    ("+", "+"): "to increment, write `+= 1`",
    ("*", "*"): "a power is written `pow(a, b)`",
}


class ExpressionParser(Cursor):
    """The part of the parser that reads types and expressions.

    `height` is the height of the tree parsed last. It is checked as trees grow to the left in a
    loop, where the depth of the recursion says nothing.
    """

    height = 0

    # Types ---------------------------------------------------------------------------------------

    def parse_type(self) -> ast.Type:
        """Parse a type."""
        if self.kind != NAME:
            self.fail_expected("a type", help="a type is a name such as `f32` or `tensor<f32>[N]`")
        name = self.advance()
        kind = _SHAPED.get(name.text)
        if kind is None:
            if self.kind == "[":
                help = f"write `tensor<{name.text}>[...]` or `tile<{name.text}>[...]`"
                self.fail(self.next_place(), "a scalar type has no extents", help=help)
            return ast.ScalarType(name.text, span=self.place(name))
        example = f"write for example `{kind}<f32>[N]`"
        self.expect("<", after=f" behind `{kind}`", help=example)
        if self.kind != NAME:
            self.fail_expected("the type of the elements", help=example)
        inner = self.advance()
        element = ast.ScalarType(inner.text, span=self.place(inner))
        self.expect(">", after=" behind the type of the elements", help=example)
        dims = self._parse_dims(example)
        return ast.ShapedType(kind, element, dims, span=self.span_from(name))

    def _parse_dims(self, example: str) -> tuple[ast.Dim, ...]:
        if self.kind != "[":
            self.fail_expected("`[` and the extents", help=example)
        opening = self.open_bracket()
        dims = [self._parse_dim()]
        while self.accept(","):
            dims.append(self._parse_dim())
        if self.kind in _BINARY or self.kind in _POSTFIX:
            self.fail_unclosed("`,` or `]`", opening, help="an extent is a name or an integer")
        self.close_bracket(opening, ",")
        return tuple(dims)

    def _parse_dim(self) -> ast.Dim:
        if self.kind == NAME:
            token = self.advance()
            return ast.DimName(token.text, span=self.place(token))
        if self.kind == INTEGER:
            token = self.advance()
            return ast.DimSize(integer_value(token.text), span=self.place(token))
        self.fail_expected("an extent", help="an extent is a name or an integer")

    # Operators -----------------------------------------------------------------------------------

    def parse_expression(self, minimum: int = 1) -> ast.Expression:
        """Parse operands joined by infix operators of at least the given precedence."""
        start = self.token
        self.enter()
        left = self._parse_unary() if self.kind in _UNARY else self._parse_postfix()
        height = self.height
        while True:
            entry = _BINARY.get(self.kind)
            if entry is None or entry[1] < minimum:
                break
            op, precedence = entry
            sign = self.advance()
            right = self.parse_expression(precedence + 1)
            height = max(height, self.height) + 1
            self.check_depth(height)
            span = self.span_from(start)
            left = ast.Binary(op, left, right, span=span, operator_span=self.place(sign))
            self.sources.remember(sign.line, sign.column, span)
            if precedence == COMPARISON_PRECEDENCE and self._at_comparison():
                self._fail_chain(start, left)
        self.depth -= 1
        self.height = height
        return left

    def _at_comparison(self) -> bool:
        entry = _BINARY.get(self.kind)
        return entry is not None and entry[1] == COMPARISON_PRECEDENCE

    def _fail_chain(self, start: Token, first: ast.Binary) -> NoReturn:
        second = _BINARY[self.kind][0]
        message = "comparisons do not chain"
        is_generic = (first.op, second) == (BinaryOp.LESS, BinaryOp.GREATER)
        if is_generic and isinstance(first.left, ast.Name) and self.peek(1).kind == "(":
            over = f"{first.left.name}<over {print_expression(first.right)}>(...)"
            help = f"to say what it works over, write `{over}`"
            self.fail(self.span_from(start), message, help=help)
        self.advance()
        last = self.parse_expression(COMPARISON_PRECEDENCE + 1)
        middle = print_expression(first.right)
        both = f"{print_expression(first)} && {middle} {second} {print_expression(last)}"
        help = "join two comparisons with `&&`"
        if len(both) <= _SHOWN_EXPRESSION:
            help = f"{help}: `{both}`"
        self.fail(self.span_from(start), message, help=help)

    def _parse_unary(self) -> ast.Expression:
        signs: list[Token] = []
        while self.kind in _UNARY:
            signs.append(self.advance())
            self.check_depth(len(signs))
        node = self._parse_postfix()
        for sign in reversed(signs):
            span = self.span_from(sign)
            node = ast.Unary(_UNARY[sign.kind], node, span=span)
            self.sources.remember(sign.line, sign.column, span)
        if signs:
            self.height += len(signs)
            self.check_depth(self.height)
        return node

    # Operands ------------------------------------------------------------------

    def _parse_postfix(self) -> ast.Expression:
        start = self.token
        kind = self.kind
        self.height = 0
        if kind == NAME:
            node = self._parse_name()
        elif kind == "(":
            node = self._parse_group()
        elif kind in _LITERALS:
            self.advance()
            place = self.place(start)
            self.sources.remember(start.line, start.column, place)
            node = _LITERALS[kind](start.text, place)
        else:
            self.fail_expected("an expression", help=self._operand_help())
        while self.kind in _POSTFIX:
            height = self.height
            if self.kind == "[":
                node = self._parse_subscript(node, start)
            elif self.kind == "(":
                node = self._parse_call(node, start, None)
            else:
                node = self._parse_member(node, start)
            self.height = max(height, self.height) + 1
            self.check_depth(self.height)
        return node

    def _parse_member(self, base: ast.Expression, start: Token) -> ast.Member:
        self.advance()
        if self.kind != NAME:
            help = None
            if isinstance(base, ast.IntLiteral):
                help = f"a float has digits behind its point: `{base.value}.0`"
            self.fail_expected("a name behind `.`", help=help)
        name = self.advance()
        span = self.span_from(start)
        self.sources.remember(name.line, name.column, span)
        self.height = 0
        return ast.Member(base, name.text, span=span, name_span=self.place(name))

    def _parse_call(
        self, callee: ast.Expression, start: Token, generic: ast.Generic | None
    ) -> ast.Call:
        opening = self.open_bracket()
        args: list[ast.Expression] = []
        height = 0
        while self.kind != ")" or args:
            args.append(self.parse_expression())
            height = max(height, self.height)
            if self.kind == "=":
                help = "arguments of a call have no names; for a comparison write `==`"
                self.fail_unclosed("`,` or `)`", opening, help=help)
            if not self.accept(","):
                break
        self.close_bracket(opening, ",")
        span = self.span_from(start)
        self.sources.remember(start.line, start.column, span)
        self.height = height
        return ast.Call(callee, tuple(args), generic, span=span)

    def _parse_subscript(self, base: ast.Expression, start: Token) -> ast.Subscript:
        opening = self.open_bracket()
        if self.kind == "]":
            help = "`:` stands for all of an axis"
            self.fail_expected("a subscript", help=help)
        indices = [self._parse_index()]
        height = self.height
        while self.accept(","):
            indices.append(self._parse_index())
            height = max(height, self.height)
        if self.kind in (":", ":+"):
            help = "a range `a : b` and a span `a :+ n` have two parts and no step"
            self.fail_unclosed("`,` or `]`", opening, help=help)
        self.close_bracket(opening, ",")
        span = self.span_from(start)
        self.sources.remember(opening.line, opening.column, span)
        self.height = height
        brackets = self.span_from(opening)
        return ast.Subscript(base, tuple(indices), span=span, bracket_span=brackets)

    def _parse_index(self) -> ast.Index:
        start = self.token
        self.height = 0
        if self.kind == ":+":
            help = "write `0 :+ n` for the first n elements"
            self.fail_expected("the start of the span before `:+`", help=help)
        if self.accept(":"):
            if self.kind in (",", "]"):
                return ast.FullAxis(span=self.span_from(start))
            stop = self.parse_expression()
            return ast.Range(None, stop, span=self.span_from(start))
        first = self.parse_expression()
        height = self.height
        if self.accept(":"):
            if self.kind in (",", "]"):
                help = "a range `a : b` has an end; `:` alone is all of an axis"
                self.fail_expected("the end of the range", help=help)
            stop = self.parse_expression()
            self.height = max(height, self.height)
            return ast.Range(first, stop, span=self.span_from(start))
        if self.accept(":+"):
            length = self.parse_expression()
            self.height = max(height, self.height)
            return ast.Span(first, length, span=self.span_from(start))
        return ast.Point(first, span=self.span_from(start))

    # Primaries -----------------------------------------------------------------------------------

    def _operand_help(self) -> str | None:
        """What was probably meant, where an operand is missing."""
        before = self.previous.kind
        if self.kind == NEWLINE and (before, self.peek(-2).kind) == ("-", "-"):
            return "to decrement, write `-= 1`"
        goes_on = self.kind == NEWLINE and self.token.kind != "}"
        if goes_on and (before in _BINARY or before == "="):
            return "an expression goes on in the next line only inside ( ) or [ ]"
        if self.kind == "." and self.peek(1).kind == INTEGER:
            return f"a number starts with a digit: `0.{self.peek(1).text}`"
        if self.kind == "[" and before == "=" and self.peek(-3).text in ("(", ","):
            return f"did you mean `in`, as in `{self.peek(-2).text} in [16, 256]`?"
        if self.kind == "[":
            return "there are no lists; `full`, `iota` and `cat` make tiles"
        if self.kind == ":" and before == ":":
            return "a range `a : b` has two parts and no step"
        if self.kind == "&" and before != "&":
            return "there are no addresses: an element is named as in `x[i]`"
        if before == "," and self.kind in (")", "]"):
            return f"there is no comma before `{self.kind}`"
        if self.kind == "+" and before != "+":
            return "there is no unary `+`"
        return _TORN_SIGNS.get((before, self.kind))

    def _parse_group(self) -> ast.Expression:
        opening = self.open_bracket()
        node = self.parse_expression()
        if self.kind == "=":
            self.fail_unclosed("`)`", opening, help="did you mean `==`?")
        self.close_bracket(opening)
        return node

    def _parse_name(self) -> ast.Expression:
        token = self.advance()
        place = self.place(token)
        self.sources.remember(token.line, token.column, place)
        node = ast.Name(token.text, span=place)
        if self.kind != "<" or not self._at_generic():
            return node
        generic = self._parse_generic(token)
        if self.kind != "(":
            help = f"write `{token.text}<...>(...)`"
            self.fail_expected("`(` and the arguments", help=help)
        call = self._parse_call(node, token, generic)
        self.height += 1
        return call

    # Generics ------------------------------------------------------------------------------------

    def _at_generic(self) -> bool:
        """Whether the `<` that comes next opens a generic and is no comparison.

        Comparisons do not chain, so `name < x > (` can be nothing else.
        """
        first, second, third = (self.peek(distance) for distance in (1, 2, 3))
        if not self.free and (first.first_on_line or second.first_on_line):
            return False
        if first.text == "over":
            return second.kind in (NAME, INTEGER)
        if first.text in _SHAPED and second.kind == "<":
            return self.peek(4).kind == ">" and self.peek(5).kind == "["
        is_argument = first.kind in (NAME, INTEGER)
        return is_argument and second.kind == ">" and third.kind == "("

    def _parse_generic(self, name: Token) -> ast.Generic:
        opening = self.advance()
        generic = self._parse_generic_argument()
        if self.kind != ">":
            self.fail_unclosed(f"`>` to close `{name.text}<`", opening)
        self.advance()
        return generic

    def _parse_generic_argument(self) -> ast.Generic:
        start = self.token
        if start.text == "over":
            self.advance()
            if self.kind == INTEGER:
                return self._parse_axes(start)
            return self._parse_scope(start)
        if self.kind == INTEGER:
            token = self.advance()
            return ast.IntArgument(integer_value(token.text), span=self.place(token))
        written = self.parse_type()
        return ast.TypeArgument(written, span=written.span)

    def _parse_axes(self, start: Token) -> ast.OverAxes:
        axes = [integer_value(self.advance().text)]
        while self.accept(","):
            if self.kind != INTEGER:
                self.fail_expected("the number of an axis")
            axes.append(integer_value(self.advance().text))
        return ast.OverAxes(tuple(axes), span=self.span_from(start))

    def _parse_scope(self, start: Token) -> ast.OverScope:
        first = self.advance()
        words = [first.text]
        while self.accept("."):
            if self.kind != NAME:
                self.fail_expected("a name behind `.`")
            words.append(self.advance().text)
        text = ".".join(words)
        scope = _SCOPES.get(text)
        if scope is None:
            message = f"expected `ctx.lane`, `ctx.warp`, `ctx.thread` or axes, found `{text}`"
            help = "a collective works over threads, a reduction of a tile over axes: `<over 0, 1>`"
            self.fail(self.span_from(first), message, help=help)
        return ast.OverScope(scope, span=self.span_from(start))


def _bool_literal(text: str, span: Location) -> ast.BoolLiteral:
    return ast.BoolLiteral(text == "true", span=span)


_LITERALS = {
    INTEGER: lambda text, span: ast.IntLiteral(integer_value(text), span=span),
    FLOAT: lambda text, span: ast.FloatLiteral(float_value(text), span=span),
    STRING: lambda text, span: ast.StringLiteral(string_value(text), span=span),
    "true": _bool_literal,
    "false": _bool_literal,
}
