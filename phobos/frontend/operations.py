"""Building checked operations from checked operands.

Shared by the operators, compound assignments and the built-ins that are written in terms of
other operations. Constants are folded here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace

from phobos.diagnostics import Location
from phobos.frontend import constants
from phobos.frontend.checker import Checker, constant_int
from phobos.frontend.coerce import settle, unify
from phobos.frontend.operators import BinaryOp
from phobos.frontend.typed import (
    Arithmetic,
    Ballot,
    Binding,
    Collective,
    Compare,
    Expansion,
    Expr,
    Literal,
    PointRead,
    Poison,
    RunRead,
    Shuffle,
    TileRead,
)
from phobos.frontend.typed_atomics import AtomicUpdate, CompareExchange, LoadAcquire
from phobos.frontend.typed_tiles import (
    Contraction,
    GatherRead,
    PaddedRead,
    ThreadPosition,
    ThreadScan,
)
from phobos.frontend.types import (
    BOOL,
    POISON,
    ScalarType,
    ValueType,
    element_of,
    with_element,
)

_BITWISE = frozenset({BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR})
_SHIFTS = frozenset({BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT})
_DIVISIONS = frozenset({BinaryOp.DIVIDE, BinaryOp.REMAINDER})
_EQUALITIES = frozenset({BinaryOp.EQUAL, BinaryOp.NOT_EQUAL})
_HAS_EFFECTS = (
    PointRead,
    TileRead,
    RunRead,
    PaddedRead,
    GatherRead,
    Collective,
    ThreadPosition,
    ThreadScan,
    Shuffle,
    Ballot,
    Binding,
    Expansion,
    AtomicUpdate,
    CompareExchange,
    LoadAcquire,
)


def arithmetic(
    checker: Checker, place: Location, span: Location, op: BinaryOp, left: Expr, right: Expr
) -> Expr:
    """An arithmetic, bitwise or shift operation; `span` is underlined where it is wrong."""
    unified = unify(checker, span, f"`{op}`", (left, right))
    if unified is None:
        return Poison(POISON, place)
    (one, other), type_ = unified
    element = element_of(type_)
    wrong = _operand_fault(op, element)
    if wrong is not None:
        return checker.fail(span, wrong[0], help=wrong[1])
    wrong = _constant_fault(op, element, right)
    if wrong is not None:
        return checker.fail(right.place, wrong)
    if isinstance(one, Literal) and isinstance(other, Literal):
        folded = constants.fold_binary(op, one.value, other.value, element)
        if folded is not None:
            return Literal(element, place, folded)
        if element.is_weak:
            one, other = settle(checker, one), settle(checker, other)
            type_ = one.type
    return _accumulated(op, one, other) or Arithmetic(type_, place, op, one, other)


def _accumulated(op: BinaryOp, left: Expr, right: Expr) -> Expr | None:
    """The sum of a product of matrices and a tile as one operation; None for anything else."""
    if op is not BinaryOp.ADD:
        return None
    if isinstance(right, Contraction) and right.c is None:
        return replace(right, c=left)
    if isinstance(left, Contraction) and left.c is None:
        return replace(left, c=right)
    return None


def _operand_fault(op: BinaryOp, element: ScalarType) -> tuple[str, str | None] | None:
    """What is wrong with operands of this type, and help; None if nothing is."""
    if op in _BITWISE:
        if element.is_integer or element is BOOL:
            return None
        return f"`{op}` works on the bits of integers, not on {element}", None
    if op in _SHIFTS:
        return None if element.is_integer else (f"`{op}` shifts integers, not {element}", None)
    if element is BOOL:
        return f"`{op}` takes numbers, not bools", "convert them first, as in `i32(condition)`"
    return None


def _constant_fault(op: BinaryOp, element: ScalarType, right: Expr) -> str | None:
    value = constant_int(right)
    if value is None or not element.is_integer:
        return None
    if op in _DIVISIONS and value == 0:
        return "division by zero" if op is BinaryOp.DIVIDE else "remainder of a division by zero"
    bits = element.bits or 64
    if op in _SHIFTS and not 0 <= value < bits:
        return f"a shift by {value} is outside 0 to {bits - 1}"
    return None


def compare(
    checker: Checker, place: Location, span: Location, op: BinaryOp, left: Expr, right: Expr
) -> Expr:
    """A comparison, element by element; gives bools."""
    unified = unify(checker, span, f"`{op}`", (left, right))
    if unified is None:
        return Poison(POISON, place)
    (one, other), type_ = unified
    if element_of(type_) is BOOL and op not in _EQUALITIES:
        return checker.fail(
            span, f"`{op}` compares numbers, not bools", help="combine bools with `&&`, `||`, `!`"
        )
    if isinstance(one, Literal) and isinstance(other, Literal):
        return Literal(BOOL, place, constants.fold_compare(op, one.value, other.value))
    return Compare(_bool_like(type_), place, op, one, other)


def _bool_like(type_: ValueType) -> ValueType:
    return with_element(type_, BOOL)


def has_effects(expr: Expr) -> bool:
    """Whether evaluating an expression reads memory, talks to other threads or calls a function.

    Such an expression may only be evaluated where the program says so.
    """
    return isinstance(expr, _HAS_EFFECTS) or any(map(has_effects, operands(expr)))


def operands(expr: Expr) -> Iterable[Expr]:
    """The expressions directly below an expression, in order of evaluation."""
    for entry in fields(expr):
        value = getattr(expr, entry.name)
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Expr))
