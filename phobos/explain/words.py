"""Register layouts in words: what a thread holds, what a warp covers, how warps lie.

    >>> from phobos.layout import LinearLayout
    >>> rows = "register=[[0, 1], [0, 2]] lane=[[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]] "
    >>> warps = "warp=[[1, 0], [2, 0]] -> [4, 128]"
    >>> for line in layout_words(LinearLayout.parse(rows + warps), (4, 128)):
    ...     print(line)
    each thread holds 4 elements: 4 consecutive columns
    a warp's lanes side by side cover 128 columns
    4 warps along the rows

Layouts whose threads mix axes (swizzles) are described by `phobos.layout.describe`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phobos.layout.build import LANE, REGISTER, WARP
from phobos.layout.contraction import flat
from phobos.layout.describe import describe
from phobos.layout.linear import LinearLayout
from phobos.record import Record, record

Bits = tuple[tuple[int, int], ...]
"""Bits of coordinates as (axis, position), in the order of the input's bits."""


@record
class _Bits(Record):
    """What the bits of one input move, and how many of them move nothing."""

    moving: Bits
    copies: int


def layout_words(layout: LinearLayout, shape: Sequence[int]) -> tuple[str, ...]:
    """Who holds which elements of a tile, a clause for threads, warps, and the CTA.

    A tile whose axes before the last two have extent 1 has rows and columns.
    """
    if layout.rank > 2 and all(extent == 1 for extent in layout.shape[:-2]):
        layout, shape = flat(layout), shape[-2:]
    inputs = {name: _bits_of(layout, name) for name in (REGISTER, LANE, WARP)}
    found = [bits for bits in inputs.values() if bits is not None]
    if len(found) < len(inputs):
        return (describe(layout),)
    registers, lanes, warps = found
    nouns = axis_nouns(layout.rank)
    block = _low_block(registers.moving, layout.rank)
    lines = [
        _thread_words(registers, block, nouns),
        _lane_words(lanes, block, nouns),
        _warp_words(warps, nouns),
        _copy_words(lanes, warps),
    ]
    if tuple(shape) != layout.shape:
        size = " x ".join(map(str, layout.shape))
        lines.append(f"laid out as {size}; what lies past the tile is not used")
    return tuple(line for line in lines if line)


def held_elements(layout: LinearLayout) -> int:
    """Different elements that one thread holds."""
    return 1 << sum(1 for vector in layout.packed(REGISTER) if vector)


def axis_nouns(rank: int) -> tuple[str, ...]:
    """What the positions along each axis are called, in the plural."""
    if rank <= 2:
        return ((), ("elements",), ("rows", "columns"))[rank]
    return tuple(f"of axis {axis}" for axis in range(rank))


def _bits_of(layout: LinearLayout, name: str) -> _Bits | None:
    """The bits of an input; None if one of them moves more than one bit of the coordinates."""
    if name not in layout.in_names:
        return _Bits((), 0)
    moving: list[tuple[int, int]] = []
    copies = 0
    for vector in layout.bases(name):
        axes = [axis for axis, value in enumerate(vector) if value]
        if not axes:
            copies += 1
        elif len(axes) == 1 and vector[axes[0]].bit_count() == 1:
            moving.append((axes[0], vector[axes[0]].bit_length() - 1))
        else:
            return None
    return _Bits(tuple(moving), copies)


def _low_block(bits: Iterable[tuple[int, int]], rank: int) -> tuple[int, ...]:
    """Per axis, how many of its lowest bits are all among these."""
    present = set(bits)
    counts = []
    for axis in range(rank):
        count = 0
        while (axis, count) in present:
            count += 1
        counts.append(count)
    return tuple(counts)


def _thread_words(registers: _Bits, block: tuple[int, ...], nouns: tuple[str, ...]) -> str:
    elements = 1 << len(registers.moving)
    if elements == 1:
        return "each thread holds 1 element"
    far = [(axis, bit) for axis, bit in registers.moving if bit >= block[axis]]
    piece = _extents_words([1 << count for count in block], nouns, "consecutive ")
    repeats = [_repeat_words(run, nouns) for run in _runs(far)]
    if not piece:
        return f"each thread holds {elements} elements, {' and '.join(repeats)}"
    return f"each thread holds {elements} elements: {', '.join([piece, *repeats])}"


def _lane_words(lanes: _Bits, block: tuple[int, ...], nouns: tuple[str, ...]) -> str:
    if not lanes.moving:
        return ""
    own = {(axis, bit) for axis, count in enumerate(block) for bit in range(count)}
    covered = _low_block({*own, *lanes.moving}, len(nouns))
    far = [(axis, bit) for axis, bit in lanes.moving if bit >= covered[axis]]
    parts = [_extents_words([1 << count for count in covered], nouns, "")]
    parts += [_repeat_words(run, nouns) for run in _runs(far)]
    return f"a warp's lanes side by side cover {', '.join(part for part in parts if part)}"


def _warp_words(warps: _Bits, nouns: tuple[str, ...]) -> str:
    runs = _runs(warps.moving)
    if not runs:
        return ""
    parts: list[str] = []
    for axis, step, count in runs:
        where = f"the {nouns[axis]}" if len(nouns) < 3 else f"axis {axis}"
        apart = f" ({step} apart)" if len(runs) > 1 or step > 1 else ""
        parts.append(f"{count} warps along {where}{apart}")
    return " and ".join(parts)


def _copy_words(lanes: _Bits, warps: _Bits) -> str:
    if lanes.copies and not lanes.moving:
        who = "every lane of a warp" if not warps.copies else "every thread"
        alike = not warps.copies or not warps.moving
        return f"{who} has {'the same' if alike else 'a copy'}"
    parts = []
    if lanes.copies:
        parts.append(f"{1 << lanes.copies} lanes of a warp")
    if warps.copies:
        parts.append(f"{1 << warps.copies} warps" if warps.moving else "all warps")
    return f"{' and '.join(parts)} hold the same" if parts else ""


def _repeat_words(run: tuple[int, int, int], nouns: tuple[str, ...]) -> str:
    axis, step, count = run
    if len(nouns) > 2:
        return f"{count} times {step} apart along axis {axis}"
    noun = nouns[axis].removesuffix("s") if step == 1 else nouns[axis]
    return f"{count} times {step} {noun} apart"


def _runs(bits: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Neighbouring bits of one axis as (axis, step, count), the first axis first."""
    runs: list[tuple[int, int, int]] = []
    for axis, bit in sorted(bits):
        if runs and runs[-1][0] == axis and runs[-1][1] * runs[-1][2] == 1 << bit:
            runs[-1] = (axis, runs[-1][1], 2 * runs[-1][2])
        else:
            runs.append((axis, 1 << bit, 2))
    return runs


def _extents_words(extents: Sequence[int], nouns: tuple[str, ...], adjective: str) -> str:
    """`4 consecutive columns`, or `2 rows x 4 columns` where there are several axes."""
    long = [(extent, noun) for extent, noun in zip(extents, nouns, strict=True) if extent > 1]
    if not long:
        return ""
    if len(long) == 1:
        extent, noun = long[0]
        return f"{extent} {adjective}{'elements ' if len(nouns) > 2 else ''}{noun}"
    if len(nouns) == 2:
        return f"{extents[0]} rows x {extents[1]} columns"
    return f"a block of {' x '.join(map(str, extents))}"
