"""From a problem to results, on a machine that is NumPy and a clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import phobos
from tests.unit.tools.numpy_machine import HOST_SECONDS, NumpyMachine
from tests.unit.tools.toy_case import (
    SOURCE,
    failing,
    last_missing,
    quicker,
    right,
    toy_problem,
)
from tools.bench.case import PhobosKernel, Problem, TorchCall, Values, scratch
from tools.bench.entrants import Contender, Selection, entrants
from tools.bench.errors import BenchError
from tools.bench.measure import SCOUT_ROUNDS, Settings, check_candidates, make_set, measure
from tools.bench.registry import all_cases
from tools.bench.results import Result, Stage, Status
from tools.bench.stopwatch import Stopwatch

TORCH = Settings(Selection((Contender.TORCH,)), rounds=4, search_rounds=2)
PHOBOS = Settings(Selection((Contender.PHOBOS,)), rounds=1, search_rounds=1)


def run(calls: dict[str, TorchCall], machine: NumpyMachine | None = None) -> list[Result]:
    return measure(toy_problem(calls), machine or NumpyMachine(), TORCH)


def test_the_best_candidate_gets_to_the_contest() -> None:
    results = run({"right": right, "quicker": quicker})
    assert [(one.choices, one.stage) for one in results] == [
        ("right", Stage.SEARCH),
        ("quicker", Stage.SEARCH),
        ("quicker", Stage.CONTEST),
    ]
    final = results[-1]
    assert final.seconds is not None
    assert final.seconds.median == pytest.approx(2e-3)
    assert (final.seconds.count, final.launches) == (4, 1)
    assert final.host_seconds == HOST_SECONDS
    assert final.gpu == "NumPy"
    assert final.rate == pytest.approx(800 / 2e-3)


def test_what_is_clearly_slower_is_not_searched_to_the_end() -> None:
    def slow(torch: Any, t: Values) -> None:
        right(torch, t)
        torch.clock += 2e-3

    def near(torch: Any, t: Values) -> None:
        quicker(torch, t)
        torch.clock += 3e-4

    settings = replace(TORCH, search_rounds=9)
    calls = {"slow": slow, "near": near, "quicker": quicker}
    results = measure(toy_problem(calls), NumpyMachine(), settings)
    counts = {one.choices: one.seconds and one.seconds.count for one in results[:3]}
    assert counts == {"slow": SCOUT_ROUNDS, "near": 9, "quicker": 9}
    assert results[-1].choices == "quicker"


def test_what_is_nearly_as_fast_is_told_apart_by_more_samples() -> None:
    def nearly(torch: Any, t: Values) -> None:
        quicker(torch, t)
        torch.clock += 1e-5

    calls = {"nearly": nearly, "quicker": quicker, "right": right}
    results = measure(toy_problem(calls), NumpyMachine(), replace(TORCH, search_rounds=4))
    counts = [one.seconds and one.seconds.count for one in results[:3]]
    assert counts == [12, 12, SCOUT_ROUNDS]
    assert results[-1].choices == "quicker"
    brief = replace(TORCH, search_rounds=4, seconds=0.04)
    results = measure(toy_problem(calls), NumpyMachine(), brief)
    assert [one.seconds and one.seconds.count for one in results[:3]] == [7, 7, SCOUT_ROUNDS]


def test_a_slow_contender_keeps_its_best_candidate() -> None:
    """It is compared with its own candidates, not with those of a faster one."""
    selection = Selection((Contender.PHOBOS, Contender.TORCH))
    settings = Settings(selection, rounds=2, search_rounds=4)
    problem = toy_problem({"right": right, "quicker": quicker})
    results = measure(problem, NumpyMachine(), settings)
    searched = [one for one in results if one.stage is Stage.SEARCH]
    assert [one.seconds and one.seconds.count for one in searched] == [12, 12, SCOUT_ROUNDS, 4]
    assert [one.contender for one in results if one.is_final] == list(selection.contenders)


def test_a_stopwatch_learns_where_the_time_goes() -> None:
    watch = Stopwatch()
    selection = Selection(older=("sm_75",))
    problem = toy_problem({"right": right})
    measure(problem, NumpyMachine(), Settings(selection, rounds=1, search_rounds=1), watch)
    steps = ["arrays", "checks", "contest", "kernels", "older chips", "search"]
    assert sorted(watch.seconds) == steps
    assert watch.seconds["kernels"] > watch.seconds["checks"]


def test_a_single_candidate_needs_no_search() -> None:
    results = run({"right": right})
    assert [one.stage for one in results] == [Stage.CONTEST]


def test_a_wrong_candidate_is_never_timed() -> None:
    results = run({"last_missing": last_missing, "right": right})
    wrong = results[0]
    assert wrong.status is Status.WRONG
    assert wrong.seconds is None
    assert wrong.note.startswith("out[99] is nan and should be ")
    assert [(one.choices, one.status) for one in results[1:]] == [("right", Status.OK)]


def test_a_failing_candidate_is_a_result_and_the_others_go_on() -> None:
    results = run({"failing": failing, "right": right})
    assert (results[0].status, results[0].note) == (Status.FAILED, "ValueError: no such thing")
    assert results[1].status is Status.OK


def test_nothing_goes_on_once_the_machine_is_gone() -> None:
    machine = NumpyMachine()

    def fatal(torch: Any, t: Values) -> None:
        torch.alive = False

    results = run({"fatal": fatal, "right": right}, machine)
    assert [(one.choices, one.note) for one in results] == [
        ("fatal", "RuntimeError: the machine is gone")
    ]
    assert machine.samples == 0


def test_outputs_are_poisoned_for_each_candidate() -> None:
    def nothing(torch: Any, t: Values) -> None:
        """Leaves what the candidate before it has written."""

    results = run({"right": right, "nothing": nothing})
    assert {one.choices: one.status for one in results}["nothing"] is Status.WRONG


def test_an_output_that_a_contender_makes_is_its_own() -> None:
    """Those after it write to the case's array: another may have strides that none can take."""

    def replacing(torch: Any, t: Values) -> None:
        right(torch, t)
        t.out = np.repeat(t.out, 2)[::2]

    def dense(torch: Any, t: Values) -> None:
        assert t.out.flags.c_contiguous
        right(torch, t)

    results = run({"replacing": replacing, "dense": dense, "again": replacing})
    assert [(one.choices, one.status) for one in results if one.stage is Stage.SEARCH] == [
        ("replacing", Status.OK),
        ("dense", Status.OK),
        ("again", Status.OK),
    ]


def test_sets_hold_different_data() -> None:
    seen: set[float] = set()

    def note(torch: Any, t: Values) -> None:
        right(torch, t)
        seen.add(float(t.x[0]))

    results = run({"note": note}, NumpyMachine(l2_bytes=1600))
    assert results[0].buffer_sets == 5
    assert len(seen) == 5


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BenchError, match=r"twice at 100 needs 0\.0 GB, and 0\.0 GB are free"):
        run({"right": right}, NumpyMachine(memory=799))


def test_phobos_is_compiled_for_each_constant_and_checked() -> None:
    results = measure(toy_problem({}), NumpyMachine(), PHOBOS)
    assert [one.choices for one in results[:2]] == ["BLOCK=64", "BLOCK=256"]
    assert [one.status for one in results] == [Status.OK] * 3
    assert results[-1].largest_difference == 0


def test_a_constant_can_be_fixed() -> None:
    selection = Selection((Contender.PHOBOS,), "sm_75", (), (("BLOCK", 128),))
    results = measure(toy_problem({}), NumpyMachine(), Settings(selection, rounds=1))
    assert [(one.choices, one.chip) for one in results] == [("BLOCK=128", "sm_75")]


def test_the_best_candidate_is_built_for_older_chips_and_measured_too() -> None:
    selection = Selection(older=("sm_75", "sm_80"), constants=(("BLOCK", 128),))
    settings = Settings(selection, rounds=1, search_rounds=1)
    results = measure(toy_problem({"right": right}), NumpyMachine(), settings)
    assert [(one.contender, one.stage, one.chip) for one in results] == [
        (Contender.PHOBOS, Stage.CONTEST, None),
        (Contender.TORCH, Stage.CONTEST, None),
        (Contender.PHOBOS, Stage.OLDER, "sm_75"),
        (Contender.PHOBOS, Stage.OLDER, "sm_80"),
    ]
    assert all(one.seconds is not None and one.choices for one in results)


def test_one_candidate_for_each_older_chip_takes_part() -> None:
    selection = Selection((Contender.PHOBOS,), None, ("sm_75", "sm_80"))
    settings = Settings(selection, rounds=1, search_rounds=1)
    results = measure(toy_problem({}), NumpyMachine(), settings)
    assert sum(one.stage is Stage.SEARCH for one in results) > 1
    assert [one.chip for one in results if one.stage is Stage.OLDER] == ["sm_75", "sm_80"]


def test_a_build_for_an_older_chip_that_fails_is_a_result() -> None:
    selection = Selection((Contender.PHOBOS,), None, ("sm_99",), (("BLOCK", 128),))
    results = measure(toy_problem({}), NumpyMachine(), Settings(selection, rounds=1))
    assert [(one.chip, one.status) for one in results] == [
        ("sm_99", Status.FAILED),
        (None, Status.OK),
    ]


def test_a_wrong_kernel_is_found() -> None:
    source = SOURCE.replace("+ x[base :+ BLOCK]", "* 3.0")
    results = measure(toy_problem({}, source=source), NumpyMachine(), PHOBOS)
    assert [one.status for one in results] == [Status.WRONG] * 2
    assert "(100 elements are wrong)" in results[0].note


def test_a_source_that_does_not_compile_says_why() -> None:
    source = SOURCE.replace("out[", "oot[")
    results = measure(toy_problem({}, source=source), NumpyMachine(), PHOBOS)
    assert [one.status for one in results] == [Status.FAILED] * 2
    assert "`oot`" in results[0].note


COUNTING = """\
@launch(64)
kernel twice(x: tensor<f32>[N], out: tensor<f32>[N], count: tensor<i32>[1], W: tensor<f32>[N]) {
  let i = ctx.thread
  if i == 0 {
    count[0] = count[0] + 1
    W[0] = 2.0 * f32(count[0])
  }
  barrier()
  for k in range(i, N, ctx.threads) {
    out[k] = W[0] * x[k]
  }
}
"""


def test_a_workspace_starts_at_zero_and_is_not_counted() -> None:
    problem = toy_problem({}, source=COUNTING)
    workspaces = (scratch("count", 1, dtype="i32"), scratch("W", "N", dtype="f32"))
    case = replace(
        problem.case,
        arrays=(*problem.case.arrays, *workspaces),
        phobos=PhobosKernel(lambda _: COUNTING, "twice"),
    )
    problem = replace(problem, case=case)
    machine = NumpyMachine()
    candidates = entrants(problem, machine, PHOBOS.selection)
    values = make_set(problem, machine, 0)
    ready, faults = check_candidates(problem, machine, candidates, values)
    assert (len(ready), faults) == (1, [])
    assert values.count[0] == 1
    assert problem.bytes == 2 * 4 * 100
    other = make_set(problem, machine, 1, {"count": values.count, "W": values.W})
    assert other.W is values.W
    assert other.out is not values.out


def test_a_case_may_name_the_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = toy_problem({})
    kernel = replace(problem.case.phobos, chip="sm_75")
    problem = replace(problem, case=replace(problem.case, phobos=kernel))
    chips: list[str | None] = []
    original = phobos.compile

    def noting(
        source: str, chip: str | None, constants: dict[str, int], **options: Any
    ) -> phobos.Module:
        chips.append(chip)
        return original(source, chip, constants, **options)

    monkeypatch.setattr(phobos, "compile", noting)
    for chip in (None, "sm_90"):
        selection = Selection((Contender.PHOBOS,), chip)
        entrants(problem, NumpyMachine(), selection)[0].prepare()
    assert chips == ["sm_75", "sm_90"]


def test_nobody_to_measure_is_refused() -> None:
    selection = Selection((Contender.TRITON,))
    with pytest.raises(BenchError, match="none of the contenders chosen can run twice"):
        measure(toy_problem({}), NumpyMachine(), Settings(selection))


def test_what_a_kernel_adds_to_is_cleared_before_every_launch() -> None:
    problem = Problem(all_cases()["sum"], "f32", (97,))
    machine = NumpyMachine()
    values = make_set(problem, machine, 0)
    run = entrants(problem, machine, Selection((Contender.PHOBOS,)))[0].prepare()
    for _ in range(2):
        run(values)
        assert values.O[0] == pytest.approx(values.X.sum(dtype=float), abs=1e-3)
