"""Read-modify-write on memory by many threads, one after the other in thread order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phobos.emulator.arithmetic import floats
from phobos.emulator.arithmetic.exact import add_odd
from phobos.emulator.arithmetic.formats import half_from, half_to_single
from phobos.emulator.types import ScalarType, Value


@dataclass(frozen=True)
class AtomicOperation:
    """What an atomic does: `combine(old, *operands)` is the new value.

    `ufunc`, if there is one, is `combine` in a form that NumPy can run over a chain of operands.
    """

    combine: Callable[..., Value]
    operands: int = 1
    ufunc: np.ufunc | None = None


def _exchange(old: Value, new: Value) -> Value:
    return np.broadcast_to(new, np.shape(old)).copy()


def _compare_and_swap(old: Value, expected: Value, new: Value) -> Value:
    return np.where(old == expected, new, old)


def _increment(old: Value, limit: Value) -> Value:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Value, limit: Value) -> Value:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


_INTEGER: dict[str, AtomicOperation] = {
    "add": AtomicOperation(np.add, ufunc=np.add),
    "and": AtomicOperation(np.bitwise_and, ufunc=np.bitwise_and),
    "or": AtomicOperation(np.bitwise_or, ufunc=np.bitwise_or),
    "xor": AtomicOperation(np.bitwise_xor, ufunc=np.bitwise_xor),
    "min": AtomicOperation(np.minimum, ufunc=np.minimum),
    "max": AtomicOperation(np.maximum, ufunc=np.maximum),
    "exch": AtomicOperation(_exchange),
    "cas": AtomicOperation(_compare_and_swap, operands=2),
    "inc": AtomicOperation(_increment),
    "dec": AtomicOperation(_decrement),
}


def _add_single(*, flush: bool) -> AtomicOperation:
    def combine(old: Value, value: Value) -> Value:
        if not flush:
            return floats.canonical(old + value)
        total = floats.flush_subnormals(old) + floats.flush_subnormals(value)
        return floats.canonical(floats.flush_subnormals(total))

    return AtomicOperation(combine)


def _add_double(*, is_global: bool) -> AtomicOperation:
    """Addition in f64. The unit at the cache passes NaN on as it is, the operand's first."""

    def combine(old: Value, value: Value) -> Value:
        total = floats.settle_nan(old + value, (old, value))
        if not is_global or not np.any(np.isnan(total)):
            return total
        return np.where(np.isnan(value), value, np.where(np.isnan(old), old, total))

    return AtomicOperation(combine)


def _half_operation(name: str, operation: str) -> AtomicOperation:
    """add, min and max on f16 and bf16 bit patterns; subnormal numbers are kept."""

    def combine(old: Value, value: Value) -> Value:
        a, b = half_to_single(old, name), half_to_single(value, name)
        if operation == "add":
            return half_from(add_odd(a.astype(np.float64), b.astype(np.float64)), name)
        extreme = floats.minimum if operation == "min" else floats.maximum
        return half_from(extreme(a, b).astype(np.float64), name)

    return AtomicOperation(combine)


def atomic_operation(name: str, kind: ScalarType, *, is_global: bool) -> AtomicOperation | None:
    """The operation called `name` on elements of `kind` (f16 and bf16, not pairs), or None.

    f32 additions in global memory flush subnormal numbers, those in shared memory do not.
    """
    if not kind.is_float:
        return _INTEGER.get(name)
    if kind.name in ("f16", "bf16"):
        return _half_operation(kind.name, name) if name in ("add", "min", "max") else None
    if name in ("exch", "cas"):
        return _INTEGER[name]
    if name != "add":
        return None
    if kind.name == "f64":
        return _add_double(is_global=is_global)
    return _add_single(flush=is_global)


def update(
    view: np.ndarray,
    where: npt.NDArray[np.int64],
    operation: AtomicOperation,
    operands: Sequence[np.ndarray],
) -> np.ndarray:
    """Apply an operation to `view[where[i]]` for i = 0, 1, ... and return the old values.

    Args:
        view: Memory as elements of the operation's type; changed in place.
        where: Element indices, one a thread; they may repeat.
        operation: What to do.
        operands: Its operands, one value a thread each.
    """
    order = np.argsort(where, kind="stable")
    places = where[order]
    is_first = np.ones(len(places), dtype=np.bool_)
    is_first[1:] = places[1:] != places[:-1]
    starts = np.flatnonzero(is_first)
    old = np.empty(len(where), dtype=view.dtype)
    if len(starts) == len(places):
        old[:] = view[where]
        view[where] = operation.combine(old, *operands)
        return old
    lengths = np.diff(np.append(starts, len(places)))
    if operation.ufunc is not None and len(starts) < int(lengths.max()):
        _update_chains(view, order, places, starts, lengths, operation.ufunc, operands[0], old)
        return old
    for rank in range(int(lengths.max())):
        threads = order[starts[lengths > rank] + rank]
        current = view[where[threads]]
        old[threads] = current
        chosen = [operand[threads] for operand in operands]
        view[where[threads]] = operation.combine(current, *chosen)
    return old


def _update_chains(
    view: np.ndarray,
    order: npt.NDArray[np.intp],
    places: npt.NDArray[np.int64],
    starts: npt.NDArray[np.intp],
    lengths: npt.NDArray[np.intp],
    ufunc: np.ufunc,
    operand: np.ndarray,
    old: np.ndarray,
) -> None:
    """Few addresses with long chains of updates: one accumulation an address."""
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        threads = order[start : start + length]
        place = places[start]
        chain = np.empty(length + 1, dtype=view.dtype)
        chain[0] = view[place]
        chain[1:] = operand[threads]
        chain = ufunc.accumulate(chain, dtype=view.dtype)
        old[threads] = chain[:-1]
        view[place] = chain[-1]
