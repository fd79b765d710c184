"""Bytes with typed views, and a shadow that remembers which bytes were never written."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from phobos.emulator.types import UNSIGNED, Value

SHIFTS: Mapping[int, np.int64] = {1: np.int64(0), 2: np.int64(1), 4: np.int64(2), 8: np.int64(3)}
"""Byte index to element index, by element size in bytes."""

_GRANULE = 16


UNDEFINED = np.uint8(1)
"""Shadow bit of bytes that nothing wrote."""

IN_FLIGHT = np.uint8(2)
"""Shadow bit of bytes that an asynchronous copy is about to write."""


BARRIER = np.uint8(4)
"""Shadow bit of the bytes of an mbarrier."""


class ByteStore:
    """`size` bytes, zeroed.

    With `track` there is a shadow: a byte beside each byte, whose bits say what is wrong with it.
    At first every byte counts as never written if `undefined` is set.
    """

    def __init__(self, size: int, *, track: bool, undefined: bool = True) -> None:
        rounded = -(-max(size, 1) // _GRANULE) * _GRANULE
        self.bytes: npt.NDArray[np.uint8] = np.zeros(rounded, dtype=np.uint8)
        self.views = _views(self.bytes)
        self.shadow: npt.NDArray[np.uint8] | None = None
        self._shadow_views: dict[int, np.ndarray] = {}
        if track:
            self.track(undefined=undefined)

    def track(self, *, undefined: bool) -> None:
        """Start the shadow; `undefined` says whether the bytes so far count as written."""
        self.shadow = np.full(len(self.bytes), UNDEFINED if undefined else 0, dtype=np.uint8)
        self._shadow_views = _views(self.shadow)

    def load(self, index: Value, size: int, element: int = 0) -> Value:
        """Elements of `size` bytes at byte indices `index`, plus `element` elements."""
        return self.views[size][(index >> SHIFTS[size]) + element]

    def store(self, index: Value, size: int, value: Value, element: int = 0) -> None:
        """Write elements of `size` bytes; where indices repeat, the last thread wins."""
        where = (index >> SHIFTS[size]) + element
        if where.ndim == 0 and value.ndim:
            value = value[-1]
        self.views[size][where] = value
        if self.shadow is not None:
            self._shadow_views[size][where] = 0

    def copy(self, source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], size: int) -> None:
        """Copy `size` bytes from each source byte index to the target index beside it."""
        offsets = np.arange(size)
        origin, goal = source[:, None] + offsets, target[:, None] + offsets
        self.bytes[goal] = self.bytes[origin]
        if self.shadow is not None:
            self.shadow[goal] = self.shadow[origin]

    def mark_written(self, index: npt.NDArray[np.int64] | slice) -> None:
        """Clear the mark of bytes that were never written."""
        if self.shadow is not None:
            self.shadow[index] &= ~UNDEFINED

    def start_flight(self, index: npt.NDArray[np.int64]) -> None:
        """Mark bytes that an asynchronous copy is about to write."""
        if self.shadow is not None:
            self.shadow[index] |= IN_FLIGHT

    def end_flight(self, index: npt.NDArray[np.int64]) -> None:
        """Clear the mark of an asynchronous copy."""
        if self.shadow is not None:
            self.shadow[index] &= ~IN_FLIGHT

    def mark_barriers(self, index: npt.NDArray[np.int64], *, is_live: bool) -> None:
        """Mark the bytes of mbarriers, or say that they are nothing any more."""
        if self.shadow is not None:
            self.shadow[index] = BARRIER if is_live else 0

    def marked(
        self, index: Value, size: int, count: int, bits: np.uint8
    ) -> npt.NDArray[np.bool_] | None:
        """Where `count` elements of `size` bytes have a mark of `bits`; None if nowhere."""
        if self.shadow is None:
            return None
        base = index >> SHIFTS[size]
        view = self._shadow_views[size]
        wanted = view.dtype.type(int.from_bytes(bytes([bits]) * size, "little"))
        marks = np.atleast_1d(view[base] & wanted) != 0
        for element in range(1, count):
            marks = marks | (np.atleast_1d(view[base + element] & wanted) != 0)
        return marks if marks.any() else None


def _views(data: npt.NDArray[np.uint8]) -> dict[int, np.ndarray]:
    return {bits // 8: data.view(dtype) for bits, dtype in UNSIGNED.items()}
