"""Derives the constants of the functions (phobos/transforms/lowering/functions/constants.py).

    python tools/functions/derive.py [--check]

Each polynomial is the best one for its function and interval, found by `minimax`. With `--check`
nothing is written, and the exit code says whether the file is what is derived.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from math import ceil, log2
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.functions.decimals import (  # noqa: E402
    atanh,
    circle_constant,
    cosine,
    erf,
    sine,
    tanh,
)
from tools.functions.minimax import DIGITS, Fit, Function, fit, float_below, round_to  # noqa: E402

TARGET = ROOT / "phobos/transforms/lowering/functions/constants.py"

ZERO, ONE, TWO = Decimal(0), Decimal(1), Decimal(2)

with localcontext(prec=DIGITS):
    LN2, LN10 = TWO.ln(), Decimal(10).ln()
    HALF_CIRCLE = +circle_constant()


@dataclass(frozen=True)
class Table:
    """A polynomial of the file: its name, what it is, and what its error is the error of."""

    name: str
    meaning: str
    result: str
    problem: Fit


def odd_part(function: Function, largest: str, count: int) -> Fit:
    """P such that f(x) = x + x t P(t) with t = x^2, for |x| <= largest."""

    def target(t: Decimal) -> Decimal:
        x = t.sqrt()
        return (function(x) / x - 1) / t

    def weight(t: Decimal) -> Decimal:
        x = t.sqrt()
        return x * t / function(x)

    return Fit(target, weight, ZERO, Decimal(largest) ** 2, count)


def logarithm(base_unit: Decimal, count: int) -> Fit:
    """P such that log(1 + t) = (t + t^2 P'(t)) / ln(base), P = P' / ln(base), for |t| <= 1/3."""
    third = ONE / 3
    return Fit(
        lambda t: ((1 + t).ln() - t) / t**2 / base_unit,
        lambda t: t**2 / (1 + t).ln() * base_unit,
        -third,
        third,
        count,
    )


def exponential(largest: Decimal, count: int, bits: int = 32) -> Fit:
    """P such that exp(t) = 1 + t + t^2 P(t), relative to exp(t) - 1, for |t| <= largest."""
    return Fit(
        lambda t: (t.exp() - 1 - t) / t**2,
        lambda t: t**2 / (t.exp() - 1),
        -largest,
        largest,
        count,
        bits,
    )


def binary_power(largest: Decimal, count: int) -> Fit:
    """P such that 2^t = 1 + t P(t) for |t| <= largest."""
    return Fit(
        lambda t: ((t * LN2).exp() - 1) / t,
        lambda t: t / (t * LN2).exp(),
        -largest,
        largest,
        count,
    )


def tangent(x: Decimal) -> Decimal:
    """tan(x)."""
    return sine(x) / cosine(x)


def cosine_part(largest: str, count: int) -> Fit:
    """P such that cos(x) = 1 + t P(t) with t = x^2, for |x| <= largest."""
    return Fit(
        lambda t: (cosine(t.sqrt()) - 1) / t,
        lambda t: t / cosine(t.sqrt()),
        ZERO,
        Decimal(largest) ** 2,
        count,
    )


def error_function(largest: str, count: int) -> Fit:
    """P such that erf(x) = x + x P(t) with t = x^2, for |x| <= largest."""
    return Fit(
        lambda t: erf(t.sqrt()) / t.sqrt() - 1,
        lambda t: t.sqrt() / erf(t.sqrt()),
        ZERO,
        Decimal(largest) ** 2,
        count,
    )


def complement(low: str, high: str, count: int, origin: str = "0", bits: int = 32) -> Fit:
    """P such that 1 - erf(x) = 2^P(x - origin) for low <= x <= high, relative to erf(x)."""
    start = Decimal(origin)
    return Fit(
        lambda t: (1 - erf(t + start)).ln() / LN2,
        lambda t: LN2 * (1 - erf(t + start)) / erf(t + start),
        Decimal(low) - start,
        Decimal(high) - start,
        count,
        bits,
    )


def binary_logarithm_tail(largest: str, count: int) -> Fit:
    """P such that log2((2 + v) / (2 - v)) = v / ln(2) + v t P(t), t = v^2, for |v| <= largest."""

    def target(t: Decimal) -> Decimal:
        v = t.sqrt()
        return (2 * atanh(v / 2) / v - 1) / LN2 / t

    return Fit(target, lambda t: t * LN2, ZERO, Decimal(largest) ** 2, count)


def logarithm_of_ratio(largest: str, count: int) -> Fit:
    """P such that ln((1 + s) / (1 - s)) = 2 s + s t P(t), t = s^2, for |s| <= largest."""

    def target(t: Decimal) -> Decimal:
        s = t.sqrt()
        return (2 * atanh(s) / s - 2) / t

    return Fit(target, lambda t: t / 2, ZERO, Decimal(largest) ** 2, count, bits=64)


def in_double(problem: Fit) -> Fit:
    """The same with coefficients of f64."""
    return replace(problem, bits=64)


# Half of ln(2), and a little more for a quotient that rounding took to the wrong neighbour.
HALF_LN2 = LN2 / 2 * Decimal("1.0003")

TABLES = (
    Table("LN", "(ln(1 + t) - t) / t^2 for |t| <= 1/3", "ln(1 + t)", logarithm(ONE, 9)),
    Table(
        "LOG2", "(log2(1 + t) - t / ln(2)) / t^2 for |t| <= 1/3", "log2(1 + t)", logarithm(LN2, 9)
    ),
    Table(
        "LOG10", "(log10(1 + t) - t / ln(10)) / t^2 for |t| <= 1/3", "log10(1 + t)",
        logarithm(LN10, 9),
    ),
    Table(
        "EXPM1", "(exp(t) - 1 - t) / t^2 for |t| <= ln(2) / 2", "exp(t) - 1",
        exponential(HALF_LN2, 6),
    ),
    Table(
        "EXP2", "(2^t - 1) / t for |t| <= 1/2", "2^t", binary_power(Decimal("0.5001"), 6),
    ),
    Table(
        "SINE", "(sin(x) / x - 1) / t with t = x^2 for |x| <= 0.8", "sin(x)",
        odd_part(sine, "0.8", 4),
    ),
    Table(
        "COSINE", "(cos(x) - 1) / t with t = x^2 for |x| <= 0.8", "cos(x)",
        cosine_part("0.8", 4),
    ),
    Table(
        "TANGENT", "(tan(x) / x - 1) / t with t = x^2 for |x| <= 0.8", "tan(x)",
        odd_part(tangent, "0.8", 8),
    ),
    Table(
        "TANH", "(tanh(x) / x - 1) / t with t = x^2 for |x| <= 1.25", "tanh(x)",
        odd_part(tanh, "1.25", 9),
    ),
    Table(
        "ERF", "erf(x) / x - 1 with t = x^2 for |x| <= 1", "erf(x)", error_function("1", 7)
    ),
    Table(
        "LOG2_ERFC", "log2(1 - erf(t)) for 1 <= t <= 4", "erf(t)", complement("1", "4", 8)
    ),
    Table(
        "LOG2_RATIO",
        "(log2((2 + v) / (2 - v)) / v - 1 / ln(2)) / t with t = v^2 for |v| <= 0.3432",
        "log2((2 + v) / (2 - v))",
        binary_logarithm_tail("0.3432", 4),
    ),
    Table(
        "EXP_DOUBLE", "(exp(t) - 1 - t) / t^2 for |t| <= ln(2) / 2, in f64", "exp(t) - 1",
        exponential(HALF_LN2, 11, 64),
    ),
    Table(
        "LN_DOUBLE", "(ln((1 + s) / (1 - s)) / s - 2) / t with t = s^2 for |s| <= 0.1716, in f64",
        "ln((1 + s) / (1 - s))",
        logarithm_of_ratio("0.1716", 7),
    ),
    Table(
        "SINE_DOUBLE", "(sin(x) / x - 1) / t with t = x^2 for |x| <= 0.8, in f64", "sin(x)",
        in_double(odd_part(sine, "0.8", 7)),
    ),
    Table(
        "COSINE_DOUBLE", "(cos(x) - 1) / t with t = x^2 for |x| <= 0.8, in f64", "cos(x)",
        in_double(cosine_part("0.8", 7)),
    ),
    Table(
        "TANH_DOUBLE", "(tanh(x) / x - 1) / t with t = x^2 for |x| <= 1, in f64", "tanh(x)",
        in_double(odd_part(tanh, "1", 16)),
    ),
    Table(
        "ERF_DOUBLE", "erf(x) / x - 1 with t = x^2 for |x| <= 1, in f64", "erf(x)",
        in_double(error_function("1", 13)),
    ),
    *(
        Table(
            f"LOG2_ERFC_DOUBLE_{number}",
            f"log2(1 - erf(t + {origin})) for {low} <= t + {origin} <= {high}, in f64",
            f"erf(t + {origin})",
            complement(low, high, 13, origin, 64),
        )
        for number, (low, origin, high) in enumerate(
            (("1", "1.5", "2"), ("2", "2.75", "3.5"), ("3.5", "4.75", "6"))
        )
    ),
    Table(
        "LOG2_RATIO_DOUBLE",
        "(log2((2 + v) / (2 - v)) / v - 1 / ln(2)) / t with t = v^2 for |v| <= 0.3432, in f64",
        "log2((2 + v) / (2 - v))",
        in_double(binary_logarithm_tail("0.3432", 12)),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Split:
    """A number as a sum of floats, each the nearest to what those before it leave.

    With `is_cut` each is the nearest below instead, so that all have the number's sign.
    """

    name: str
    meaning: str
    value: Decimal
    parts: int
    bits: int = 32
    is_cut: bool = False

    def floats(self) -> tuple[float, ...]:
        """The parts, largest first."""
        parts: list[float] = []
        with localcontext(prec=DIGITS):
            rest = self.value
            for _ in range(self.parts):
                part = round_to(rest, self.bits)
                if self.is_cut and Decimal(part) > rest:
                    part = float_below(part, self.bits)
                parts.append(part)
                rest -= Decimal(part)
        return tuple(parts)


def splits() -> tuple[Split, ...]:
    """The numbers that are kept to more than one float."""
    with localcontext(prec=DIGITS):
        return (
            Split("LOG2_E", "1 / ln(2)", ONE / LN2, 2),
            Split("LOG10_E", "1 / ln(10)", ONE / LN10, 2),
            Split("LN_2", "ln(2)", LN2, 2),
            Split("LOG10_2", "log10(2)", LN2 / LN10, 2),
            Split("HALF_PI", "pi / 2", HALF_CIRCLE / 2, 3, is_cut=True),
            Split("LOG2_RATIO_START", "1 / (12 ln(2))", ONE / (12 * LN2), 2),
            Split("LN_2_DOUBLE", "ln(2) in f64", LN2, 2, bits=64),
            Split("LOG2_E_DOUBLE", "1 / ln(2) in f64", ONE / LN2, 2, bits=64),
            Split("HALF_PI_DOUBLE", "pi / 2 in f64", HALF_CIRCLE / 2, 3, bits=64, is_cut=True),
        )


TWO_OVER_PI_WORDS = 7
"""Enough for the largest f32: exponent 127, 96 bits behind it, a word to shift by."""
TWO_OVER_PI_WORDS_DOUBLE = 19
"""Of 64 bits, for the largest f64: exponent 1023, less 52, 192 bits behind it."""


def two_over_pi(words: int, width: int) -> tuple[int, ...]:
    """The first bits of 2 / pi behind the binary point, so many words of `width` bits."""
    with localcontext(prec=400):
        bits = int(2 / circle_constant() * TWO ** (width * words))
    return tuple(
        bits >> (width * (words - 1 - index)) & ((1 << width) - 1) for index in range(words)
    )


def written(value: float, bits: int) -> str:
    """A float in as few digits as name it alone among those of its width."""
    text = repr(value) if bits == 64 else f"{value:.9g}"
    return text if set(text) & set(".e") else f"{text}.0"


def lines() -> Iterator[str]:
    """The text of the file, line by line."""
    yield '"""The constants of the functions, each with its derivation.'
    yield ""
    yield "tools/functions/derive.py writes this file. Polynomials list their coefficients from the"
    yield "power 0 of t up: the best ones whose coefficients are floats. The errors are the largest"
    yield 'that the polynomial alone brings, relative to the function that is named."""'
    yield ""
    for table in TABLES:
        polynomial = fit(table.problem)
        yield f"{table.name} = ("
        for coefficient in polynomial.coefficients:
            yield f"    {written(coefficient, table.problem.bits)},"
        yield ")"
        exponent = ceil(10 * log2(polynomial.error)) / 10
        yield f'"""{table.meaning}.'
        yield ""
        yield f'Error of {table.result} below 2^{exponent:.1f}."""'
        yield ""
    for split in splits():
        yield f"{split.name} = ("
        for part in split.floats():
            yield f"    {written(part, split.bits)},"
        yield ")"
        cut = ", none of them rounded up" if split.is_cut else ""
        yield f'"""{split.meaning}, as a sum of floats{cut}."""'
        yield ""
    for name, words, width in (
        ("TWO_OVER_PI", TWO_OVER_PI_WORDS, 32),
        ("TWO_OVER_PI_DOUBLE", TWO_OVER_PI_WORDS_DOUBLE, 64),
    ):
        if width == 64:
            yield ""
        yield f"{name} = ("
        for word in two_over_pi(words, width):
            yield f"    0x{word:0{width // 4}X},"
        yield ")"
        yield f'"""The bits of 2 / pi behind the binary point, {width} a word."""'


def derived_text() -> str:
    """The file as it has to be."""
    return "\n".join(lines()) + "\n"


def main() -> int:
    """Write or check the file; returns the exit code."""
    parser = argparse.ArgumentParser(description="Derive the constants of the functions.")
    parser.add_argument("--check", action="store_true", help="only compare with the file")
    if not parser.parse_args().check:
        TARGET.write_text(derived_text(), encoding="ascii")
        return 0
    if TARGET.read_text(encoding="ascii") == derived_text():
        return 0
    print(f"{TARGET} is not what is derived", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
