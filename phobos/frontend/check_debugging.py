"""The rules of `assert` and `print`."""

from __future__ import annotations

import re

from phobos.frontend import ast
from phobos.frontend.builtins import DEBUGGING
from phobos.frontend.checker import Checker, any_poison, is_poison
from phobos.frontend.coerce import convert, settle, to_condition
from phobos.frontend.typed import Expr, Literal, Stmt
from phobos.frontend.typed_debugging import Assert, Print
from phobos.frontend.types import BOOL, F64, I32, I64, INDEX, U32, U64, ScalarType

_WIDE_BITS = 64
_HOLE = re.compile(r"\{\{|\}\}|\{\}|[{}]")


def check_debugging(checker: Checker, node: ast.Call, name: str) -> list[Stmt]:
    """A call of `assert` or `print`."""
    return _assert(checker, node) if name == "assert" else _print(checker, node)


def _assert(checker: Checker, node: ast.Call) -> list[Stmt]:
    if len(node.args) != 2 or not isinstance(node.args[1], ast.StringLiteral):
        checker.error(
            node.span,
            "`assert` takes a condition and a text",
            help=f"write `{DEBUGGING['assert']}`",
        )
        return []
    condition = to_condition(checker, checker.expression(node.args[0]))
    if is_poison(condition):
        return []
    if isinstance(condition, Literal) and condition.value:
        return []
    return [Assert(ast.anchor(node), condition, node.args[1].value)]


def _print(checker: Checker, node: ast.Call) -> list[Stmt]:
    if not node.args or not isinstance(node.args[0], ast.StringLiteral):
        checker.error(node.span, "`print` takes a text first", help=f"write `{DEBUGGING['print']}`")
        return []
    template, *written = node.args
    assert isinstance(template, ast.StringLiteral)
    values = [settle(checker, checker.expression(argument)) for argument in written]
    if any_poison(values):
        return []
    for value, argument in zip(values, written, strict=True):
        if not isinstance(value.type, ScalarType):
            checker.error(
                argument.span,
                f"`print` takes scalars, but this is {value.type}",
                help="an element of a tile is `t[i, j]`",
            )
            return []
    formats = [_format(value) for value in values]
    text = _filled(checker, template, [letters for letters, _ in formats])
    if text is None:
        return []
    converted = tuple(
        convert(checker, value, type_) for value, (_, type_) in zip(values, formats, strict=True)
    )
    return [Print(ast.anchor(node), text + "\n", converted)]


def _format(value: Expr) -> tuple[str, ScalarType]:
    """What stands for a value in a format of printf, and the type that it takes it in."""
    type_ = value.type
    assert isinstance(type_, ScalarType)
    if type_.is_float:
        return "%g", F64
    if type_ is INDEX or type_.bits == _WIDE_BITS:
        return ("%llu", U64) if type_.is_unsigned else ("%lld", I64)
    return ("%u", U32) if type_.is_unsigned and type_ is not BOOL else ("%d", I32)


def _filled(checker: Checker, template: ast.StringLiteral, formats: list[str]) -> str | None:
    """The text with a format in each `{}`, or None after an error."""
    holes = 0
    wrong = False

    def fill(found: re.Match[str]) -> str:
        nonlocal holes, wrong
        match found[0]:
            case "{{" | "}}":
                return found[0][0]
            case "{}":
                holes += 1
                return formats[holes - 1] if holes <= len(formats) else ""
            case _:
                wrong = True
                return ""

    text = _HOLE.sub(fill, template.value.replace("%", "%%"))
    if wrong:
        checker.error(
            template.span,
            "a brace stands alone in this text",
            help="`{}` stands for a value; `{{` and `}}` are the braces themselves",
        )
        return None
    if holes != len(formats):
        checker.error(
            template.span,
            f"the text has {holes} `{{}}`, and {len(formats)}"
            f" value{' follows' if len(formats) == 1 else 's follow'}",
            help="each `{}` stands for one value",
        )
        return None
    return text
