"""Folds, places, running folds and products of tiles, along axes of an array.

The order in which floats are added up is nowhere promised. A sum is exact where every partial sum
in any order is a number of the type; else its bound covers all orders.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tools.fuzz.elementwise import convert, limited
from tools.fuzz.scalars import (
    BOOL,
    INDEX,
    SMALL_FLOATS,
    Array,
    Doubles,
    array_dtype,
    granularity,
    is_float,
    largest,
    precision,
    round_to,
    unit,
)
from tools.fuzz.terms import Terms
from tools.fuzz.values import Kind, Misuse, Value, errors, settled

FOLDS = frozenset({"sum", "prod", "max", "min", "any", "all", "count"})
POSITIONS = frozenset({"argmax", "argmin"})
SCANS = frozenset({"scan", "scanmax"})


def fold(name: str, value: Value, axes: Sequence[int], kind: Kind) -> Value:
    """`name<over axes>(value)`; the axes stay with extent 1."""
    along, data, axis = tuple(axes), value.data, tuple(axes)
    if value.type in SMALL_FLOATS:
        raise Misuse(f"{name} of {value.type}")
    if name in ("any", "all", "count") or value.type == BOOL:
        return _fold_bools(name, value, along, kind)
    if name in ("max", "min"):
        chosen = np.fmax if name == "max" else np.fmin
        result = _reduce(chosen, data, along)
        error = None
        if value.error is not None:
            error = settled(value.error.max(axis=axis, keepdims=True), result.shape)
        return Value(value.type, kind, result, error)
    if not is_float(value.type):
        ufunc = np.add if name == "sum" else np.multiply
        result = _reduce(ufunc, data, along)
        error = None
        if value.error is not None:
            error = settled(value.error.max(axis=axis, keepdims=True), result.shape)
        return Value(value.type, kind, result, error)
    return _fold_floats(name, value, along, kind)


def _reduce(ufunc: np.ufunc, data: Array, axes: tuple[int, ...]) -> Array:
    for axis in axes:
        data = ufunc.reduce(data, axis=axis, keepdims=True, dtype=data.dtype)
    return data


def _fold_bools(name: str, value: Value, axes: tuple[int, ...], kind: Kind) -> Value:
    if value.type != BOOL or name not in ("any", "all", "count", "sum"):
        raise Misuse(f"{name} of {value.type}")
    data, type_ = value.data, BOOL
    if name in ("count", "sum"):
        data, type_ = data.astype(np.int32), "i32"
        result = _reduce(np.add, data, axes)
    else:
        result = _reduce(np.logical_or if name == "any" else np.logical_and, data, axes)
    error = None
    if value.error is not None:
        error = settled(value.error.max(axis=axes, keepdims=True), result.shape)
    return Value(type_, kind, result, error)


def _fold_floats(name: str, value: Value, axes: tuple[int, ...], kind: Kind) -> Value:
    data, type_ = value.data, value.type
    count = int(np.prod([data.shape[axis] for axis in axes]))
    if name == "sum":
        exact = data.sum(axis=axes, keepdims=True)
        error = sum_error(type_, data, axes, count)
    else:
        exact = data.prod(axis=axes, keepdims=True)
        error = _product_error(type_, data, axes, count, exact)
    result = round_to(exact, type_)
    if value.error is not None:
        moved = errors(value)
        if name == "prod":
            ratio = np.where(data == 0, np.inf, moved / np.abs(np.where(data == 0, 1.0, data)))
            ratio = np.where(moved == 0, 0.0, ratio)
            moved = np.abs(exact) * (np.prod(1 + ratio, axis=axes, keepdims=True) - 1)
            moved = np.where(np.isnan(moved), np.inf, moved)
            error = error + np.where(ratio.any(axis=axes, keepdims=True), moved * 1.01, 0.0)
        else:
            error = error + moved.sum(axis=axes, keepdims=True) * (1 + count * 2.0**-10)
    return Value(type_, kind, result, settled(limited(type_, result, error), result.shape))


def sum_error(
    type_: str, data: Doubles, axes: tuple[int, ...], count: int, sizes: Doubles | None = None
) -> Doubles:
    """The bound of a sum along axes in any order; 0 where each partial sum is exact."""
    finite = np.where(np.isfinite(data), np.abs(data), 0.0)
    total = finite.sum(axis=axes, keepdims=True) if sizes is None else sizes
    grain = granularity(data).min(axis=axes, keepdims=True)
    digits, smallest = precision(type_), unit(np.zeros(1), type_)[0]
    is_exact = (total <= grain * 2.0**digits) & (total <= largest(type_)) & (grain >= smallest)
    bound = 1.02 * count * (total * 2.0 ** (1 - digits) + smallest)
    bound = np.where(total >= largest(type_), np.inf, bound)
    special = ~np.isfinite(data.sum(axis=axes, keepdims=True))
    return np.where(is_exact | (special & (total < largest(type_))), 0.0, bound)


def _product_error(
    type_: str, data: Doubles, axes: tuple[int, ...], count: int, exact: Doubles
) -> Doubles:
    sizes = np.abs(data)
    upper = np.maximum(sizes, 1.0).prod(axis=axes, keepdims=True)
    lower = np.minimum(np.where(sizes == 0, 1.0, sizes), 1.0).prod(axis=axes, keepdims=True)
    digits = precision(type_)
    is_whole = (np.trunc(data) == data).all(axis=axes, keepdims=True)
    is_exact = is_whole & (upper <= 2.0**digits)
    is_tame = (upper < largest(type_) / 4) & (lower > 2.0**-12 * (1 if type_ == "f16" else 1e-20))
    bound = np.where(is_tame, 1.05 * count * np.abs(exact) * 2.0 ** (1 - digits), np.inf)
    return np.where(is_exact, 0.0, bound)


# Places and running folds ------------------------------------------------------------------------


def position(name: str, value: Value, axis: int, kind: Kind) -> Value:
    """`argmax` and `argmin` along an axis, which stays: the first place of several."""
    data = value.data
    if value.type == BOOL or value.type in SMALL_FLOATS:
        raise Misuse(f"{name} of {value.type}")
    find = np.argmax if name == "argmax" else np.argmin
    result = np.expand_dims(find(data, axis=axis), axis).astype(np.int32)
    loose = np.zeros(result.shape, bool)
    if is_float(value.type):
        loose |= np.isnan(data).any(axis=axis, keepdims=True)
    if value.error is not None:
        # Another place could win where its interval reaches the winner's.
        winner = np.take_along_axis(data, result, axis)
        reach = errors(value) + np.take_along_axis(errors(value), result, axis)
        distance = np.abs(data.astype(np.float64) - winner.astype(np.float64))
        places = np.arange(data.shape[axis]).reshape(
            [-1 if i == axis else 1 for i in range(data.ndim)]
        )
        loose |= ((distance <= reach) & (places != result) & (reach > 0)).any(
            axis=axis, keepdims=True
        )
    return Value("i32", kind, result, settled(np.where(loose, np.inf, 0.0), result.shape))


def scan(name: str, value: Value, axis: int, kind: Kind) -> Value:
    """`scan` and `scanmax`: each element with all before it along an axis."""
    if value.type == BOOL:
        value = convert(value, "i32")
    if value.type in SMALL_FLOATS:
        raise Misuse(f"{name} of {value.type}")
    data, type_ = value.data, value.type
    if name == "scanmax":
        result = np.fmax.accumulate(data, axis=axis)
        error = None if value.error is None else np.maximum.accumulate(value.error, axis=axis)
        return Value(type_, kind, result, settled(error, result.shape))
    if not is_float(type_):
        result = np.add.accumulate(data, axis=axis, dtype=array_dtype(type_))
        error = None if value.error is None else np.maximum.accumulate(value.error, axis=axis)
        return Value(type_, kind, result, settled(error, result.shape))
    exact = np.add.accumulate(data, axis=axis)
    sizes = np.add.accumulate(np.where(np.isfinite(data), np.abs(data), 0.0), axis=axis)
    grain = np.minimum.accumulate(granularity(data), axis=axis)
    digits, count = precision(type_), data.shape[axis]
    is_exact = (sizes <= grain * 2.0**digits) & (sizes <= largest(type_))
    special = ~np.isfinite(exact) & (sizes < largest(type_))
    error = np.where(is_exact | special, 0.0, 1.02 * count * sizes * 2.0 ** (1 - digits))
    if value.error is not None:
        error = error + np.add.accumulate(errors(value), axis=axis) * (1 + count * 2.0**-10)
    result = round_to(exact, type_)
    return Value(type_, kind, result, settled(limited(type_, result, error), result.shape))


# Products ----------------------------------------------------------------------------------------


def contraction_types(left: str, right: str, together: str) -> tuple[str, str]:
    """The types that a product of matrices multiplies and adds up in."""
    if {left, right} <= {"i8", "u8"}:
        return "i32", "i32"
    if not is_float(together) or together == INDEX:
        raise Misuse(f"a product of {left} and {right}")
    return together, "f64" if together == "f64" else "f32"


def contract(left: Value, right: Value, total: str) -> Value:
    """The product [..., M, K] by [..., K, N] of operands of one type, added up in another."""
    if not is_float(total):
        with np.errstate(all="ignore"):
            wide = left.data.astype(np.int64) @ right.data.astype(np.int64)
        loose = None
        if left.error is not None or right.error is not None:
            loose = np.full(wide.shape, np.inf)
        return Value(total, Kind.TILE, wide.astype(np.int32), loose)
    exact = (left.data[..., :, :, None] * right.data[..., None, :, :]).sum(axis=-2)
    terms = Terms.of_factors(left.data, right.data, errors(left), errors(right))
    error = terms.error(total, exact)
    result = round_to(exact, total)
    error = settled(limited(total, result, error), result.shape)
    return Value(total, Kind.TILE, result, error, terms=terms)
