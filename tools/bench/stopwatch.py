"""Where the time of a benchmark goes: the seconds of its steps, by name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up how long steps take. Steps may be nested; the inner one's time is its own alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the time of the block for a step."""
        outer, self._inner = self._inner, 0.0
        started = time.perf_counter()
        try:
            yield
        finally:
            taken = time.perf_counter() - started
            self.seconds[name] = self.seconds.get(name, 0.0) + taken - self._inner
            self._inner = outer + taken

    def __str__(self) -> str:
        """`4.2 s: arrays 0.1, kernels 2.9, contest 1.2`."""
        steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        return f"{sum(self.seconds.values()):.1f} s: {steps}"
