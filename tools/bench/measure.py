"""One problem from arrays to results: check every candidate, find the best, let them compete."""

from __future__ import annotations

import statistics
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


def measure(problem: Problem, machine: Machine, settings: Settings) -> list[Result]:
    """Measure every contender on a problem.

    The candidates whose results are right are timed first; the best of each contender compete
    then. What fails or is wrong is a result too, and is not timed. BenchError if the arrays do
    not fit, or nobody takes part.
    """
    taking_part = entrants(problem, machine, settings.selection)
    if not taking_part:
        raise BenchError(f"none of the contenders chosen can run {problem.case.name}")
    buffers = _make_buffers(problem, machine, settings.seed)
    ready, results = check_candidates(problem, machine, taking_part, buffers[0])
    if ready and machine.is_alive():
        results += _compete(problem, machine, settings, ready, buffers)
    return [replace(one, gpu=machine.name, buffer_sets=len(buffers)) for one in results]


def _make_buffers(problem: Problem, machine: Machine, seed: int) -> list[Values]:
    """Sets of arrays, each with data of its own."""
    free = machine.free_bytes()
    count = buffer_sets(problem.footprint, machine.l2_bytes, free)
    if count == 0:
        raise BenchError(
            f"{problem.case.name} at {problem.size_text} needs {problem.footprint / 1e9:.1f} GB, "
            f"and {free / 1e9:.1f} GB are free"
        )
    inputs = len(problem.case.inputs)
    return [make_set(problem, machine, seed + number * inputs) for number in range(count)]


def make_set(problem: Problem, machine: Machine, seed: int) -> Values:
    """One set of arrays with the scalars; inputs are random, outputs hold poison.

    Workspaces of integers are zero, as barriers want them, and others hold poison.
    """
    case = problem.case
    arrays: dict[str, Any] = {}
    for number, array in enumerate(case.inputs):
        arrays[array.name] = machine.random(
            problem.shape(array), problem.dtype_of(array), seed + number, problem.below(array)
        )
    for array in (*case.outputs, *case.workspaces):
        arrays[array.name] = machine.poisoned(problem.shape(array), problem.dtype_of(array))
    for array in case.workspaces:
        if problem.dtype_of(array).startswith("i"):
            arrays[array.name][...] = 0
    return Values(**arrays, **case.scalars)


# Checking ----------------------------------------------------------------------------------------


def check_candidates(
    problem: Problem, machine: Machine, taking_part: Sequence[Entrant], values: Values
) -> tuple[list[Ready], list[Result]]:
    """The candidates whose results are right, and a result for each of the others.

    A fault that takes the GPU down ends the checks: what comes after it would fail as well.
    """
    references = _references(problem, machine, values)
    ready: list[Ready] = []
    faults: list[Result] = []
    for entrant in taking_part:
        result = replace(
            blank(problem, entrant.contender, entrant.choices, Stage.SEARCH), chip=entrant.chip
        )
        try:
            run = entrant.prepare()
            worst = _run_and_compare(problem, machine, run, values, references)
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


def _run_and_compare(
    problem: Problem,
    machine: Machine,
    run: Run,
    values: Values,
    references: Mapping[str, Any],
) -> Comparison:
    """Run once on poisoned outputs and compare them; the worst comparison of all outputs."""
    for name in references:
        machine.poison(getattr(values, name))
    run(values)
    machine.synchronize()
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
) -> list[Result]:
    """Search for the best candidate of each contender, then the contest between those."""
    contest = Contest(machine.time, len(buffers))
    launches = [_bind(one.run, buffers) for one in ready]
    pilots = contest.pilot(launches)
    results: list[Result] = []
    finalists = list(ready)
    if len({one.entrant.contender for one in ready}) < len(ready):
        samples = _timed(contest, launches, pilots, settings.search_rounds, settings.seconds)
        for one, own in zip(ready, samples, strict=True):
            results.append(_result(problem, one, own, Stage.SEARCH, launches_for(pilots)))
        best = _best_of_each(ready, [median_seconds(own) for own in samples])
        finalists = [ready[index] for index in best]
    older, faults = _for_older_chips(problem, machine, settings.selection, finalists, buffers[0])
    results += faults
    if not machine.is_alive():
        return results
    competing = [_bind(one.run, buffers) for one in (*finalists, *older)]
    pilots = contest.pilot(competing)
    samples = _timed(contest, competing, pilots, settings.rounds, settings.seconds)
    for number, (one, own) in enumerate(zip((*finalists, *older), samples, strict=True)):
        stage = Stage.CONTEST if number < len(finalists) else Stage.OLDER
        results.append(_result(problem, one, own, stage, launches_for(pilots)))
    return results


def _for_older_chips(
    problem: Problem,
    machine: Machine,
    selection: Selection,
    finalists: Sequence[Ready],
    values: Values,
) -> tuple[list[Ready], list[Result]]:
    """Phobos' finalist compiled for the other chips, checked as every candidate is.

    What is limited by arithmetic is left out: it is as fast as the instructions of a chip.
    """
    if problem.case.rate is not Rate.BYTES:
        return [], []
    builds = [
        one.entrant.for_chip(name)
        for one in finalists
        if one.entrant.for_chip is not None
        for name in selection.older
    ]
    return check_candidates(problem, machine, builds, values) if builds else ([], [])


def _bind(run: Run, buffers: Sequence[Values]) -> list[Launch]:
    return [partial(run, values) for values in buffers]


def _timed(
    contest: Contest,
    entrants: Sequence[Sequence[Launch]],
    pilots: Sequence[float],
    rounds: int,
    seconds: float,
) -> list[list[Sample]]:
    launches = launches_for(pilots)
    return contest.run(entrants, rounds_within(pilots, launches, rounds, seconds), launches)


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
