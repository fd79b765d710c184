"""Compiling ahead: all of it is done, by several processes, and what goes wrong ends nothing."""

from __future__ import annotations

from multiprocessing import Value
from pathlib import Path
from typing import Any

import pytest

from phobos.driver import cached
from tests.unit.tools import ahead_processes as behaviour
from tests.unit.tools.numpy_machine import NumpyMachine
from tools.bench import ahead
from tools.bench.ahead import (
    Unit,
    compile_ahead,
    compile_unit,
    compile_units,
    core_count,
    units_of,
)
from tools.bench.entrants import Contender, Selection, entrants
from tools.bench.errors import BenchError
from tools.bench.worker import Job

JOBS = [Job("saxpy", dtype, (64,)) for dtype in ("f32", "f16", "bf16")]
PHOBOS = Selection((Contender.PHOBOS, Contender.TORCH))


def test_units_cover_every_candidate_once() -> None:
    units = units_of(Job("matvec", "f32", (64, 64)))
    assert len(units) > 1
    taken = sorted(number for unit in units for number in range(100)[unit.part :: unit.parts])
    assert taken == list(range(100))


def test_processes_share_the_units() -> None:
    done = compile_ahead(JOBS, PHOBOS, processes=2, timeout=60, work=behaviour.count_units)
    assert done.builds == sum(len(units_of(job)) for job in JOBS)
    assert (done.processes, done.is_complete) == (2, True)


def test_there_are_no_more_processes_than_units() -> None:
    done = compile_ahead(JOBS[:1], PHOBOS, processes=64, timeout=60, work=behaviour.count_units)
    assert done.processes == len(units_of(JOBS[0]))


@pytest.mark.parametrize("work", [behaviour.hang_after_one, behaviour.crash_after_one])
def test_what_hangs_or_crashes_is_left_to_where_it_is_measured(work: Any) -> None:
    done = compile_ahead(JOBS, PHOBOS, processes=2, timeout=5, work=work)
    assert not done.is_complete
    assert done.builds <= 2
    assert "compiled when their turn comes" in str(done)


def test_what_is_compiled_ahead_is_not_compiled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PHOBOS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PHOBOS_CACHE", raising=False)
    selection = Selection((Contender.PHOBOS, Contender.TORCH), None, ("sm_75",))
    machine = NumpyMachine()
    problem = JOBS[0].problem()
    candidates = entrants(problem, machine, Selection((Contender.PHOBOS,)))
    assert compile_unit(Unit(JOBS[0], 0, 1), machine, selection, 2) == 2 * len(candidates)
    compiled: list[str] = []
    monkeypatch.setattr(cached, "_compile", lambda text, *_: compiled.append(text))
    for candidate in candidates:
        candidate.prepare()
    assert compiled == []


def test_a_process_ends_without_a_gpu_and_when_it_loses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise BenchError("there is no GPU")

    units = [Unit(JOBS[0], 0, 1)] * 3
    following, builds = Value("q", 0), Value("q", 0)
    monkeypatch.setattr(ahead, "TorchMachine", refuse)
    compile_units(units, PHOBOS, 1, following, builds)
    assert (following.value, builds.value) == (0, 0)

    class Losing(NumpyMachine):
        def release(self) -> None:
            self.alive = following.value < 2

    monkeypatch.setattr(ahead, "TorchMachine", Losing)
    compile_units(units, PHOBOS, 1, following, builds)
    candidates = entrants(JOBS[0].problem(), NumpyMachine(), Selection((Contender.PHOBOS,)))
    assert (following.value, builds.value) == (2, 2 * len(candidates))


def test_what_fails_is_passed_over_and_what_is_too_large_left_alone() -> None:
    machine = NumpyMachine()
    selection = Selection((Contender.PHOBOS,), "sm_99")
    assert compile_unit(Unit(JOBS[0], 0, 1), machine, selection, 1) == 0
    machine = NumpyMachine(memory=64 * 12 * 2 - 1)
    assert compile_unit(Unit(JOBS[0], 0, 1), machine, PHOBOS, 2) == 0


def test_there_is_a_core() -> None:
    assert core_count() >= 1
