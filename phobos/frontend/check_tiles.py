"""The rules of the built-ins that fold, move or make tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from phobos.diagnostics import Location
from phobos.frontend import ast
from phobos.frontend.builtins import TileBuiltin
from phobos.frontend.check_clusters import check_cluster_sum
from phobos.frontend.check_folds import FOLD_RULES, tile_argument
from phobos.frontend.check_slices import (
    Access,
    check_access,
    check_tile,
    check_tile_shape,
    to_subscripts,
)
from phobos.frontend.check_types import resolve_scalar
from phobos.frontend.checker import (
    Checker,
    any_poison,
    constant_int,
    declared_here,
    is_poison,
)
from phobos.frontend.coerce import convert, fit, settle, spread
from phobos.frontend.operations import arithmetic, compare
from phobos.frontend.operators import BinaryOp
from phobos.frontend.scopes import Poisoned
from phobos.frontend.typed import (
    Expr,
    Literal,
    Memory,
    Poison,
    Select,
    TensorParameter,
    TileRead,
    Variable,
)
from phobos.frontend.typed_tiles import (
    Concatenation,
    Contraction,
    GatherRead,
    Iota,
    PaddedRead,
    Reshape,
    Transpose,
    Valid,
)
from phobos.frontend.types import (
    BOOL,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I8,
    I32,
    INDEX,
    POISON,
    U8,
    Kind,
    ScalarType,
    TileType,
    element_of,
    promote,
    with_element,
)

_MATRIX_RANK = 2


def _name(node: ast.Call) -> str:
    return node.callee.name if isinstance(node.callee, ast.Name) else "this"


def _poison(node: ast.Node) -> Poison:
    return Poison(POISON, ast.anchor(node))


def check_tile_builtin(checker: Checker, node: ast.Call, builtin: TileBuiltin) -> Expr:
    """A call of a built-in that makes or moves a tile."""
    got = len(node.args)
    if not builtin.takes(got):
        return checker.fail(
            node.span,
            f"`{builtin.name}` does not take {got} argument{'' if got == 1 else 's'}",
            help=f"write `{builtin.usage}`",
        )
    with checker.run_form(False):
        return _RULES[builtin.name](checker, node)


def _shape(value: Expr) -> tuple[int, ...]:
    assert isinstance(value.type, TileType)
    return value.type.shape


# Shapes ------------------------------------------------------------------------------------------


def _transpose(checker: Checker, node: ast.Call) -> Expr:
    value = _matrix(checker, node, node.args[0])
    return _poison(node) if value is None else _turned(value, ast.anchor(node))


def _matrix(checker: Checker, node: ast.Call, argument: ast.Expression) -> Expr | None:
    """An argument that must be a tile with at least two axes, or None after an error."""
    value = tile_argument(checker, node, argument)
    if value is not None and len(_shape(value)) < _MATRIX_RANK:
        checker.error(
            argument.span,
            f"`{_name(node)}` takes a tile with at least 2 axes, but this is {value.type}",
            help="a slice with a point keeps that axis: `A[i, k :+ 64]` is a tile of 1 by 64",
        )
        return None
    return value


def _turned(value: Expr, place: Location) -> Expr:
    *leading, rows, columns = _shape(value)
    type_ = TileType(element_of(value.type), (*leading, columns, rows))
    return Transpose(type_, place, value)


def _dims(checker: Checker, node: ast.Call, written: Sequence[ast.Expression]) -> Expr | None:
    """A stand-in of i32 with the extents that arguments give, or None after an error."""
    values = [checker.expression(argument) for argument in written]
    if any_poison(values):
        return None
    extents: list[int] = []
    for value, argument in zip(values, written, strict=True):
        known = constant_int(value)
        if known is None or known < 1:
            checker.error(
                argument.span,
                f"an extent in `{_name(node)}` is a compile-time integer of at least 1",
                help="use a number or a name bound by `@autotune`",
            )
            return None
        extents.append(known)
    shape = tuple(extents)
    if not check_tile_shape(checker, shape, node.span):
        return None
    return Expr(TileType(I32, shape), ast.anchor(node))


def _reshape(checker: Checker, node: ast.Call) -> Expr:
    value = tile_argument(checker, node, node.args[0])
    made = _dims(checker, node, node.args[1:])
    if value is None or made is None:
        return _poison(node)
    return _in_shape(checker, node, value, _shape(made))


def _flat(checker: Checker, node: ast.Call) -> Expr:
    value = tile_argument(checker, node, node.args[0])
    if value is None:
        return _poison(node)
    return _in_shape(checker, node, value, (prod(_shape(value)),))


def _in_shape(checker: Checker, node: ast.Call, value: Expr, shape: tuple[int, ...]) -> Expr:
    if prod(shape) != prod(_shape(value)):
        return checker.fail(
            node.span,
            f"{value.type} has {prod(_shape(value))} elements, the new shape {prod(shape)}",
            help="the extents of the new shape multiply to as many elements",
        )
    return Reshape(TileType(element_of(value.type), shape), ast.anchor(node), value)


def _iota(checker: Checker, node: ast.Call) -> Expr:
    made = _dims(checker, node, node.args)
    if made is None:
        return _poison(node)
    rank, axis = len(node.args), 0
    if isinstance(node.generic, ast.IntArgument):
        axis = node.generic.value
    elif rank > 1:
        return checker.fail(
            node.span,
            "`iota` does not say along which axis it counts",
            help="name the axis: `iota<0>(R, C)` counts rows, `iota<1>(R, C)` columns",
        )
    if not 0 <= axis < rank:
        return checker.fail(node.span, f"`iota` of {rank} extents has no axis {axis}")
    return Iota(made.type, ast.anchor(node), axis)


def _full(checker: Checker, node: ast.Call) -> Expr:
    value, made = checker.expression(node.args[0]), _dims(checker, node, node.args[1:])
    target = _type_argument(checker, node)
    if is_poison(value) or made is None or target is POISON:
        return _poison(node)
    if not isinstance(value.type, ScalarType):
        return checker.fail(node.args[0].span, f"`full` repeats a scalar, but this is {value.type}")
    if target is not None:
        value = fit(checker, value, target, what="the value of `full`")
    elif value.type.kind in (Kind.WEAK_INT, Kind.INDEX):
        value = convert(checker, value, I32)
    value = settle(checker, value)
    if is_poison(value):
        return value
    return spread(value, with_element(made.type, element_of(value.type)))


def _type_argument(checker: Checker, node: ast.Call) -> ScalarType | None:
    """The element type in `full<f16>(...)`; None without one, POISON after an error."""
    if node.generic is None:
        return None
    assert isinstance(node.generic, ast.TypeArgument)
    if not isinstance(node.generic.type, ast.ScalarType):
        checker.error(node.generic.span, f"`{_name(node)}` names the type of an element")
        return POISON
    type_ = resolve_scalar(checker, node.generic.type)
    if type_ is INDEX:
        checker.error(node.generic.span, "a tile cannot hold index", help="use i32 or i64")
        return POISON
    return POISON if type_ is None else type_


def _triangle(keep: BinaryOp) -> Callable[[Checker, ast.Call], Expr]:
    """`tril` and `triu`: elements on one side of a diagonal, 0 in place of the others."""

    def rule(checker: Checker, node: ast.Call) -> Expr:
        value = _matrix(checker, node, node.args[0])
        place = ast.anchor(node)
        diagonal: Expr = Literal(I32, place, 0)
        if len(node.args) > 1:
            diagonal = fit(
                checker,
                checker.expression(node.args[1]),
                I32,
                what=f"the diagonal of `{_name(node)}`",
                place=node.args[1].span,
            )
        if value is None or is_poison(diagonal):
            return _poison(node)
        rows, columns = (_coordinate(value, axis, place) for axis in (-2, -1))
        edge = arithmetic(checker, place, node.span, BinaryOp.ADD, rows, diagonal)
        kept = compare(checker, place, node.span, keep, columns, edge)
        condition = spread(kept, with_element(value.type, BOOL))
        zero = _zero(element_of(value.type), place)
        return Select(value.type, place, condition, value, spread(zero, value.type))

    return rule


def _coordinate(value: Expr, axis: int, place: Location) -> Expr:
    """The coordinates along an axis, with extent 1 along the others."""
    shape = _shape(value)
    axis %= len(shape)
    line = tuple(extent if i == axis else 1 for i, extent in enumerate(shape))
    return Iota(TileType(I32, line), place, axis)


def _zero(element: ScalarType, place: Location) -> Literal:
    if element is BOOL:
        return Literal(BOOL, place, False)
    return Literal(element, place, 0.0 if element.is_float else 0)


def _cat(checker: Checker, node: ast.Call) -> Expr:
    """`cat<1>(a, b)`: tiles of one type that differ in the extent along an axis at most."""
    parts = [tile_argument(checker, node, argument) for argument in node.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return _poison(node)
    rank = len(_shape(known[0]))
    axis = node.generic.value if isinstance(node.generic, ast.IntArgument) else 0
    if not 0 <= axis < rank:
        return checker.fail(
            node.span,
            f"{known[0].type} has no axis {axis}",
            help=f"its axes are {', '.join(map(str, range(rank)))}",
        )
    element = element_of(known[0].type)
    for part, argument in zip(known, node.args, strict=True):
        if element_of(part.type) is not element or _without(part, axis) != _without(known[0], axis):
            return checker.fail(
                argument.span,
                f"`cat<{axis}>` of {known[0].type} and {part.type}: they differ in more than the"
                f" extent of axis {axis}",
            )
    shape = list(_shape(known[0]))
    shape[axis] = sum(_shape(part)[axis] for part in known)
    if not check_tile_shape(checker, tuple(shape), node.span):
        return _poison(node)
    return Concatenation(TileType(element, tuple(shape)), ast.anchor(node), axis, tuple(known))


def _without(value: Expr, axis: int) -> tuple[int, ...]:
    shape = _shape(value)
    return shape[:axis] + shape[axis + 1 :]


# Masks -------------------------------------------------------------------------------------------


def _slice(checker: Checker, node: ast.Call) -> Access | None:
    """The slice of a tensor that is the first argument, or None after an error."""
    target = node.args[0]
    if not isinstance(target, ast.Subscript) or not isinstance(target.base, ast.Name):
        value = checker.expression(target)
        if not is_poison(value):
            checker.error(
                target.span,
                f"`{_name(node)}` takes a slice of a tensor",
                help=f"write the slice in the call, as in `{_name(node)}(A[i :+ 16]"
                f"{', -inf' if _name(node) == 'pad' else ''})`",
            )
        return None
    access = check_access(checker, target)
    if access is None:
        return None
    if access.is_point:
        checker.error(
            target.span,
            f"`{_name(node)}` takes a slice, but this is one element",
            help="a point access is never masked; compare the subscript with the extent",
        )
        return None
    if access.is_gathered:
        checker.error(
            target.span,
            f"`{_name(node)}` takes a slice without a tile of subscripts",
            help="compare the subscripts with the extent, as in `where(t < N, A[t, :], 1)`",
        )
        return None
    return access if check_tile(checker, access) else None


def _pad(checker: Checker, node: ast.Call) -> Expr:
    access, value = _slice(checker, node), checker.expression(node.args[1])
    if access is None or is_poison(value):
        return _poison(node)
    type_, place = access.tile_type, ast.anchor(node)
    value = fit(checker, value, type_.element, what="the value of `pad`", place=node.args[1].span)
    if is_poison(value):
        return value
    if isinstance(value, Literal):
        return TileRead(type_, access.place, access.tensor, access.starts, value.value)
    return PaddedRead(type_, place, access.tensor, access.starts, value)


def _valid(checker: Checker, node: ast.Call) -> Expr:
    access = _slice(checker, node)
    if access is None:
        return _poison(node)
    type_ = TileType(BOOL, access.tile_type.shape)
    return Valid(type_, ast.anchor(node), access.tensor, access.starts)


# Gathering ---------------------------------------------------------------------------------------


def _gather(checker: Checker, node: ast.Call) -> Expr:
    """`gather(A, t, axis)`: t has a subscript along the axis for each element; others count on."""
    tensor = _tensor(checker, node)
    value = tile_argument(checker, node, node.args[1])
    axis_value = checker.expression(node.args[2])
    if tensor is None or value is None or is_poison(axis_value):
        return _poison(node)
    rank, axis = len(tensor.dims), constant_int(axis_value)
    if axis is None or not 0 <= axis < rank:
        return checker.fail(
            node.args[2].span,
            f"`{tensor.name}` has axes 0 to {rank - 1}, and `gather` takes one as a constant",
            notes=declared_here(tensor.name, tensor),
        )
    if len(_shape(value)) != rank:
        return checker.fail(
            node.args[1].span,
            f"`gather` takes as many axes of subscripts as `{tensor.name}` has, {rank}, but this"
            f" is {value.type}",
            notes=declared_here(tensor.name, tensor),
            help=f"rows by a tile with one axis are `{tensor.name}[t, k :+ 64]`",
        )
    subscripts = to_subscripts(checker, value, node.args[1].span)
    if subscripts is None:
        return _poison(node)
    zero = Literal(INDEX, ast.anchor(node), 0)
    starts = tuple(subscripts if i == axis else zero for i in range(rank))
    type_ = TileType(element_of(tensor.type), _shape(value))
    return GatherRead(type_, ast.anchor(node), tensor, starts)


def _tensor(checker: Checker, node: ast.Call) -> Memory | None:
    subject = node.args[0]
    symbol = checker.scope.lookup(subject.name) if isinstance(subject, ast.Name) else None
    if isinstance(symbol, TensorParameter):
        return symbol
    if isinstance(symbol, Variable) and isinstance(symbol.type, TileType):
        symbol.is_shared = True
        return symbol
    if symbol is None and isinstance(subject, ast.Name):
        checker.unknown_name(subject.name, subject.span)
    elif not isinstance(symbol, Poisoned):
        checker.error(
            subject.span, f"the first argument of `{_name(node)}` is the name of a tensor or tile"
        )
    return None


# Contractions ------------------------------------------------------------------------------------


def _dot(turn_a: bool, turn_b: bool) -> Callable[[Checker, ast.Call], Expr]:
    def rule(checker: Checker, node: ast.Call) -> Expr:
        operands = [_matrix(checker, node, argument) for argument in node.args]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return _poison(node)
        return _contract(checker, node, known[0], known[1], turn_a, turn_b)

    return rule


def _contract(
    checker: Checker, node: ast.Call, a: Expr, b: Expr, turn_a: bool, turn_b: bool
) -> Expr:
    name, place = _name(node), ast.anchor(node)
    one, other = _shape(a), _shape(b)
    if one[:-2] != other[:-2]:
        return checker.fail(
            node.span,
            f"`{name}` of {a.type} and {b.type}: the axes before the last two must be the same",
            help="they count the products of a stack, as in [Z, M, K] by [Z, K, N]",
        )
    depth, other_depth = one[-2 if turn_a else -1], other[-1 if turn_b else -2]
    if depth != other_depth:
        return checker.fail(
            node.span,
            f"`{name}` of {a.type} and {b.type}: the axes that are summed over have extents"
            f" {depth} and {other_depth}",
            help=_SHAPES[name],
        )
    types = _contraction_types(element_of(a.type), element_of(b.type))
    if types is None:
        return checker.fail(
            node.span,
            f"`{name}` does not multiply {element_of(a.type)} by {element_of(b.type)}",
            help="operands are floats, i8 or u8; convert them, as in `f32(t)`",
        )
    operand, other_operand, total = types
    a, b = convert(checker, a, operand), convert(checker, b, other_operand)
    rows, columns = one[-1 if turn_a else -2], other[-2 if turn_b else -1]
    a = _turned(a, place) if turn_a else a
    b = _turned(b, place) if turn_b else b
    return Contraction(TileType(total, (*one[:-2], rows, columns)), place, a, b)


_SHAPES = {
    "dot": "`dot(a, b)` is [M, K] by [K, N]; `dot_t(a, b)` takes b as [N, K]",
    "dot_t": "`dot_t(a, b)` is [M, K] by [N, K]; `dot(a, b)` takes b as [K, N]",
    "t_dot": "`t_dot(a, b)` is [K, M] by [K, N]; `dot(a, b)` takes a as [M, K]",
}


def _contraction_types(
    a: ScalarType, b: ScalarType
) -> tuple[ScalarType, ScalarType, ScalarType] | None:
    """The types that operands are multiplied and summed in; None if they do not go together."""
    if a in (I8, U8) and b in (I8, U8):
        return a, b, I32
    small = (F8E4M3, F8E5M2)
    if a in small and b in small:
        return a, b, F32
    # With another float an 8-bit one is an f16, which has all its values.
    a, b = (F16 if element in small else element for element in (a, b))
    together = promote(a, b)
    if not isinstance(together, ScalarType) or not together.is_float:
        return None
    return together, together, F64 if together is F64 else F32


_RULES: dict[str, Callable[[Checker, ast.Call], Expr]] = {
    **FOLD_RULES,
    "transpose": _transpose,
    "reshape": _reshape,
    "flat": _flat,
    "iota": _iota,
    "full": _full,
    "tril": _triangle(BinaryOp.LESS_EQUAL),
    "triu": _triangle(BinaryOp.GREATER_EQUAL),
    "pad": _pad,
    "valid": _valid,
    "cat": _cat,
    "gather": _gather,
    "cluster_sum": check_cluster_sum,
    "dot": _dot(turn_a=False, turn_b=False),
    "dot_t": _dot(turn_a=False, turn_b=True),
    "t_dot": _dot(turn_a=True, turn_b=False),
}
