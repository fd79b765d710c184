"""128-bit values as pairs of 64-bit halves."""

from __future__ import annotations

import numpy as np

from phobos.emulator.types import B128, Value


def join_wide(count: int, low: Value, high: Value) -> Value:
    """`count` 128-bit values from their halves."""
    pair = np.empty((count, 2), dtype=np.uint64)
    pair[:, 0] = low
    pair[:, 1] = high
    return pair.view(B128.dtype)[:, 0]


def split_wide(value: Value) -> tuple[Value, Value]:
    """The lower and upper halves of 128-bit values."""
    pair = np.ascontiguousarray(np.atleast_1d(value)).view(np.uint64).reshape(-1, 2)
    return pair[:, 0].copy(), pair[:, 1].copy()
