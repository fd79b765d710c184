"""The functions: what they are exactly, where to look closely, and what they may do."""

from __future__ import annotations

import math as scalar
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation

from tests.unit.functions.accuracy import FORMATS, all_patterns, random_patterns, special_values
from tests.unit.functions.kernels import BINARY

Reference = Callable[..., np.ndarray]

RANDOM, SPREAD, DENSE = 2_000, 6_000, 12_000
"""How many numbers of each sort a sample has: random patterns, random sizes, in the intervals."""

TIMES = {"f32": 10}
"""How many times as many numbers a sample of a type has; references of f64 take long."""


@dataclass(frozen=True)
class Case:
    """A function of the math dialect.

    `reference` computes in the type of its argument, which is wider than the one tested.
    `dense` are intervals that are sampled evenly, and `kinds` the types there are. A function of
    two arguments has its sample from elsewhere.
    """

    name: str
    operation: type[Operation]
    reference: Reference
    dense: tuple[tuple[float, float], ...]
    kinds: tuple[str, ...] = ("f32", "f16", "bf16", "f64")
    may_flush: bool = False

    def exact(self, *arguments: np.ndarray) -> np.ndarray:
        """The function in a wider type."""
        wide = np.longdouble if arguments[0].dtype == np.float64 else np.float64
        with np.errstate(all="ignore"):
            return self.reference(*(one.astype(wide) for one in arguments))

    def sample(self, kind: str, seed: int = 1) -> tuple[np.ndarray, ...]:
        """Arguments in a type: all there are of a half, else a few of every sort."""
        if self.operation in BINARY:
            return _pairs(kind, seed)
        if FORMATS[kind].dtype.itemsize == 2:
            return (all_patterns(kind),)
        return (np.concatenate([*_everywhere(kind, seed), *self._dense(kind, seed)]),)

    def _dense(self, kind: str, seed: int) -> list[np.ndarray]:
        generator = np.random.default_rng(seed + 100)
        each = DENSE * TIMES.get(kind, 1) // len(self.dense)
        form = FORMATS[kind]
        points: list[np.ndarray] = [generator.uniform(*ends, size=each) for ends in self.dense]
        return [one.astype(form.dtype) for one in points]


def _everywhere(kind: str, seed: int) -> list[np.ndarray]:
    form = FORMATS[kind]
    times = TIMES.get(kind, 1)
    generator = np.random.default_rng(seed)
    exponents = generator.uniform(-24, 24, SPREAD * times)
    signs = generator.choice((-1.0, 1.0), SPREAD * times)
    spread: np.ndarray = signs * np.exp2(exponents)
    return [
        special_values(kind),
        random_patterns(kind, RANDOM * times, seed),
        spread.astype(form.dtype),
    ]


def _pairs(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents: special ones in all combinations, random ones, and no overflow."""
    form = FORMATS[kind]
    times = TIMES.get(kind, 1)
    random, many, dense = RANDOM * times, SPREAD * times, DENSE * times
    special = special_values(kind)
    bases, exponents = np.meshgrid(special, special)
    patterns = [random_patterns(kind, random, seed + i) for i in range(2)]
    generator = np.random.default_rng(seed)
    spread = np.exp2(generator.uniform(form.lowest, form.highest, many))
    moderate = np.concatenate([spread, generator.uniform(0.5, 2.0, dense)])
    with np.errstate(all="ignore"):
        # Results of all sizes: the exponent is what takes the base to a random power of two.
        wanted = generator.uniform(form.lowest - form.digits, form.highest + 1, many + dense)
        fitting = (wanted / np.log2(moderate)).astype(form.dtype)
    whole = generator.integers(-20, 20, 1000)
    negative = -generator.uniform(0.1, 10, 1000)
    return (
        np.concatenate([bases.ravel(), patterns[0], moderate.astype(form.dtype),
                        negative.astype(form.dtype)]),
        np.concatenate([exponents.ravel(), patterns[1], fitting, whole.astype(form.dtype)]),
    )  # fmt: skip


def _erf(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.float64:
        return np.array([scalar.erf(one) for one in x])
    return _wide_erf(x)


_ERF_IS_ONE = 6.5
_TERMS = 200


def _wide_erf(x: np.ndarray) -> np.ndarray:
    """2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 ...), whose terms are positive."""
    limited = np.clip(x, -_ERF_IS_ONE, _ERF_IS_ONE)
    total = term = limited
    for n in range(_TERMS):
        term = term * 2 * limited * limited / (2 * n + 3)
        total = total + term
    pi = x.dtype.type("3.14159265358979323846264338327950288")
    # What is summed loses the sign of zero, and small squares.
    return np.where(
        np.abs(x) < 1e-9, 2 / np.sqrt(pi) * x, 2 / np.sqrt(pi) * np.exp(-(limited**2)) * total
    )


HALVES_AND_SINGLE = ("f32", "f16", "bf16")
"""The types of functions that the math dialect has and the language has not."""

CASES = (
    Case("div", arith.DivfOp, np.divide, ()),
    Case(
        "exp", math.ExpOp, np.exp, ((-104, 89), (-1, 1), (-88, -86)),
    ),
    Case("exp2", math.Exp2Op, np.exp2, ((-127, 129), (-1, 1)), may_flush=True),
    Case("expm1", math.ExpM1Op, np.expm1, ((-20, 89), (-1, 1), (-0.01, 0.01)), HALVES_AND_SINGLE),
    Case(
        "log", math.LogOp, np.log, ((0.5, 2), (0.99, 1.01), (0, 100)),
    ),
    Case("log2", math.Log2Op, np.log2, ((0.5, 2), (0.99, 1.01), (0, 100))),
    Case("log10", math.Log10Op, np.log10, ((0.5, 2), (0.99, 1.01), (0, 100)), HALVES_AND_SINGLE),
    Case("log1p", math.Log1pOp, np.log1p, ((-1, 1), (-0.01, 0.01), (-0.5, 4)), HALVES_AND_SINGLE),
    Case(
        "sqrt", math.SqrtOp, np.sqrt, ((0, 4), (0, 1e6))
    ),
    Case(
        "rsqrt", math.RsqrtOp, lambda x: 1 / np.sqrt(x), ((0, 4), (0, 1e6)),
    ),
    Case("sin", math.SinOp, np.sin, ((-7, 7), (-1, 1), (-3e5, 3e5), (-1e7, 1e7))),
    Case("cos", math.CosOp, np.cos, ((-7, 7), (-1, 1), (-3e5, 3e5), (-1e7, 1e7))),
    Case(
        "tan", math.TanOp, np.tan, ((-7, 7), (-1, 1), (-3e5, 3e5), (-1e7, 1e7)), HALVES_AND_SINGLE
    ),
    Case("tanh", math.TanhOp, np.tanh, ((-10, 10), (-1.5, 1.5))),
    Case("erf", math.ErfOp, _erf, ((-5, 5), (-1.2, 1.2))),
    Case("pow", math.PowFOp, np.power, ()),
)  # fmt: skip

BY_NAME = {case.name: case for case in CASES}
