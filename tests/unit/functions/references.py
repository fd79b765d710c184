"""The functions: what they are exactly, where to look closely, and what they may do."""

from __future__ import annotations

import math as scalar
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Operation

from tests.unit.functions.accuracy import FORMATS, all_patterns, random_patterns, special_values

Reference = Callable[..., np.ndarray]

RANDOM, SPREAD, DENSE = 8_000, 6_000, 10_000
"""How many numbers of each kind a sample of f32 or f64 has."""


@dataclass(frozen=True)
class Case:
    """A function of the math dialect.

    `reference` computes in the type of its argument, which is wider than the one tested.
    `dense` are intervals that are sampled evenly, and `kinds` the types there are.
    """

    name: str
    operation: type[Operation]
    reference: Reference
    dense: tuple[tuple[float, float], ...]
    kinds: tuple[str, ...] = ("f32", "f16", "bf16")
    may_flush: bool = False

    def exact(self, *arguments: np.ndarray) -> np.ndarray:
        """The function in a wider type."""
        wide = np.longdouble if arguments[0].dtype == np.float64 else np.float64
        with np.errstate(all="ignore"):
            return self.reference(*(one.astype(wide) for one in arguments))

    def sample(self, kind: str, seed: int = 1) -> tuple[np.ndarray, ...]:
        """Arguments in a type: all there are of a half, else a few of every sort."""
        if self.operation is math.PowFOp:
            return _pairs(kind, seed)
        if FORMATS[kind].dtype.itemsize == 2:
            return (all_patterns(kind),)
        return (np.concatenate([*_everywhere(kind, seed), *self._dense(kind, seed)]),)

    def _dense(self, kind: str, seed: int) -> list[np.ndarray]:
        generator = np.random.default_rng(seed + 100)
        each = DENSE // len(self.dense)
        form = FORMATS[kind]
        return [generator.uniform(low, high, each).astype(form.dtype) for low, high in self.dense]


def _everywhere(kind: str, seed: int) -> list[np.ndarray]:
    form = FORMATS[kind]
    generator = np.random.default_rng(seed)
    exponents = generator.uniform(-24, 24, SPREAD)
    signs = generator.choice((-1.0, 1.0), SPREAD)
    spread = (signs * np.exp2(exponents)).astype(form.dtype)
    return [special_values(kind), random_patterns(kind, RANDOM, seed), spread]


def _pairs(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents: special ones in all combinations, random ones, and no overflow."""
    form = FORMATS[kind]
    special = special_values(kind)
    bases, exponents = np.meshgrid(special, special)
    patterns = [random_patterns(kind, RANDOM, seed + i) for i in range(2)]
    generator = np.random.default_rng(seed)
    spread = np.exp2(generator.uniform(form.lowest, form.highest, SPREAD))
    moderate = np.concatenate([spread, generator.uniform(0.5, 2.0, DENSE)])
    with np.errstate(all="ignore"):
        # Results of all sizes: the exponent is what takes the base to a random power of two.
        wanted = generator.uniform(form.lowest - form.digits, form.highest + 1, SPREAD + DENSE)
        fitting = (wanted / np.log2(moderate)).astype(form.dtype)
    whole = generator.integers(-20, 20, 1000)
    negative = -generator.uniform(0.1, 10, 1000)
    return (
        np.concatenate([bases.ravel(), patterns[0], moderate.astype(form.dtype),
                        negative.astype(form.dtype)]),
        np.concatenate([exponents.ravel(), patterns[1], fitting, whole.astype(form.dtype)]),
    )  # fmt: skip


def _erf(x: np.ndarray) -> np.ndarray:
    return np.frompyfunc(scalar.erf, 1, 1)(x).astype(np.float64)


CASES = (
    Case(
        "exp", math.ExpOp, np.exp, ((-104, 89), (-1, 1), (-88, -86)),
        ("f32", "f16", "bf16", "f64"),
    ),
    Case("exp2", math.Exp2Op, np.exp2, ((-127, 129), (-1, 1)), may_flush=True),
    Case("expm1", math.ExpM1Op, np.expm1, ((-20, 89), (-1, 1), (-0.01, 0.01))),
    Case(
        "log", math.LogOp, np.log, ((0.5, 2), (0.99, 1.01), (0, 100)),
        ("f32", "f16", "bf16", "f64"),
    ),
    Case("log2", math.Log2Op, np.log2, ((0.5, 2), (0.99, 1.01), (0, 100))),
    Case("log10", math.Log10Op, np.log10, ((0.5, 2), (0.99, 1.01), (0, 100))),
    Case("log1p", math.Log1pOp, np.log1p, ((-1, 1), (-0.01, 0.01), (-0.5, 4))),
    Case(
        "sqrt", math.SqrtOp, np.sqrt, ((0, 4), (0, 1e6)), ("f32", "f16", "bf16", "f64")
    ),
    Case(
        "rsqrt", math.RsqrtOp, lambda x: 1 / np.sqrt(x), ((0, 4), (0, 1e6)),
        ("f32", "f16", "bf16", "f64"),
    ),
    Case("sin", math.SinOp, np.sin, ((-7, 7), (-1, 1), (-3e5, 3e5), (-1e7, 1e7))),
    Case("cos", math.CosOp, np.cos, ((-7, 7), (-1, 1), (-3e5, 3e5), (-1e7, 1e7))),
    Case("tan", math.TanOp, np.tan, ((-7, 7), (-1, 1), (-3e5, 3e5), (-1e7, 1e7))),
    Case("tanh", math.TanhOp, np.tanh, ((-10, 10), (-1.5, 1.5))),
    Case("erf", math.ErfOp, _erf, ((-5, 5), (-1.2, 1.2))),
    Case("pow", math.PowFOp, np.power, ()),
)  # fmt: skip

BY_NAME = {case.name: case for case in CASES}
