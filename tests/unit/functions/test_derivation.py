"""The constants are what tools/functions derives, and the deriving is right."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import pytest

from phobos.transforms.lowering.functions import constants
from tools.functions import decimals
from tools.functions.derive import TARGET, derived_text
from tools.functions.minimax import DIGITS, Fit, fit, float_below, round_to, solve


def test_the_file_is_what_is_derived() -> None:
    assert TARGET.read_text(encoding="ascii") == derived_text()


def test_best_line_for_a_parabola() -> None:
    """t^2 on [0, 1]: the line t - 1/8 is off by 1/8 at both ends and in the middle."""
    problem = Fit(lambda t: t * t, lambda t: Decimal(1), Decimal(0), Decimal(1), 2)
    found = fit(problem)
    assert found.coefficients == pytest.approx((-0.125, 1.0), abs=1e-3)
    assert found.error == pytest.approx(0.125, rel=1e-3)


def test_weights_may_change_sign_inside() -> None:
    """(e^t - 1) / t around 0, relative to e^t - 1: Taylor's series is no better anywhere."""
    problem = Fit(
        lambda t: (t.exp() - 1) / t,
        lambda t: t / (t.exp() - 1),
        Decimal("-0.3"),
        Decimal("0.3"),
        4,
    )
    found = fit(problem)
    series = [1 / math.factorial(power + 1) for power in range(4)]
    assert found.coefficients == pytest.approx(series, rel=1e-2)
    taylor = max(abs(sum(c * t**p for p, c in enumerate(series)) * t / math.expm1(t) - 1)
                 for t in (-0.3, 0.3))  # fmt: skip
    assert found.error < taylor / 4


def test_solve() -> None:
    rows = [[Decimal(0), Decimal(2), Decimal(4)], [Decimal(3), Decimal(1), Decimal(5)]]
    assert solve(rows) == [1, 2]


@pytest.mark.parametrize("x", [0.01, 0.5, 1.0, 3.0])
def test_series(x: float) -> None:
    exact = Decimal(x)
    assert float(decimals.sine(exact)) == pytest.approx(math.sin(x), rel=1e-15)
    assert float(decimals.cosine(exact)) == pytest.approx(math.cos(x), rel=1e-15)
    assert float(decimals.tanh(exact)) == pytest.approx(math.tanh(x), rel=1e-15)
    assert float(decimals.erf(exact)) == pytest.approx(math.erf(x), rel=1e-15)
    assert float(decimals.atanh(exact / 4)) == pytest.approx(math.atanh(x / 4), rel=1e-15)


def test_pi() -> None:
    with localcontext(prec=DIGITS):
        pi = +decimals.circle_constant()
        assert abs(decimals.sine(pi)) < Decimal(10) ** (2 - DIGITS)
    assert float(pi) == math.pi


def test_rounding() -> None:
    assert round_to(Decimal("0.1"), 32) == 0.10000000149011612
    assert round_to(Decimal("0.1"), 64) == 0.1
    assert float_below(1.0) == 1 - 2.0**-24


def added(parts: tuple[float, ...]) -> float:
    """The sum of constants that are written in as many digits as an f32 needs."""
    return math.fsum(round_to(Decimal(part), 32) for part in parts)


def test_splits_add_up() -> None:
    assert added(constants.LOG2_E) == pytest.approx(1 / math.log(2), rel=1e-14)
    assert added(constants.HALF_PI) == math.pi / 2
    assert all(part > 0 for part in constants.HALF_PI)
    assert constants.LOG2_RATIO_START[0] == constants.LOG2_RATIO[0]
    fraction = sum(word / 2.0 ** (32 * (i + 1)) for i, word in enumerate(constants.TWO_OVER_PI))
    assert fraction == 2 / math.pi
