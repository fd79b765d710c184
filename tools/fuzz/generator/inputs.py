"""The numbers that a program is launched on."""

from __future__ import annotations

import numpy as np

from tools.fuzz.scalars import (
    BOOL,
    Array,
    integer_limits,
    is_float,
    largest,
    memory_dtype,
    round_to,
    unit,
)

CONTENTS = ("whole", "whole", "broad", "special")
"""Kinds of content; half of all tensors hold small whole numbers, on which floats are exact."""

_WHOLE = 4
"""The size of whole numbers."""


def make_array(
    generator: np.random.Generator, type_: str, shape: tuple[int, ...], content: str
) -> Array:
    """An array of a type with a kind of content."""
    dtype = memory_dtype(type_)
    if type_ == BOOL:
        return generator.integers(0, 2, shape).astype(bool)
    if not is_float(type_):
        return _integers(generator, type_, shape, content)
    if content == "whole":
        return generator.integers(-_WHOLE, _WHOLE + 1, shape).astype(dtype)
    scale = 0 if content == "broad" else 6
    values = generator.standard_normal(shape) * np.exp2(
        generator.integers(-scale - 1, scale + 2, shape)
    )
    if content == "special":
        extremes = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, largest(type_)])
        tiny = unit(np.zeros(1), type_)[0]
        extremes = np.concatenate([extremes, [tiny, -3 * tiny, 65504.0, 1e-5, 2.0**31, -129.0]])
        chosen = generator.choice(extremes, shape)
        values = np.where(generator.random(shape) < 0.3, chosen, values)
    with np.errstate(over="ignore"):
        return np.asarray(round_to(np.asarray(values), type_)).astype(dtype)


def _integers(
    generator: np.random.Generator, type_: str, shape: tuple[int, ...], content: str
) -> Array:
    low, high = integer_limits(type_)
    dtype = memory_dtype(type_)
    if content == "whole":
        return generator.integers(max(low, -9), 10, shape).astype(dtype)
    values = generator.integers(low, high, shape, dtype=dtype, endpoint=True)
    if content == "special":
        small = generator.integers(max(low, -2), 3, shape).astype(dtype)
        ends = generator.choice(np.array([low, high, low + 1, high - 1], dtype), shape)
        which = generator.random(shape)
        values = np.where(which < 0.3, ends, np.where(which < 0.6, small, values))
    return values


def make_number(generator: np.random.Generator, type_: str) -> int | float | bool:
    """A scalar argument."""
    content = str(generator.choice(["whole", "whole", "broad"]))
    value = make_array(generator, type_, (1,), content)[0]
    if type_ == BOOL:
        return bool(value)
    return float(value) if is_float(type_) else int(value)
