"""The expressions of `@grid`, as the text that the launch contract carries.

The host evaluates them when it knows the extents, so they use only what the contract's
expressions have: integers, dim names, `+ - * / %` and `ceildiv`, `min` and `max`.
"""

from __future__ import annotations

from collections.abc import Mapping

from phobos.diagnostics import did_you_mean
from phobos.frontend import ast
from phobos.frontend.checker import Checker
from phobos.frontend.operators import UNARY_PRECEDENCE, BinaryOp, UnaryOp
from phobos.frontend.types import Dim

_OPERATORS = frozenset(
    {BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.DIVIDE, BinaryOp.REMAINDER}
)
_FUNCTIONS = {"ceildiv": (2, 2), "min": (2, None), "max": (2, None)}
_ATOM = UNARY_PRECEDENCE + 1


def grid_text(
    checker: Checker,
    node: ast.Expression,
    dims: Mapping[str, Dim],
    constants: Mapping[str, int],
) -> str | None:
    """The text of an expression with all constants filled in, or None after an error."""
    written = _Writer(checker, dims, constants).write(node)
    return None if written is None else written[0]


class _Writer:
    """Writes expressions; each comes with the precedence of its outermost operator."""

    def __init__(
        self, checker: Checker, dims: Mapping[str, Dim], constants: Mapping[str, int]
    ) -> None:
        self.checker = checker
        self.dims = dims
        self.constants = constants

    def write(self, node: ast.Expression) -> tuple[str, int] | None:
        match node:
            case ast.IntLiteral():
                return str(node.value), _ATOM
            case ast.Name():
                return self._name(node)
            case ast.Unary(op=UnaryOp.NEGATE):
                inner = self.write(node.operand)
                return None if inner is None else (f"-{_wrapped(inner, _ATOM)}", UNARY_PRECEDENCE)
            case ast.Binary() if node.op in _OPERATORS:
                return self._binary(node)
            case ast.Call():
                return self._call(node)
            case _:
                self.checker.error(
                    node.span,
                    "the host cannot evaluate this when it launches the kernel",
                    help="a grid is made of extents and constants with + - * / %, `ceildiv`,"
                    " `min` and `max`",
                )
                return None

    def _name(self, node: ast.Name) -> tuple[str, int] | None:
        known = self.constants.get(node.name)
        if known is not None:
            return str(known), _ATOM if known >= 0 else UNARY_PRECEDENCE
        if node.name in self.dims:
            return node.name, _ATOM
        names = (*self.constants, *self.dims)
        listed = f"the names are {', '.join(names)}" if names else None
        self.checker.error(
            node.span,
            f"`{node.name}` is neither an extent nor an `@autotune` constant",
            help=did_you_mean(node.name, names) or listed,
        )
        return None

    def _binary(self, node: ast.Binary) -> tuple[str, int] | None:
        left, right = self.write(node.left), self.write(node.right)
        if left is None or right is None:
            return None
        level = node.op.precedence
        text = f"{_wrapped(left, level)} {node.op} {_wrapped(right, level + 1)}"
        return text, level

    def _call(self, node: ast.Call) -> tuple[str, int] | None:
        name = node.callee.name if isinstance(node.callee, ast.Name) else ""
        limits = _FUNCTIONS.get(name)
        if limits is None or node.generic is not None:
            self.checker.error(
                node.callee.span,
                "the host cannot call this when it launches the kernel",
                help=did_you_mean(name, _FUNCTIONS) or "it knows `ceildiv`, `min` and `max`",
            )
            return None
        low, high = limits
        if len(node.args) < low or (high is not None and len(node.args) > high):
            counted = f"{low} arguments" if high is not None else f"at least {low} arguments"
            self.checker.error(node.span, f"`{name}` takes {counted}, not {len(node.args)}")
            return None
        written = [self.write(argument) for argument in node.args]
        texts = [one[0] for one in written if one is not None]
        return (f"{name}({', '.join(texts)})", _ATOM) if len(texts) == len(written) else None


def _wrapped(written: tuple[str, int], minimum: int) -> str:
    text, level = written
    return text if level >= minimum else f"({text})"
