"""Tensor maps: how bulk tensor copies see a tensor in global memory, in 128 bytes.

A GPU's map is opaque; the emulator has a form of its own with the same content and the limits of
`cuTensorMapEncodeTiled`. Everything here is ordered like NumPy's shapes, outermost axis first;
coordinates in PTX go the other way round.

    offset  bytes  field
         0      8  "phobosTM"
         8      8  address of the first element
        16    4*1  number of the type, rank, width of the swizzle in bytes, 0
        24    5*8  strides in bytes, innermost first
        64    5*4  extents, innermost first
        84    5*2  box, innermost first
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import PhobosError, did_you_mean
from phobos.emulator.types import UNSIGNED, Value

MAP_BYTES = 128
MAP_ALIGNMENT = 64
MAX_RANK = 5
SWIZZLES = (0, 32, 64, 128)
"""Bytes of a swizzled row; 0 for none."""

_MAGIC = b"phobosTM"
_FORM = struct.Struct("<8sQBBBx4x5Q5I5H")
_PIECE = 16
_MAX_EXTENT = 2**31
_MAX_STRIDE = 2**40
_MAX_BOX = 256

ELEMENT_BYTES: Mapping[str, int] = {
    **dict.fromkeys(("bool", "i8", "u8", "f8e4m3", "f8e5m2"), 1),
    **dict.fromkeys(("i16", "u16", "f16", "bf16"), 2),
    **dict.fromkeys(("i32", "u32", "f32", "tf32"), 4),
    **dict.fromkeys(("i64", "u64", "f64"), 8),
}
"""Bytes of an element by its type. `tf32` is an f32 that is rounded as it is copied."""

_TYPES = tuple(ELEMENT_BYTES)


_TF32_DROPPED = 13
_TF32_NAN = np.uint32(0x7FFFE000)


def _round_tf32(patterns: Value) -> Value:
    """f32 patterns rounded to the 10 bits of fraction of tf32, ties to even."""
    odd = (patterns >> np.uint32(_TF32_DROPPED)) & np.uint32(1)
    half = np.uint32((1 << (_TF32_DROPPED - 1)) - 1)
    is_nan = (patterns & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    rounded = (patterns + half + odd) & np.uint32(0xFFFFFFFF << _TF32_DROPPED & 0xFFFFFFFF)
    return np.where(is_nan, _TF32_NAN, rounded)


CONVERSIONS: Mapping[str, Callable[[Value], Value]] = {"tf32": _round_tf32}
"""What a copy from global memory does to the patterns of some types; it moves the others as they
are. Rounding to tf32 is as measured on an H200."""


@dataclass(frozen=True)
class TensorMap:
    """What a tensor map says.

    Attributes:
        address: Where the first element lies in the emulated global memory.
        type: The type of an element, a key of `ELEMENT_BYTES`.
        extents: Elements along each axis, outermost first.
        strides: Bytes from one element to the next along each axis; elements of the innermost
            axis lie side by side.
        box: Elements along each axis that one copy moves. Those outside the tensor read as zero.
        swizzle: 0, or the bytes of a row of the box in shared memory, whose pieces of 16 bytes
            are then exchanged: bits 4 to 6 of the shared address are XORed with bits 7 to 9, or
            as many of them as the row leaves.
    """

    address: int
    type: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.extents)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return ELEMENT_BYTES[self.type]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of the box in shared memory."""
        return self.box[-1] * self.element_bytes

    @property
    def box_bytes(self) -> int:
        """Bytes of the whole box in shared memory: what a copy counts, whatever lies outside."""
        return prod(self.box) * self.element_bytes

    def order_of_pieces(self, address: int) -> npt.NDArray[np.intp] | None:
        """Which piece of the box each 16 bytes behind a shared address hold; None for in order."""
        return _order_of_pieces(self.box_bytes // _PIECE, self.swizzle, address % 1024)


@lru_cache(maxsize=256)
def _order_of_pieces(pieces: int, swizzle: int, address: int) -> npt.NDArray[np.intp] | None:
    if not swizzle:
        return None
    places = address + _PIECE * np.arange(pieces)
    places ^= ((places >> 7) & (swizzle // _PIECE - 1)) << 4
    # An XOR is its own inverse: where a piece goes is also what lies at its place.
    return (places - address) // _PIECE


def encode_tensor_map(tensor_map: TensorMap) -> bytes:
    """The 128 bytes of a map.

    Raises:
        PhobosError: The map breaks a limit of `cuTensorMapEncodeTiled`; the message says which.
    """
    _check(tensor_map)
    rank = tensor_map.rank

    def inwards(values: tuple[int, ...]) -> tuple[int, ...]:
        return (*reversed(values), *(0,) * (MAX_RANK - rank))

    content = _FORM.pack(
        _MAGIC,
        tensor_map.address,
        _TYPES.index(tensor_map.type),
        rank,
        tensor_map.swizzle,
        *inwards(tensor_map.strides),
        *inwards(tensor_map.extents),
        *inwards(tensor_map.box),
    )
    return content.ljust(MAP_BYTES, b"\0")


@lru_cache(maxsize=64)
def decode_tensor_map(content: bytes) -> TensorMap | None:
    """The map in 128 bytes, or None if they hold none."""
    if len(content) != MAP_BYTES or not content.startswith(_MAGIC):
        return None
    _, address, kind, rank, swizzle, *numbers = _FORM.unpack_from(content)
    strides, extents, box = (
        tuple(reversed(numbers[start : start + rank])) for start in (0, MAX_RANK, 2 * MAX_RANK)
    )
    return TensorMap(address, _TYPES[kind], extents, strides, box, swizzle)


# Limits ------------------------------------------------------------------------------------------


def _check(found: TensorMap) -> None:
    _check_type(found)
    for name, values in (("strides", found.strides), ("box", found.box)):
        if len(values) != found.rank:
            _fail(f"has {found.rank} axes, but its {name} has {len(values)}")
    if not 1 <= found.rank <= MAX_RANK:
        _fail(f"has one to {MAX_RANK} axes, got {found.rank}")
    if found.address % _PIECE:
        _fail(f"starts at a multiple of {_PIECE} bytes, got address {found.address:#x}")
    for axis, extent in enumerate(found.extents):
        if not 1 <= extent <= _MAX_EXTENT:
            _fail(f"has extents from 1 to 2**31, got {extent} on axis {axis}")
    _check_strides(found)
    _check_box(found)


def _check_type(found: TensorMap) -> None:
    if found.type not in ELEMENT_BYTES:
        raise PhobosError.at(
            None,
            f"a tensor map has no elements of type `{found.type}`; there are {', '.join(_TYPES)}",
            help=did_you_mean(found.type, _TYPES),
        )


def _check_strides(found: TensorMap) -> None:
    *outer, inner = found.strides
    if inner != found.element_bytes and found.extents[-1] > 1:
        _fail(
            f"has its innermost elements side by side, {found.element_bytes} bytes apart, got a "
            f"stride of {inner} bytes"
        )
    for axis, stride in enumerate(outer):
        if stride % _PIECE or not 0 <= stride < _MAX_STRIDE:
            _fail(
                f"has strides that are multiples of {_PIECE} bytes below 2**40, got {stride} on "
                f"axis {axis}"
            )


def _check_box(found: TensorMap) -> None:
    for axis, extent in enumerate(found.box):
        if not 1 <= extent <= _MAX_BOX:
            _fail(f"has boxes of 1 to {_MAX_BOX} elements an axis, got {extent} on axis {axis}")
    row = found.row_bytes
    if row % _PIECE:
        _fail(
            f"has boxes whose rows are multiples of {_PIECE} bytes, got {found.box[-1]} elements "
            f"of {found.element_bytes} bytes"
        )
    if found.swizzle not in SWIZZLES:
        _fail(f"has a swizzle of 0, 32, 64 or 128 bytes, got {found.swizzle}")
    if found.swizzle and row > found.swizzle:
        _fail(f"has boxes whose rows fit the swizzle of {found.swizzle} bytes, got {row} bytes")
    if found.swizzle and row < found.swizzle:
        _fail(
            f"has boxes whose rows fill the swizzle of {found.swizzle} bytes in the emulator, got "
            f"{row} bytes"
        )


def _fail(reason: str) -> NoReturn:
    raise PhobosError.at(None, f"a tensor map {reason}")


# Arguments ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TensorMapArgument:
    """A kernel argument of 128 bytes: the map of an array.

    Attributes:
        array: The tensor, which may be an argument of its own too. Its shape and strides become
            those of the map.
        type: The type of an element as it is copied, a key of `ELEMENT_BYTES`.
        box: Elements along each axis that one copy moves, outermost axis first.
        swizzle: 0, 32, 64 or 128 bytes.
    """

    array: npt.NDArray
    type: str
    box: tuple[int, ...]
    swizzle: int = 0

    def at(self, address: int) -> TensorMap:
        """The map, for an array that lies at `address`.

        Raises:
            PhobosError: The elements of the array do not have the size of the type.
        """
        item, wanted = self.array.dtype.itemsize, ELEMENT_BYTES.get(self.type)
        if wanted is not None and item != wanted:
            _fail(f"of {self.type} has elements of {wanted} bytes, got an array of {item} bytes")
        return TensorMap(
            address,
            self.type,
            self.array.shape,
            self.array.strides,
            tuple(int(extent) for extent in self.box),
            self.swizzle,
        )


# Data --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BoxPlace:
    """Where a box lies: the part of the tensor inside it, and the part of the box that it fills.

    `start` holds the lowest coordinate of the box on each axis, outermost first.
    """

    tensor_map: TensorMap
    start: tuple[int, ...]

    @property
    def inside(self) -> tuple[slice, ...]:
        """The part of the tensor."""
        return tuple(
            slice(max(0, min(low, extent)), max(0, min(low + size, extent)))
            for low, size, extent in zip(
                self.start, self.tensor_map.box, self.tensor_map.extents, strict=True
            )
        )

    @property
    def filled(self) -> tuple[slice, ...]:
        """The part of the box, of the same shape."""
        return tuple(
            slice(part.start - low, part.stop - low) if part.stop > part.start else slice(0, 0)
            for part, low in zip(self.inside, self.start, strict=True)
        )

    @property
    def is_empty(self) -> bool:
        """Whether the box lies outside the tensor."""
        return any(part.stop <= part.start for part in self.inside)

    @property
    def span(self) -> tuple[int, int]:
        """The first address of the part of the tensor and one past its last."""
        found = self.tensor_map
        low = high = found.address
        for part, stride in zip(self.inside, found.strides, strict=True):
            low += part.start * stride
            high += (part.stop - 1) * stride
        return low, high + found.element_bytes

    def rows(self, offset: int) -> tuple[npt.NDArray[np.int64], int]:
        """Where the rows inside start in a store, as for `view`, and the bytes of each."""
        found = self.tensor_map
        *outer, inner = self.inside
        if self.is_empty:
            return np.zeros(0, dtype=np.int64), 0
        starts = np.array([found.address - offset + inner.start * found.element_bytes])
        for part, stride in zip(outer, found.strides[:-1], strict=True):
            starts = (starts[:, None] + stride * np.arange(part.start, part.stop)).reshape(-1)
        return starts, (inner.stop - inner.start) * found.element_bytes

    def view(self, store: npt.NDArray[np.uint8], offset: int) -> npt.NDArray:
        """The part of the tensor as patterns in a store, where address `a` is byte `a - offset`."""
        found = self.tensor_map
        shape = tuple(part.stop - part.start for part in self.inside)
        low, high = self.span
        raw = store[low - offset : high - offset]
        dtype = UNSIGNED[8 * found.element_bytes]
        return np.ndarray(shape, dtype, raw, strides=found.strides)

    def gather(self, part: npt.NDArray) -> npt.NDArray[np.uint8]:
        """The bytes of the box in order from the part of the tensor inside; 0 elsewhere."""
        found = self.tensor_map
        box = np.zeros(found.box, UNSIGNED[8 * found.element_bytes])
        convert = CONVERSIONS.get(found.type)
        box[self.filled] = part if convert is None else convert(part)
        return box.reshape(-1).view(np.uint8)

    def scatter(self, box: npt.NDArray[np.uint8], part: npt.NDArray) -> None:
        """Write the bytes of a box into the part of the tensor inside."""
        found = self.tensor_map
        elements = box.view(UNSIGNED[8 * found.element_bytes]).reshape(found.box)
        part[...] = elements[self.filled]
