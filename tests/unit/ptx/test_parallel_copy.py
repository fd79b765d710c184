"""Copies that happen at once, put in an order."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from phobos.targets.ptx.parallel_copy import order_copies

NAMES = [f"r{i}" for i in range(8)]


@given(st.lists(st.sampled_from(NAMES), min_size=8, max_size=8), st.sets(st.sampled_from(NAMES)))
def test_copies_in_order_do_what_copies_at_once_do(sources: list[str], skipped: set[str]):
    copies = [
        (destination, source, "b32")
        for destination, source in zip(NAMES, sources, strict=True)
        if destination != source and destination not in skipped
    ]
    registers = {name: name for name in NAMES}
    expected = registers | {destination: source for destination, source, _ in copies}
    numbers = count()
    for destination, source, _ in order_copies(copies, lambda kind: f"t{next(numbers)}"):
        registers[destination] = registers[source]
    assert {name: registers[name] for name in NAMES} == expected


def test_a_swap_needs_one_more_register():
    ordered = order_copies([("a", "b", 1), ("b", "a", 1)], lambda kind: f"t{kind}")
    assert ordered == [("t1", "a", 1), ("a", "b", 1), ("b", "t1", 1)]


def test_copies_without_cycles_keep_to_themselves():
    def fresh(kind: int) -> str:
        raise AssertionError("no register is needed")

    assert order_copies([("a", "b", 0), ("b", "c", 0)], fresh) == [("a", "b", 0), ("b", "c", 0)]
    assert order_copies([], fresh) == []
