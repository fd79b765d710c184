"""The shared-memory layout through which a tile changes its register layout.

Both sides should use wide accesses and no two lanes that go at once should meet in a bank.  A
layout is a choice of which tile bits are the low offset bits (moved as one vector), which select
the bank, and which the line; lanes collide where their differences lie among the line bits, so
those are chosen outside of what the lanes of either side span.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from phobos.layout import gf2
from phobos.layout.build import LANE, OFFSET, REGISTER, log2
from phobos.layout.linear import LinearLayout
from phobos.layout.shared import (
    BANK_BYTES,
    LINE_BYTES,
    MAX_VECTOR_BYTES,
    BankConflicts,
    bank_conflicts,
    row_major,
    shared_vector,
)


class SharedExchange(NamedTuple):
    """A shared layout, and the vector widths (in elements) and conflicts of both sides."""

    shared: LinearLayout
    store_vector: int
    load_vector: int
    store: BankConflicts
    load: BankConflicts

    @property
    def wavefronts_per_element(self) -> float:
        """Wavefronts of both sides for one element of each lane: what exchanges compare by."""
        stores = self.store.wavefronts / self.store_vector
        return stores + self.load.wavefronts / self.load_vector

    @property
    def instructions_per_element(self) -> float:
        """Accesses of both sides for one element of each lane."""
        return 1 / self.store_vector + 1 / self.load_vector


@lru_cache(maxsize=512)
def plan_exchange(source: LinearLayout, target: LinearLayout, element_bytes: int) -> SharedExchange:
    """The shared layout to store from `source` and load into `target`.

    Elements have a power of two of at most 16 bytes.  Vectors that both sides share come first;
    whether one side alone should have wider ones is tried.

    >>> rows = LinearLayout.parse("register=[[0, 1]] lane=[[1, 0]] warp=[[2, 0]] -> [4, 2]")
    >>> columns = LinearLayout.parse("register=[[1, 0]] lane=[[2, 0]] warp=[[0, 1]] -> [4, 2]")
    >>> plan = plan_exchange(rows, columns, element_bytes=4)
    >>> plan.store.factor, plan.load.factor
    (1, 1)
    """
    ways = ((), source.packed(REGISTER), target.packed(REGISTER))
    candidates = [_exchange_layout(source, target, element_bytes, own) for own in ways]
    plans = [
        judge_exchange(source, target, shared, element_bytes)
        for shared in dict.fromkeys((*candidates, row_major(source.shape)))
        if shared.outputs == source.outputs
    ]
    return min(plans, key=lambda p: (p.wavefronts_per_element, p.instructions_per_element))


def _exchange_layout(
    source: LinearLayout, target: LinearLayout, element_bytes: int, own: Sequence[int]
) -> LinearLayout:
    """A shared layout whose vectors are common to both sides and then extended from `own`."""
    bits = log2(source.elements)
    units = [1 << bit for bit in range(bits)]
    registers = (source.packed(REGISTER), target.packed(REGISTER))
    common = gf2.intersect(*registers)
    # What the source holds side by side comes first: an asynchronous copy moves it at once.
    span = gf2.Span(common)
    side_by_side = (held for held in registers[0] if held in span)
    vector_bits = log2(MAX_VECTOR_BYTES // element_bytes)
    vector = gf2.independent((*side_by_side, *_tidy(common), *_tidy(own)))[:vector_bits]
    word_bits = log2(max(1, BANK_BYTES // element_bytes))
    lanes = (source.packed(LANE), target.packed(LANE))
    low = _fill_word(vector, lanes, units, word_bits)
    reaches = [
        _reach(low, held, lane, word_bits, element_bytes)
        for held, lane in zip(registers, lanes, strict=True)
    ]
    line_bits = max(0, bits - log2(LINE_BYTES // element_bytes))
    lines = _line_bits(low, reaches, units, line_bits)
    banks = gf2.independent(units, beyond=(*low, *lines))
    return LinearLayout(((OFFSET, (*low, *banks, *lines)),), source.outputs)


def judge_exchange(
    source: LinearLayout, target: LinearLayout, shared: LinearLayout, element_bytes: int
) -> SharedExchange:
    """What an exchange through a given shared layout costs, with the best vector widths."""
    store_vector, store = best_access(source, shared, element_bytes)
    load_vector, load = best_access(target, shared, element_bytes)
    return SharedExchange(shared, store_vector, load_vector, store, load)


def best_access(
    layout: LinearLayout, shared: LinearLayout, element_bytes: int
) -> tuple[int, BankConflicts]:
    """The vector width with the fewest wavefronts an element, the wider one of equals."""
    widest = shared_vector(layout, shared, element_bytes)
    costs = [
        (width, bank_conflicts(layout, shared, element_bytes, width))
        for width in (1 << bit for bit in range(log2(widest) + 1))
    ]
    return min(costs, key=lambda cost: (cost[1].wavefronts / cost[0], -cost[0]))


def _tidy(vectors: Sequence[int]) -> list[int]:
    """A basis of the same space with unit vectors where there are any, lowest first."""
    span = gf2.Span(vectors)
    width = max(vectors, default=0).bit_length()
    units = [1 << bit for bit in range(width) if 1 << bit in span]
    return list(gf2.independent((*units, *vectors)))


def _fill_word(
    vector: Sequence[int], lanes: Sequence[Sequence[int]], units: Sequence[int], word_bits: int
) -> tuple[int, ...]:
    """Fill the word around a vector of less than 4 bytes: lanes may share words freely."""
    common = gf2.intersect((*vector, *lanes[0]), (*vector, *lanes[1]))
    best = (*common, *lanes[0], *lanes[1], *units)
    missing = max(0, word_bits - len(vector))
    return (*vector, *gf2.independent(best, beyond=vector)[:missing])


def _reach(
    low: Sequence[int],
    registers: Sequence[int],
    lanes: Sequence[int],
    word_bits: int,
    element_bytes: int,
) -> tuple[int, ...]:
    """What the lanes of one side that go at once reach, each with its vector or word."""
    held = gf2.Span(registers)
    vector = 0
    while vector < len(low) and low[vector] in held:
        vector += 1
    unit = max(vector, word_bits)
    at_once = log2(LINE_BYTES // element_bytes) - unit
    return (*low[:unit], *lanes[:at_once])


def _line_bits(
    low: Sequence[int], reaches: Sequence[Sequence[int]], units: Sequence[int], count: int
) -> tuple[int, ...]:
    """`count` vectors that stay clear of what either side reaches at once.

    Free of conflict are the vectors beyond both sides, and sums of one vector that only the one
    side and one that only the other side reaches.  If they do not suffice, lanes collide.
    """
    left, right = reaches
    beyond = gf2.independent(units, beyond=(*low, *left, *right))
    common = gf2.intersect(left, right)
    only_left = gf2.independent(left, beyond=common)
    only_right = gf2.independent(right, beyond=common)
    sums = [a ^ b for a, b in zip(only_left, only_right, strict=False)]
    best = (*beyond, *sums, *only_left, *only_right, *units)
    return gf2.independent(best, beyond=low)[:count]
