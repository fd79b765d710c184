"""The IR of statements: control flow with the values of variables as results of its regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, Operation, Region, SSAValue

from phobos.diagnostics import Location
from phobos.dialects import collective, tile
from phobos.frontend.emit_atomics import ATOMIC_STATEMENTS
from phobos.frontend.emit_debugging import DEBUG_STATEMENTS
from phobos.frontend.emit_elementwise import arithmetic, conversion, prefix
from phobos.frontend.emit_tiles import emit_scatter
from phobos.frontend.emit_types import type_attr
from phobos.frontend.emitter import Emitter
from phobos.frontend.operators import BinaryOp, UnaryOp
from phobos.frontend.typed import (
    Assign,
    Barrier,
    Block,
    Declare,
    Evaluate,
    Expansion,
    For,
    If,
    PointWrite,
    RunWrite,
    Stmt,
    TileWrite,
    Variable,
    While,
)
from phobos.frontend.typed_tiles import ScatterWrite
from phobos.frontend.types import ScalarType

UNROLL = "phobos.unroll"


def emit_statement(emitter: Emitter, stmt: Stmt) -> None:
    """Emits a statement where emission stands."""
    _RULES[type(stmt)](emitter, stmt)


def _declare(emitter: Emitter, stmt: Declare) -> None:
    value = None if stmt.value is None else emitter.expression(stmt.value)
    emitter.declare(stmt.variable, stmt.place)
    if value is not None:
        emitter.write(stmt.variable, value, stmt.place)


def _assign(emitter: Emitter, stmt: Assign) -> None:
    if not stmt.variable.unused:
        emitter.write(stmt.variable, emitter.expression(stmt.value), stmt.place)


def _point_write(emitter: Emitter, stmt: PointWrite) -> None:
    value = emitter.expression(stmt.value)
    operands = (value, emitter.memory(stmt.tensor), *map(emitter.expression, stmt.indices))
    emitter.add(memref.StoreOp, operands, (), stmt.place)


_SLICE_WRITES: dict[type[Stmt], type[Operation]] = {
    TileWrite: tile.StoreOp,
    RunWrite: vector.StoreOp,
}


def _slice_write(emitter: Emitter, stmt: TileWrite | RunWrite) -> None:
    value = emitter.expression(stmt.value)
    operands = (value, emitter.memory(stmt.tensor), *map(emitter.expression, stmt.starts))
    emitter.add(_SLICE_WRITES[type(stmt)], operands, (), stmt.place)


def _evaluate(emitter: Emitter, stmt: Evaluate) -> None:
    if isinstance(stmt.value, Expansion):
        emitter.statements(stmt.value.body)
    else:
        emitter.expression(stmt.value)


def _barrier(emitter: Emitter, stmt: Barrier) -> None:
    emitter.add(collective.BarrierOp, (), (), stmt.place)


# Control flow ------------------------------------------------------------------------------------


def _yield(emitter: Emitter, carried: Sequence[Variable], place: Location) -> None:
    emitter.add(scf.YieldOp, [emitter.current(variable) for variable in carried], (), place)


def _types(carried: Sequence[Variable]) -> list[Attribute]:
    return [type_attr(variable.type) for variable in carried]


def _arguments(carried: Sequence[Variable]) -> list[tuple[Attribute, str | None]]:
    return [(type_attr(variable.type), variable.name) for variable in carried]


def _set_all(emitter: Emitter, carried: Sequence[Variable], values: Sequence[SSAValue]) -> None:
    for variable, value in zip(carried, values, strict=True):
        emitter.assign(variable, value)


def _if(emitter: Emitter, stmt: If) -> None:
    condition = emitter.expression(stmt.condition)
    carried = emitter.carried(stmt.then, stmt.otherwise)
    before = [emitter.current(variable) for variable in carried]

    def branch(block: Block) -> Region:
        def fill(_: object) -> None:
            emitter.statements(block)
            _yield(emitter, carried, stmt.place)

        region = emitter.region((), stmt.place, fill)
        _set_all(emitter, carried, before)
        return region

    then = branch(stmt.then)
    needs_else = bool(carried) or bool(stmt.otherwise.statements)
    otherwise = branch(stmt.otherwise) if needs_else else Region()
    op = emitter.add(scf.IfOp, (condition,), _types(carried), stmt.place, regions=(then, otherwise))
    _set_all(emitter, carried, op.results)


def _for(emitter: Emitter, stmt: For) -> None:
    place, counter = stmt.place, stmt.counter
    start, stop, step = map(emitter.expression, (stmt.start, stmt.stop, stmt.step))
    carried = emitter.carried(stmt.body)
    initial = [emitter.current(variable) for variable in carried]
    lower, upper = start, stop
    if stmt.direction < 0:
        # Counting down is counting the distance from the start up.
        lower = emitter.constant(0, counter, place)
        upper = arithmetic(emitter, BinaryOp.SUBTRACT, start, stop, counter, place)
        step = prefix(emitter, UnaryOp.NEGATE, step, counter, place)

    def fill(arguments: Sequence[SSAValue]) -> None:
        position, *values = arguments
        _set_all(emitter, carried, values)
        if stmt.direction < 0:
            position = arithmetic(emitter, BinaryOp.SUBTRACT, start, position, counter, place)
        assert isinstance(stmt.variable.type, ScalarType)
        value = conversion(emitter, position, counter, stmt.variable.type, place)
        emitter.assign(stmt.variable, value)
        emitter.statements(stmt.body)
        _yield(emitter, carried, place)

    hint = stmt.variable.name if stmt.direction > 0 else None
    arguments = [(type_attr(counter), hint), *_arguments(carried)]
    body = emitter.region(arguments, place, fill)
    op = emitter.add(
        scf.ForOp, (lower, upper, step, *initial), _types(carried), place, regions=(body,)
    )
    if stmt.unroll is not None:
        op.attributes[UNROLL] = IntegerAttr(stmt.unroll, i32)
    _set_all(emitter, carried, op.results)


def _while(emitter: Emitter, stmt: While) -> None:
    place = stmt.place
    carried = emitter.carried(stmt.body)
    initial = [emitter.current(variable) for variable in carried]

    def test(arguments: Sequence[SSAValue]) -> None:
        _set_all(emitter, carried, arguments)
        condition = emitter.expression(stmt.condition)
        emitter.add(scf.ConditionOp, (condition, *arguments), (), place)

    def work(arguments: Sequence[SSAValue]) -> None:
        _set_all(emitter, carried, arguments)
        emitter.statements(stmt.body)
        _yield(emitter, carried, place)

    regions = [emitter.region(_arguments(carried), place, fill) for fill in (test, work)]
    op = emitter.add(scf.WhileOp, initial, _types(carried), place, regions=regions)
    _set_all(emitter, carried, op.results)


_RULES: dict[type[Stmt], Callable[[Emitter, Any], None]] = {
    Declare: _declare,
    Assign: _assign,
    PointWrite: _point_write,
    TileWrite: _slice_write,
    RunWrite: _slice_write,
    ScatterWrite: emit_scatter,
    **ATOMIC_STATEMENTS,
    **DEBUG_STATEMENTS,
    Evaluate: _evaluate,
    Barrier: _barrier,
    If: _if,
    For: _for,
    While: _while,
}
