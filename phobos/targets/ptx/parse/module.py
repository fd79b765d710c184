"""Modules: the directives outside functions, and function headers."""

from __future__ import annotations

import re

from phobos.targets.ptx.parse.body import BodyParser
from phobos.targets.ptx.parse.cursor import Cursor
from phobos.targets.ptx.parse.declarations import (
    LINKING,
    STATE_SPACES,
    parse_parameters,
    parse_variables,
)
from phobos.targets.ptx.parse.lexer import Text, Token
from phobos.targets.ptx.parse.records import Function, Module, Variable

_VERSION = re.compile(r"(\d+)\.(\d+)")
_FLAG_DIRECTIVES = frozenset({".noreturn", ".explicitcluster", ".blocksareclusters"})


def parse_ptx(text: str, name: str = "<ptx>") -> Module:
    """Parse a PTX module.

    Args:
        text: The PTX text.
        name: What error messages call it.

    Raises:
        PhobosError: The text is no PTX; the error carries line, column and excerpt.
    """
    return _ModuleParser(Text(text, name)).parse()


class _ModuleParser:
    def __init__(self, source: Text) -> None:
        self._source = source
        self._cursor = Cursor(source)
        self._version: tuple[int, int] | None = None
        self._target: tuple[str, ...] = ()
        self._address_size = 64
        self._files: dict[int, str] = {}
        self._variables: dict[str, Variable] = {}
        self._functions: dict[str, Function] = {}

    def parse(self) -> Module:
        cursor = self._cursor
        while cursor.token.kind != "end":
            self._statement(cursor.token)
        if self._version is None or not self._target:
            missing = ".version" if self._version is None else ".target"
            cursor.fail(f"this PTX has no `{missing}` directive")
        return Module(
            name=self._source.name,
            text=self._source.text,
            version=self._version,
            target=self._target,
            address_size=self._address_size,
            files=self._files,
            variables=tuple(self._variables.values()),
            functions=self._functions,
        )

    def _statement(self, token: Token) -> None:
        cursor = self._cursor
        if token.text == ";":
            cursor.advance()
            return
        if token.kind != "directive":
            cursor.fail(f"expected a directive, got {cursor.describe()}")
        match token.text:
            case ".version":
                cursor.advance()
                self._parse_version()
            case ".target":
                cursor.advance()
                self._parse_target()
            case ".address_size":
                cursor.advance()
                self._address_size = cursor.integer("32 or 64")
            case ".file":
                cursor.advance()
                self._parse_file()
            case ".section":
                self._skip_section()
            case ".pragma" | ".alias":
                self._skip_statement()
            case _:
                self._declaration(token)

    def _declaration(self, token: Token) -> None:
        cursor = self._cursor
        linking = []
        while cursor.token.text in LINKING:
            linking.append(cursor.advance().text)
        is_extern = ".extern" in linking
        if cursor.at(".entry") or cursor.at(".func"):
            self._function(is_entry=cursor.advance().text == ".entry", is_extern=is_extern)
        elif cursor.token.text.split("::")[0] in STATE_SPACES:
            for variable in parse_variables(cursor, is_extern=is_extern, unique=str):
                self._variables[variable.name] = variable
        elif linking:
            cursor.fail(f"expected a function or variable, got {cursor.describe()}")
        else:
            cursor.fail(f"unknown directive `{token.text}`")

    def _parse_version(self) -> None:
        token = self._cursor.advance()
        match = _VERSION.fullmatch(token.text)
        if match is None:
            self._source.fail(token, f"expected a version such as 8.0, got `{token.text}`")
        self._version = (int(match.group(1)), int(match.group(2)))

    def _parse_target(self) -> None:
        cursor = self._cursor
        names = [cursor.expect_word("a target such as sm_80").text]
        while cursor.accept(","):
            names.append(cursor.expect_word("a target option").text)
        self._target = tuple(names)

    def _parse_file(self) -> None:
        cursor = self._cursor
        number = cursor.integer("a file number")
        if cursor.token.kind != "string":
            cursor.fail(f"expected the file's name in quotes, got {cursor.describe()}")
        name = cursor.advance().text[1:-1]
        self._files[number] = name.replace('\\"', '"').replace("\\\\", "\\")
        while cursor.accept(","):
            cursor.integer("a timestamp or size")

    def _skip_section(self) -> None:
        cursor = self._cursor
        while not cursor.at("{"):
            if cursor.advance().kind == "end":
                cursor.fail("expected `{` behind this section's name, got the end of the text")
        while not cursor.accept("}"):
            if cursor.advance().kind == "end":
                cursor.fail("expected `}` behind this section, got the end of the text")

    def _skip_statement(self) -> None:
        cursor = self._cursor
        while not cursor.accept(";"):
            if cursor.advance().kind == "end":
                cursor.fail("expected `;`, got the end of the text")

    def _function(self, *, is_entry: bool, is_extern: bool) -> None:
        cursor = self._cursor
        body = BodyParser(cursor)
        results = parse_parameters(cursor) if cursor.at("(") else []
        token = cursor.expect_word("the name of a function")
        parameters = parse_parameters(cursor) if cursor.at("(") else []
        results = [body.declare_parameter(variable) for variable in results]
        parameters = [body.declare_parameter(variable) for variable in parameters]
        directives = self._function_directives()
        is_declaration = is_extern or cursor.at(";")
        if cursor.at("{"):
            self._check_new(token)
            body.parse()
            is_declaration = False
        else:
            cursor.expect(";", "behind this declaration")
        if is_declaration and token.text in self._functions:
            return
        self._functions[token.text] = Function(
            name=token.text,
            is_entry=is_entry,
            position=cursor.position(token),
            parameters=tuple(parameters),
            results=tuple(results),
            directives=directives,
            variables=tuple(body.names.variables),
            registers=tuple(body.names.registers),
            body=tuple(body.instructions),
            labels=body.labels,
            tables=body.tables,
            is_declaration=is_declaration,
        )

    def _check_new(self, token: Token) -> None:
        known = self._functions.get(token.text)
        if known is not None and not known.is_declaration:
            self._source.fail(token, f"function `{token.text}` is defined twice")

    def _function_directives(self) -> dict[str, tuple[int, ...]]:
        """Launch bounds and their like, up to the body or the `;`."""
        cursor = self._cursor
        found: dict[str, tuple[int, ...]] = {}
        while cursor.token.kind == "directive":
            token = cursor.advance()
            if token.text == ".pragma":
                self._skip_statement()
                continue
            numbers: list[int] = []
            if token.text not in _FLAG_DIRECTIVES:
                numbers.append(cursor.integer(f"the value of `{token.text}`"))
                while cursor.accept(","):
                    numbers.append(cursor.integer(f"the value of `{token.text}`"))
            found[token.text[1:]] = tuple(numbers)
        return found
