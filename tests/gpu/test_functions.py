"""The functions on a GPU: the emulator's samples, larger ones, and the bare instructions.

What is measured is printed, so that docs/accuracy.md can say it.
"""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import math
from xdsl.ir import Operation

from tests.unit.functions.accuracy import ulps
from tests.unit.functions.kernels import Variant, apply
from tests.unit.functions.references import BY_NAME, CASES, Case
from tests.unit.functions.table import largest_error

BOUNDS = {"f32": 2.0, "f16": 0.501, "bf16": 0.501, "f64": 1.5}
EXP_BOUND = 2.5
"""exp of f32, by the manual's bound for ex2.approx (docs/accuracy.md)."""


def bound(name: str, kind: str) -> float:
    """The largest error that is right, in ulps."""
    return EXP_BOUND if (name, kind) == ("exp", "f32") else BOUNDS[kind]


BINADE = 1 << 23
TILE = 4096


def report(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Print although the test passes."""
    with capsys.disabled():
        print(f"\n  {text}", end=" ")


@pytest.mark.parametrize(
    ("case", "kind"),
    [(case, kind) for case in CASES for kind in case.kinds],
    ids=lambda part: part.name if isinstance(part, Case) else part,
)
def test_the_sample(case: Case, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    errors = [largest_error(case, kind, "cuda", seed) for seed in range(1, 5)]
    report(capsys, f"{case.name} {kind}: {max(errors):.3f} ulp")
    assert max(errors) <= bound(case.name, kind)


def evenly(low: float, high: float, count: int) -> np.ndarray:
    return np.linspace(low, high, count, dtype=np.float32)


def binades(first: float, count: int) -> np.ndarray:
    """Every f32 of `count` binades from a power of two on."""
    start = int(np.float32(first).view(np.uint32))
    return np.arange(start, start + count * BINADE, dtype=np.uint32).view(np.float32)


MANY = {
    "exp": evenly(-87.3, 88.7, 1 << 24),
    "exp2": evenly(-1.0, 1.0, 1 << 24),
    "log": binades(0.5, 2),
    "log2": binades(0.5, 2),
    "log10": binades(0.5, 2),
    "log1p": binades(0.25, 2),
    "expm1": evenly(-2.0, 2.0, 1 << 24),
    "rsqrt": binades(1.0, 2),
    "sin": binades(1.0, 2),
    "cos": binades(1.0, 2),
    "tan": binades(1.0, 2),
    "tanh": binades(0.5, 2),
    "erf": evenly(0.5, 4.0, 1 << 22),
}
"""Arguments where a function's errors are largest; whole binades are every f32 there is."""


@pytest.mark.parametrize("name", MANY)
def test_many_arguments(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case, x = BY_NAME[name], MANY[name]
    got = apply(Variant(case.operation, tile=TILE), x, device="cuda")
    error = ulps(got, case.exact(x), "f32", may_flush=case.may_flush)
    place = int(error.argmax())
    report(capsys, f"{name} of {len(x)}: {error[place]:.3f} ulp at {x[place]!r}")
    assert error[place] <= bound(name, "f32")


FAST: list[tuple[type[Operation], np.ndarray, float, float]] = [
    (math.ExpOp, evenly(-80, 80, 1 << 20), 2.0**-17, 0),
    (math.LogOp, binades(0.5, 2), 0, 2.0**-21.5),
    (math.Log2Op, binades(0.5, 2), 0, 2.0**-21.5),
    (math.Log10Op, binades(0.5, 2), 0, 2.0**-22.5),
    (math.Log2Op, evenly(2, 1e6, 1 << 20), 2.0**-21.5, 0),
    (math.SqrtOp, binades(1.0, 2), 2.0**-22.5, 0),
    (math.RsqrtOp, binades(1.0, 2), 2.0**-22.5, 0),
    (math.SinOp, evenly(-np.pi, np.pi, 1 << 20), 0, 2.0**-20),
    (math.CosOp, evenly(-np.pi, np.pi, 1 << 20), 0, 2.0**-20),
    (math.TanhOp, evenly(-9, 9, 1 << 20), 2.0**-10.5, 0),
]
"""Operation, arguments, relative and absolute bound: twice what docs/accuracy.md names, at most."""


@pytest.mark.parametrize(
    ("operation", "x", "relative", "absolute"),
    FAST,
    ids=[operation.name.removeprefix("math.") for operation, *_ in FAST],
)
def test_fast_forms(
    operation: type[Operation],
    x: np.ndarray,
    relative: float,
    absolute: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = BY_NAME[operation.name.removeprefix("math.")]
    got = apply(Variant(operation, is_fast=True, tile=TILE), x, device="cuda")
    exact = case.exact(x)
    difference = np.abs(got - exact)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(exact == 0, 0, difference / np.abs(exact))
    report(
        capsys,
        f"fast {case.name}: relative 2^{np.log2(quotient.max()):.2f}, "
        f"absolute 2^{np.log2(difference.max()):.2f}",
    )
    if relative:
        assert quotient.max() <= relative
    else:
        assert difference.max() <= absolute
