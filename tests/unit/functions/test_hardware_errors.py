"""The functions stay within their bounds if approximate instructions are as wrong as allowed.

The emulator's exact models are replaced by ones that are off by what NVIDIA's manual allows, to
either side at random, or always to the same side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from phobos.emulator import launch
from phobos.emulator.arithmetic import approximate
from phobos.emulator.instructions import floating
from tests.unit.functions.references import BY_NAME
from tests.unit.functions.table import largest_error

Sides = Callable[[np.ndarray], np.ndarray]

SIDES: dict[str, Sides] = {
    "low": lambda x: np.full(np.shape(x), -1.0),
    "high": lambda x: np.full(np.shape(x), 1.0),
    # By the bits of the argument: a function gives one result for one argument.
    "mixed": lambda x: 1.0 - 2.0 * (np.asarray(x).view(np.uint32) * np.uint32(2654435761) >> 31),
}

BOUNDS = {"tanh": 2.0, "erf": 2.0, "pow": 2.0, "tan": 2.0, "exp": 2.5}
"""exp has the 2 ulp of ex2.approx and those of its argument, as docs/accuracy.md says."""


def off_by(function: Callable, ulps: float, sides: Sides) -> Callable:
    """A function of f32 whose normal results are as far off as this."""

    def wrong(a: np.ndarray) -> np.ndarray:
        exact = function(a.astype(np.float64))
        unit = np.exp2(np.floor(np.log2(np.abs(exact))) - 23)
        normal = np.isfinite(exact) & (np.abs(exact) >= 2.0**-126) & (np.abs(exact) < 2.0**127)
        # One ulp of a rounding that the bound includes is not to be taken twice.
        moved = np.where(normal, exact + sides(a) * (ulps - 0.5) * unit, exact)
        return moved.astype(a.dtype)

    return wrong


@pytest.fixture(params=SIDES)
def wrong_instructions(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Kernels that were decoded with other instructions are kept, and forgotten here."""
    sides = SIDES[request.param]
    launch._loaded.cache_clear()
    monkeypatch.setitem(floating._APPROXIMATE, "ex2", off_by(np.exp2, 2.0, sides))
    reciprocal = off_by(lambda a: 1.0 / a, 1.0, sides)
    monkeypatch.setattr(approximate, "reciprocal", reciprocal)
    yield
    launch._loaded.cache_clear()


@pytest.mark.usefixtures("wrong_instructions")
@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_hold(name: str) -> None:
    error = largest_error(BY_NAME[name], "f32", "emulator")
    assert error <= BOUNDS[name]


@pytest.mark.usefixtures("wrong_instructions")
def test_the_replacement_counts() -> None:
    assert largest_error(BY_NAME["exp2"], "f32", "emulator") > 1.9
