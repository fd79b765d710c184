"""Results, their ratios, and their form as CSV."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.tools.sample_results import (
    ALL,
    OLDER,
    PEER_FAILED,
    SAXPY,
    SEARCHED,
    TORCH,
    TRITON,
    WRONG,
)
from tools.bench.case import Rate
from tools.bench.results import COLUMNS, CsvFile, is_fault, ratio_to_own, ratio_to_peer


def test_the_ratio_is_to_the_faster_peer() -> None:
    assert ratio_to_peer(SAXPY, ALL) == pytest.approx(1.1)
    assert ratio_to_peer(SAXPY, [SAXPY, TORCH]) == pytest.approx(1.25)
    assert ratio_to_peer(TRITON, ALL) == 1


def test_there_is_no_ratio_without_a_peer_on_the_same_problem() -> None:
    assert ratio_to_peer(SAXPY, [SAXPY, SEARCHED, PEER_FAILED]) is None
    assert ratio_to_peer(SAXPY, [replace(TORCH, dtype="f16")]) is None
    assert ratio_to_peer(WRONG, ALL) is None


def test_a_build_for_an_older_chip_is_compared_with_phobos_own() -> None:
    assert ratio_to_own(OLDER, [TORCH, SAXPY, OLDER]) == pytest.approx(0.8)
    assert ratio_to_own(OLDER, [TORCH, SEARCHED, OLDER]) is None
    assert ratio_to_own(SAXPY, [SAXPY, OLDER]) is None
    assert ratio_to_peer(SAXPY, [*ALL, OLDER]) == pytest.approx(1.1)


def test_the_rate_is_in_what_limits_the_case() -> None:
    assert SAXPY.rate == pytest.approx(3e12)
    assert replace(SAXPY, rate_kind=Rate.FLOPS).rate == pytest.approx(5e11)
    assert WRONG.rate is None


def test_only_phobos_can_be_at_fault() -> None:
    assert [is_fault(one) for one in (SAXPY, WRONG, PEER_FAILED)] == [False, True, False]


def test_csv_has_every_measurement(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.csv"
    with CsvFile(path) as file:
        file.add([*ALL, OLDER])
        first_rows = path.read_text().splitlines()
        assert len(first_rows) == 2 + len(ALL), "rows are on disk before the file is closed"
        file.add([WRONG])
    with open(path, newline="") as text:
        rows = list(csv.DictReader(text))
    assert tuple(rows[0]) == COLUMNS
    searched, own, torch, _, older, wrong = rows
    assert own["median_s"] == "4e-06"
    assert own["gb_per_s"] == "3000"
    assert own["tflop_per_s"] == "0.5"
    assert own["ratio_to_peer"] == "1.1000"
    assert (own["samples"], own["launches"], own["buffer_sets"]) == ("50", "32", "12")
    assert (torch["contender"], torch["choices"], torch["ratio_to_peer"]) == (
        "torch",
        "add",
        "0.8800",
    )
    assert (own["chip"], own["ratio_to_own"]) == ("", "")
    assert (older["chip"], older["stage"]) == ("sm_75", "older chip")
    assert (older["ratio_to_own"], older["ratio_to_peer"]) == ("0.8000", "")
    assert (searched["stage"], searched["ratio_to_peer"]) == ("search", "")
    assert (wrong["status"], wrong["note"], wrong["median_s"]) == ("wrong", "out[3] is nan", "")
