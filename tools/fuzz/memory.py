"""Tensors and the elements of tiles: what slices and points of them read and write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tools.fuzz.scalars import Array, Doubles, array_dtype, doubles, is_float, memory_dtype
from tools.fuzz.values import Misuse, Undecided, Value, errors


@dataclass(slots=True)
class Memory:
    """Elements that can be read and written, with their bounds; `error` has the shape of `data`."""

    type: str
    data: Array
    error: Doubles

    @classmethod
    def of(cls, type_: str, array: Array) -> Memory:
        """A copy of a tensor's memory."""
        data = doubles(array) if is_float(type_) else array.astype(array_dtype(type_))
        return cls(type_, data, np.zeros(data.shape))

    @classmethod
    def holding(cls, value: Value) -> Memory:
        """A tile as elements, for a variable that is written piece by piece."""
        return cls(value.type, value.data.copy(), errors(value).copy())

    @classmethod
    def empty(cls, type_: str, shape: tuple[int, ...]) -> Memory:
        """A tile whose elements nothing has written."""
        return cls(type_, np.zeros(shape, array_dtype(type_)), np.full(shape, np.inf))

    def stored(self) -> Array:
        """The elements as they lie in a tensor's memory."""
        return self.data.astype(memory_dtype(self.type))


def places(shape: Sequence[int], lines: Sequence[Array]) -> tuple[tuple[Array, ...], np.ndarray]:
    """Subscripts of a grid of elements, moved inside, and which of them were inside.

    `lines` has the subscripts along each axis.
    """
    grid = np.ix_(*(line.astype(np.int64) for line in lines))
    return inside(shape, grid)


def inside(
    shape: Sequence[int], subscripts: Sequence[Array]
) -> tuple[tuple[Array, ...], np.ndarray]:
    """Subscripts moved inside where they are not, and which were."""
    valid = np.array(True)
    moved = []
    for extent, line in zip(shape, subscripts, strict=True):
        valid = valid & (line >= 0) & (line < extent)
        moved.append(np.clip(line, 0, max(extent - 1, 0)))
    full = np.broadcast_arrays(*moved)
    return tuple(full), np.broadcast_to(valid, full[0].shape)


def read_masked(
    memory: Memory, subscripts: tuple[Array, ...], valid: np.ndarray
) -> tuple[Array, Doubles]:
    """Elements and their bounds; 0 where a subscript is outside."""
    if 0 in memory.data.shape:
        return np.zeros(valid.shape, memory.data.dtype), np.zeros(valid.shape)
    data = np.where(valid, memory.data[subscripts], np.zeros((), memory.data.dtype))
    return data, np.where(valid, memory.error[subscripts], 0.0)


def write_masked(
    memory: Memory, subscripts: tuple[Array, ...], valid: np.ndarray, value: Value
) -> None:
    """Writes elements, skipping those outside."""
    data = np.broadcast_to(value.data, valid.shape)
    error = np.broadcast_to(errors(value), valid.shape)
    where = tuple(line[valid] for line in subscripts)
    memory.data[where] = data[valid]
    memory.error[where] = error[valid]


def point(memory: Memory, subscripts: Sequence[Value], active: np.ndarray) -> tuple[Array, ...]:
    """The subscripts of one element of each active thread; of the others they are 0."""
    found = []
    for extent, subscript in zip(memory.data.shape, subscripts, strict=True):
        if subscript.error is not None and np.any(subscript.error[active]):
            raise Undecided("a subscript is not defined")
        line = np.where(active, subscript.data.astype(np.int64), 0)
        if np.any((line < 0) | (line >= extent) & active):
            raise Misuse(f"a point outside of {memory.data.shape}")
        found.append(line)
    return tuple(found)
