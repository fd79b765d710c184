"""An NVIDIA GPU through PyTorch: its arrays, and timing with CUDA events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tools.bench.errors import BenchError
from tools.bench.machine import Launch, Sample

_TORCH_NAMES = {
    "bool": "bool",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}
_DRAWN_DIRECTLY = frozenset({"f16", "bf16", "f32", "f64"})
_INTEGERS = {
    "bool": (0, 2),
    "u8": (0, 16),
    **dict.fromkeys(("i8", "i16", "i32", "i64"), (-8, 8)),
}
"""The range that integers are drawn from: small, so that sums of products stay exact."""
_MEMORY_SHARE = 0.8
"""How much of the free memory the arrays may take; references and checks need the rest."""
_FIRST_COVER = 200_000
_LONGEST_COVER = 1 << 27
"""Cycles, about 0.1 ms and 70 ms at 2 GHz."""
_COVERED_BEFORE_LESS = 16
"""Samples in a row that were queued in time, after which half the wait is tried again: what made
it long may have happened once, such as the loading of a kernel."""
_WAITS_ITSELF = 1.5
"""A contender that waits for the GPU is never queued in time, however long the wait: twice the
wait takes it this much longer at least, two times in a row."""
_POISON_INTEGER = 0x55
_COPY_BYTES = 1 << 30
_PRODUCT_EXTENT = 8192
_ROOF_SAMPLES = 15


def require_torch() -> None:
    """BenchError where PyTorch is not installed; does not import it."""
    if find_spec("torch") is None:
        raise BenchError("the benchmarks need PyTorch, which is not installed (pip install torch)")


class TorchMachine:
    """The current GPU. BenchError if there is none, or no PyTorch."""

    def __init__(self) -> None:
        require_torch()
        self.torch: Any = import_module("torch")
        if not self.torch.cuda.is_available():
            raise BenchError("the benchmarks need an NVIDIA GPU, and PyTorch finds none here")
        properties = self.torch.cuda.get_device_properties(self.torch.cuda.current_device())
        self.name: str = properties.name
        self.multiprocessors: int = properties.multi_processor_count
        self.l2_bytes: int = properties.L2_cache_size
        self._cover = _FIRST_COVER
        self._covered_in_a_row = 0

    # Arrays --------------------------------------------------------------------------------------

    def free_bytes(self) -> int:
        """A share of what is free on the GPU."""
        free, _ = self.torch.cuda.mem_get_info()
        return int(_MEMORY_SHARE * free)

    def random(
        self, shape: tuple[int, ...], dtype: str, seed: int, below: int | None = None
    ) -> Any:
        """See `Machine.random`."""
        torch = self.torch
        target = self._dtype(dtype)
        generator = torch.Generator(device="cuda").manual_seed(seed)
        if dtype in _INTEGERS:
            low, high = _INTEGERS[dtype] if below is None else (0, below)
            drawn = torch.randint(low, high, shape, generator=generator, device="cuda")
        else:
            drawn_type = target if dtype in _DRAWN_DIRECTLY else torch.float32
            drawn = torch.randn(shape, generator=generator, device="cuda", dtype=drawn_type)
        return drawn.to(target)

    def poisoned(self, shape: tuple[int, ...], dtype: str) -> Any:
        """See `Machine.poisoned`."""
        array = self.torch.empty(shape, dtype=self._dtype(dtype), device="cuda")
        self.poison(array)
        return array

    def poison(self, array: Any) -> None:
        """NaN, or a fixed pattern for integers."""
        array.fill_(float("nan") if array.dtype.is_floating_point else _POISON_INTEGER)

    def clear(self, array: Any) -> None:
        """See `Machine.clear`."""
        array.zero_()

    def widened(self, array: Any) -> Any:
        """See `Machine.widened`."""
        return array.to(self.torch.float64)

    def release(self) -> None:
        """Give memory that nothing uses back to the driver."""
        self.torch.cuda.empty_cache()

    def _dtype(self, name: str) -> Any:
        if name not in _TORCH_NAMES:
            raise BenchError(f"PyTorch has no arrays of {name}")
        return getattr(self.torch, _TORCH_NAMES[name])

    # Timing --------------------------------------------------------------------------------------

    def synchronize(self) -> None:
        """See `Machine.synchronize`."""
        self.torch.cuda.synchronize()

    def is_alive(self) -> bool:
        """See `Machine.is_alive`."""
        try:
            self.synchronize()
        except Exception:  # PyTorch has several classes for this
            return False
        return True

    def time(self, launches: Sequence[Launch]) -> Sample:
        """Time launches by events, with the GPU kept busy until all of them are queued.

        Without that the time that the host takes to queue a kernel would count as the kernel's.
        If the GPU came to the first launch before the last was queued, the sample is taken again
        behind a longer wait, unless it is a launch that waits for the GPU.
        """
        first_cover, before, waits = self._cover, 0.0, 0
        while True:
            sample, queued, was_covered = self._sample(launches)
            waits = waits + 1 if before and queued > _WAITS_ITSELF * before else 0
            before = queued
            if was_covered:
                self._note_covered()
                return sample
            if waits >= 2:
                self._cover = first_cover
                return sample
            if self._cover >= _LONGEST_COVER:
                return sample
            self._covered_in_a_row = 0
            self._cover *= 2

    def _sample(self, launches: Sequence[Launch]) -> tuple[Sample, float, bool]:
        """A sample, the seconds it took to queue, and whether the GPU was busy until then."""
        torch = self.torch
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(self._cover)
        begin.record()
        started = time.perf_counter()
        for launch in launches:
            launch()
        queued = time.perf_counter() - started
        end.record()
        was_covered = not begin.query()
        end.synchronize()
        seconds = begin.elapsed_time(end) * 1e-3
        return Sample(seconds / len(launches), queued / len(launches)), queued, was_covered

    def _note_covered(self) -> None:
        self._covered_in_a_row += 1
        if self._covered_in_a_row >= _COVERED_BEFORE_LESS:
            self._covered_in_a_row = 0
            self._cover = max(_FIRST_COVER, self._cover // 2)

    # Roofs ---------------------------------------------------------------------------------------

    def copy_rate(self) -> float:
        """Bytes a second, read and written, of a large copy within the GPU's memory."""
        source = self.random((_COPY_BYTES // 4,), "f32", 0)
        target = self.torch.empty_like(source)
        return 2 * _COPY_BYTES / self._median(lambda: target.copy_(source))

    def product_rate(self, dtype: str) -> float:
        """Operations a second of a large matrix product of random numbers."""
        extent = _PRODUCT_EXTENT
        a, b = (self.random((extent, extent), dtype, seed) for seed in range(2))
        out = self.torch.empty_like(a)
        return 2 * extent**3 / self._median(lambda: self.torch.matmul(a, b, out=out))

    def _median(self, launch: Launch) -> float:
        samples = [self.time([launch]).gpu for _ in range(_ROOF_SAMPLES)]
        return sorted(samples)[_ROOF_SAMPLES // 2]
