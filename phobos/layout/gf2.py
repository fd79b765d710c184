"""Vectors over GF(2) as Python integers, and the few matrix questions layouts ask.

A vector is an int whose bit i is component i; addition is XOR.  A matrix is a sequence of
column vectors, and a *combination* is an int whose bit i says whether column i takes part.
Everything here is exact and costs O(columns * rank) integer operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Span:
    """A subspace grown one vector at a time, remembering how it was made.

    Vectors that depend on earlier ones are counted but not kept, so every answer uses the
    earliest independent vectors.

    >>> span = Span([0b011, 0b110, 0b101])
    >>> span.rank, span.solve(0b101), span.solve(0b001)
    (2, 3, None)
    """

    __slots__ = ("_added", "_rows")

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        """Start with the span of `vectors`, added in order."""
        self._rows: dict[int, tuple[int, int]] = {}  # bit length -> (vector, combination)
        self._added = 0
        for vector in vectors:
            self.add(vector)

    @property
    def rank(self) -> int:
        """The dimension of the subspace."""
        return len(self._rows)

    def _reduce(self, vector: int) -> tuple[int, int]:
        """What is left of `vector` (0 if it is inside) and the combination taken off it."""
        combination = 0
        rows = self._rows
        while vector:
            row = rows.get(vector.bit_length())
            if row is None:
                break
            vector ^= row[0]
            combination ^= row[1]
        return vector, combination

    def add(self, vector: int) -> int:
        """Add the next vector.

        Returns 0 if it was independent of those before it; otherwise the combination of
        vectors, this one included, that sums to zero.
        """
        index = self._added
        self._added += 1
        rest, combination = self._reduce(vector)
        combination |= 1 << index
        if not rest:
            return combination
        self._rows[rest.bit_length()] = (rest, combination)
        return 0

    def solve(self, vector: int) -> int | None:
        """The combination of added vectors that sums to `vector`, or None if there is none."""
        rest, combination = self._reduce(vector)
        return None if rest else combination

    def __contains__(self, vector: int) -> bool:
        return not self._reduce(vector)[0]


def rank(columns: Iterable[int]) -> int:
    """The rank of a matrix.

    >>> rank([1, 2, 3, 0])
    2
    """
    return Span(columns).rank


def multiply(columns: Sequence[int], vector: int) -> int:
    """Matrix times vector: the XOR of the columns that `vector` selects.

    >>> multiply([4, 1], 0b11)
    5
    """
    result = 0
    index = 0
    while vector:
        if vector & 1:
            result ^= columns[index]
        vector >>= 1
        index += 1
    return result


def free_columns(columns: Iterable[int]) -> int:
    """The mask of columns that depend on earlier ones.

    >>> bin(free_columns([1, 0, 2, 3]))
    '0b1010'
    """
    span = Span()
    return sum(1 << i for i, column in enumerate(columns) if span.add(column))


def kernel(columns: Iterable[int]) -> tuple[int, ...]:
    """A basis of the combinations that sum to zero, one for each free column.

    >>> kernel([1, 0, 2, 3])
    (2, 13)
    """
    span = Span()
    return tuple(filter(None, (span.add(column) for column in columns)))


def intersect(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """A basis of the vectors that lie in both spans.

    >>> intersect([1, 2], [3, 4])
    (3,)
    """
    left = independent(left)
    right = independent(right)
    low = (1 << len(left)) - 1
    return tuple(multiply(left, both & low) for both in kernel((*left, *right)))


def independent(vectors: Iterable[int], beyond: Iterable[int] = ()) -> tuple[int, ...]:
    """The vectors that are independent of `beyond` and of those before them.

    >>> independent([1, 3, 2, 4], beyond=[3])
    (1, 4)
    """
    span = Span(beyond)
    return tuple(vector for vector in vectors if not span.add(vector))


def echelon(columns: Iterable[int]) -> tuple[int, ...]:
    """A basis of the span with distinct leading bits, largest first.

    >>> echelon([2, 6, 4])
    (4, 2)
    """
    rows: list[int] = []
    for column in columns:
        for row in rows:
            column = min(column, column ^ row)
        if column:
            rows.append(column)
            rows.sort(reverse=True)
    return tuple(rows)


def coset_range(vector: int, rows: Iterable[int]) -> tuple[int, int]:
    """The smallest and the largest of `vector` XOR any sum of `rows`, which `echelon` made.

    >>> coset_range(13, echelon([4, 8]))
    (1, 13)
    """
    smallest = largest = vector
    for row in rows:
        smallest = min(smallest, smallest ^ row)
        largest = max(largest, largest ^ row)
    return smallest, largest
