"""The IR of expressions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from xdsl.dialects import arith, get_all_dialects, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, VectorType, i32, i64
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Attribute, Dialect, Operation, SSAValue

from phobos.dialects import cluster, collective, ctx, tile
from phobos.frontend.emit_atomics import ATOMIC_EXPRESSIONS
from phobos.frontend.emit_elementwise import arithmetic, comparison, conversion, prefix
from phobos.frontend.emit_folds import FOLD_RULES
from phobos.frontend.emit_tiles import TILE_RULES
from phobos.frontend.emit_types import BOOL_ATTR_TYPE, fill_attr, type_attr
from phobos.frontend.emitter import Emitter
from phobos.frontend.operators import BinaryOp
from phobos.frontend.typed import (
    Apply,
    Arithmetic,
    Ballot,
    Binding,
    Bitcast,
    Compare,
    ContextField,
    Convert,
    DotFourBytes,
    Expansion,
    Expr,
    Extent,
    Literal,
    Logic,
    PointRead,
    Prefix,
    Read,
    RunRead,
    RunSum,
    RunWord,
    Select,
    Shuffle,
    Spread,
    TileRead,
)
from phobos.frontend.types import BOOL, INDEX, ScalarType, default_of, element_of

_INDEX_ATTR = type_attr(INDEX)
_FIELDS: dict[str, type[Operation]] = {
    "block": ctx.BlockOp,
    "blocks": ctx.BlocksOp,
    "thread": ctx.ThreadOp,
    "warp": ctx.WarpOp,
    "lane": ctx.LaneOp,
    "rank": cluster.RankOp,
}
_AXES = {axis.value: ctx.AxisAttr(axis) for axis in ctx.Axis}
_MODES = {mode.value: collective.ShuffleModeAttr(mode) for mode in collective.ShuffleMode}
_ADD = vector.CombiningKindAttr(vector.CombiningKindFlag.ADD)
_ONE_WORD = VectorType(i32, [1])
_FIRST = DenseArrayBase.from_list(i64, [0])


def emit_expression(emitter: Emitter, expr: Expr) -> SSAValue:
    """Emits an expression and gives its value."""
    return _RULES[type(expr)](emitter, expr)


def _literal(emitter: Emitter, expr: Literal) -> SSAValue:
    assert isinstance(expr.type, ScalarType)
    return emitter.constant(expr.value, default_of(expr.type), expr.place)


def _read(emitter: Emitter, expr: Read) -> SSAValue:
    return emitter.read(expr.variable, expr.place)


def _context_field(emitter: Emitter, expr: ContextField) -> SSAValue:
    properties = {} if expr.axis is None else {"axis": _AXES[expr.axis]}
    return emitter.value(_FIELDS[expr.name], (), _INDEX_ATTR, expr.place, properties)


def _extent(emitter: Emitter, expr: Extent) -> SSAValue:
    axis = emitter.constant(expr.axis, INDEX, expr.place)
    return emitter.value(
        memref.DimOp, (emitter.tensors[expr.tensor], axis), _INDEX_ATTR, expr.place
    )


def _prefix(emitter: Emitter, expr: Prefix) -> SSAValue:
    return prefix(emitter, expr.operator, emitter.expression(expr.operand), expr.type, expr.place)


def _arithmetic(emitter: Emitter, expr: Arithmetic) -> SSAValue:
    left, right = emitter.expression(expr.left), emitter.expression(expr.right)
    return arithmetic(emitter, expr.operator, left, right, expr.type, expr.place)


def _compare(emitter: Emitter, expr: Compare) -> SSAValue:
    left = emitter.expression(expr.left)
    # `isnan(x)` is `x != x` with one `x`, which is evaluated once.
    right = left if expr.right is expr.left else emitter.expression(expr.right)
    return comparison(emitter, expr.operator, left, right, expr.left.type, expr.place)


def _logic(emitter: Emitter, expr: Logic) -> SSAValue:
    left = emitter.expression(expr.left)
    is_and = expr.operator is BinaryOp.AND
    if not expr.lazy:
        right = emitter.expression(expr.right)
        kind = arith.AndIOp if is_and else arith.OrIOp
        return emitter.value(kind, (left, right), type_attr(expr.type), expr.place)
    decided = emitter.constant(not is_and, BOOL, expr.place)

    def evaluate(_: object) -> None:
        emitter.add(YieldOp, (emitter.expression(expr.right),), (), expr.place)

    def skip(_: object) -> None:
        emitter.add(YieldOp, (decided,), (), expr.place)

    then, otherwise = (evaluate, skip) if is_and else (skip, evaluate)
    regions = [emitter.region((), expr.place, fill) for fill in (then, otherwise)]
    op = emitter.add(IfOp, (left,), (BOOL_ATTR_TYPE,), expr.place, regions=regions)
    return op.results[0]


def _convert(emitter: Emitter, expr: Convert) -> SSAValue:
    value = emitter.expression(expr.value)
    return conversion(emitter, value, expr.value.type, element_of(expr.type), expr.place)


def _bitcast(emitter: Emitter, expr: Bitcast) -> SSAValue:
    value, result = emitter.expression(expr.value), type_attr(expr.type)
    if value.type == result:
        return value
    return emitter.value(arith.BitcastOp, (value,), result, expr.place)


def _spread(emitter: Emitter, expr: Spread) -> SSAValue:
    value = emitter.expression(expr.value)
    if isinstance(expr.value.type, ScalarType):
        return emitter.spread(value, expr.type, expr.place)
    return emitter.value(tile.BroadcastOp, (value,), type_attr(expr.type), expr.place)


def _apply(emitter: Emitter, expr: Apply) -> SSAValue:
    name = expr.builtin.ops[element_of(expr.type).kind]
    assert name is not None, "a built-in that is the identity makes no node"
    arguments = [emitter.expression(argument) for argument in expr.arguments]
    return emitter.value(_operation(name), arguments, type_attr(expr.type), expr.place)


@cache
def _operation(name: str) -> type[Operation]:
    """The operation of a name like `math.exp`; its dialect is imported when it is first used."""
    family = Dialect.split_name(name)[0]
    dialect = tile.Tile if family == tile.Tile.name else get_all_dialects()[family]()
    return next(kind for kind in dialect.operations if kind.name == name)


def _select(emitter: Emitter, expr: Select) -> SSAValue:
    parts = (expr.condition, expr.if_true, expr.if_false)
    values = [emitter.expression(part) for part in parts]
    by_scalar = isinstance(expr.condition.type, ScalarType)
    kind = arith.SelectOp if by_scalar else tile.SelectOp
    return emitter.value(kind, values, type_attr(expr.type), expr.place)


# Memory ------------------------------------------------------------------------------------------


def access_operands(emitter: Emitter, expr: PointRead | TileRead | RunRead) -> tuple[SSAValue, ...]:
    """The tensor and the subscripts of a read."""
    starts = expr.indices if isinstance(expr, PointRead) else expr.starts
    return (emitter.memory(expr.tensor), *map(emitter.expression, starts))


_READS: dict[type[Expr], type[Operation]] = {
    PointRead: memref.LoadOp,
    TileRead: tile.LoadOp,
    RunRead: vector.LoadOp,
}


def _access(emitter: Emitter, expr: PointRead | TileRead | RunRead) -> SSAValue:
    operands = access_operands(emitter, expr)
    properties = {}
    if isinstance(expr, TileRead) and expr.fill is not None:
        properties["fill"] = fill_attr(expr.fill, element_of(expr.type))
    return emitter.value(_READS[type(expr)], operands, type_attr(expr.type), expr.place, properties)


def _run_sum(emitter: Emitter, expr: RunSum) -> SSAValue:
    run = emitter.expression(expr.run)
    return emitter.value(
        vector.ReductionOp, (run,), type_attr(expr.type), expr.place, {"kind": _ADD}
    )


def _run_word(emitter: Emitter, expr: RunWord) -> SSAValue:
    run = emitter.expression(expr.run)
    word = emitter.value(vector.BitcastOp, (run,), _ONE_WORD, expr.place)
    return emitter.value(vector.ExtractOp, (word,), i32, expr.place, {"static_position": _FIRST})


def _dot_four_bytes(emitter: Emitter, expr: DotFourBytes) -> SSAValue:
    operands = [emitter.expression(part) for part in (expr.a, expr.b, expr.c)]
    properties: dict[str, Attribute] = {}
    if expr.unsigned_a:
        properties["unsigned_a"] = UnitAttr()
    if expr.unsigned_b:
        properties["unsigned_b"] = UnitAttr()
    return emitter.value(tile.Dp4aOp, operands, i32, expr.place, properties)


# Between threads ---------------------------------------------------------------------------------


def _shuffle(emitter: Emitter, expr: Shuffle) -> SSAValue:
    operands = (emitter.expression(expr.value), emitter.expression(expr.amount))
    properties = {"mode": _MODES[expr.mode]}
    return emitter.value(
        collective.ShuffleOp, operands, type_attr(expr.type), expr.place, properties
    )


def _ballot(emitter: Emitter, expr: Ballot) -> SSAValue:
    return emitter.value(
        collective.BallotOp, (emitter.expression(expr.predicate),), i32, expr.place
    )


def _binding(emitter: Emitter, expr: Binding) -> SSAValue:
    value = emitter.expression(expr.value)
    emitter.declare(expr.variable, expr.place)
    emitter.write(expr.variable, value, expr.place)
    return emitter.expression(expr.inner)


def _expansion(emitter: Emitter, expr: Expansion) -> SSAValue:
    emitter.statements(expr.body)
    assert expr.result is not None, "a call without a result is a statement"
    return emitter.current(expr.result)


_RULES: dict[type[Expr], Callable[[Emitter, Any], SSAValue]] = {
    Literal: _literal,
    Read: _read,
    ContextField: _context_field,
    Extent: _extent,
    Prefix: _prefix,
    Arithmetic: _arithmetic,
    Compare: _compare,
    Logic: _logic,
    Convert: _convert,
    Bitcast: _bitcast,
    Spread: _spread,
    Apply: _apply,
    Select: _select,
    PointRead: _access,
    TileRead: _access,
    RunRead: _access,
    RunSum: _run_sum,
    RunWord: _run_word,
    DotFourBytes: _dot_four_bytes,
    Shuffle: _shuffle,
    Ballot: _ballot,
    Binding: _binding,
    Expansion: _expansion,
    **ATOMIC_EXPRESSIONS,
    **FOLD_RULES,
    **TILE_RULES,
}
