"""Is a result right: compared with the reference, element by element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tools.bench.machine import Machine

RELATIVE_TOLERANCE = {
    "f64": 1e-12,
    "f32": 1e-5,
    "f16": 2e-3,
    "bf16": 1.6e-2,
    "f8e4m3": 0.13,
    "f8e5m2": 0.25,
}
"""By the type of the output: two units in its last place, and more in f32, where intermediate
rounding counts too. Integers must be exact."""
_CHUNK = 1 << 24
"""Elements that are compared at once, to bound the memory that this takes."""


@dataclass(frozen=True)
class Mismatch:
    """The worst element of a wrong result."""

    array: str
    index: tuple[int, ...]
    value: float
    expected: float
    count: int

    def __str__(self) -> str:
        place = ", ".join(map(str, self.index))
        return (
            f"{self.array}[{place}] is {self.value:g} and should be {self.expected:g} "
            f"({self.count:,} elements are wrong)"
        )


@dataclass(frozen=True)
class Comparison:
    """What came out: the largest difference, and the worst mismatch if there is one."""

    largest_difference: float
    mismatch: Mismatch | None


def compare(
    machine: Machine,
    name: str,
    out: Any,
    reference: Any,
    dtype: str,
    magnitude: float,
    tolerance: float | None = None,
) -> Comparison:
    """Compare an output with its f64 reference.

    An element is right if it differs by at most tolerance * (magnitude + |expected|), where the
    tolerance is that of `dtype` if none is given; NaN never is.
    """
    if tolerance is None:
        tolerance = RELATIVE_TOLERANCE.get(dtype, 0.0)
    shape = tuple(out.shape)
    assert tuple(reference.shape) == shape, f"the reference of {name} has another shape"
    flat, expected = out.reshape(-1), reference.reshape(-1)
    largest, wrong = 0.0, 0
    worst: tuple[float, int] | None = None
    for start in range(0, math.prod(shape), _CHUNK):
        wanted = expected[start : start + _CHUNK]
        difference = abs(machine.widened(flat[start : start + _CHUNK]) - wanted)
        difference[difference != difference] = math.inf  # NaN
        excess = difference - tolerance * (magnitude + abs(wanted))
        largest = max(largest, float(difference.max()))
        wrong += int((excess > 0).sum())
        position = int(excess.argmax())
        if excess[position] > 0 and (worst is None or float(excess[position]) > worst[0]):
            worst = float(excess[position]), start + position
    if worst is None:
        return Comparison(largest, None)
    position = worst[1]
    value, correct = float(flat[position]), float(expected[position])
    mismatch = Mismatch(name, _unravel(position, shape), value, correct, wrong)
    return Comparison(largest, mismatch)


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The subscripts of an element from its place in row-major order."""
    index: list[int] = []
    for extent in reversed(shape):
        position, subscript = divmod(position, extent)
        index.append(subscript)
    return tuple(reversed(index))
