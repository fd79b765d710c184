"""The rules of the built-in functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from phobos.diagnostics import Location
from phobos.frontend import ast
from phobos.frontend.builtins import ELEMENTWISE, SHUFFLES, Elementwise
from phobos.frontend.check_slices import check_target, run_type
from phobos.frontend.checker import (
    Checker,
    any_poison,
    constant_int,
    declared_here,
    is_poison,
)
from phobos.frontend.coerce import convert, fit, settle, spread, to_condition, unify
from phobos.frontend.constants import fold_call, wrap
from phobos.frontend.operations import arithmetic, compare
from phobos.frontend.operators import BinaryOp, UnaryOp
from phobos.frontend.typed import (
    Apply,
    Ballot,
    Barrier,
    Bitcast,
    DotFourBytes,
    Expr,
    Extent,
    Literal,
    Poison,
    Prefix,
    RunSum,
    RunWord,
    RunWrite,
    Select,
    Shuffle,
    Stmt,
    TensorParameter,
    Variable,
)
from phobos.frontend.types import (
    BF16,
    BOOL,
    F16,
    F32,
    I32,
    INDEX,
    NAMED,
    POISON,
    U16,
    U32,
    WEAK_FLOAT,
    WEAK_INT,
    Kind,
    RunType,
    ScalarType,
    TileType,
    element_of,
    with_element,
)

_WARP_LANES = 32
_WORD_BITS = 32


def _poison(node: ast.Node) -> Poison:
    return Poison(POISON, ast.anchor(node))


# Elementwise -------------------------------------------------------------------------------------


def apply_elementwise(
    checker: Checker, node: ast.Call, row: Elementwise, arguments: Sequence[Expr]
) -> Expr:
    """A built-in that works element by element on operands of one type."""
    return _apply(checker, row, ast.anchor(node), node.span, arguments)


def _apply(
    checker: Checker, row: Elementwise, place: Location, span: Location, arguments: Sequence[Expr]
) -> Expr:
    unified = unify(checker, span, f"`{row.name}`", arguments)
    if unified is None:
        return Poison(POISON, place)
    operands, type_ = unified
    if element_of(type_).is_weak:
        folded = _fold(row, place, operands, element_of(type_))
        if folded is not None:
            return folded
        weak = WEAK_INT if element_of(type_) is WEAK_INT and Kind.SIGNED in row.ops else WEAK_FLOAT
        operands = [settle(checker, convert(checker, operand, weak)) for operand in operands]
        type_ = operands[0].type
    element = element_of(type_)
    if any_poison(operands):
        return Poison(POISON, place)
    if element.kind not in row.ops:
        return checker.fail(
            span,
            f"`{row.name}` takes {row.accepts}, not {element}",
            help=_argument_hint(row, element),
        )
    if row.bits not in (None, element.bits):
        return checker.fail(
            span,
            f"`{row.name}` takes integers of {row.bits} bits, not {element}",
            help=f"convert the arguments, as in `u{row.bits}(x)`",
        )
    folded = _fold(row, place, operands, element)
    if folded is not None:
        return folded
    if row.ops[element.kind] is None:
        return operands[0]
    applied = Apply(type_, place, row, tuple(operands))
    return applied if row.result is None else convert(checker, applied, row.result)


def _fold(
    row: Elementwise, place: Location, operands: Sequence[Expr], element: ScalarType
) -> Literal | None:
    values = [operand.value for operand in operands if isinstance(operand, Literal)]
    if len(values) < len(operands) or not (element.is_integer or element.is_weak):
        return None
    value = fold_call(row.name, values)
    if isinstance(value, int) and element.is_integer:
        value = wrap(value, element)  # as `abs(i8(-128))` does
    return None if value is None else Literal(element, place, value)


def _argument_hint(row: Elementwise, element: ScalarType) -> str | None:
    if element.is_integer and Kind.FLOAT in row.ops:
        return f"convert the argument, as in `{row.name}(f32(x))`"
    if element is INDEX:
        return f"`index` has no fixed width; convert it, as in `{row.name}(i32(x))`"
    return None


def _clamp(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    value, low, high = arguments
    place = ast.anchor(node)
    raised = _apply(checker, ELEMENTWISE["max"], place, node.span, (value, low))
    return _apply(checker, ELEMENTWISE["min"], place, node.span, (raised, high))


def _sigmoid(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    place, span = ast.anchor(node), node.span
    given = _as_float(checker, node, arguments[0])
    if is_poison(given):
        return given
    element = element_of(given.type)
    # As f32: the power of e is beyond a half long before the result is too small for one.
    value = convert(checker, given, F32) if element in (F16, BF16) else given
    one = Literal(WEAK_INT, place, 1)
    negated = Prefix(value.type, place, UnaryOp.NEGATE, value)
    grown = _apply(checker, ELEMENTWISE["exp"], place, span, (negated,))
    below = arithmetic(checker, place, span, BinaryOp.ADD, one, grown)
    result = arithmetic(checker, place, span, BinaryOp.DIVIDE, one, below)
    return convert(checker, result, element)


def _isnan(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    value = _as_float(checker, node, arguments[0])
    if is_poison(value):
        return value
    return compare(checker, ast.anchor(node), node.span, BinaryOp.NOT_EQUAL, value, value)


def _as_float(checker: Checker, node: ast.Call, value: Expr) -> Expr:
    """The argument of a function of floats; an int literal becomes f32."""
    if value.type is WEAK_INT:
        value = convert(checker, value, WEAK_FLOAT)
    value = settle(checker, value)
    if not is_poison(value) and not element_of(value.type).is_float:
        name = node.callee.name if isinstance(node.callee, ast.Name) else "this"
        return checker.fail(
            node.span,
            f"`{name}` takes floats, not {element_of(value.type)}",
            help=f"convert the argument, as in `{name}(f32(x))`",
        )
    return value


def _where(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    condition, *choices = arguments
    place = ast.anchor(node)
    if element_of(condition.type) is not BOOL:
        return checker.fail(
            condition.place,
            f"the first argument of `where` is a bool or a tile of bools, not {condition.type}",
            help="compare it, as in `x != 0`",
        )
    unified = unify(checker, node.span, "`where`", choices, moves=True)
    if unified is None:
        return _poison(node)
    (if_true, if_false), type_ = unified
    if element_of(type_).is_weak:
        if_true, if_false = settle(checker, if_true), settle(checker, if_false)
        type_ = if_true.type
    if isinstance(condition.type, ScalarType):
        return Select(type_, place, condition, if_true, if_false)
    # The shape is that of all three together: join the condition with a bool of the choices'.
    stand_in = Expr(with_element(type_, BOOL), place)
    joined = unify(checker, node.span, "`where`", (condition, stand_in))
    if joined is None:
        return _poison(node)
    type_ = with_element(joined[1], element_of(type_))
    return Select(type_, place, joined[0][0], spread(if_true, type_), spread(if_false, type_))


# Conversions -------------------------------------------------------------------------------------


def check_conversion(checker: Checker, node: ast.Call, target: ScalarType) -> Expr:
    """`f32(x)` and its like: the elements of a value in another type."""
    if node.generic is not None:
        return checker.fail(node.span, f"`{target}` takes nothing in `< >`")
    if len(node.args) != 1:
        return checker.fail(
            node.span,
            f"the conversion `{target}` takes 1 argument, not {len(node.args)}",
            help=f"write `{target}(x)`",
        )
    value = checker.expression(node.args[0])
    if is_poison(value):
        return value
    if target is INDEX and not isinstance(value.type, ScalarType):
        return checker.fail(
            node.span,
            f"{value.type} cannot become index: only scalars have that type",
            help="use i32 or i64",
        )
    converted = convert(checker, value, target)
    if converted is value or is_poison(converted):
        return converted
    return replace(converted, place=ast.anchor(node))


def _bitcast(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    value = settle(checker, arguments[0])
    generic = node.generic
    name = (
        generic.type.name
        if isinstance(generic, ast.TypeArgument) and isinstance(generic.type, ast.ScalarType)
        else None
    )
    if is_poison(value):
        return value
    if name not in NAMED:
        return checker.fail(
            node.span if generic is None else generic.span,
            "`bitcast` names the type whose bits these are",
            help="write `bitcast<i32>(x)`",
        )
    target, source = NAMED[name], element_of(value.type)
    if BOOL in (source, target) or source.bits != target.bits or not source.bits:
        return checker.fail(
            node.span,
            f"`bitcast` keeps the width: {source} {_width(source)}, {target} {_width(target)}",
        )
    return Bitcast(with_element(value.type, target), ast.anchor(node), value)


def _width(scalar: ScalarType) -> str:
    return f"has {scalar.bits} bits" if scalar.bits else "has no fixed width"


# Tensors and runs --------------------------------------------------------------------------------


def _extent(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    subject, axis_node = node.args
    symbol = checker.scope.lookup(subject.name) if isinstance(subject, ast.Name) else None
    is_tile = isinstance(symbol, Variable) and isinstance(symbol.type, TileType)
    if not (is_tile or isinstance(symbol, TensorParameter)):
        if symbol is None and isinstance(subject, ast.Name):
            return checker.unknown_name(subject.name, subject.span)
        return checker.fail(
            subject.span, "the first argument of `extent` is the name of a tensor or tile"
        )
    assert isinstance(symbol, TensorParameter | Variable)
    axis_value = checker.expression(axis_node)
    if is_poison(axis_value):
        return axis_value
    axis, rank = constant_int(axis_value), len(symbol.dims)
    if axis is None or not 0 <= axis < rank:
        return checker.fail(
            axis_node.span,
            f"`{symbol.name}` has axes 0 to {rank - 1}, and `extent` takes one as a constant",
            notes=declared_here(symbol.name, symbol),
        )
    known, place = symbol.dims[axis].extent, ast.anchor(node)
    if known is not None:
        return Literal(INDEX, place, known)
    assert isinstance(symbol, TensorParameter)
    return Extent(INDEX, place, symbol, axis)


def _run_argument(checker: Checker, node: ast.Call, value: Expr) -> RunType | None:
    if isinstance(value.type, RunType):
        return value.type
    name = node.callee.name if isinstance(node.callee, ast.Name) else "this"
    if isinstance(value.type, TileType) and name == "sum":
        help = "the sum of a tile along an axis is `sum<over 0>(t)`"
    else:
        help = f"a run is `A[i, k :+ 4]` inside the brackets: `{name}(A[i, k :+ 4])`"
    checker.error(node.span, f"`{name}` takes a run, but this is {value.type}", help=help)
    return None


def _sum(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    run = _run_argument(checker, node, arguments[0])
    if run is None:
        return _poison(node)
    if run.element is BOOL:
        return checker.fail(
            node.span, "`sum` adds numbers, not bools", help="convert them, as in `sum(i32(r))`"
        )
    return RunSum(run.element, ast.anchor(node), arguments[0])


def _elem(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    run = _run_argument(checker, node, arguments[0])
    return _poison(node) if run is None else arguments[0]


def _word(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    run = _run_argument(checker, node, arguments[0])
    if run is None:
        return _poison(node)
    if run.element.bits * run.length != _WORD_BITS:
        return checker.fail(
            node.span,
            f"`word` packs {_WORD_BITS} bits, but {run} has {run.element.bits * run.length}",
            help="take 4 elements of 8 bits or 2 of 16",
        )
    return RunWord(I32, ast.anchor(node), arguments[0])


def _store(checker: Checker, node: ast.Call) -> list[Stmt]:
    target, value_node = node.args
    if not isinstance(target, ast.Subscript):
        checker.error(
            target.span,
            "`store` writes to a slice of a tensor",
            help="write `store(A[i, k :+ 4], run)`",
        )
        return []
    access = check_target(checker, target)
    with checker.run_form(True):
        value = checker.expression(value_node)
    run = None if access is None else run_type(checker, access)
    if access is None or run is None:
        return []
    value = fit(
        checker,
        value,
        run,
        what=f"this slice of `{access.tensor.name}`",
        notes=declared_here(access.tensor.name, access.tensor),
    )
    return [RunWrite(ast.anchor(node), access.tensor, access.starts, value)]


def _dp4a(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    a, b, c = arguments
    packed: list[Expr] = []
    for value in (a, b):
        value = convert(checker, value, I32) if value.type is WEAK_INT else value
        if value.type not in (I32, U32) and not is_poison(value):
            return checker.fail(
                value.place,
                f"`dp4a` takes four bytes packed in i32 or u32, not {value.type}",
                help="`word(A[i, k :+ 4])` packs four bytes",
            )
        packed.append(value)
    total = fit(checker, c, I32, what="the sum of `dp4a`")
    if any_poison((*packed, total)):
        return _poison(node)
    return DotFourBytes(
        I32,
        ast.anchor(node),
        packed[0],
        packed[1],
        total,
        unsigned_a=packed[0].type is U32,
        unsigned_b=packed[1].type is U32,
    )


def _f16bits(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    """The f16 whose bits are the low 16 of an integer."""
    value = arguments[0]
    if not element_of(value.type).is_integer:
        return checker.fail(
            node.span,
            f"`f16bits` takes the bits as an integer, not {value.type}",
            help="the bits of an f16 are `bitcast<u16>(x)`",
        )
    bits = convert(checker, value, U16)
    if is_poison(bits):
        return bits
    return Bitcast(with_element(bits.type, F16), ast.anchor(node), bits)


# Between threads ---------------------------------------------------------------------------------


def _shuffle(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    value, amount = settle(checker, arguments[0]), arguments[1]
    name = node.callee.name if isinstance(node.callee, ast.Name) else "shuffle"
    if is_poison(value):
        return value
    if not isinstance(value.type, ScalarType):
        return checker.fail(
            node.span, f"`{name}` moves one scalar of each thread, not {value.type}"
        )
    if not isinstance(amount.type, ScalarType) or not amount.type.is_integer:
        return checker.fail(
            amount.place, f"the second argument of `{name}` is an integer, not {amount.type}"
        )
    known = constant_int(amount)
    if known is not None and not 0 <= known < _WARP_LANES:
        return checker.fail(
            amount.place, f"{known} names no lane: a warp has lanes 0 to {_WARP_LANES - 1}"
        )
    amount = convert(checker, amount, I32)
    return Shuffle(value.type, ast.anchor(node), SHUFFLES[name], value, amount)


def _ballot(checker: Checker, node: ast.Call, arguments: Sequence[Expr]) -> Expr:
    predicate = to_condition(checker, arguments[0])
    return predicate if is_poison(predicate) else Ballot(I32, ast.anchor(node), predicate)


def _barrier(checker: Checker, node: ast.Call) -> list[Stmt]:
    return [Barrier(ast.anchor(node))]


ValueRule = Callable[[Checker, ast.Call, Sequence[Expr]], Expr]

VALUE_RULES: dict[str, ValueRule] = {
    "clamp": _clamp,
    "where": _where,
    "sigmoid": _sigmoid,
    "isnan": _isnan,
    "bitcast": _bitcast,
    "extent": _extent,
    "sum": _sum,
    "elem": _elem,
    "word": _word,
    "dp4a": _dp4a,
    "f16bits": _f16bits,
    **dict.fromkeys(SHUFFLES, _shuffle),
    "ballot": _ballot,
}
"""The rule of each row of `SPECIAL` that gives a value; the arguments are checked before."""

STATEMENT_RULES: dict[str, Callable[[Checker, ast.Call], list[Stmt]]] = {
    "store": _store,
    "barrier": _barrier,
}
"""The rule of each row of `SPECIAL` that is a statement; it checks its arguments itself."""
