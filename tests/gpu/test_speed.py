"""How fast kernels run on a GPU, beside PyTorch in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

import phobos
from tests.support.programs import SAXPY

ELEMENTS = 1 << 28


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def median_time(
    torch: Any, launch: Callable[[], object], batch: int = 10, count: int = 15
) -> float:
    """The median time of a launch in seconds, by events around batches of launches.

    In a batch the GPU works on one launch while the CPU prepares the next.
    """
    for _ in range(3):
        launch()
    times: list[float] = []
    for _ in range(count):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(batch):
            launch()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / batch)
    return statistics.median(times)


def test_saxpy_keeps_up_with_torch(
    torch: Any, record_property: Callable[[str, object], None]
) -> None:
    x, y, out = (torch.ones(ELEMENTS, device="cuda") for _ in range(3))
    reference = median_time(torch, lambda: torch.add(y, x, alpha=2.5, out=out))
    best = float("inf")
    for block in (1024, 2048, 4096, 8192):
        kernel = phobos.compile(SAXPY, constants={"BLOCK": block})["saxpy"]
        took = median_time(torch, lambda kernel=kernel: kernel(x, y, out, 2.5))
        rate = 3 * x.nbytes / took / 1e12
        record_property(f"BLOCK={block}", f"{took * 1e3:.3f} ms, {rate:.2f} TB/s")
        best = min(best, took)
    record_property("torch", f"{reference * 1e3:.3f} ms")
    record_property("ratio", round(reference / best, 3))
    assert bool((out == 3.5).all())
    assert reference / best >= 0.97


def test_a_launch_costs_microseconds(
    torch: Any, record_property: Callable[[str, object], None]
) -> None:
    kernel = phobos.compile(SAXPY)["saxpy"]
    x, y, out = (torch.ones(1024, device="cuda") for _ in range(3))
    kernel(x, y, out, 2.5)
    count = 2000
    start = time.perf_counter()
    for _ in range(count):
        kernel(x, y, out, 2.5)
    took = (time.perf_counter() - start) / count
    torch.cuda.synchronize()
    record_property("microseconds", round(took * 1e6, 1))
    assert took < 100e-6
