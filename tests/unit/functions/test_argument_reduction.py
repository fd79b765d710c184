"""Large arguments of sin, cos and tan, and those that come closest to a multiple of pi / 2."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects import math
from xdsl.ir import Operation

import phobos
from tests.unit.functions.accuracy import ulps
from tests.unit.functions.kernels import Variant, apply
from tools.functions.decimals import circle_constant, cosine, sine

DIGITS = 400
"""Of all computations: the largest f64 has 309 in front of the point."""
OPERATIONS = (math.SinOp, math.CosOp, math.TanOp)


def closest_to_a_multiple(exponent: int, bits: int = 23) -> float:
    """The float with an exponent that lies closest, relatively, to a multiple of pi / 2.

    Its mantissa has so many bits behind the point. Mantissas m for which m * alpha is near an
    integer, alpha = 2^(exponent - bits) * 2 / pi, are denominators of convergents of alpha and
    sums of two of them.
    """
    mantissas = range(1 << bits, 2 << bits)
    with localcontext(prec=DIGITS):
        alpha = Fraction(2 / circle_constant()) * Fraction(2) ** (exponent - bits)
    denominators = [0, 1]
    rest = alpha - alpha.numerator // alpha.denominator
    while denominators[-1] < mantissas.stop and rest:
        inverse = 1 / rest
        whole = inverse.numerator // inverse.denominator
        denominators.append(whole * denominators[-1] + denominators[-2])
        rest = inverse - whole
    *_, older, old, _ = denominators
    candidates = {
        base + count * old
        for base in (0, older)
        for count in range(1 + (mantissas.stop - base) // old)
    }

    def distance(mantissa: int) -> Fraction:
        part = mantissa * alpha % 1
        return min(part, 1 - part)

    best = min((m for m in candidates if m in mantissas), key=distance)
    return float(best) * 2.0 ** (exponent - bits)


def exactly(operation: type[Operation], x: float) -> float:
    """The function in decimals, after a reduction with 400 digits of pi."""
    with localcontext(prec=DIGITS):
        half_pi = circle_constant() / 2
        quadrant = round(Decimal(x) / half_pi)
        rest = Decimal(x) - quadrant * half_pi
    s, c = sine(rest), cosine(rest)
    for _ in range(quadrant % 4):
        s, c = c, -s
    return float({math.SinOp: s, math.CosOp: c, math.TanOp: s / c}[operation])


def test_no_rest_is_smaller_than_the_lowering_says() -> None:
    hard = [closest_to_a_multiple(exponent) for exponent in range(1, 128)]
    rests = [abs(exactly(math.SinOp, x) * exactly(math.CosOp, x)) for x in hard]
    assert 2.0**-30 < min(rests) < 2.0**-29


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_next_to_multiples_of_a_quarter_turn(operation: type[Operation]) -> None:
    hard = [closest_to_a_multiple(exponent) for exponent in range(1, 128)]
    x = np.array([*hard, *(-one for one in hard)], dtype=np.float32)
    exact = np.array([exactly(operation, float(one)) for one in x])
    assert ulps(apply(Variant(operation), x), exact, "f32").max() <= 1.6


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_both_sides_of_the_border(operation: type[Operation]) -> None:
    border = np.float32(2.0**17).view(np.uint32)
    x = np.arange(border - 2000, border + 2000, dtype=np.uint32).view(np.float32)
    exact = np.array([exactly(operation, float(one)) for one in x[::8]])
    assert ulps(apply(Variant(operation), x)[::8], exact, "f32").max() <= 1.6


def test_f64_next_to_multiples_of_a_quarter_turn() -> None:
    """And on both sides of the border between the two ways of reducing."""
    hard = [closest_to_a_multiple(exponent, 52) for exponent in (*range(1, 1024, 11), 849, 1023)]
    # The closest of all (Kahan).
    rest = exactly(math.CosOp, 6381956970095103 * 2.0**797)
    assert 2.0**-61 < abs(rest) < 2.0**-60
    border = np.float64(2.0**30).view(np.uint64)
    beside = np.arange(border - 20, border + 20, dtype=np.uint64).view(np.float64)
    positive = [*hard, 6381956970095103 * 2.0**797, *beside, np.finfo(np.float64).max]
    x = np.array([*positive, *(-one for one in positive)])
    for operation in (math.SinOp, math.CosOp):
        exact = np.array([exactly(operation, float(one)) for one in x], np.longdouble)
        assert ulps(apply(Variant(operation, "f64"), x), exact, "f64").max() <= 1.6


def test_branches_in_loops_and_under_conditions() -> None:
    """The branch for large arguments stands inside other control flow, with barriers around."""
    source = """
    kernel waves(x: tensor<f32>[N], out: tensor<f32>[N]) {
        var total: f32 = 0.0
        for round in range(0, 3) {
            let i = ctx.thread + round * ctx.threads
            if ctx.thread % 3 != 1 {
                if i < N { total += sin(x[i]) * cos(x[i]) }
            } else {
                total += 1.0
            }
            barrier()
        }
        if ctx.thread < N { out[ctx.thread] = total }
    }
    """
    x = np.random.default_rng(3).choice([0.5, 2.0, 3e5, 1e20], 768).astype(np.float32)
    out = np.zeros(768, dtype=np.float32)
    phobos.compile(source, name="waves.ph", cache=False)["waves"](
        x=x, out=out, grid=(1,), device="emulator"
    )
    wide = x.astype(np.float64).reshape(3, 256)
    threads = np.arange(256)
    expected = np.where(threads % 3 != 1, (np.sin(wide) * np.cos(wide)).sum(axis=0), 3.0)
    np.testing.assert_allclose(out[:256], expected, rtol=1e-6, atol=1e-6)
    assert not out[256:].any()
