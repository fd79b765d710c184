"""Statements: declarations, assignments, branches and loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from phobos.diagnostics import Note
from phobos.frontend import ast
from phobos.frontend.check_calls import check_call_statement
from phobos.frontend.check_slices import Access, check_target, check_tile, report_constant
from phobos.frontend.check_types import resolve_value_type
from phobos.frontend.checker import (
    Checker,
    any_poison,
    constant_int,
    declared_here,
    is_poison,
)
from phobos.frontend.coerce import convert, fit, settle, to_condition, unify
from phobos.frontend.operations import arithmetic
from phobos.frontend.operators import BinaryOp
from phobos.frontend.scopes import Poisoned, describe
from phobos.frontend.signs import sign_of
from phobos.frontend.typed import (
    Assign,
    Block,
    Break,
    Continue,
    Convert,
    Declare,
    Expr,
    For,
    If,
    Literal,
    PointRead,
    PointWrite,
    Read,
    Return,
    Role,
    Stmt,
    TensorParameter,
    TileRead,
    TileWrite,
    Variable,
    While,
)
from phobos.frontend.typed_tiles import Contraction, ScatterWrite
from phobos.frontend.types import (
    F8E4M3,
    F8E5M2,
    F16,
    I32,
    I64,
    INDEX,
    POISON,
    U64,
    WEAK_INT,
    ScalarType,
    TileType,
    default_of,
    element_of,
)

_COUNTER_BITS = 32
_TOP_BIT = 1 << 63


def check_block(checker: Checker, node: ast.Block) -> Block:
    """The checked statements of a block, which is a scope of its own."""
    stmts: list[Stmt] = []
    with checker.nested_scope():
        for statement in node.statements:
            stmts += _RULES[type(statement)](checker, statement)
    return Block(tuple(stmts))


# Declarations and assignments --------------------------------------------------------------------


def _declaration(checker: Checker, node: ast.Declaration) -> list[Stmt]:
    role = Role.VAR if node.mutable else Role.LET
    value = None if node.value is None else checker.expression(node.value)
    type_ = None if node.type is None else resolve_value_type(checker, node.type)
    if node.type is not None and type_ is None:
        type_ = POISON
    if value is None:
        return _declare_empty(checker, node, type_ or POISON)
    if type_ is None:
        value = settle(checker, value)
    else:
        value = fit(checker, value, type_, what=f"`{node.name}`")
    variable = Variable(node.name, type_ or value.type, role, node.name_span)
    if not node.mutable:
        variable.sign = sign_of(value)
        if isinstance(value, Literal):
            variable.constant = value.value
    checker.declare(node.name, variable, node.name_span)
    if is_poison(value) or variable.constant is not None:
        return []
    return [Declare(ast.anchor(node), variable, value)]


def _declare_empty(checker: Checker, node: ast.Declaration, type_: Any) -> list[Stmt]:
    variable = Variable(node.name, type_, Role.VAR, node.name_span)
    checker.declare(node.name, variable, node.name_span)
    if node.type is not None and type_ is POISON:
        return []
    if node.mutable and isinstance(type_, TileType):
        return [Declare(ast.anchor(node), variable, None)]
    variable.type = POISON
    word = "var" if node.mutable else "let"
    checker.error(
        node.span,
        f"`{node.name}` has no initial value",
        help=f"write `{word} {node.name} = ...`; only a `var` that is a tile may start without one",
    )
    return []


def _assign(checker: Checker, node: ast.Assign) -> list[Stmt]:
    value = checker.expression(node.value)
    if isinstance(node.target, ast.Subscript):
        return _assign_elements(checker, node, node.target, value)
    variable = _assignable(checker, node.target, node.op)
    if variable is None:
        return []
    place = ast.anchor(node)
    operator = node.op.binary
    if operator is not None:
        old = Read(variable.type, ast.anchor(node.target), variable)
        value = arithmetic(checker, place, node.span, operator, old, value)
        value = _summed_in_half(value, variable)
        if not is_poison(value) and value.type != variable.type:
            _wrong_compound(checker, node, variable, value)
            return []
    value = fit(
        checker,
        value,
        variable.type,
        what=f"`{variable.name}`",
        notes=declared_here(variable.name, variable),
        place=node.value.span,
    )
    return [] if is_poison(value) else [Assign(place, variable, value)]


def _summed_in_half(value: Expr, variable: Variable) -> Expr:
    """`acc += dot(a, b)` of f16 or narrower operands, summed in f16 as `acc` is one."""
    if not isinstance(value, Contraction) or element_of(variable.type) is not F16:
        return value
    operands = {element_of(value.a.type), element_of(value.b.type)}
    total = value.c
    if not isinstance(total, Convert) or total.value.type != variable.type:
        return value
    if not operands <= {F16, F8E4M3, F8E5M2}:
        return value
    return replace(value, type=variable.type, c=total.value)


def _wrong_compound(checker: Checker, node: ast.Assign, variable: Variable, value: Expr) -> None:
    operator = node.op.binary
    checker.error(
        node.span,
        f"`{variable.name} {operator} ...` is {value.type}, which `{variable.name}` cannot hold:"
        f" it is {variable.type}",
        notes=declared_here(variable.name, variable),
        help=f"convert the right side, as in `{variable.name} {node.op}"
        f" {element_of(variable.type)}(...)`",
    )


def _assignable(checker: Checker, target: ast.Name, op: ast.AssignOp) -> Variable | None:
    """The variable that an assignment gives a value, or None after an error."""
    name = target.name
    symbol = checker.scope.lookup(name)
    match symbol:
        case Variable(role=Role.VAR):
            return symbol if symbol.type is not POISON else None
        case Variable():
            report_constant(checker, symbol, target.span)
        case Poisoned():
            pass
        case None:
            help = checker.near(name)
            if help is None and op is ast.AssignOp.SET:
                help = f"declare it with `let {name} = ...`, or `var` if it changes later"
                # Meant as a declaration, so that its uses are no errors of their own.
                checker.scope.declare(name, Poisoned(name, target.span))
            checker.error(target.span, f"`{name}` is not defined", help=help)
        case _:
            checker.error(
                target.span,
                f"`{name}` is {describe(symbol)} and cannot be assigned to",
                notes=declared_here(name, symbol),
                help=f"assign to elements or slices of it, as in `{name}[i, j] = ...`"
                if isinstance(symbol, TensorParameter)
                else None,
            )
    return None


def _assign_elements(
    checker: Checker, node: ast.Assign, target: ast.Subscript, value: Expr
) -> list[Stmt]:
    access = check_target(checker, target)
    if access is None:
        return []
    if not access.is_point and not check_tile(checker, access):
        return []
    stmts: list[Stmt] = []
    place = ast.anchor(node)
    starts = access.starts
    if node.op.binary is not None and access.is_gathered:
        checker.error(
            node.span,
            f"`{node.op}` with a tile of subscripts",
            help="two equal subscripts would lose one of the two; `atomic_add` adds one element"
            " at a time",
        )
        return []
    if node.op.binary is not None:
        starts, stmts = _evaluated_once(access)
        old = _old_elements(access, starts)
        value = arithmetic(checker, place, node.span, node.op.binary, old, value)
    tensor = access.tensor
    wanted = access.element if access.is_point else access.tile_type
    value = fit(
        checker,
        value,
        wanted,
        what=f"this {'element' if access.is_point else 'slice'} of `{tensor.name}`",
        notes=declared_here(tensor.name, tensor),
        place=node.value.span,
    )
    if is_poison(value):
        return []
    write = PointWrite if access.is_point else TileWrite
    if access.is_gathered:
        write = ScatterWrite
    return [*stmts, write(place, tensor, starts, value)]


def _evaluated_once(access: Access) -> tuple[tuple[Expr, ...], list[Stmt]]:
    """The subscripts of an access that reads and writes, in temporaries where they compute."""
    stmts: list[Stmt] = []
    starts: list[Expr] = []
    for start in access.starts:
        if isinstance(start, Literal | Read):
            starts.append(start)
            continue
        variable = Variable("subscript", start.type, Role.TEMPORARY, start.place)
        stmts.append(Declare(start.place, variable, start))
        starts.append(Read(start.type, start.place, variable))
    return tuple(starts), stmts


def _old_elements(access: Access, starts: tuple[Expr, ...]) -> Expr:
    tensor = access.tensor
    if access.is_point:
        return PointRead(access.element, access.place, tensor, starts)
    return TileRead(access.tile_type, access.place, tensor, starts)


# Branches and loops ------------------------------------------------------------------------------


def _if(checker: Checker, node: ast.If) -> list[Stmt]:
    condition = to_condition(checker, checker.expression(node.condition))
    then = check_block(checker, node.then)
    match node.otherwise:
        case None:
            otherwise = Block(())
        case ast.Block():
            otherwise = check_block(checker, node.otherwise)
        case ast.If():
            otherwise = Block(tuple(_if(checker, node.otherwise)))
    if is_poison(condition):
        return []
    if isinstance(condition, Literal):
        return list((then if condition.value else otherwise).statements)
    return [If(ast.anchor(node), condition, then, otherwise)]


def _while(checker: Checker, node: ast.While) -> list[Stmt]:
    condition = to_condition(checker, checker.expression(node.condition))
    body = _loop_body(checker, node.body)
    return [] if is_poison(condition) else [While(ast.anchor(node), condition, body)]


def _loop_body(checker: Checker, node: ast.Block) -> Block:
    checker.loop_depth += 1
    body = check_block(checker, node)
    checker.loop_depth -= 1
    return body


def _for(checker: Checker, node: ast.For) -> list[Stmt]:
    place = ast.anchor(node)
    bounds, type_ = _bounds(checker, node)
    variable = Variable(node.variable, type_, Role.COUNTER, node.variable_span)
    with checker.nested_scope():
        checker.declare(node.variable, variable, node.variable_span)
        body = _loop_body(checker, node.body)
    unroll = _unroll_factor(checker, node.unroll)
    if bounds is None or not isinstance(type_, ScalarType):
        return []
    if type_ is U64:
        bounds, variable, body = _count_u64(checker, variable, bounds, body)
    counter = _counter_type(type_)
    start, stop, step = (convert(checker, bound, counter) for bound in bounds)
    return [For(place, variable, start, stop, step, sign_of(bounds[2]), counter, body, unroll)]


def _bounds(checker: Checker, node: ast.For) -> tuple[list[Expr] | None, ScalarType]:
    """Start, stop and step of one integer type; None and a poison after an error."""
    place = node.range_span.start
    start = Literal(WEAK_INT, place, 0) if node.start is None else checker.expression(node.start)
    stop = checker.expression(node.stop)
    step = Literal(WEAK_INT, place, 1) if node.step is None else checker.expression(node.step)
    bounds = [start, stop, step]
    if any_poison(bounds):
        return None, POISON
    for bound in bounds:
        if not isinstance(bound.type, ScalarType) or not bound.type.is_integer:
            checker.error(bound.place, f"a range counts in integers, but this is {bound.type}")
            return None, POISON
    if constant_int(step) == 0:
        checker.error(step.place, "the step of a range is not 0")
        return None, POISON
    unified = unify(checker, node.range_span, "`range`", bounds)
    if unified is None:
        return None, POISON
    bounds, type_ = unified
    element = default_of(element_of(type_))
    bounds = [convert(checker, bound, element) for bound in bounds]
    return (None, POISON) if any_poison(bounds) else (bounds, element)


def _counter_type(type_: ScalarType) -> ScalarType:
    """The signed type that a loop counts in: wide enough to step past the end of a narrow one."""
    if type_ is INDEX:
        return INDEX
    if type_.bits < _COUNTER_BITS:
        return I32
    return I64 if type_.is_unsigned else type_


def _count_u64(
    checker: Checker, variable: Variable, bounds: list[Expr], body: Block
) -> tuple[list[Expr], Variable, Block]:
    """A loop over u64 as one over i64: flipping the top bit keeps the order."""
    counter = Variable(variable.name, I64, Role.COUNTER, variable.declared)

    def flipped(value: Expr) -> Expr:
        place = value.place
        top = Literal(U64, place, _TOP_BIT)
        return arithmetic(checker, place, place, BinaryOp.BIT_XOR, value, top)

    start, stop = (convert(checker, flipped(bound), I64) for bound in bounds[:2])
    place = variable.declared
    value = flipped(convert(checker, Read(I64, place, counter), U64))
    body = Block((Declare(place, variable, value), *body.statements))
    return [start, stop, bounds[2]], counter, body


def _unroll_factor(checker: Checker, node: ast.Unroll | None) -> int | None:
    if node is None:
        return None
    if node.factor is None:
        return -1
    if node.factor < 1:
        checker.error(node.span, f"a loop is unrolled at least 1 time, not {node.factor}")
        return None
    return node.factor


def _break(checker: Checker, node: ast.Break) -> list[Stmt]:
    return _leave_loop(checker, node, "break", Break(ast.anchor(node)))


def _continue(checker: Checker, node: ast.Continue) -> list[Stmt]:
    return _leave_loop(checker, node, "continue", Continue(ast.anchor(node)))


def _leave_loop(checker: Checker, node: ast.Node, word: str, stmt: Stmt) -> list[Stmt]:
    if checker.loop_depth > 0:
        return [stmt]
    what = "kernel" if not checker.frames else "function"
    checker.error(
        node.span, f"`{word}` stands outside of a loop", help=f"`return` leaves the {what}"
    )
    return []


def _return(checker: Checker, node: ast.Return) -> list[Stmt]:
    place = ast.anchor(node)
    value = None if node.value is None else checker.expression(node.value)
    if not checker.frames:
        if node.value is not None:
            checker.error(
                node.value.span,
                "a kernel returns no value",
                help="write results to a tensor, as in `out[i] = x`",
            )
        return [Return(place, None)]
    function, result = checker.frames[-1].function, checker.result
    if result is None:
        if node.value is not None:
            checker.error(
                node.value.span,
                f"`{function.name}` declares no result",
                notes=(Note(f"`{function.name}` is declared here", function.name_span),),
                help=f"declare it: `fn {function.name}(...) -> f32`",
            )
        return [Return(place, None)]
    if value is None:
        checker.error(node.span, f"`{function.name}` returns a value of type {result.type}")
        return [Return(place, None)]
    notes = (Note(f"`{function.name}` is declared here", function.name_span),)
    value = fit(checker, value, result.type, what=f"the result of `{function.name}`", notes=notes)
    return [Return(place, value)]


def _evaluate(checker: Checker, node: ast.Evaluate) -> list[Stmt]:
    expression = node.expression
    if isinstance(expression, ast.Call):
        return check_call_statement(checker, expression)
    value = checker.expression(expression)
    if not is_poison(value):
        equality = isinstance(expression, ast.Binary) and expression.op is BinaryOp.EQUAL
        checker.error(
            node.span,
            "this value is not used",
            help="to assign, write one `=`"
            if equality
            else "give it a name with `let`, or remove it",
        )
    return []


_RULES: dict[type[ast.Node], Callable[[Checker, Any], list[Stmt]]] = {
    ast.Declaration: _declaration,
    ast.Assign: _assign,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Evaluate: _evaluate,
}
