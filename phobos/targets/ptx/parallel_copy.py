"""Put copies that happen at once into an order in which they can happen one by one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TypeVar

KindT = TypeVar("KindT")

Copy = tuple[str, str, KindT]
"""Destination, source, and the kind of register."""


def order_copies(copies: Sequence[Copy[KindT]], fresh: Callable[[KindT], str]) -> list[Copy[KindT]]:
    """Order parallel copies; a cycle is cut with a register from ``fresh``.

    Destinations are distinct and no copy is to itself. With (a <- b, b <- a) the result is
    (t <- a, a <- b, b <- t). Linear in the number of copies.
    """
    pending = {destination: (source, kind) for destination, source, kind in copies}
    reads = Counter(source for source, _ in pending.values())
    ready = deque(destination for destination in pending if not reads[destination])
    ordered: list[Copy[KindT]] = []
    while pending:
        if not ready:
            # Only cycles are left: every destination is still read by another copy.
            first = next(iter(pending))
            kind = pending[first][1]
            saved = fresh(kind)
            ordered.append((saved, first, kind))
            for destination, (source, its_kind) in pending.items():
                if source == first:
                    pending[destination] = (saved, its_kind)
            reads[first] = 0
            ready.append(first)
        destination = ready.popleft()
        source, kind = pending.pop(destination)
        ordered.append((destination, source, kind))
        reads[source] -= 1
        if source in pending and not reads[source]:
            ready.append(source)
    return ordered
