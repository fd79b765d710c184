"""What the harness asks of the machine that it measures on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Launch = Callable[[], object]
"""Queues one run of a contender."""


@dataclass(frozen=True)
class Sample:
    """One measurement, in seconds a launch: on the GPU, and of the host to queue it."""

    gpu: float
    host: float


class Machine(Protocol):
    """A device that holds arrays and times launches. `TorchMachine` is the one for GPUs.

    Attributes:
        name: what the device is called.
        multiprocessors: how many it has.
        l2_bytes: the size of its last cache.
        torch: the module, for PyTorch's own contender; None without it.
    """

    name: str
    multiprocessors: int
    l2_bytes: int
    torch: Any

    def free_bytes(self) -> int:
        """How much memory arrays may take."""
        ...

    def random(
        self, shape: tuple[int, ...], dtype: str, seed: int, below: int | None = None
    ) -> Any:
        """An array of normal numbers, or of small integers; others for another seed.

        Integers with `below` are from 0 up to that.
        """
        ...

    def poisoned(self, shape: tuple[int, ...], dtype: str) -> Any:
        """An array of values that no result holds."""
        ...

    def poison(self, array: Any) -> None:
        """Overwrite an array with values that no result holds."""
        ...

    def clear(self, array: Any) -> None:
        """Queue the filling of an array with zeros."""
        ...

    def widened(self, array: Any) -> Any:
        """A copy in f64."""
        ...

    def synchronize(self) -> None:
        """Wait for everything that was queued; raises what went wrong in it."""
        ...

    def is_alive(self) -> bool:
        """Whether it can still run anything: a fault in a kernel may take the context down."""
        ...

    def time(self, launches: Sequence[Launch]) -> Sample:
        """Queue these launches back to back and time them, waiting for the last."""
        ...
