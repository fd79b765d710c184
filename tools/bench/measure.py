"""One problem from arrays to results: check every candidate, find the best, let them compete."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tools.bench.case import Problem, Rate, Values
from tools.bench.check import Comparison, compare
from tools.bench.contest import (
    Contest,
    buffer_sets,
    launches_for,
    median_seconds,
    rounds_within,
)
from tools.bench.entrants import Contender, Entrant, Run, Selection, entrants
from tools.bench.errors import BenchError, summary
from tools.bench.machine import Launch, Machine, Sample
from tools.bench.results import Result, Stage, Status, blank
from tools.bench.spread import spread
from tools.bench.stopwatch import Stopwatch

SCOUT_ROUNDS = 3
"""Samples of each candidate before those that are clearly slower are left alone."""
CLEARLY_SLOWER = 1.3
"""Times the best candidate of the same contender: not noise, and not a finalist."""
NEARLY_AS_FAST = 1.01
"""Times the best candidate of the same contender: which is faster takes more samples to tell."""
MORE_ROUNDS = 2
"""How many times the rounds before."""


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        selection: who takes part.
        rounds: samples of each finalist.
        search_rounds: samples of each candidate in the search for the best one.
        seconds: how long search and contest may each take; they are cut to fit.
        seed: where the random numbers start.
    """

    selection: Selection = field(default_factory=Selection)
    rounds: int = 50
    search_rounds: int = 9
    seconds: float = 5.0
    seed: int = 0


@dataclass(frozen=True)
class Ready:
    """A candidate whose result is right, and what to note about it."""

    entrant: Entrant
    run: Run
    largest_difference: float


def measure(
    problem: Problem, machine: Machine, settings: Settings, watch: Stopwatch | None = None
) -> list[Result]:
    """Measure every contender on a problem; `watch` learns where the time goes.

    The candidates whose results are right are timed first; the best of each contender compete
    then. What fails or is wrong is a result too, and is not timed. BenchError if the arrays do
    not fit, or nobody takes part.
    """
    watch = watch or Stopwatch()
    taking_part = entrants(problem, machine, settings.selection)
    if not taking_part:
        raise BenchError(f"none of the contenders chosen can run {problem.case.name}")
    with watch.step("arrays"):
        buffers = _make_buffers(problem, machine, settings.seed)
        machine.synchronize()
    with watch.step("checks"):
        ready, results = check_candidates(problem, machine, taking_part, buffers[0], watch)
    if ready and machine.is_alive():
        results += _compete(problem, machine, settings, ready, buffers, watch)
    return [replace(one, gpu=machine.name, buffer_sets=len(buffers)) for one in results]


def _make_buffers(problem: Problem, machine: Machine, seed: int) -> list[Values]:
    """Sets of arrays, each with data of its own.

    Workspaces are the same in all sets, as a caller of the kernel would reuse them, and PyTorch
    reuses its own.
    """
    free = machine.free_bytes()
    count = buffer_sets(problem.footprint, machine.l2_bytes, free)
    if count == 0:
        raise BenchError(
            f"{problem.case.name} at {problem.size_text} needs {problem.footprint / 1e9:.1f} GB, "
            f"and {free / 1e9:.1f} GB are free"
        )
    inputs = len(problem.case.inputs)
    first = make_set(problem, machine, seed)
    shared = {array.name: getattr(first, array.name) for array in problem.case.workspaces}
    others = [make_set(problem, machine, seed + i * inputs, shared) for i in range(1, count)]
    return [first, *others]


def make_set(
    problem: Problem, machine: Machine, seed: int, workspaces: Mapping[str, Any] | None = None
) -> Values:
    """One set of arrays with the scalars; inputs are random, outputs hold poison.

    Workspaces are those given, or new ones: of integers they are zero, as barriers want them, and
    others hold poison.
    """
    case = problem.case
    arrays: dict[str, Any] = dict(workspaces or {})
    for number, array in enumerate(case.inputs):
        arrays[array.name] = machine.random(
            problem.shape(array), problem.dtype_of(array), seed + number, problem.below(array)
        )
    for array in (*case.outputs, *case.workspaces):
        if array.name not in arrays:
            new = machine.poisoned(problem.shape(array), problem.dtype_of(array))
            arrays[array.name] = new
            if array in case.workspaces and problem.dtype_of(array).startswith("i"):
                new[...] = 0
    return Values(**arrays, **case.scalars)


# Checking ----------------------------------------------------------------------------------------


def check_candidates(
    problem: Problem,
    machine: Machine,
    taking_part: Sequence[Entrant],
    values: Values,
    watch: Stopwatch | None = None,
) -> tuple[list[Ready], list[Result]]:
    """The candidates whose results are right, and a result for each of the others.

    A fault that takes the GPU down ends the checks: what comes after it would fail as well.
    """
    watch = watch or Stopwatch()
    references = _references(problem, machine, values)
    ready: list[Ready] = []
    faults: list[Result] = []
    for entrant in taking_part:
        result = replace(
            blank(problem, entrant.contender, entrant.choices, Stage.SEARCH), chip=entrant.chip
        )
        try:
            # Much is compiled only when a kernel is launched, by all three.
            with watch.step("kernels"):
                run = entrant.prepare()
                written = run_once(problem, machine, run, values)
            worst = _compare(problem, machine, written, references)
        except Exception as error:
            faults.append(replace(result, status=Status.FAILED, note=summary(error)))
            if not machine.is_alive():
                break
            continue
        if worst.mismatch is None:
            ready.append(Ready(entrant, run, worst.largest_difference))
            continue
        faults.append(
            replace(
                result,
                status=Status.WRONG,
                note=str(worst.mismatch),
                largest_difference=worst.largest_difference,
            )
        )
    return ready, faults


def _references(problem: Problem, machine: Machine, values: Values) -> dict[str, Any]:
    """What each output should be, computed in f64."""
    case = problem.case
    wide = {array.name: machine.widened(getattr(values, array.name)) for array in case.inputs}
    computed = case.reference(Values(**wide, **case.scalars))
    outputs = computed if isinstance(computed, tuple) else (computed,)
    return {array.name: value for array, value in zip(case.outputs, outputs, strict=True)}


def run_once(problem: Problem, machine: Machine, run: Run, values: Values) -> Values:
    """Run on poisoned outputs, wait, and give the values after it; raises what went wrong.

    They hold other outputs than `values` does if the contender made its own. Those that come after
    it shall not write to them: they may have any strides.
    """
    own = _own(values)
    for array in problem.case.outputs:
        machine.poison(getattr(own, array.name))
    run(own)
    machine.synchronize()
    return own


def _own(values: Values) -> Values:
    """The same arrays, in a place where a contender may put others."""
    return Values(**vars(values))


def _compare(
    problem: Problem, machine: Machine, values: Values, references: Mapping[str, Any]
) -> Comparison:
    """The worst comparison of all outputs."""
    magnitude = problem.case.magnitude(problem.extents)
    comparisons = [
        compare(
            machine,
            array.name,
            getattr(values, array.name),
            references[array.name],
            problem.dtype_of(array),
            magnitude,
            problem.case.tolerance,
        )
        for array in problem.case.outputs
    ]
    return max(comparisons, key=lambda one: (one.mismatch is not None, one.largest_difference))


# Timing ------------------------------------------------------------------------------------------


def _compete(
    problem: Problem,
    machine: Machine,
    settings: Settings,
    ready: Sequence[Ready],
    buffers: Sequence[Values],
    watch: Stopwatch,
) -> list[Result]:
    """Search for the best candidate of each contender, then the contest between those."""
    contest = Contest(machine.time, len(buffers))
    results: list[Result] = []
    finalists = list(ready)
    if len({one.entrant.contender for one in ready}) < len(ready):
        with watch.step("search"):
            samples, launches = _search(contest, ready, buffers, settings)
        for one, own in zip(ready, samples, strict=True):
            results.append(_result(problem, one, own, Stage.SEARCH, launches))
        best = _best_of_each(ready, [median_seconds(own) for own in samples])
        finalists = [ready[index] for index in best]
    with watch.step("older chips"):
        built, faults = _for_older_chips(
            problem, machine, settings.selection, ready, buffers[0], watch
        )
        older = _best_of_each_chip(built, contest, buffers) if machine.is_alive() else []
    results += faults
    if not machine.is_alive():
        return results
    with watch.step("contest"):
        competing = [_bind(one.run, buffers) for one in (*finalists, *older)]
        pilots = contest.pilot(competing)
        launches = launches_for(pilots)
        rounds = rounds_within(pilots, launches, settings.rounds, settings.seconds)
        samples = contest.run(competing, rounds, launches)
    for number, (one, own) in enumerate(zip((*finalists, *older), samples, strict=True)):
        stage = Stage.CONTEST if number < len(finalists) else Stage.OLDER
        results.append(_result(problem, one, own, stage, launches))
    return results


def _search(
    contest: Contest, ready: Sequence[Ready], buffers: Sequence[Values], settings: Settings
) -> tuple[list[list[Sample]], int]:
    """The samples of each candidate, and how many launches each holds.

    What is clearly slower than the best of its contender after some rounds gets no more of them,
    and what is nearly as fast as that at the end gets MORE_ROUNDS times as many, or as time allows.
    """
    entrants = [_bind(one.run, buffers) for one in ready]
    pilots = contest.pilot(entrants)
    launches = launches_for(pilots)
    rounds = rounds_within(pilots, launches, settings.search_rounds, settings.seconds)
    scouted = min(rounds, SCOUT_ROUNDS)
    samples = contest.run(entrants, scouted, launches)

    def go_on(chosen: Sequence[int], rounds: int) -> None:
        further = contest.run([entrants[index] for index in chosen], rounds, launches)
        for index, own in zip(chosen, further, strict=True):
            samples[index] += own

    go_on(_rivals(ready, samples, CLEARLY_SLOWER), rounds - scouted)
    near = _rivals(ready, samples, NEARLY_AS_FAST)
    counts = Counter(ready[index].entrant.contender for index in near)
    near = [index for index in near if counts[ready[index].entrant.contender] > 1]
    taken = launches * sum(sample.gpu for own in samples for sample in own)
    a_round = launches * sum(pilots[index] for index in near)
    affordable = int((settings.seconds - taken) / max(a_round, 1e-9))
    go_on(near, max(0, min(MORE_ROUNDS * rounds, affordable)))
    return samples, launches


def _rivals(ready: Sequence[Ready], samples: Sequence[Sequence[Sample]], limit: float) -> list[int]:
    """The indices of what takes no more than `limit` times the best of the same contender."""
    medians = [median_seconds(own) for own in samples]
    best = {ready[i].entrant.contender: medians[i] for i in _best_of_each(ready, medians)}
    return [
        index
        for index, one in enumerate(ready)
        if medians[index] <= limit * best[one.entrant.contender]
    ]


def _for_older_chips(
    problem: Problem,
    machine: Machine,
    selection: Selection,
    ready: Sequence[Ready],
    values: Values,
    watch: Stopwatch,
) -> tuple[list[Ready], list[Result]]:
    """Phobos' candidates compiled for the other chips, checked as every candidate is."""
    builds = [build for one in ready for build in older_builds(problem, selection, one.entrant)]
    return check_candidates(problem, machine, builds, values, watch) if builds else ([], [])


def _best_of_each_chip(
    built: Sequence[Ready], contest: Contest, buffers: Sequence[Values]
) -> list[Ready]:
    """What seems to be the fastest build for each chip, whose code may like other constants."""
    pilots = contest.pilot([_bind(one.run, buffers) for one in built])
    best: dict[str | None, tuple[float, Ready]] = {}
    for one, seconds in zip(built, pilots, strict=True):
        chip = one.entrant.chip
        if chip not in best or seconds < best[chip][0]:
            best[chip] = seconds, one
    return [one for _, one in best.values()]


def older_builds(problem: Problem, selection: Selection, entrant: Entrant) -> list[Entrant]:
    """A candidate compiled for the other chips.

    What is limited by arithmetic is left out: it is as fast as the instructions of a chip.
    """
    if problem.case.rate is not Rate.BYTES or entrant.for_chip is None:
        return []
    return [entrant.for_chip(name) for name in selection.older]


def _bind(run: Run, buffers: Sequence[Values]) -> list[Launch]:
    return [partial(run, _own(values)) for values in buffers]


def _best_of_each(ready: Sequence[Ready], medians: Sequence[float]) -> list[int]:
    """The index of the fastest candidate of each contender, in the order of contenders."""
    best: dict[Contender, int] = {}
    for index, one in enumerate(ready):
        contender = one.entrant.contender
        if contender not in best or medians[index] < medians[best[contender]]:
            best[contender] = index
    return list(best.values())


def _result(
    problem: Problem, one: Ready, samples: Sequence[Sample], stage: Stage, launches: int
) -> Result:
    return replace(
        blank(problem, one.entrant.contender, one.entrant.choices, stage),
        chip=one.entrant.chip,
        seconds=spread([sample.gpu for sample in samples]),
        host_seconds=statistics.median(sample.host for sample in samples),
        launches=launches,
        largest_difference=one.largest_difference,
    )
