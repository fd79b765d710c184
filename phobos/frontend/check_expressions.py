"""Types of names, literals and operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phobos.diagnostics import did_you_mean
from phobos.frontend import ast, constants
from phobos.frontend.builtins import usage_of
from phobos.frontend.check_calls import check_call
from phobos.frontend.check_clusters import (
    CLUSTER,
    check_bare_cluster,
    check_cluster_field,
)
from phobos.frontend.check_slices import check_subscript
from phobos.frontend.checker import Checker, any_poison, declared_here, is_poison
from phobos.frontend.coerce import settle, unify
from phobos.frontend.foreign import FIELDS, METHODS, spelling
from phobos.frontend.operations import arithmetic, compare, has_effects
from phobos.frontend.operators import BinaryOp, UnaryOp
from phobos.frontend.scopes import (
    CONTEXT,
    FLOAT_CONSTANTS,
    Builtin,
    NamedConstant,
    NamedExtent,
    Poisoned,
)
from phobos.frontend.typed import (
    ContextField,
    Expr,
    Extent,
    Literal,
    Logic,
    Poison,
    Prefix,
    Read,
    TensorParameter,
    Variable,
)
from phobos.frontend.types import (
    BOOL,
    F8E4M3,
    F8E5M2,
    INDEX,
    POISON,
    WEAK_FLOAT,
    WEAK_INT,
    ScalarType,
    element_of,
)

LANES = 32
_AXES = ("x", "y", "z")
_GRID_FIELDS = ("block", "blocks")
_THREAD_FIELDS = ("thread", "warp", "lane")
_CONSTANT_FIELDS = ("threads", "warps", "lanes")
_FIELDS = (*_GRID_FIELDS, CLUSTER, *_THREAD_FIELDS, *_CONSTANT_FIELDS)


def check_expression(checker: Checker, node: ast.Expression) -> Expr:
    """The checked form of an expression; its type is weak if it is a literal."""
    return _RULES[type(node)](checker, node)


def _int_literal(checker: Checker, node: ast.IntLiteral) -> Expr:
    return Literal(WEAK_INT, ast.anchor(node), node.value)


def _float_literal(checker: Checker, node: ast.FloatLiteral) -> Expr:
    return Literal(WEAK_FLOAT, ast.anchor(node), node.value)


def _bool_literal(checker: Checker, node: ast.BoolLiteral) -> Expr:
    return Literal(BOOL, ast.anchor(node), node.value)


def _string_literal(checker: Checker, node: ast.StringLiteral) -> Expr:
    return checker.fail(
        node.span, "a text is no value", help="texts stand only in `print` and `assert`"
    )


# Names -------------------------------------------------------------------------------------------


def _name(checker: Checker, node: ast.Name) -> Expr:
    symbol = checker.scope.lookup(node.name)
    place = ast.anchor(node)
    match symbol:
        case Variable():
            if symbol.type is POISON:
                return Poison(POISON, place)
            if symbol.constant is not None:
                return Literal(symbol.type, place, symbol.constant)
            return Read(symbol.type, place, symbol)
        case NamedConstant():
            return Literal(INDEX, place, symbol.value)
        case NamedExtent():
            return Extent(INDEX, place, symbol.tensor, symbol.axis)
        case Poisoned():
            return Poison(POISON, place)
        case None:
            return checker.unknown_name(node.name, node.span)
        case TensorParameter():
            return checker.fail(
                node.span,
                f"the tensor `{node.name}` is no value by itself",
                notes=declared_here(node.name, symbol),
                help=f"read an element or a slice of it, as in `{_example(symbol)}`",
            )
        case Builtin():
            return _builtin_name(checker, node, symbol)
        case ast.Function() | ast.Kernel():
            word = "function" if isinstance(symbol, ast.Function) else "kernel"
            return checker.fail(
                node.span,
                f"`{node.name}` is a {word}, not a value",
                notes=declared_here(node.name, symbol),
            )


def _example(tensor: TensorParameter) -> str:
    points = ["i", "j", "k", "l"][: len(tensor.type.dims) - 1]
    return f"{tensor.name}[{', '.join([*points, 'k :+ 16'])}]"


def _builtin_name(checker: Checker, node: ast.Name, symbol: Builtin) -> Expr:
    if symbol.name in FLOAT_CONSTANTS:
        return Literal(WEAK_FLOAT, ast.anchor(node), FLOAT_CONSTANTS[symbol.name])
    if symbol.name == CONTEXT:
        return checker.fail(
            node.span,
            "`ctx` is no value by itself",
            help="name one of its fields: " + ", ".join(f"ctx.{field}" for field in _FIELDS),
        )
    return checker.fail(
        node.span,
        f"`{symbol.name}` is a built-in function, not a value",
        help=f"call it, as in `{usage_of(symbol.name)}`",
    )


# ctx ---------------------------------------------------------------------------------------------


def _member(checker: Checker, node: ast.Member) -> Expr:
    base = node.base
    if _is_context(checker, base):
        return _context_field(checker, node, node.name, None)
    if isinstance(base, ast.Member) and _is_context(checker, base.base):
        return _context_axis(checker, node, base)
    help = None
    if isinstance(base, ast.Name):
        if isinstance(checker.scope.lookup(base.name), TensorParameter):
            help = f"the size of an axis is `extent({base.name}, axis)`"
        elif base.name in FIELDS:
            help = f"what CUDA calls `{base.name}` is `{FIELDS[base.name]}` here"
    help = help or spelling(node.name, METHODS)
    return checker.fail(node.name_span, "only `ctx` has fields", help=help)


def _is_context(checker: Checker, node: ast.Expression) -> bool:
    if not isinstance(node, ast.Name) or node.name != CONTEXT:
        return False
    return isinstance(checker.scope.lookup(CONTEXT), Builtin)


def _context_axis(checker: Checker, node: ast.Member, field: ast.Member) -> Expr:
    if field.name not in _FIELDS:
        return _context_field(checker, field, field.name, None)
    if field.name == CLUSTER:
        return check_cluster_field(checker, node)
    if field.name not in _GRID_FIELDS:
        return checker.fail(
            node.span,
            f"`ctx.{field.name}` has no axes: a CTA's threads are numbered along x alone",
            help=f"write `ctx.{field.name}`",
        )
    if node.name not in _AXES:
        return checker.fail(
            node.name_span,
            f"`ctx.{field.name}` has no axis `{node.name}`",
            help=f"its axes are {', '.join(f'`ctx.{field.name}.{axis}`' for axis in _AXES)}",
        )
    return _context_field(checker, node, field.name, node.name)


def _context_field(checker: Checker, node: ast.Member, name: str, axis: str | None) -> Expr:
    place = ast.anchor(node)
    if name not in _FIELDS:
        help = did_you_mean(name, _FIELDS) or "its fields are " + ", ".join(_FIELDS)
        return checker.fail(node.name_span, f"`ctx` has no field `{name}`", help=help)
    if name in _GRID_FIELDS and axis is None:
        return checker.fail(
            node.span,
            f"`ctx.{name}` needs an axis",
            help=f"write {', '.join(f'`ctx.{name}.{axis}`' for axis in _AXES[:2])}"
            f" or `ctx.{name}.z`",
        )
    if name == CLUSTER:
        return check_bare_cluster(checker, node)
    if name in _CONSTANT_FIELDS:
        threads = checker.settings.threads
        values = {"threads": threads, "warps": -(-threads // LANES), "lanes": LANES}
        return Literal(INDEX, place, values[name])
    return ContextField(INDEX, place, name, axis)


# Operators ---------------------------------------------------------------------------------------


def _unary(checker: Checker, node: ast.Unary) -> Expr:
    operand = checker.expression(node.operand)
    if is_poison(operand):
        return operand
    wrong = _unary_fault(node.op, element_of(operand.type))
    if wrong is not None:
        message, help = wrong
        return checker.fail(node.span, message, help=help)
    place = ast.anchor(node)
    if isinstance(operand, Literal):
        folded = _fold_unary(node.op, operand)
        if folded is not None:
            return Literal(operand.type, place, folded)
    operand = settle(checker, operand)
    return operand if is_poison(operand) else Prefix(operand.type, place, node.op, operand)


def _unary_fault(op: UnaryOp, element: ScalarType) -> tuple[str, str | None] | None:
    match op:
        case UnaryOp.NEGATE if not element.is_numeric:
            return f"`-` takes a number, not {element}", "`!` is the opposite of a bool"
        case UnaryOp.NEGATE if element in (F8E4M3, F8E5M2):
            return f"`-`: {element} is a storage format without arithmetic", (
                "convert to f16 or f32 first, as in `f32(x)`"
            )
        case UnaryOp.NOT if element is not BOOL:
            return (
                f"`!` takes a bool, not {element}",
                "compare with zero, as in `x == 0`; `~x` flips the bits of an integer",
            )
        case UnaryOp.INVERT if not element.is_integer:
            help = "`!` is the opposite of a bool" if element is BOOL else None
            return f"`~` takes an integer, not {element}", help
        case _:
            return None


def _fold_unary(op: UnaryOp, operand: Literal) -> constants.Constant | None:
    element = element_of(operand.type)
    match op:
        case UnaryOp.NOT:
            return not operand.value
        case UnaryOp.INVERT:
            return constants.fold_invert(int(operand.value), element)
        case UnaryOp.NEGATE:
            return constants.fold_negate(operand.value, element)


def _binary(checker: Checker, node: ast.Binary) -> Expr:
    left, right = checker.expression(node.left), checker.expression(node.right)
    if any_poison((left, right)):
        return Poison(POISON, ast.anchor(node))
    place = ast.anchor(node)
    if node.op.is_logical:
        return _logical(checker, node, left, right)
    if node.op.is_comparison:
        return compare(checker, place, node.span, node.op, left, right)
    return arithmetic(checker, place, node.span, node.op, left, right)


def _logical(checker: Checker, node: ast.Binary, left: Expr, right: Expr) -> Expr:
    place = ast.anchor(node)
    for side in (left, right):
        if element_of(side.type) is not BOOL:
            return _not_bool(checker, node.op, side)
    if left.type is not BOOL or right.type is not BOOL:
        unified = unify(checker, node.span, f"`{node.op}`", (left, right))
        if unified is None:
            return Poison(POISON, place)
        (left, right), type_ = unified
        return Logic(type_, place, node.op, left, right, lazy=False)
    if isinstance(left, Literal):
        decides = bool(left.value) == (node.op is BinaryOp.OR)
        return Literal(BOOL, place, left.value) if decides else right
    return Logic(BOOL, place, node.op, left, right, lazy=has_effects(right))


def _not_bool(checker: Checker, op: BinaryOp, side: Expr) -> Expr:
    bitwise = "&" if op is BinaryOp.AND else "|"
    return checker.fail(
        side.place,
        f"`{op}` takes bools, but this is {side.type}",
        help=f"compare it, as in `x != 0`; `{bitwise}` combines the bits of integers",
    )


def _subscript(checker: Checker, node: ast.Subscript) -> Expr:
    return check_subscript(checker, node)


def _call(checker: Checker, node: ast.Call) -> Expr:
    return check_call(checker, node)


_RULES: dict[type[ast.Node], Callable[[Checker, Any], Expr]] = {
    ast.IntLiteral: _int_literal,
    ast.FloatLiteral: _float_literal,
    ast.BoolLiteral: _bool_literal,
    ast.StringLiteral: _string_literal,
    ast.Name: _name,
    ast.Member: _member,
    ast.Unary: _unary,
    ast.Binary: _binary,
    ast.Subscript: _subscript,
    ast.Call: _call,
}
