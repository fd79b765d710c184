"""Bringing values to the types that their use needs.

Literals take the type of what they meet, values are converted where the mixing rules say so,
scalars spread over tiles and runs, and tiles over axes of extent 1. Everything that changes a
value becomes a node of the checked program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phobos.diagnostics import Location, Note
from phobos.frontend import constants
from phobos.frontend.checker import Checker, any_poison, is_poison
from phobos.frontend.typed import Convert, Expr, Literal, Poison, Spread
from phobos.frontend.types import (
    BOOL,
    INDEX,
    POISON,
    Kind,
    Mismatch,
    RunType,
    ScalarType,
    TileType,
    ValueType,
    broadcast,
    default_of,
    element_of,
    promote,
    with_element,
)

_WIDER_INDEX = "`--index-bits 64` makes index 64 bits wide; `i64(...)` is so without it"
_F8 = ("f8e4m3", "f8e5m2")


def convert(checker: Checker, expr: Expr, target: ScalarType) -> Expr:
    """`expr` with elements of type `target`, by the rules of a conversion call."""
    source = element_of(expr.type)
    if source is target or source is POISON:
        return expr
    if isinstance(expr, Literal):
        return _convert_literal(checker, expr, source, target)
    return Convert(with_element(expr.type, target), expr.place, expr)


def _convert_literal(
    checker: Checker, expr: Literal, source: ScalarType, target: ScalarType
) -> Expr:
    value = expr.value
    if source.is_weak and target is not BOOL and not _literal_fits(checker, expr, source, target):
        return checker.fail(
            expr.place,
            f"{_spell(value)} does not fit {target}, which holds {_limits(checker, target)}",
            help=_WIDER_INDEX if target is INDEX and checker.index_bits == 32 else None,
        )
    folded = constants.fold_convert(value, source, target)
    if folded is None and source.is_weak:
        folded = int(value) if target.is_integer else float(value)
    if folded is None:
        return Convert(target, expr.place, expr)
    return Literal(target, expr.place, folded)


def _literal_fits(checker: Checker, expr: Literal, source: ScalarType, target: ScalarType) -> bool:
    if source.kind is Kind.WEAK_FLOAT and target.is_integer:
        return True  # an explicit conversion, which truncates and saturates
    if target is INDEX:
        limit = 1 << (checker.index_bits - 1)
        return -limit <= expr.value < limit
    return constants.fits(expr.value, target)


def _limits(checker: Checker, target: ScalarType) -> str:
    if target is INDEX:
        limit = 1 << (checker.index_bits - 1)
        return f"{-limit} to {limit - 1} at {checker.index_bits} bits"
    return constants.limits_text(target)


def _spell(value: constants.Constant) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def settle(checker: Checker, expr: Expr) -> Expr:
    """`expr` with the type that it has alone: an int literal is index, a float literal f32."""
    element = element_of(expr.type)
    return convert(checker, expr, default_of(element)) if element.is_weak else expr


def spread(expr: Expr, target: ValueType) -> Expr:
    """A scalar over all elements of a tile or run, a tile over axes of extent 1."""
    if expr.type == target or is_poison(expr) or isinstance(target, ScalarType):
        return expr
    return Spread(target, expr.place, expr)


def unify(
    checker: Checker, place: Location, what: str, exprs: Sequence[Expr], *, moves: bool = False
) -> tuple[list[Expr], ValueType] | None:
    """Brings the operands of an operation to one type; None if an error was reported.

    `what` names the operation in messages, as in "`+`". One that `moves` values alone takes those
    without arithmetic, too.
    """
    if any_poison(exprs):
        return None
    exprs = _constants_to_elements(checker, exprs)
    element = element_of(exprs[0].type)
    for expr in exprs[1:]:
        found = promote(element, element_of(expr.type))
        if isinstance(found, Mismatch):
            checker.error(place, f"{what}: {found.reason}", help=found.help)
            return None
        element = found
    shape = _common_shape(checker, place, what, exprs)
    if shape is None or not _has_values(checker, place, what, element, shape, moves=moves):
        return None
    target = with_element(shape, element)
    converted = [convert(checker, expr, element) for expr in exprs]
    if any_poison(converted):
        return None
    return [spread(expr, target) for expr in converted], target


def _constants_to_elements(checker: Checker, exprs: Sequence[Expr]) -> list[Expr]:
    """Lets index constants that fit take the integer type of the tile or run they meet.

    Tiles of index do not exist; without this, a constant such as an `@autotune` name would
    need a conversion beside every tile of integers.
    """
    shaped = [e for e in exprs if not isinstance(e.type, ScalarType)]
    element = element_of(shaped[0].type) if shaped else None
    if element is None or not element.is_integer:
        return list(exprs)
    return [
        Literal(element, e.place, e.value)
        if isinstance(e, Literal) and e.type is INDEX and constants.fits(e.value, element)
        else e
        for e in exprs
    ]


def _has_values(
    checker: Checker,
    place: Location,
    what: str,
    element: ScalarType,
    shape: ValueType,
    *,
    moves: bool,
) -> bool:
    """Whether there is arithmetic of these elements (or none is meant) in values of this shape."""
    if element.name in _F8 and not moves:
        checker.error(
            place,
            f"{what}: {element} is a storage format without arithmetic",
            help="convert to f16 or f32 first, as in `f32(x)`",
        )
        return False
    if element is INDEX and not isinstance(shape, ScalarType):
        kind = "tile" if isinstance(shape, TileType) else "run"
        checker.error(
            place,
            f"{what}: a {kind} with index gives index, and a {kind} cannot hold index",
            help="convert the index first, as in `i32(i)`",
        )
        return False
    return True


def _common_shape(
    checker: Checker, place: Location, what: str, exprs: Iterable[Expr]
) -> ValueType | None:
    """A type of the shape that the operands have together, or None after an error."""
    shape: ValueType | None = None
    for expr in exprs:
        type_ = expr.type
        if isinstance(type_, ScalarType):
            continue
        joined = type_ if shape is None else _join_shapes(shape, type_)
        if joined is None:
            checker.error(
                place, f"{what}: {_why_apart(shape, type_)}", help=_shape_hint(shape, type_)
            )
            return None
        shape = joined
    return BOOL if shape is None else shape


def _join_shapes(left: ValueType, right: ValueType) -> ValueType | None:
    if isinstance(left, TileType) and isinstance(right, TileType):
        shape = broadcast(left.shape, right.shape)
        return None if shape is None else TileType(left.element, shape)
    if isinstance(left, RunType) and isinstance(right, RunType):
        return left if left.length == right.length else None
    return None


def _shape_hint(left: ValueType | None, right: ValueType) -> str | None:
    if type(left) is not type(right):
        return "a thread's own elements are a run inside `elem(...)`; elsewhere a slice is a tile"
    if isinstance(right, TileType):
        return "tiles combine axis by axis, and an axis of extent 1 repeats"
    return None


def _why_apart(left: ValueType | None, right: ValueType) -> str:
    """Why two shapes do not go together, as the rest of a message."""
    if isinstance(left, RunType) and isinstance(right, RunType):
        return f"{left} and {right} have different lengths"
    if not (isinstance(left, TileType) and isinstance(right, TileType)):
        return f"{left} and {right} do not mix: a run is one thread's, a tile the whole CTA's"
    if len(left.shape) != len(right.shape):
        return f"{left} and {right} have different numbers of axes"
    axis = next(
        axis
        for axis, (one, other) in enumerate(zip(left.shape, right.shape, strict=True))
        if one != other and 1 not in (one, other)
    )
    one, other = left.shape[axis], right.shape[axis]
    return f"axis {axis} of {left} and {right} has extents {one} and {other}"


def fit(
    checker: Checker,
    expr: Expr,
    target: ValueType,
    *,
    what: str,
    notes: Iterable[Note] = (),
    place: Location | None = None,
) -> Expr:
    """The value that a place of type `target` takes: widened, spread, never narrowed.

    `what` names the place in messages, as in "`acc`". Gives a Poison after an error.
    """
    place = expr.place if place is None else place
    if is_poison(expr) or target is POISON:
        return Poison(POISON, place)
    source, element = element_of(expr.type), element_of(target)
    if not _widens(expr, source, element):
        return checker.fail(
            place,
            f"{what} is {target}, but this value is {expr.type}",
            notes=notes,
            help=_conversion_hint(source, element),
        )
    if not _fits_shape(expr.type, target):
        return checker.fail(
            place,
            f"{what} is {target}, but this value is {expr.type}",
            notes=notes,
            help=_target_hint(expr.type, target),
        )
    return spread(convert(checker, expr, element), target)


def _target_hint(source: ValueType, target: ValueType) -> str | None:
    """What to do about a value of the right elements and the wrong shape."""
    match source, target:
        case RunType(), TileType():
            return "one thread's run is written by `store(A[i, k :+ n], run)`"
        case TileType(), RunType():
            return "one thread reads its own elements by `elem(A[i, k :+ n])`"
        case TileType(), ScalarType():
            return "fold it, as in `sum<over 0>(t)`, or take an element, as in `t[i]`"
        case TileType(), TileType() if len(source.shape) != len(target.shape):
            return "`reshape(t, R, C)` and `flat(t)` change the number of axes"
        case _:
            return None


def _widens(expr: Expr, source: ScalarType, target: ScalarType) -> bool:
    if source is target:
        return True
    if source.kind is Kind.WEAK_FLOAT:
        return target.is_float
    if source is INDEX and isinstance(expr, Literal) and target.is_integer:
        return constants.fits(expr.value, target)
    return promote(source, target) is target


def _conversion_hint(source: ScalarType, target: ScalarType) -> str | None:
    if target is BOOL:
        return "compare it, as in `x != 0`"
    if source.kind is Kind.WEAK_FLOAT:
        return f"{target} holds whole numbers; `{target}(x)` drops the fraction"
    if source is BOOL or (source.is_numeric and target.is_numeric):
        return f"convert it, as in `{target}(x)`"
    return None


def _fits_shape(source: ValueType, target: ValueType) -> bool:
    if isinstance(source, ScalarType):
        return True
    if isinstance(source, TileType) and isinstance(target, TileType):
        return broadcast(source.shape, target.shape) == target.shape
    if isinstance(source, RunType) and isinstance(target, RunType):
        return source.length == target.length
    return False


def to_index(checker: Checker, expr: Expr, what: str) -> Expr:
    """An integer scalar as an index, for a subscript or a length."""
    if is_poison(expr):
        return expr
    if not isinstance(expr.type, ScalarType) or not expr.type.is_integer:
        return checker.fail(expr.place, f"{what} is an integer, but this is {expr.type}")
    return convert(checker, expr, INDEX)


def to_condition(checker: Checker, expr: Expr) -> Expr:
    """A bool of its own, for `if`, `while`, `&&` of scalars and collectives."""
    if is_poison(expr) or expr.type is BOOL:
        return expr
    if isinstance(expr.type, ScalarType):
        help = "compare it with something, as in `x != 0`"
    elif element_of(expr.type) is BOOL:
        help = "a condition decides for the whole statement; `where(c, a, b)` chooses by element"
    else:
        help = None
    return checker.fail(expr.place, f"a condition is one bool, but this is {expr.type}", help=help)
