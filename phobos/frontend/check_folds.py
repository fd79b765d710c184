"""The rules of what folds: a tile along axes, or a value of each thread over threads.

`op<over 1>(t)` folds a tile, `op<over ctx.lane>(x)` one scalar of each thread. An operation is
a fold of `FOLDS`, the place of what a fold finds (`POSITIONS`), or a running fold (`SCANS`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from phobos.diagnostics import did_you_mean
from phobos.frontend import ast
from phobos.frontend.builtins import FOLDS, POSITIONS, SCANS, Fold
from phobos.frontend.checker import Checker, is_poison
from phobos.frontend.coerce import convert, settle
from phobos.frontend.typed import Collective, Expr, Poison
from phobos.frontend.typed_tiles import (
    ThreadPosition,
    ThreadScan,
    TileFold,
    TilePosition,
    TileScan,
)
from phobos.frontend.types import (
    BOOL,
    I32,
    POISON,
    ScalarType,
    TileType,
    element_of,
)

_MATRIX_RANK = 2
_OVER_THREADS = (*FOLDS, *POSITIONS, "scan")
_OVER_AXES = (*FOLDS, *POSITIONS, *SCANS)


def _name(node: ast.Call) -> str:
    return node.callee.name if isinstance(node.callee, ast.Name) else "this"


def _poison(node: ast.Node) -> Poison:
    return Poison(POISON, ast.anchor(node))


def _is_known(
    checker: Checker, node: ast.Call, names: Iterable[str], over: str, usage: str
) -> bool:
    """Whether a call is of one of the operations, with one argument; else an error."""
    name = _name(node)
    if name not in names:
        help = did_you_mean(name, names) or f"what does: {', '.join(names)}"
        checker.error(node.span, f"`{name}` does not fold over {over}", help=help)
        return False
    got = len(node.args)
    if got != 1:
        checker.error(node.span, f"`{name}` takes 1 argument, not {got}", help=f"write `{usage}`")
    return got == 1


def _kind(checker: Checker, node: ast.Call, fold: Fold, value: Expr) -> str | None:
    """The dialect's word for a fold of values of a type, or None after an error."""
    name, element = _name(node), element_of(value.type)
    kind = fold.kind_for(element)
    if kind is None:
        wants_bools = fold.signed is None
        checker.error(
            node.span,
            f"`{name}` folds {'bools' if wants_bools else 'numbers'}, but this is {value.type}",
            help="compare it, as in `x != 0`" if wants_bools else None,
        )
    elif element.is_float and element.bits == 8:
        checker.error(
            node.span,
            f"`{name}`: {element} is a storage format without arithmetic",
            help="convert to f32 first, as in `f32(x)`",
        )
        return None
    return kind


# Over threads ------------------------------------------------------------------------------------


def check_over_threads(checker: Checker, node: ast.Call, generic: ast.OverScope) -> Expr:
    """`op<over ctx.lane>(x)`: one value of each thread."""
    name, over = _name(node), generic.scope
    if not _is_known(checker, node, _OVER_THREADS, "threads", f"{name}<over {over}>(x)"):
        return _poison(node)
    value = settle(checker, checker.expression(node.args[0]))
    if is_poison(value):
        return value
    if not isinstance(value.type, ScalarType):
        return checker.fail(
            node.span,
            f"`{name}<over {over}>` folds one scalar of each thread, not {value.type}",
            help=f"a tile is folded along an axis: `{name}<over 0>(t)`",
        )
    if name in SCANS and value.type is BOOL:
        value = convert(checker, value, I32)
    kind = _kind(checker, node, _fold_named(name), value)
    if kind is None:
        return _poison(node)
    place, scope = ast.anchor(node), over.value.removeprefix("ctx.")
    if name in POSITIONS:
        return ThreadPosition(I32, place, kind, scope, value)
    if name in SCANS:
        return ThreadScan(value.type, place, scope, value)
    return Collective(I32 if kind == "count" else value.type, place, kind, scope, value)


def _fold_named(name: str) -> Fold:
    return FOLDS[POSITIONS.get(name) or SCANS.get(name) or name]


# Over axes ---------------------------------------------------------------------------------------


def check_over_axes(checker: Checker, node: ast.Call, generic: ast.OverAxes) -> Expr:
    """`op<over 1>(t)`: a tile along axes."""
    name = _name(node)
    usage = f"{name}<over {', '.join(map(str, generic.axes))}>(t)"
    if not _is_known(checker, node, _OVER_AXES, "axes", usage):
        return _poison(node)
    with checker.run_form(False):
        value = tile_argument(checker, node, node.args[0])
    if value is None:
        return _poison(node)
    rank = len(_shape(value))
    wrong = next((axis for axis in generic.axes if not 0 <= axis < rank), None)
    if wrong is not None:
        return checker.fail(
            generic.span,
            f"{value.type} has no axis {wrong}",
            help=f"its axes are {', '.join(map(str, range(rank)))}",
        )
    if len(set(generic.axes)) < len(generic.axes):
        return checker.fail(generic.span, "an axis is named twice")
    if len(generic.axes) > 1 and name not in FOLDS:
        return checker.fail(
            generic.span,
            f"`{name}` goes along one axis",
            help=f"`flat(t)` makes one axis of all: `{name}<over 0>(flat(t))`",
        )
    return _along(checker, node, name, value, tuple(sorted(generic.axes)))


def _along(checker: Checker, node: ast.Call, name: str, value: Expr, axes: tuple[int, ...]) -> Expr:
    """A fold, place or scan of a tile along axes that it has."""
    place = ast.anchor(node)
    if name in SCANS and element_of(value.type) is BOOL:
        value = convert(checker, value, I32)
    kind = _kind(checker, node, _fold_named(name), value)
    if kind is None:
        return _poison(node)
    if name in SCANS:
        return TileScan(value.type, place, kind, axes[0], value)
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(_shape(value)))
    if name in POSITIONS:
        return TilePosition(TileType(I32, shape), place, kind, axes[0], value)
    element = I32 if kind == "count" else element_of(value.type)
    return TileFold(TileType(element, shape), place, kind, axes, value)


def tile_argument(checker: Checker, node: ast.Call, argument: ast.Expression) -> Expr | None:
    """The value of an argument that must be a tile, or None after an error."""
    value = checker.expression(argument)
    if is_poison(value):
        return None
    if not isinstance(value.type, TileType):
        checker.error(
            argument.span,
            f"`{_name(node)}` takes a tile, but this is {value.type}",
            help="a tile is a slice such as `A[i :+ 16, k :+ 64]`",
        )
        return None
    return value


def _shape(value: Expr) -> tuple[int, ...]:
    assert isinstance(value.type, TileType)
    return value.type.shape


def _of_rows(name: str) -> Callable[[Checker, ast.Call], Expr]:
    """The rule of `rowsum` and its like."""

    def rule(checker: Checker, node: ast.Call) -> Expr:
        value = tile_argument(checker, node, node.args[0])
        if value is None:
            return _poison(node)
        rank = len(_shape(value))
        if rank != _MATRIX_RANK:
            return checker.fail(
                node.span,
                f"`{_name(node)}` folds the rows of a tile with 2 axes, but this is {value.type}",
                help=f"name the axis: `{name}<over {rank - 1}>(t)`",
            )
        return _along(checker, node, name, value, (1,))

    return rule


def _cumsum(checker: Checker, node: ast.Call) -> Expr:
    value = tile_argument(checker, node, node.args[0])
    return _poison(node) if value is None else _along(checker, node, "scan", value, (0,))


FOLD_RULES: dict[str, Callable[[Checker, ast.Call], Expr]] = {
    "rowsum": _of_rows("sum"),
    "rowmax": _of_rows("max"),
    "rowmin": _of_rows("min"),
    "rowargmax": _of_rows("argmax"),
    "cumsum": _cumsum,
}
"""The rules of the tile built-ins that fold along an axis of their own."""
