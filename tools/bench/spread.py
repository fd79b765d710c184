"""A median with its spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The middle of some measurements: a fifth of them lies below `low`, a fifth above `high`."""

    median: float
    low: float
    high: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """Median, 20th and 80th percentile of at least one value."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    fifths = statistics.quantiles(values, n=5, method="inclusive")
    return Spread(statistics.median(values), fifths[0], fifths[-1], len(values))
