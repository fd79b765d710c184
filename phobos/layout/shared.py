"""Tiles in shared memory: where an element lies, and what an access costs.

A shared layout maps `offset`, counted in elements, to tile coordinates.  Swizzles are the XOR
patterns that let rows and columns both be read without bank conflicts; they are linear like any
other layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from phobos.layout import gf2
from phobos.layout.algebra import compose, pseudo_invert
from phobos.layout.build import LANE, OFFSET, checked_order, log2
from phobos.layout.linear import LinearLayout
from phobos.layout.queries import vector_bits
from phobos.layout.text import LayoutError, default_names

BANK_BYTES = 4
BANKS = 32
LINE_BYTES = BANKS * BANK_BYTES  # what shared memory delivers in one wavefront
CHUNK_BYTES = 16  # what hardware swizzles move as a whole; a row of an ldmatrix matrix
MAX_VECTOR_BYTES = 16


def row_major(shape: Sequence[int], order: Sequence[int] | None = None) -> LinearLayout:
    """The plain layout: axes of `order`, fastest first (default: the last axis).

    >>> str(row_major((2, 4)))
    'offset=[[0, 1], [0, 2], [1, 0]] -> [2, 4]'
    """
    return swizzled(shape, 1, 1, 1, order)


def swizzled(
    shape: Sequence[int],
    vector: int,
    per_phase: int,
    max_phase: int,
    order: Sequence[int] | None = None,
) -> LinearLayout:
    """Rows in which groups of `vector` elements are exchanged, differently from row to row.

    Group c of row r is stored where group `c ^ (r // per_phase % max_phase)` would be.  Rows run
    along the fastest axis of `order`, r counts along the second; all numbers are powers of two,
    and the pattern wraps where a row has fewer than `max_phase` groups.

    >>> swizzled((8, 8), vector=2, per_phase=1, max_phase=4).apply(offset=8)
    (1, 2)
    """
    return _swizzled(tuple(shape), vector, per_phase, max_phase, checked_order(order, len(shape)))


@lru_cache(maxsize=256)
def _swizzled(
    shape: tuple[int, ...], vector: int, per_phase: int, max_phase: int, order: tuple[int, ...]
) -> LinearLayout:
    for number in (vector, per_phase, max_phase):
        log2(number)
    frame = LinearLayout((), tuple(zip(default_names(len(shape)), shape, strict=True)))
    bases: list[list[int]] = []
    for position, axis in enumerate(order):
        for bit in range(log2(shape[axis])):
            at = [0] * len(shape)
            at[axis] = 1 << bit
            if position == 1:
                phase = (1 << bit) // per_phase % max_phase
                at[order[0]] = phase * vector % shape[order[0]]
            bases.append(at)
    return LinearLayout(((OFFSET, tuple(map(frame.pack, bases))),), frame.outputs)


HARDWARE_PHASES = {128: (1, 8), 64: (2, 4), 32: (4, 2)}
"""Row bytes of a hardware swizzle -> (rows a phase, phases)."""


def hardware_swizzle(
    shape: tuple[int, int], element_bytes: int, row_bytes: int, *, transposed: bool = False
) -> LinearLayout:
    """The swizzle of bulk tensor copies, `wgmma` and conflict-free `ldmatrix`.

    Chunks of 16 bytes are exchanged within rows of `row_bytes` (128, 64 or 32); a tile with longer
    rows is split into panels of that width, stored one after the other.  In bytes:
    `address ^= ((address >> 7) & {7, 3, 1}) << 4`.  `transposed` stores axis 0 contiguously.

    >>> layout = hardware_swizzle((8, 64), element_bytes=2, row_bytes=128)
    >>> layout.apply(offset=64 * 3)  # row 3 starts with chunk 3
    (3, 24)
    """
    if row_bytes not in HARDWARE_PHASES:
        raise LayoutError(f"hardware swizzles have rows of 128, 64 or 32 bytes, got {row_bytes}")
    columns = shape[0] if transposed else shape[1]
    width = row_bytes // element_bytes
    if columns < width:
        raise LayoutError(
            f"a row of {columns} x {element_bytes} bytes is shorter than the {row_bytes} bytes "
            "of the swizzle"
        )
    swizzle = (CHUNK_BYTES // element_bytes, *HARDWARE_PHASES[row_bytes])
    return in_panels(shape, width, swizzle, transposed=transposed)


def in_panels(
    shape: tuple[int, int], width: int, swizzle: tuple[int, int, int], *, transposed: bool = False
) -> LinearLayout:
    """A tile in panels of `width` elements along its rows, one after the other, each swizzled.

    `swizzle` is (vector, per_phase, max_phase) of `swizzled`.  `transposed` stores axis 0
    contiguously: rows run along it.

    >>> layout = in_panels((2, 8), 4, (2, 1, 2))
    >>> layout.apply(offset=4), layout.apply(offset=8)
    ((1, 2), (0, 4))
    """
    rows, columns = reversed(shape) if transposed else shape
    order = (0, 1) if transposed else (1, 0)
    panel = swizzled((width, rows) if transposed else (rows, width), *swizzle, order)
    panels = (width << bit for bit in range(log2(columns // width)))
    further = [(p, 0) if transposed else (0, p) for p in panels]
    return LinearLayout.from_bases({OFFSET: [*panel.bases(OFFSET), *further]}, shape)


def offsets(layout: LinearLayout, shared: LinearLayout) -> LinearLayout:
    """Where each register of each thread lies in shared memory: register, lane, warp -> offset."""
    return compose(layout, pseudo_invert(shared))


def as_part(layout: LinearLayout, whole: LinearLayout) -> LinearLayout:
    """The layout of a part that begins at 0, in a tile of the extents of `whole`."""
    bases = {name: layout.bases(name) for name in layout.in_names}
    return LinearLayout.from_bases(bases, dict(whole.outputs))


def shared_vector(layout: LinearLayout, shared: LinearLayout, element_bytes: int) -> int:
    """The widest vector, in elements, in which threads can access their registers.

    The registers need not be neighbours (see `queries.vector_bits` of `offsets`).

    >>> registers = LinearLayout.parse("register=[[0, 1], [0, 2]] lane=[[1, 0]] -> [2, 4]")
    >>> shared_vector(registers, row_major((2, 4)), element_bytes=4)
    4
    """
    width = 1 << len(vector_bits(offsets(layout, shared), 0))
    return min(width, max(1, MAX_VECTOR_BYTES // element_bytes))


class BankConflicts(NamedTuple):
    """Wavefronts that one access of a warp takes, and the fewest an access of its width can."""

    wavefronts: int
    ideal: int

    @property
    def factor(self) -> int:
        """How many times slower than conflict-free the access is; 1 is best."""
        return self.wavefronts // self.ideal


@lru_cache(maxsize=4096)
def bank_conflicts(
    layout: LinearLayout, shared: LinearLayout, element_bytes: int, vector: int = 1
) -> BankConflicts:
    """What it costs when every lane reads or writes `vector` elements of its registers.

    32 lanes go at once for up to 4 bytes a lane, 16 for 8 bytes and 8 for 16 bytes.  Lanes that
    want the same word share it.  As the map is linear, all instructions of the tile cost the same.

    >>> column = LinearLayout.parse("lane=[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]] -> [32, 32]")
    >>> bank_conflicts(column, row_major((32, 32)), element_bytes=4)
    BankConflicts(wavefronts=32, ideal=1)
    """
    unit_bytes = max(BANK_BYTES, vector * element_bytes)
    if unit_bytes > MAX_VECTOR_BYTES:
        raise LayoutError(
            f"one access moves at most {MAX_VECTOR_BYTES} bytes a lane, got {unit_bytes}"
        )
    lane_columns = offsets(layout, shared).packed(LANE)
    units = [column * element_bytes // unit_bytes for column in lane_columns]
    at_once = log2(LINE_BYTES // unit_bytes)
    phase = units[:at_once]
    banks = LINE_BYTES // unit_bytes
    clash = gf2.rank(phase) - gf2.rank(unit % banks for unit in phase)
    phases = 1 << max(0, len(units) - at_once)
    return BankConflicts(wavefronts=phases << clash, ideal=phases)


def count_wavefronts(addresses: Sequence[int], lane_bytes: int) -> int:
    """Wavefronts of one access at arbitrary byte addresses, one a lane, by counting.

    For layouts that are not linear, such as rows with padding, and as the definition that
    `bank_conflicts` is tested against.

    >>> count_wavefronts([0, 4, 128], 4), count_wavefronts([0, 4, 0], 4)
    (2, 1)
    """
    at_once = min(BANKS, LINE_BYTES // max(BANK_BYTES, lane_bytes))
    total = 0
    for start in range(0, len(addresses), at_once):
        words: dict[int, set[int]] = {}
        for address in addresses[start : start + at_once]:
            last = address + max(lane_bytes, 1) - 1
            for word in range(address // BANK_BYTES, last // BANK_BYTES + 1):
                words.setdefault(word % BANKS, set()).add(word)
        total += max(map(len, words.values()))
    return total
