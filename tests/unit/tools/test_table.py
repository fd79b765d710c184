"""Results as tables."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tests.unit.tools.sample_results import (
    ALL,
    OLDER,
    PEER_FAILED,
    SAXPY,
    TORCH,
    UNTIMED,
    WRONG,
)
from tools.bench.registry import all_cases
from tools.bench.results import Result, failure
from tools.bench.table import case_list, problem_table, rate_text, summary_table, time_text
from tools.bench.worker import Job

if TYPE_CHECKING:
    from rich.table import Table


def lines_of(table: Table) -> list[str]:
    """The lines of a table as a log gets it."""
    out = io.StringIO()
    Console(file=out, width=200, markup=False).print(table)
    return [" ".join(line.split()) for line in out.getvalue().splitlines() if line.strip()]


def body_of(table: Table) -> list[str]:
    """The rows of a table, behind its title, its head and the rule."""
    return lines_of(table)[3:]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.5, "2.500 s"),
        (7.394e-4, "0.7394 ms"),
        (1e-4, "0.1000 ms"),
        (9.96e-5, "99.60 us"),
        (1.2346e-5, "12.35 us"),
        (0.0, "0.000 us"),
    ],
)
def test_times_have_four_digits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_the_contenders_of_a_problem_are_compared() -> None:
    lines = lines_of(problem_table(ALL))
    assert lines[0] == "saxpy f32 1000000 on Test GPU"
    assert lines[3:] == [
        "phobos BLOCK=1024 4.000 us 3.900 us - 4.200 us 3000 GB/s 1.100 30.00 us",
        "torch add 5.000 us 4.500 us - 5.500 us 2400 GB/s 0.880 30.00 us",
        "triton BLOCK=4096 4.400 us 3.960 us - 4.840 us 2727 GB/s 1.000 30.00 us",
    ]


def test_candidates_are_shown_on_request() -> None:
    rows = body_of(problem_table(ALL, with_search=True))
    assert len(rows) == 4
    assert rows[0].startswith("phobos BLOCK=8192")
    assert rows[0].endswith("search")


def test_what_failed_is_always_shown() -> None:
    rows = body_of(problem_table([WRONG, PEER_FAILED, SAXPY]))
    assert rows[0].endswith("wrong: out[3] is nan")
    assert rows[1].endswith("failed: TypeError: no")


def summary_of(results: list[Result]) -> list[str]:
    return body_of(summary_table(results))


def test_the_summary_has_a_line_for_each_problem() -> None:
    assert summary_of(ALL) == [
        "saxpy f32 1000000 4.000 us 5.000 us 4.400 us 3000 GB/s 1.100 BLOCK=1024"
    ]


def test_builds_for_older_chips_are_shown_against_phobos_own() -> None:
    rows = body_of(problem_table([*ALL, OLDER]))
    assert rows[-1].endswith("for sm_75: 0.800 of own")
    other = failure(Job("copy", "f16", (64,)).problem(), "lost")
    *_, head, _, own, lost = lines_of(summary_table([*ALL, OLDER, other]))
    assert head.endswith("rate ratio sm_75 phobos with")
    assert own.endswith("3000 GB/s 1.100 0.800 BLOCK=1024")
    assert lost == "copy f16 64 - - - - - - failed: lost"


def test_the_summary_says_what_went_wrong() -> None:
    (line,) = summary_of([WRONG, WRONG, SAXPY, TORCH])
    assert line.endswith("1.250 BLOCK=1024 wrong: BLOCK=16 out[3] is nan (and 1 more)")
    lost = failure(Job("copy", "f16", (64,)).problem(), "it did not end within 5 s")
    (line,) = summary_of([lost])
    assert line == "copy f16 64 - - - - - failed: it did not end within 5 s"


def test_a_candidate_that_was_not_timed_has_no_rate() -> None:
    assert rate_text(UNTIMED) == "-"


def test_the_list_names_every_case() -> None:
    rows = body_of(case_list(list(all_cases().values())))
    assert [row.split()[0] for row in rows] == list(all_cases())
    assert "O[0, n] = A[0, :] . W[n, :]" in rows[list(all_cases()).index("matvec")]
