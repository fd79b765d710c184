"""Polynomials with the least largest error whose coefficients are floats of a given width.

The best polynomial with real coefficients is found by Remez's exchange on a fine grid. Rounding
all its coefficients would lose accuracy, so they are rounded one by one, the lowest power first,
and the others are fitted anew to what the rounding left. All arithmetic is in decimals of
`DIGITS` digits, so that no result depends on a platform's libraries.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import cos, nextafter, pi

DIGITS = 100

Function = Callable[[Decimal], Decimal]

_POINTS_A_COEFFICIENT = 40
_EXCHANGES = 12
_CONVERGED = Decimal("1e-4")
"""An exchange ends when the largest error is this close (relatively) to the levelled one."""


@dataclass(frozen=True)
class Fit:
    """What to approximate.

    The polynomial has `count` coefficients, for the powers 0 to count - 1 of t in [low, high]. Its
    error counts times `weight(t)`: the weight says how far an error of the polynomial moves the
    result of the function, relative to that result. Coefficients are floats of `bits` bits.
    """

    target: Function
    weight: Function
    low: Decimal
    high: Decimal
    count: int
    bits: int = 32


@dataclass(frozen=True)
class Polynomial:
    """Coefficients, lowest power first, and the largest weighted error they leave."""

    coefficients: tuple[float, ...]
    error: float


def round_to(value: Decimal, bits: int) -> float:
    """The nearest float of 32 or 64 bits."""
    if bits == 64:
        return float(value)
    return struct.unpack("<f", struct.pack("<f", float(value)))[0]


def float_below(value: float, bits: int = 32) -> float:
    """The float of 32 or 64 bits before a positive one."""
    if bits == 64:
        return nextafter(value, 0.0)
    pattern = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<I", pattern - 1))[0]


def fit(problem: Fit) -> Polynomial:
    """Fit a polynomial and round its coefficients, one after the other."""
    with localcontext(prec=DIGITS):
        grid = _Grid(problem)
        fixed: list[float] = []
        while len(fixed) < problem.count:
            free = grid.best(problem.count - len(fixed))
            rounded = round_to(free[0], problem.bits)
            grid.take(rounded)
            fixed.append(rounded)
        return Polynomial(tuple(fixed), float(grid.largest_error()))


class _Grid:
    """What is left to approximate on a grid of points, once some coefficients are fixed.

    Behind n fixed coefficients the remainder is divided by t ** n, and the weight times it, so
    that the next polynomial starts at the power 0 again.
    """

    def __init__(self, problem: Fit) -> None:
        points = _POINTS_A_COEFFICIENT * problem.count
        middle, half = (problem.low + problem.high) / 2, (problem.high - problem.low) / 2
        # Chebyshev nodes lie densest at the ends, where the error oscillates fastest.
        nodes = (
            middle - half * Decimal(cos(pi * (index + 0.5) / points)) for index in range(points)
        )
        self.points = [node for node in nodes if node]
        self.values = [problem.target(point) for point in self.points]
        self.weights = [abs(problem.weight(point)) for point in self.points]

    def take(self, coefficient: float) -> None:
        """Fix the lowest coefficient that is left."""
        exact = Decimal(coefficient)
        self.values = [
            (value - exact) / t for value, t in zip(self.values, self.points, strict=True)
        ]
        self.weights = [
            weight * abs(t) for weight, t in zip(self.weights, self.points, strict=True)
        ]

    def largest_error(self) -> Decimal:
        """The largest weighted error if no more coefficients follow."""
        return max(abs(v) * w for v, w in zip(self.values, self.weights, strict=True))

    def best(self, count: int) -> list[Decimal]:
        """The real coefficients with the least largest error, by Remez's exchange."""
        size = len(self.points)
        chosen = [round(index * (size - 1) / count) for index in range(count + 1)]
        least, best = Decimal("inf"), [Decimal(0)] * count
        for _ in range(_EXCHANGES):
            *coefficients, level = self._levelled(chosen, count)
            errors = [
                (value - evaluate(coefficients, t)) * weight
                for t, value, weight in zip(self.points, self.values, self.weights, strict=True)
            ]
            largest = max(map(abs, errors))
            if largest < least:
                least, best = largest, coefficients
            peaks = _extrema(errors, count + 1)
            if largest <= abs(level) * (1 + _CONVERGED) or len(peaks) <= count:
                break
            chosen = peaks
        return best

    def _levelled(self, chosen: Sequence[int], count: int) -> list[Decimal]:
        """Coefficients whose errors at the chosen points are equal with alternating signs."""
        rows: list[list[Decimal]] = []
        for number, index in enumerate(chosen):
            t, weight = self.points[index], self.weights[index]
            sign = 1 if number % 2 == 0 else -1
            rows.append([*(t**power for power in range(count)), sign / weight, self.values[index]])
        return solve(rows)


def evaluate(coefficients: Sequence[Decimal], t: Decimal) -> Decimal:
    """The value of a polynomial, by Horner's rule."""
    result = Decimal(0)
    for coefficient in reversed(coefficients):
        result = result * t + coefficient
    return result


def _extrema(errors: Sequence[Decimal], count: int) -> list[int]:
    """`count` points whose errors alternate in sign: the peaks, less the smallest ones."""
    peaks: list[int] = []
    for index, error in enumerate(errors):
        if not peaks or (error > 0) != (errors[peaks[-1]] > 0):
            peaks.append(index)
        elif abs(error) > abs(errors[peaks[-1]]):
            peaks[-1] = index
    while len(peaks) > count:
        _drop_smallest(peaks, errors, in_pairs=len(peaks) > count + 1)
    return peaks


def _drop_smallest(peaks: list[int], errors: Sequence[Decimal], *, in_pairs: bool) -> None:
    """Drops the smallest peak so that the others still alternate.

    A peak between two others goes together with the smaller of these; otherwise only the ends
    can go.
    """
    sizes = [abs(errors[peak]) for peak in peaks]
    last = len(peaks) - 1
    candidates = range(last + 1) if in_pairs else (0, last)
    smallest = min(candidates, key=lambda place: sizes[place])
    if smallest not in (0, last):
        neighbour = min(smallest - 1, smallest + 1, key=lambda place: sizes[place])
        peaks.pop(max(smallest, neighbour))
        smallest = min(smallest, neighbour)
    peaks.pop(smallest)


def solve(rows: list[list[Decimal]]) -> list[Decimal]:
    """Solves linear equations, each given with its right side last, by elimination."""
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, size):
            factor = rows[row][column] / rows[column][column]
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    solution: list[Decimal] = []
    for row in reversed(rows):
        known = row[size - len(solution) : size]
        rest = row[size] - sum(a * b for a, b in zip(known, reversed(solution), strict=True))
        solution.append(rest / row[size - 1 - len(solution)])
    return solution[::-1]
