"""Where the time goes: steps add up, and an inner step is not counted twice."""

from __future__ import annotations

import pytest

from tools.bench import stopwatch
from tools.bench.stopwatch import Stopwatch


def test_steps_add_up_and_inner_ones_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: now)
    watch = Stopwatch()
    with watch.step("checks"):
        now = 1.0
        for _ in range(2):
            with watch.step("kernels"):
                now += 2.0
        now += 0.5
    with watch.step("checks"):
        now += 0.25
    assert watch.seconds == {"kernels": 4.0, "checks": 1.75}
    assert str(watch) == "5.8 s: kernels 4.0, checks 1.8"
