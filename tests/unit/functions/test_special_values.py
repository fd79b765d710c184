"""Special values as IEEE 754 and C99 (Annex F) list them."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import math
from xdsl.ir import Operation

from tests.unit.functions.kernels import Variant, apply

INF, NAN = np.inf, np.nan
TINY = 2.0**-149
HUGE = 3e38

UNARY: dict[type[Operation], dict[float, float]] = {
    math.ExpOp: {0.0: 1, INF: INF, -INF: 0.0, HUGE: INF, -HUGE: 0.0, TINY: 1},
    math.Exp2Op: {0.0: 1, INF: INF, -INF: 0.0, HUGE: INF, -HUGE: 0.0, 3.0: 8, -1.0: 0.5},
    math.ExpM1Op: {0.0: 0.0, INF: INF, -INF: -1, HUGE: INF, -HUGE: -1, TINY: TINY, -TINY: -TINY},
    math.LogOp: {0.0: -INF, 1.0: 0.0, INF: INF, -INF: NAN, -1.0: NAN, -TINY: NAN},
    math.Log2Op: {0.0: -INF, 1.0: 0.0, INF: INF, -INF: NAN, -1.0: NAN, TINY: -149, 8.0: 3},
    math.Log10Op: {0.0: -INF, 1.0: 0.0, INF: INF, -INF: NAN, -1.0: NAN, 1000.0: 3},
    math.Log1pOp: {0.0: 0.0, INF: INF, -1.0: -INF, -2.0: NAN, -INF: NAN, TINY: TINY, -TINY: -TINY},
    math.SqrtOp: {0.0: 0.0, INF: INF, -1.0: NAN, -INF: NAN, 4.0: 2},
    math.RsqrtOp: {0.0: INF, INF: 0.0, -1.0: NAN, -INF: NAN, 4.0: 0.5},
    math.SinOp: {0.0: 0.0, INF: NAN, -INF: NAN, TINY: TINY, -TINY: -TINY},
    math.CosOp: {0.0: 1, INF: NAN, -INF: NAN, TINY: 1},
    math.TanOp: {0.0: 0.0, INF: NAN, -INF: NAN, TINY: TINY, -TINY: -TINY},
    math.TanhOp: {0.0: 0.0, INF: 1, -INF: -1, HUGE: 1, TINY: TINY, -TINY: -TINY},
    math.ErfOp: {0.0: 0.0, INF: 1, -INF: -1, HUGE: 1},
}  # fmt: skip

OF_MINUS_ZERO: dict[type[Operation], float] = {
    math.ExpOp: 1,
    math.Exp2Op: 1,
    math.CosOp: 1,
    math.ExpM1Op: -0.0,
    math.LogOp: -INF,
    math.Log2Op: -INF,
    math.Log10Op: -INF,
    math.Log1pOp: -0.0,
    math.SqrtOp: -0.0,
    math.RsqrtOp: -INF,
    math.SinOp: -0.0,
    math.TanOp: -0.0,
    math.TanhOp: -0.0,
    math.ErfOp: -0.0,
}

# base, exponent, result; in C99's order (F.9.4.4).
POW = [
    (0.0, -3.0, INF), (-0.0, -3.0, -INF),
    (0.0, -2.0, INF), (-0.0, -2.0, INF), (-0.0, -0.5, INF), (0.0, -INF, INF), (-0.0, -INF, INF),
    (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0),
    (0.0, 2.0, 0.0), (-0.0, 2.0, 0.0), (-0.0, 0.5, 0.0), (-0.0, INF, 0.0),
    (-1.0, INF, 1), (-1.0, -INF, 1),
    (1.0, 5.0, 1), (1.0, NAN, 1), (1.0, INF, 1), (1.0, -INF, 1),
    (5.0, 0.0, 1), (NAN, 0.0, 1), (NAN, -0.0, 1), (INF, 0.0, 1), (-INF, -0.0, 1), (0.0, 0.0, 1),
    (-2.0, 0.5, NAN), (-2.0, -0.5, NAN), (-HUGE, 1.5, NAN),
    (0.5, -INF, INF), (-0.5, -INF, INF), (2.0, -INF, 0.0), (-2.0, -INF, 0.0),
    (0.5, INF, 0.0), (-0.5, INF, 0.0), (2.0, INF, INF), (-2.0, INF, INF),
    (-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, -0.5, 0.0),
    (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, 0.5, INF),
    (INF, -1.0, 0.0), (INF, 1.0, INF), (INF, INF, INF), (INF, -INF, 0.0), (-INF, INF, INF),
    (NAN, 1.0, NAN), (2.0, NAN, NAN), (0.0, NAN, NAN), (NAN, INF, NAN),
    (-2.0, 3.0, -8), (-2.0, 2.0, 4), (-2.0, -1.0, -0.5), (-1.0, 2.0**24 + 2, 1),
    (-1.0, 2.0**24 - 1, -1), (-2.0, HUGE, INF), (2.0, 127.0, 2.0**127), (2.0, -149.0, TINY),
    (TINY, 0.5, 2.0**-74.5), (TINY, 1.0, TINY), (HUGE, 1.0, HUGE), (1.0 + 2**-23, HUGE, INF),
]  # fmt: skip


def assert_same(got: np.ndarray, wanted: list[float]) -> None:
    expected = np.array(wanted, dtype=np.float32)
    np.testing.assert_array_equal(got, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("operation", UNARY, ids=lambda operation: operation.name)
def test_function(operation: type[Operation]) -> None:
    table = UNARY[operation]
    arguments = np.array([*table, NAN], dtype=np.float32)
    assert_same(apply(Variant(operation), arguments), [*table.values(), NAN])


@pytest.mark.parametrize("operation", OF_MINUS_ZERO, ids=lambda operation: operation.name)
def test_minus_zero(operation: type[Operation]) -> None:
    got = apply(Variant(operation), np.array([-0.0], dtype=np.float32))
    assert_same(got, [OF_MINUS_ZERO[operation]])


def test_pow() -> None:
    bases, exponents, wanted = zip(*POW, strict=True)
    got = apply(Variant(math.PowFOp), np.array(bases, np.float32), np.array(exponents, np.float32))
    assert_same(got, list(wanted))


@pytest.mark.parametrize("operation", [math.ExpOp, math.ExpM1Op, math.LogOp, math.PowFOp])
def test_subnormals_are_kept(operation: type[Operation]) -> None:
    x = np.array([-87.5, -95.0, -103.0, 2.0**-130, 2.0**-149, -(2.0**-140)], dtype=np.float32)
    if operation is math.PowFOp:
        got = apply(Variant(operation), np.full_like(x, np.e), x)
        exact = np.power(np.float64(np.float32(np.e)), x.astype(np.float64))
    else:
        got = apply(Variant(operation), x)
        function = {math.ExpOp: np.exp, math.ExpM1Op: np.expm1, math.LogOp: np.log}[operation]
        with np.errstate(invalid="ignore"):
            exact = function(x.astype(np.float64))
    np.testing.assert_allclose(got, exact, rtol=2e-7, atol=2.0**-149)
