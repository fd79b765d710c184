"""What lowering asks of a register layout: vectors, coordinates as bit fields, coalescing."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from phobos.layout import gf2
from phobos.layout.algebra import flatten_inputs
from phobos.layout.build import LANE, REGISTER, WARP, log2
from phobos.layout.linear import LinearLayout
from phobos.layout.text import LayoutError

SECTOR_BYTES = 32  # the unit in which global memory is read and written
THREAD = "thread"


def axis_shift(layout: LinearLayout, axis: int | str) -> int:
    """The position of the lowest bit of an axis in a packed coordinate.

    >>> axis_shift(LinearLayout.parse("-> [8, 4]"), 0)
    2
    """
    below = layout.shape[layout.axis_of(axis) + 1 :]
    return sum(map(log2, below))


def axis_bits(layout: LinearLayout, axis: int | str) -> int:
    """The number of bits of the coordinate along an axis."""
    return log2(layout.shape[layout.axis_of(axis)])


# ---- vectors


@lru_cache(maxsize=1024)
def contiguous_vector(layout: LinearLayout, axis: int | str, name: str = REGISTER) -> int:
    """The widest vector: so many consecutive values of input `name` are consecutive elements.

    The vectors are aligned: each starts at a coordinate divisible by its width.

    >>> contiguous_vector(LinearLayout.parse("register=[[1], [2], [64]] lane=[[4]] -> [128]"), 0)
    4
    """
    shift = axis_shift(layout, axis)
    vectors = layout.packed(name)
    width = 0
    while width < min(len(vectors), axis_bits(layout, axis)):
        if vectors[width] != 1 << (shift + width):
            break
        width += 1
    while width and not _starts_aligned(layout, name, shift, width):
        width -= 1
    return 1 << width


def _starts_aligned(layout: LinearLayout, name: str, shift: int, width: int) -> bool:
    """True if no bit but the lowest `width` of input `name` moves inside a vector."""
    inside = ((1 << width) - 1) << shift
    return not any(
        vector & inside
        for known, vectors in layout.inputs
        for vector in (vectors[width:] if known == name else vectors)
    )


@lru_cache(maxsize=1024)
def vector_bits(layout: LinearLayout, axis: int | str, name: str = REGISTER) -> tuple[int, ...]:
    """Masks of `name` that step through consecutive elements, even if not in order.

    Mask i, XORed onto any value of the input, moves the element by 2**i along the axis within
    its aligned vector.  The widest vector has 2**len(result) elements; `contiguous_vector` is the
    case that the masks are 1, 2, 4, ....

    >>> vector_bits(LinearLayout.parse("register=[[0, 2], [1, 0], [0, 1]] -> [2, 4]"), 1)
    (4, 1)
    """
    shift = axis_shift(layout, axis)
    span = gf2.Span(layout.packed(name))
    moved_by_others = 0
    for other, vectors in layout.inputs:
        if other != name:
            moved_by_others |= reduce(or_, vectors, 0)
    masks: list[int] = []
    for bit in range(axis_bits(layout, axis)):
        # Where another input moves the bit too, the order in the vector would depend on it.
        mask = span.solve(1 << (shift + bit))
        if mask is None or moved_by_others >> (shift + bit) & 1:
            break
        masks.append(mask)
    return tuple(masks)


# ---- coordinates


class BitField(NamedTuple):
    """A run of input bits that becomes a run of coordinate bits.

    Its contribution is `((index >> source) & (2**width - 1)) << target`.
    """

    source: int
    width: int
    target: int

    @property
    def mask(self) -> int:
        """The mask of the field before it is shifted to its target."""
        return (1 << self.width) - 1

    def apply(self, index: int) -> int:
        """The contribution of the field to the coordinate."""
        return ((index >> self.source) & self.mask) << self.target


@lru_cache(maxsize=4096)
def bit_fields(layout: LinearLayout, axis: int | str, name: str) -> tuple[BitField, ...]:
    """How the coordinate along an axis is computed from one input: the XOR of these fields.

    Neighbouring bits that move together are one field, so most layouts need one or two.

    >>> bit_fields(LinearLayout.parse("lane=[[4], [8], [0], [1]] -> [16]"), 0, "lane")
    (BitField(source=0, width=2, target=2), BitField(source=3, width=1, target=0))
    """
    axis = layout.axis_of(axis)
    bits = {
        (source, target)
        for source, vector in enumerate(layout.bases(name))
        for target in range(vector[axis].bit_length())
        if vector[axis] >> target & 1
    }
    fields: list[BitField] = []
    for source, target in sorted(bits):
        if (source - 1, target - 1) in bits:
            continue
        width = 1
        while (source + width, target + width) in bits:
            width += 1
        fields.append(BitField(source, width, target))
    return tuple(fields)


@lru_cache(maxsize=1024)
def thread_layout(layout: LinearLayout) -> LinearLayout:
    """The layout with lane and warp joined to `thread` = lane + 32 * warp.

    Raises LayoutError if there are warps but fewer than 32 lanes.
    """
    if layout.in_bits(WARP) and layout.in_size(LANE) != 32:
        raise LayoutError(f"a layout with several warps needs 32 lanes: {layout}")
    return flatten_inputs(layout, (LANE, WARP), THREAD)


def thread_fields(layout: LinearLayout, axis: int | str) -> tuple[BitField, ...]:
    """How the coordinate along an axis depends on the thread index (see `bit_fields`).

    Thread numbers past the threads of the layout fall back onto it, because fields are masked.

    >>> layout = LinearLayout.parse("lane=[[1], [2], [4], [8], [16]] warp=[[32]] -> [64]")
    >>> thread_fields(layout, 0)
    (BitField(source=0, width=6, target=0),)
    """
    return bit_fields(thread_layout(layout), layout.axis_of(axis), THREAD)


@lru_cache(maxsize=1024)
def register_coordinates(layout: LinearLayout) -> tuple[tuple[int, ...], ...]:
    """The coordinates of every register of thread 0.

    Thread t holds in register r the coordinates of thread t's register 0 XOR these; where
    `is_additive`, also their sum.
    """
    packed = [0]
    for vector in layout.packed(REGISTER):
        packed += [other ^ vector for other in packed]
    return tuple(map(layout.unpack, packed))


@lru_cache(maxsize=1024)
def is_additive(layout: LinearLayout, axis: int | str) -> bool:
    """True if along the axis register and thread coordinates share no bit.

    Then a register's coordinate is the thread's plus a constant.
    """
    axis = layout.axis_of(axis)
    registers = threads = 0
    for name in layout.in_names:
        for vector in layout.bases(name):
            if name == REGISTER:
                registers |= vector[axis]
            else:
                threads |= vector[axis]
    return not registers & threads


# ---- global memory


class Coalescing(NamedTuple):
    """Sectors of 32 bytes that one access instruction of a warp touches, and the fewest possible.

    `lines` is the number of 128-byte cache lines touched.
    """

    sectors: int
    ideal: int
    lines: int

    @property
    def efficiency(self) -> float:
        """The used share of the bytes moved, between 0 and 1."""
        return self.ideal / self.sectors


@lru_cache(maxsize=1024)
def coalescing(
    layout: LinearLayout,
    element_bytes: int,
    vector: int = 1,
    strides: tuple[int, ...] | None = None,
) -> Coalescing:
    """How well one instruction in which every lane accesses `vector` elements uses memory.

    The vector is the aligned `vector` elements of the fastest axis, at a base address aligned to
    128 bytes.  `strides` are in elements, one an axis, the vector's being 1; without them the
    last axis is contiguous and different rows share no sector.

    >>> rows = LinearLayout.parse("register=[[0, 1]] lane=[[1, 0], [2, 0]] -> [4, 2]")
    >>> coalescing(rows, element_bytes=4, vector=2)
    Coalescing(sectors=4, ideal=1, lines=4)
    """
    if strides is None:
        far = layout.elements * max(128, element_bytes)  # no two rows in one line
        strides = (*(far << (8 * axis) for axis in range(layout.rank - 1)), 1)
    if len(strides) != layout.rank:
        raise LayoutError(f"expected {layout.rank} strides, got {len(strides)}")
    steps = [vector if stride == 1 else 1 for stride in strides]
    starts: set[int] = set()
    for lane in range(layout.in_size(LANE)):
        coordinates = layout.apply(**{LANE: lane})
        aligned = [c // step * step for c, step in zip(coordinates, steps, strict=True)]
        starts.add(element_bytes * sum(c * s for c, s in zip(aligned, strides, strict=True)))
    return _count_sectors(starts, vector * element_bytes)


def _count_sectors(starts: Collection[int], width: int) -> Coalescing:
    touched = {byte // SECTOR_BYTES for s in starts for byte in (*range(s, s + width, 4), s)}
    used = len(starts) * width
    return Coalescing(
        sectors=len(touched),
        ideal=max(1, -(-used // SECTOR_BYTES)),
        lines=len({sector // 4 for sector in touched}),
    )
