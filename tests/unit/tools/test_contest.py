"""Timing in turns: who runs when, on which arrays, how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest

from tools.bench.contest import (
    MAX_LAUNCHES,
    MAX_SETS,
    MIN_ROUNDS,
    WARM_UP,
    Contest,
    buffer_sets,
    launches_for,
    rounds_within,
)
from tools.bench.machine import Launch, Sample
from tools.bench.spread import Spread, spread


class Log:
    """Entrants that note who ran on which set; the clock gives the number of the sample."""

    def __init__(self, names: str, sets: int) -> None:
        self.runs: list[str] = []
        self.samples = 0
        self.entrants: list[list[Launch]] = [
            [self._launch(f"{name}{number}") for number in range(sets)] for name in names
        ]
        self.contest = Contest(self.clock, sets)

    def _launch(self, name: str) -> Launch:
        return lambda: self.runs.append(name)

    def clock(self, launches: Sequence[Launch]) -> Sample:
        for launch in launches:
            launch()
        self.samples += 1
        return Sample(float(self.samples), 0.0)


def test_all_take_part_in_each_round_and_sets_rotate() -> None:
    log = Log("abc", 2)
    samples = log.contest.run(log.entrants, rounds=3, launches=1)
    names = "".join(run[0] for run in log.runs)
    assert [sorted(names[start : start + 3]) for start in (0, 3, 6)] == [["a", "b", "c"]] * 3
    assert "".join(run[1] for run in log.runs) == "010101010"
    places = [[index + 1 for index, name in enumerate(names) if name == one] for one in "abc"]
    assert [[sample.gpu for sample in own] for own in samples] == places


def test_each_comes_behind_each_other_one_about_as_often() -> None:
    log = Log("abc", 2)
    log.contest.run(log.entrants, rounds=600, launches=1)
    names = "".join(run[0] for run in log.runs)
    follows = Counter(pairwise(names))
    others = [follows[a, b] for a in "abc" for b in "abc" if a != b]
    assert sum(others) > 1400
    assert max(others) < 1.2 * min(others)


def test_the_launches_of_a_sample_use_one_set_after_the_other() -> None:
    log = Log("ab", 3)
    for _ in range(2):
        log.contest.run(log.entrants, rounds=1, launches=2)
    assert "".join(run[1] for run in log.runs) == "01201201"
    assert all(one[0] == other[0] for one, other in zip(log.runs[::2], log.runs[1::2], strict=True))


def test_the_pilot_times_each_entrant_after_its_warm_up() -> None:
    log = Log("ab", 2)
    assert log.contest.pilot(log.entrants) == [2 * WARM_UP - 1, 2 * WARM_UP]


@pytest.mark.parametrize(
    ("pilots", "launches"),
    [
        ([1e-3, 2e-3], 1),
        ([2e-4], 1),
        ([1e-4, 1.0], 2),
        ([3e-6], MAX_LAUNCHES),
        ([0.0], MAX_LAUNCHES),
    ],
)
def test_short_kernels_are_launched_several_times_a_sample(
    pilots: list[float], launches: int
) -> None:
    assert launches_for(pilots) == launches


@pytest.mark.parametrize(
    ("pilots", "wanted", "rounds"),
    [([1e-3, 1e-3], 50, 50), ([0.05, 0.05], 50, 20), ([10.0], 50, MIN_ROUNDS), ([10.0], 2, 2)],
)
def test_rounds_are_cut_to_the_time_there_is(pilots: list[float], wanted: int, rounds: int) -> None:
    assert rounds_within(pilots, 1, wanted, seconds=2.0) == rounds


@pytest.mark.parametrize(
    ("footprint", "free", "sets"),
    [
        (12 << 20, 1 << 30, 10),
        (3 << 30, 64 << 30, 2),
        (3 << 30, 4 << 30, 1),
        (3 << 30, 1 << 30, 0),
        (1 << 10, 1 << 30, MAX_SETS),
    ],
)
def test_the_sets_exceed_the_cache_and_fit_the_memory(footprint: int, free: int, sets: int) -> None:
    assert buffer_sets(footprint, 50 << 20, free) == sets


def test_spread_is_the_median_and_the_outer_fifths() -> None:
    assert spread([5.0, 1.0, 3.0, 2.0, 4.0, 6.0]) == Spread(3.5, 2.0, 5.0, 6)
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0, 1)
