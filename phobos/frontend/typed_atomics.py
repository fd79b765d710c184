"""Checked forms of what threads do to memory that they share; a continuation of `typed`."""

from __future__ import annotations

from phobos.frontend.typed import Expr, Memory, Stmt, TensorParameter
from phobos.record import record


@record
class AtomicUpdate(Expr):
    """Updates an element and gives what it was; `kind` is the dialect's word."""

    kind: str
    tensor: Memory
    indices: tuple[Expr, ...]
    value: Expr


@record
class CompareExchange(Expr):
    """Writes `desired` to an element that is `expected`, and gives what it was."""

    tensor: Memory
    indices: tuple[Expr, ...]
    expected: Expr
    desired: Expr


@record
class LoadAcquire(Expr):
    """Reads an element, and what was written before it was released is seen."""

    tensor: TensorParameter
    indices: tuple[Expr, ...]


@record
class StoreRelease(Stmt):
    """Writes an element after all that was written before."""

    tensor: TensorParameter
    indices: tuple[Expr, ...]
    value: Expr


@record
class GridBarrier(Stmt):
    """Waits for all CTAs of the grid."""

    tensor: TensorParameter
