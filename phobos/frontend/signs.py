"""Signs of index expressions, as far as their form shows them.

A loop may count straight to its end if its step is known to be positive; grid-stride and
lane-strided loops have steps such as `ctx.blocks.x * BLOCK` whose sign their form shows.
Products are taken not to overflow.
"""

from __future__ import annotations

from phobos.frontend.builtins import ELEMENTWISE
from phobos.frontend.checker import constant_int
from phobos.frontend.operators import BinaryOp, UnaryOp
from phobos.frontend.typed import Apply, Arithmetic, ContextField, Convert, Expr, Prefix, Read
from phobos.frontend.types import ScalarType


def sign_of(expr: Expr) -> int:
    """1 or -1 if an integer is known to be above or below zero; 0 if it may be either or zero."""
    known = constant_int(expr)
    if known is not None:
        return (known > 0) - (known < 0)
    match expr:
        case ContextField(name="blocks"):
            return 1
        case Read():
            return expr.variable.sign
        case Prefix(operator=UnaryOp.NEGATE):
            return -sign_of(expr.operand)
        case Arithmetic(operator=BinaryOp.MULTIPLY):
            return sign_of(expr.left) * sign_of(expr.right)
        case Arithmetic(operator=BinaryOp.ADD):
            left, right = sign_of(expr.left), sign_of(expr.right)
            return left if left == right else 0
        case Apply() if expr.builtin is ELEMENTWISE["max"]:
            return max(0, *map(sign_of, expr.arguments))
        case Convert() if _keeps_sign(expr):
            return sign_of(expr.value)
        case _:
            return 0


def _keeps_sign(expr: Convert) -> bool:
    """Whether a conversion is one between integers that loses no bits of a usual index."""
    source, target = expr.value.type, expr.type
    if not (isinstance(source, ScalarType) and isinstance(target, ScalarType)):
        return False
    return source.is_integer and target.is_integer and (target.bits == 0 or target.bits >= 32)
