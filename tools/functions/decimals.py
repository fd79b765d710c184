"""Elementary functions in decimals: by their series, each to the precision of the context."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, getcontext
from functools import cache

ONE = Decimal(1)
_GUARD_DIGITS = 20


def _guarded(function: Callable[[Decimal], Decimal]) -> Callable[[Decimal], Decimal]:
    """Computes with more digits than the result keeps."""

    def wrapper(x: Decimal) -> Decimal:
        context = getcontext()
        context.prec += _GUARD_DIGITS
        try:
            result = function(x)
        finally:
            context.prec -= _GUARD_DIGITS
        return +result

    return wrapper


def _sum_series(term: Decimal, following: Callable[[Decimal, int], Decimal]) -> Decimal:
    """Adds terms until they no longer matter; `following` gives term n + 1 from term n."""
    total, number = Decimal(0), 0
    while total + term != total:
        total += term
        term = following(term, number)
        number += 1
    return total


@_guarded
def sine(x: Decimal) -> Decimal:
    """sin(x) for x of at most a few units."""
    return _sum_series(x, lambda t, n: -t * x * x / ((2 * n + 2) * (2 * n + 3)))


@_guarded
def cosine(x: Decimal) -> Decimal:
    """cos(x) for x of at most a few units."""
    return _sum_series(ONE, lambda t, n: -t * x * x / ((2 * n + 1) * (2 * n + 2)))


@_guarded
def tanh(x: Decimal) -> Decimal:
    """tanh(x)."""
    grown = (2 * x).exp()
    return (grown - 1) / (grown + 1)


@_guarded
def atanh(x: Decimal) -> Decimal:
    """Half the logarithm of (1 + x) / (1 - x)."""
    return ((1 + x) / (1 - x)).ln() / 2


@_guarded
def erf(x: Decimal) -> Decimal:
    """2 / sqrt(pi) * exp(-x^2) * (x + 2 x^3 / 3 + 4 x^5 / 15 ...), whose terms are positive."""
    series = _sum_series(x, lambda t, n: t * 2 * x * x / (2 * n + 3))
    return 2 * (-x * x).exp() * series / circle_constant().sqrt()


@cache
def circle_constant() -> Decimal:
    """Pi, to 400 digits, by Machin's formula 16 atan(1/5) - 4 atan(1/239)."""
    context = getcontext()
    digits, context.prec = context.prec, 410
    try:

        def arctangent_of_inverse(n: int) -> Decimal:
            power = ONE / n
            total, number = Decimal(0), 0
            while total + power != total:
                total += power / (2 * number + 1) * (-1) ** number
                power /= n * n
                number += 1
            return total

        return 16 * arctangent_of_inverse(5) - 4 * arctangent_of_inverse(239)
    finally:
        context.prec = digits
