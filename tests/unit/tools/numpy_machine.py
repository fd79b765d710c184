"""A machine for the benchmark harness that needs no GPU: NumPy arrays, and a clock of its own.

A contender that wants to take time says `machine.clock += seconds`; as `torch` the machine hands
out itself, so that the calls of a case can do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tools.bench.machine import Launch, Sample

_DTYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
POISON_INTEGER = 0x55
HOST_SECONDS = 1e-6


class NumpyMachine:
    """See the module. `memory` is what arrays may take."""

    def __init__(self, *, memory: int = 1 << 24, l2_bytes: int = 1 << 12) -> None:
        self.name = "NumPy"
        self.multiprocessors = 2
        self.l2_bytes = l2_bytes
        self.memory = memory
        self.torch = self
        self.clock = 0.0
        self.alive = True
        self.samples = 0

    def free_bytes(self) -> int:
        return self.memory

    def random(
        self, shape: tuple[int, ...], dtype: str, seed: int, below: int | None = None
    ) -> Any:
        rng = np.random.default_rng(seed)
        if dtype.startswith("i"):
            low, high = (-8, 8) if below is None else (0, below)
            return rng.integers(low, high, shape).astype(_DTYPES[dtype])
        return rng.standard_normal(shape).astype(_DTYPES[dtype])

    def poisoned(self, shape: tuple[int, ...], dtype: str) -> Any:
        array = np.empty(shape, _DTYPES[dtype])
        self.poison(array)
        return array

    def poison(self, array: Any) -> None:
        array[...] = POISON_INTEGER if array.dtype.kind == "i" else np.nan

    def clear(self, array: Any) -> None:
        array[...] = 0

    def widened(self, array: Any) -> Any:
        return array.astype(np.float64)

    def synchronize(self) -> None:
        if not self.alive:
            raise RuntimeError("the machine is gone")

    def is_alive(self) -> bool:
        return self.alive

    def time(self, launches: Sequence[Launch]) -> Sample:
        self.samples += 1
        started = self.clock
        for launch in launches:
            launch()
        return Sample((self.clock - started) / len(launches), HOST_SECONDS)
