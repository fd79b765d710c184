"""Measuring in another process: what is lost when it is, and what goes on."""

from __future__ import annotations

import pytest

from tests.unit.tools import worker_processes as behaviour
from tools.bench.errors import BenchError
from tools.bench.measure import Settings
from tools.bench.results import Result
from tools.bench.worker import Job, Roofs, run_jobs

JOBS = [Job("copy", dtype, (64,)) for dtype in ("f32", "bf16", "f16")]


def notes(seed: int, *, timeout: float = 60.0) -> list[str]:
    """What became of each job, checked to be in the order of the jobs."""
    results: list[Result] = []
    for message in run_jobs(JOBS, Settings(seed=seed), timeout=timeout, work=behaviour.answer):
        assert isinstance(message, list)
        results += message
    assert [result.dtype for result in results] == [job.dtype for job in JOBS]
    return [result.note for result in results]


def test_one_process_does_all_jobs() -> None:
    found = notes(behaviour.BEHAVES)
    assert len(set(found)) == 1
    assert found[0].startswith("process ")


def test_a_crash_loses_its_job_and_another_process_does_the_rest() -> None:
    first, second, third = notes(behaviour.CRASHES_ON_BF16)
    assert second == f"its process ended with exit code {behaviour.EXIT_CODE}"
    assert first.startswith("process ")
    assert third.startswith("process ")
    assert first != third


def test_a_job_that_hangs_is_given_up() -> None:
    first, second, third = notes(behaviour.HANGS_ON_BF16, timeout=5.0)
    assert second == "it did not end within 5 s"
    assert first.startswith("process ")
    assert third.startswith("process ")


def test_a_process_may_end_after_a_job_and_nothing_is_lost() -> None:
    assert len(set(notes(behaviour.ENDS_AFTER_EACH))) == len(JOBS)


def test_a_process_that_does_nothing_is_not_started_for_ever() -> None:
    assert notes(behaviour.ENDS_AT_ONCE) == ["its process ended with exit code 0"] * len(JOBS)


def test_an_unfit_machine_is_refused() -> None:
    with pytest.raises(BenchError, match="not here"):
        notes(behaviour.REFUSES)


def test_roofs_come_first_and_once() -> None:
    messages = list(
        run_jobs(
            JOBS,
            Settings(seed=behaviour.ENDS_AFTER_EACH),
            timeout=60.0,
            roofs_for=("f32",),
            work=behaviour.answer,
        )
    )
    assert messages[0] == Roofs("Test GPU", 1.0, {"f32": 2.0})
    assert len(messages) == 1 + len(JOBS)
