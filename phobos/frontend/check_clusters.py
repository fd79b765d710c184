"""The rules of clusters: the fields of `ctx.cluster`, and sums over the CTAs of a cluster."""

from __future__ import annotations

from phobos.diagnostics import did_you_mean
from phobos.frontend import ast
from phobos.frontend.check_folds import tile_argument
from phobos.frontend.checker import Checker
from phobos.frontend.typed import ContextField, Expr, Literal, Poison
from phobos.frontend.typed_tiles import ClusterSum, Reshape
from phobos.frontend.types import (
    BF16,
    F16,
    F32,
    F64,
    I32,
    I64,
    INDEX,
    POISON,
    U32,
    U64,
    TileType,
)

CLUSTER = "cluster"
"""The field of `ctx` that these rules are about."""
_FIELDS = ("rank", "size")
_SUMMED = (F16, BF16, F32, F64, I32, U32, I64, U64)
_MAX_RANK = 4
"""Axes of a tile that is summed: in the IR it has one more, which counts the parts."""


def check_cluster_field(checker: Checker, node: ast.Member) -> Expr:
    """`ctx.cluster.rank` or `ctx.cluster.size`; `node` names the field."""
    if node.name not in _FIELDS:
        return checker.fail(
            node.name_span,
            f"`ctx.cluster` has no field `{node.name}`",
            help=did_you_mean(node.name, _FIELDS)
            or f"its fields are {', '.join(f'`ctx.cluster.{name}`' for name in _FIELDS)}",
        )
    size = _size(checker, node, f"ctx.cluster.{node.name}")
    place = ast.anchor(node)
    if size is None:
        return Poison(POISON, place)
    if node.name == "size":
        return Literal(INDEX, place, size)
    return Literal(INDEX, place, 0) if size == 1 else ContextField(INDEX, place, "rank", None)


def check_bare_cluster(checker: Checker, node: ast.Member) -> Expr:
    """`ctx.cluster` without a field, which is no value."""
    return checker.fail(
        node.span,
        "`ctx.cluster` is no value by itself",
        help="write `ctx.cluster.rank` or `ctx.cluster.size`",
    )


def check_cluster_sum(checker: Checker, node: ast.Call) -> Expr:
    """`cluster_sum(t)`: the part of the sum of all CTAs' tiles that belongs to this CTA's rank."""
    value = tile_argument(checker, node, node.args[0])
    size = _size(checker, node, "cluster_sum")
    place = ast.anchor(node)
    if value is None or size is None:
        return Poison(POISON, place)
    assert isinstance(value.type, TileType)
    element, (rows, *rest) = value.type.element, value.type.shape
    if element not in _SUMMED:
        return checker.fail(
            node.span,
            f"`cluster_sum` does not add {element}",
            help=f"it adds {', '.join(map(str, _SUMMED))}; convert the tile, as in `f32(t)`",
        )
    if rows % size:
        return checker.fail(
            node.span,
            f"`cluster_sum` gives each of {size} CTAs as many rows, but {value.type} has {rows}",
            help=f"axis 0 of the tile is a multiple of `ctx.cluster.size`, which is {size}",
        )
    if len(rest) >= _MAX_RANK:
        return checker.fail(
            node.span,
            f"`cluster_sum` takes a tile with at most {_MAX_RANK} axes, but this is {value.type}",
            help="`reshape(t, ...)` makes one axis of several",
        )
    if size == 1:
        return value
    part = (rows // size, *rest)
    parts = Reshape(TileType(element, (size, *part)), place, value)
    total = ClusterSum(TileType(element, (1, *part)), place, parts)
    return Reshape(TileType(element, part), place, total)


def _size(checker: Checker, node: ast.Node, what: str) -> int | None:
    """How many CTAs the kernel's clusters have, or None after an error."""
    size = checker.settings.cluster
    if size is None:
        checker.error(
            node.span,
            f"`{what}` is about a cluster, and the CTAs of this kernel form none",
            help="mark the kernel `@cluster(4)`; 2 and 8 CTAs are possible too",
        )
    return size
