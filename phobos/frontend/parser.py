"""Parses a program: declarations, their attributes and parameters.

`parse` is the only entry. It reports up to `MAX_ERRORS` errors in one run: a statement that fails
is skipped to its end and a declaration to the next one, and what was skipped is not reported
again. The rest of the parser is in `statement_parser`, `expression_parser` and `cursor`.
"""

from __future__ import annotations

from typing import NoReturn

from phobos.diagnostics import DiagnosticCollector, Note, SourceMap
from phobos.frontend import ast
from phobos.frontend.cursor import (
    DECLARATION_WORDS,
    DeclarationFailure,
    ProgramFailure,
    SyntaxFailure,
)
from phobos.frontend.lexer import (
    END,
    INTEGER,
    NAME,
    RESERVED,
    Token,
    integer_value,
    shortened,
    tokenize,
)
from phobos.frontend.statement_parser import StatementParser

BYTE_ORDER_MARK = "\ufeff"

_KERNEL_HELP = "a kernel looks like `kernel name(x: tensor<f32>[N]) { ... }`"
_FUNCTION_HELP = "a function looks like `fn name(x: f32) -> f32 { ... }`"
_FOREIGN_DECLARATIONS = {
    **dict.fromkeys(("def", "func", "function", "void"), f"{_KERNEL_HELP}, {_FUNCTION_HELP}"),
    "__device__": _FUNCTION_HELP,
    **dict.fromkeys(("__global__", "kernal", "Kernel", "extern"), _KERNEL_HELP),
    **dict.fromkeys(
        ("let", "var", "const"),
        "names are declared within kernels; constants come from `@autotune`",
    ),
    **dict.fromkeys(("import", "include", "use", "from"), "a program is one file"),
}


def parse(text: str, name: str, sources: SourceMap | None = None) -> ast.Program:
    """Parse the text of the source called `name`.

    The text and the span of every expression are recorded in `sources`. Raises PhobosError with
    all errors found, and with the sources attached.
    """
    sources = SourceMap() if sources is None else sources
    text = text.removeprefix(BYTE_ORDER_MARK)
    sources.add(name, text)
    errors = DiagnosticCollector(sources)
    tokens = tokenize(text, name, errors)
    program = Parser(tokens, name, errors, sources).parse_program()
    errors.raise_if_errors()
    return program


class Parser(StatementParser):
    """The recursive-descent parser; one instance parses one program."""

    def __init__(
        self, tokens: list[Token], file: str, errors: DiagnosticCollector, sources: SourceMap
    ) -> None:
        super().__init__(tokens, file, errors, sources)
        self._blocks = []

    def parse_program(self) -> ast.Program:
        """Parse everything; errors are in the collector, and the program lacks what failed."""
        start = self.token
        declarations: list[ast.Kernel | ast.Function] = []
        try:
            if self.kind == END:
                message = "the program is empty"
                self.fail(self.next_place(), message, help=_KERNEL_HELP)
            while self.kind != END:
                declaration = self._parse_or_recover()
                if declaration is not None:
                    declarations.append(declaration)
        except SyntaxFailure:
            pass  # reported; nothing is left to recover
        return ast.Program(tuple(declarations), span=self.span_from(start))

    def _parse_or_recover(self) -> ast.Kernel | ast.Function | None:
        position = self.position
        self._misaligned = None
        try:
            return self._parse_declaration_with_attributes()
        except ProgramFailure:
            raise
        except SyntaxFailure as failure:
            self._recover_declaration(
                position, parse_body=not isinstance(failure, DeclarationFailure)
            )
            return None

    def _recover_declaration(self, start: int, *, parse_body: bool) -> None:
        """Go to the next declaration; the body of the one that failed is parsed for its errors."""
        self.free, self.depth, self._level = 1, 0, 0
        self._blocks.clear()
        self.skip_newline()
        if self.position == start:
            self.advance()
        while self.kind != END and self.kind not in DECLARATION_WORDS:
            if self.kind == "@" and self.token.first_on_line:
                return
            if self.kind == "{" and parse_body:
                try:
                    self.parse_block()
                except DeclarationFailure:
                    self._recover_declaration(start, parse_body=False)
                    return
            else:
                self.advance()

    def _parse_declaration_with_attributes(self) -> ast.Kernel | ast.Function:
        start = self.token
        self._indentation = start.column
        attributes: list[ast.Attribute] = []
        while self.kind == "@":
            attributes.append(self._parse_attribute())
        if self.kind == "kernel":
            return self._parse_kernel(start, tuple(attributes))
        if self.kind == "fn":
            if attributes:
                place = attributes[0].span
                self.errors.error(place, "attributes belong to kernels, not to functions")
            return self._parse_function()
        self._fail_declaration(attributes)

    def _fail_declaration(self, attributes: list[ast.Attribute]) -> NoReturn:
        if attributes:
            note = Note("this attribute needs a kernel", attributes[-1].span)
            self.fail_expected("`kernel`", notes=[note])
        if self.kind == "}":
            self.fail(self.place(self.token), "this `}` closes nothing")
        help = _FOREIGN_DECLARATIONS.get(self.token.text)
        self.fail_expected("`kernel` or `fn`", help=help)

    # Declarations --------------------------------------------------------------------------------

    def _parse_kernel(self, start: Token, attributes: tuple[ast.Attribute, ...]) -> ast.Kernel:
        keyword = self.advance()
        name = self.expect_name("a kernel")
        params = self._parse_params(_KERNEL_HELP)
        self.remember_header(keyword)
        if self.kind == "->":
            help = "a kernel writes its results to tensors"
            self.fail(self.place(self.token), "a kernel has no result", help=help)
        body = self.parse_block()
        return ast.Kernel(
            name.text,
            params,
            body,
            attributes,
            span=self.span_from(start),
            name_span=self.place(name),
        )

    def _parse_function(self) -> ast.Function:
        start = self.advance()
        name = self.expect_name("a function")
        params = self._parse_params(_FUNCTION_HELP)
        if self.kind == ":":
            self.fail_expected("`{` or `->`", help="a result is written `-> f32`")
        result = self.parse_type() if self.accept("->") else None
        self.remember_header(start)
        body = self.parse_block()
        return ast.Function(
            name.text,
            params,
            result,
            body,
            span=self.span_from(start),
            name_span=self.place(name),
        )

    def _parse_params(self, help: str) -> tuple[ast.Param, ...]:
        if self.kind != "(":
            self.fail_expected("`(` and the parameters", help=help)
        opening = self.open_bracket()
        params: list[ast.Param] = []
        if self.kind not in (NAME, ")") and self.kind not in RESERVED:
            self.fail_unclosed("a parameter or `)`", opening)
        while self.kind != ")" or params:
            params.append(self._parse_param())
            if not self.accept(","):
                break
        self.close_bracket(opening, ",")
        return tuple(params)

    def _parse_param(self) -> ast.Param:
        if self.kind == ")":
            self.fail_expected("a parameter", help="there is no comma before `)`")
        name = self.expect_name("a parameter")
        help = "a parameter is written `name: f32` or `name: tensor<f32>[N]`"
        self.expect(":", after=f" and the type of `{shortened(name.text)}`", help=help)
        written = self.parse_type()
        if self.kind in ("*", "&"):
            self.fail_expected("`,` or `)`", help="there are no pointers: write `tensor<f32>[N]`")
        return ast.Param(name.text, written, span=self.span_from(name), name_span=self.place(name))

    # Attributes ----------------------------------------------------------------------------------

    def _parse_attribute(self) -> ast.Attribute:
        start = self.advance()
        name = self.expect_name("an attribute")
        args: list[ast.AttributeArgument] = []
        if self.kind == "(":
            opening = self.open_bracket()
            args.append(self._parse_attribute_argument())
            while self.accept(","):
                args.append(self._parse_attribute_argument())
            self.close_bracket(opening, ",")
        return ast.Attribute(
            name.text, tuple(args), span=self.span_from(start), name_span=self.place(name)
        )

    def _parse_attribute_argument(self) -> ast.AttributeArgument:
        start = self.token
        following = self.peek(1).kind if self.kind == NAME else ""
        if following not in ("in", "="):
            if self.kind == ")":
                help = "without arguments, an attribute has no parentheses"
                self.fail_expected("an argument", help=help)
            value = self.parse_expression()
            return ast.PositionalArgument(value, span=self.span_from(start))
        self.advance()
        self.advance()
        place = self.place(start)
        if following == "=":
            value = self.parse_expression()
            return ast.NamedArgument(start.text, value, span=self.span_from(start), name_span=place)
        values = self._parse_choices(start.text)
        return ast.ChoiceArgument(start.text, values, span=self.span_from(start), name_span=place)

    def _parse_choices(self, name: str) -> tuple[ast.IntLiteral, ...]:
        help = f"write the bounds or the values: `{name} in [16, 256]`"
        if self.kind != "[":
            self.fail_expected("`[` behind `in`", help=help)
        opening = self.open_bracket()
        values = [self._parse_choice(help)]
        while self.accept(","):
            values.append(self._parse_choice(help))
        self.close_bracket(opening, ",")
        return tuple(values)

    def _parse_choice(self, help: str) -> ast.IntLiteral:
        if self.kind != INTEGER:
            self.fail_expected("an integer", help=help)
        token = self.advance()
        return ast.IntLiteral(integer_value(token.text), span=self.place(token))
