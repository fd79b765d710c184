"""A stand-in for PyTorch with one GPU, as far as `TorchMachine` uses it to time launches.

The GPU works through what is queued as the clock goes on: launching takes host time, sleeping
takes the GPU's. Times are in seconds; a cycle is a nanosecond.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

CYCLE = 1e-9


class FakeTorch:
    """See the module."""

    def __init__(self, *, has_gpu: bool = True) -> None:
        self.now = 0.0
        self.gpu_is_free_at = 0.0
        self.sleeps: list[int] = []
        self.lost = False
        self.float64 = "float64"
        properties = SimpleNamespace(
            name="Fake GPU", multi_processor_count=4, L2_cache_size=1 << 20
        )
        self.cuda = SimpleNamespace(
            is_available=lambda: has_gpu,
            current_device=lambda: 0,
            get_device_properties=lambda _: properties,
            mem_get_info=lambda: (1000, 2000),
            synchronize=self._synchronize,
            Event=lambda enable_timing: FakeEvent(self),
            _sleep=self._sleep,
        )

    def perf_counter(self) -> float:
        """The host's clock."""
        return self.now

    def launch(self, host_seconds: float, gpu_seconds: float) -> None:
        """Queue a kernel."""
        self.now += host_seconds
        self.gpu_is_free_at = max(self.gpu_is_free_at, self.now) + gpu_seconds

    def _sleep(self, cycles: int) -> None:
        self.sleeps.append(cycles)
        self.launch(0.0, cycles * CYCLE)

    def _synchronize(self) -> None:
        if self.lost:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")


class FakeEvent:
    """Happens when the GPU has done what was queued before it."""

    def __init__(self, torch: FakeTorch) -> None:
        self.torch = torch
        self.happens_at = 0.0

    def record(self) -> None:
        self.happens_at = max(self.torch.gpu_is_free_at, self.torch.now)

    def query(self) -> bool:
        return self.happens_at <= self.torch.now

    def synchronize(self) -> None:
        self.torch.now = max(self.torch.now, self.happens_at)

    def elapsed_time(self, end: Any) -> float:
        return 1e3 * (end.happens_at - self.happens_at)
