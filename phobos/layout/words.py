"""Conversions within warps that move whole words, where elements are smaller than a word.

A shuffle moves 32 bits. Elements that a thread holds together in the layout before and in the one
after can share a word on the way: their tile bits are dropped from both layouts, and what is left
is a conversion of words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from phobos.layout.build import REGISTER
from phobos.layout.convert import Conversion, plan_conversion
from phobos.layout.linear import LinearLayout


class WordConversion(NamedTuple):
    """A conversion of words, and the registers of the elements in each, the lowest bits first."""

    conversion: Conversion
    source: tuple[tuple[int, ...], ...]
    target: tuple[tuple[int, ...], ...]

    @property
    def per_word(self) -> int:
        """The elements in a word."""
        return len(self.source[0])


@lru_cache(maxsize=256)
def plan_words(source: LinearLayout, target: LinearLayout, per_word: int) -> WordConversion:
    """How to get a tile from `source` into `target` with up to `per_word` elements a word.

    >>> rows = LinearLayout.parse("register=[[0, 1], [1, 0]] lane=[[0, 2]] -> [2, 4]")
    >>> wide = LinearLayout.parse("register=[[0, 1], [0, 2]] lane=[[1, 0]] -> [2, 4]")
    >>> plan = plan_words(rows, wide, 2)
    >>> plan.source, plan.target, plan.conversion.shuffle.shuffles
    (((0, 1), (2, 3)), ((0, 1), (2, 3)), 1)
    """
    bits = _common_bits(source, target)[: per_word.bit_length() - 1]
    vectors = tuple(1 << bit for bit in bits)
    words = (_without(source, bits), _without(target, bits))
    return WordConversion(
        plan_conversion(*words), _registers(source, vectors), _registers(target, vectors)
    )


def _common_bits(source: LinearLayout, target: LinearLayout) -> list[int]:
    """The tile bits that one register bit, and nothing else, moves in each of two layouts."""
    return [
        bit
        for bit in range(source.elements.bit_length() - 1)
        if all(_is_of_one_register(layout, bit) for layout in (source, target))
    ]


def _is_of_one_register(layout: LinearLayout, bit: int) -> bool:
    moved_by = [vector for vector in layout.columns if vector >> bit & 1]
    return moved_by == [1 << bit] and 1 << bit in layout.packed(REGISTER)


def _without(layout: LinearLayout, bits: list[int]) -> LinearLayout:
    """A layout of one axis without some tile bits and the register bits that move them."""
    dropped = {1 << bit for bit in bits}
    kept = [bit for bit in range(layout.elements.bit_length() - 1) if bit not in bits]

    def moved(vector: int) -> int:
        return sum((vector >> bit & 1) << place for place, bit in enumerate(kept))

    inputs = tuple(
        (name, tuple(moved(vector) for vector in vectors if vector not in dropped))
        for name, vectors in layout.inputs
    )
    return LinearLayout(inputs, (("dim0", 1 << len(kept)),))


def _registers(layout: LinearLayout, vectors: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The registers of each word: those bits of their numbers count the elements of the word."""
    own = layout.packed(REGISTER)
    inside = [1 << own.index(vector) for vector in vectors]
    outside = [1 << bit for bit, vector in enumerate(own) if vector not in vectors]
    return tuple(tuple(word | element for element in _sums(inside)) for word in _sums(outside))


def _sums(steps: list[int]) -> list[int]:
    """The sums of all selections of steps, counted in binary, the first step lowest."""
    sums = [0]
    for step in steps:
        sums += [known + step for known in sums]
    return sums
