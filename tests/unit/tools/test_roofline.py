"""The roofline: where points stand. Drawing needs matplotlib and is skipped without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.tools.sample_results import ALL, SAXPY, TORCH, WRONG
from tools.bench.entrants import Contender
from tools.bench.roofline import SUFFIXES, points, write_plot
from tools.bench.worker import Roofs


def test_points_are_the_finalists_by_intensity() -> None:
    found = points([WRONG, *ALL])
    assert [point.contender for point in found] == list(Contender)
    assert found[0].label == "saxpy f32 1000000"
    assert found[0].intensity == pytest.approx(1 / 6)
    assert found[0].flops_per_second == pytest.approx(5e11)


def test_a_case_without_arithmetic_keeps_its_share_of_the_bandwidth() -> None:
    copy = replace(SAXPY, case="copy", flops=0)
    own, other = points([SAXPY, copy])
    assert other.label == "copy f32 1000000 (no arithmetic)"
    assert other.intensity == own.intensity / 2
    assert other.flops_per_second / other.intensity == pytest.approx(3e12)
    (alone,) = points([copy])
    assert alone.intensity > 0


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_plot_is_written(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "plots" / f"roofline{suffix}"
    results = [*ALL, replace(SAXPY, case="copy", flops=0), replace(TORCH, case="copy", flops=0)]
    write_plot(path, results, Roofs("Test GPU", 4e12, {"f32": 5e13, "f16": 8e14}))
    assert path.stat().st_size > 10_000
