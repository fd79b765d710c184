"""Differences of index expressions that are known although the expressions are not.

`i * 64 + 64` and `i * 64` differ by 64 whatever `i` is: both are written as a sum of multiples
of what cannot be taken apart, and the sums are subtracted.
"""

from __future__ import annotations

from collections.abc import Hashable

from phobos.frontend.checker import constant_int
from phobos.frontend.operators import BinaryOp, UnaryOp
from phobos.frontend.typed import Arithmetic, ContextField, Convert, Expr, Extent, Prefix, Read
from phobos.frontend.types import I32, I64, INDEX, ScalarType

_ONE: tuple[Hashable, ...] = ()
_KEEP_SUMS = (I32, I64)
"""Types whose sums stay sums in index; those of narrower types wrap at their width first."""
_Sum = dict[tuple[Hashable, ...], int]


def difference(left: Expr, right: Expr) -> int | None:
    """`left - right` if it is the same number in every run of the program, else None."""
    total = _scaled_sum(_terms(left), _terms(right), -1)
    constant = total.pop(_ONE, 0)
    return None if any(total.values()) else constant


def _scaled_sum(left: _Sum, right: _Sum, factor: int) -> _Sum:
    out = dict(left)
    for term, count in right.items():
        out[term] = out.get(term, 0) + factor * count
    return out


def _terms(expr: Expr) -> _Sum:
    """The multiples that an expression is the sum of; the key of a term is what it multiplies."""
    known = constant_int(expr)
    if known is not None:
        return {_ONE: known}
    match expr:
        case Arithmetic(operator=BinaryOp.ADD):
            return _scaled_sum(_terms(expr.left), _terms(expr.right), 1)
        case Arithmetic(operator=BinaryOp.SUBTRACT):
            return _scaled_sum(_terms(expr.left), _terms(expr.right), -1)
        case Arithmetic(operator=BinaryOp.MULTIPLY):
            return _product(_terms(expr.left), _terms(expr.right))
        case Prefix(operator=UnaryOp.NEGATE):
            return _scaled_sum({}, _terms(expr.operand), -1)
        case Convert() if expr.value.type in _KEEP_SUMS and expr.type is INDEX:
            return _terms(expr.value)
        case _:
            return {(_key(expr),): 1}


def _product(left: _Sum, right: _Sum) -> _Sum:
    out: _Sum = {}
    for one, count in left.items():
        for other, times in right.items():
            term = tuple(sorted((*one, *other), key=repr))
            out[term] = out.get(term, 0) + count * times
    return out


def _key(expr: Expr) -> Hashable:
    """What two expressions share exactly if they have the same value in one evaluation."""
    match expr:
        case Read():
            return ("variable", id(expr.variable))
        case ContextField():
            return ("ctx", expr.name, expr.axis)
        case Extent():
            return ("extent", id(expr.tensor), expr.axis)
        case Convert() if isinstance(expr.type, ScalarType):
            return ("convert", expr.type.name, _key(expr.value))
        case Arithmetic():
            return (expr.operator, _key(expr.left), _key(expr.right))
        case _:
            known = constant_int(expr)
            return ("opaque", id(expr)) if known is None else ("constant", known)
