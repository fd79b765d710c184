"""The IR of the built-ins by which threads share memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import SSAValue

from phobos.dialects.atomics import (
    AtomicKind,
    AtomicKindAttr,
    AtomicOp,
    CompareExchangeOp,
    GridBarrierOp,
    LoadAcquireOp,
    StoreReleaseOp,
)
from phobos.frontend.emit_types import type_attr
from phobos.frontend.emitter import Emitter
from phobos.frontend.typed import Expr, Stmt
from phobos.frontend.typed_atomics import (
    AtomicUpdate,
    CompareExchange,
    GridBarrier,
    LoadAcquire,
    StoreRelease,
)

_KINDS = {kind.value: AtomicKindAttr(kind) for kind in AtomicKind}


def _element(
    emitter: Emitter, node: AtomicUpdate | CompareExchange | LoadAcquire | StoreRelease
) -> tuple[SSAValue, ...]:
    return (emitter.memory(node.tensor), *map(emitter.expression, node.indices))


def _update(emitter: Emitter, expr: AtomicUpdate) -> SSAValue:
    element = _element(emitter, expr)
    operands = (emitter.expression(expr.value), *element)
    properties = {"kind": _KINDS[expr.kind]}
    return emitter.value(AtomicOp, operands, type_attr(expr.type), expr.place, properties)


def _compare_exchange(emitter: Emitter, expr: CompareExchange) -> SSAValue:
    element = _element(emitter, expr)
    values = (emitter.expression(expr.expected), emitter.expression(expr.desired))
    return emitter.value(CompareExchangeOp, (*values, *element), type_attr(expr.type), expr.place)


def _load_acquire(emitter: Emitter, expr: LoadAcquire) -> SSAValue:
    return emitter.value(LoadAcquireOp, _element(emitter, expr), type_attr(expr.type), expr.place)


def _store_release(emitter: Emitter, stmt: StoreRelease) -> None:
    element = _element(emitter, stmt)
    operands = (emitter.expression(stmt.value), *element)
    emitter.add(StoreReleaseOp, operands, (), stmt.place)


def _grid_barrier(emitter: Emitter, stmt: GridBarrier) -> None:
    emitter.add(GridBarrierOp, (emitter.memory(stmt.tensor),), (), stmt.place)


ATOMIC_EXPRESSIONS: dict[type[Expr], Callable[[Emitter, Any], SSAValue]] = {
    AtomicUpdate: _update,
    CompareExchange: _compare_exchange,
    LoadAcquire: _load_acquire,
}
"""How the expressions of `typed_atomics` are emitted."""

ATOMIC_STATEMENTS: dict[type[Stmt], Callable[[Emitter, Any], None]] = {
    StoreRelease: _store_release,
    GridBarrier: _grid_barrier,
}
"""How its statements are emitted."""
