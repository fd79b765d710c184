"""Compiling ahead: every candidate of every job, on all cores, before anything is measured.

Phobos, Triton and the GPU's driver keep on disk what they compile, so the process that measures
finds it there. Each process here takes some candidates at a time and runs them once; nothing is
checked or timed. What fails does so again where it is measured, and is reported there.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tools.bench.entrants import Contender, Selection, entrants
from tools.bench.errors import BenchError
from tools.bench.machine import Machine
from tools.bench.measure import make_set, older_builds, run_once
from tools.bench.torch_machine import TorchMachine
from tools.bench.worker import Job

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

_CANDIDATES_AT_ONCE = 4
"""About how many candidates a process takes: each time it makes their arrays."""


@dataclass(frozen=True)
class Unit:
    """Some of the candidates of a job: every `parts`-th, from `part` on."""

    job: Job
    part: int
    parts: int


@dataclass(frozen=True)
class Ahead:
    """What was compiled: how many builds, in how many processes and seconds; and was it all."""

    builds: int
    processes: int
    seconds: float
    is_complete: bool

    def __str__(self) -> str:
        end = "" if self.is_complete else "; the others are compiled when their turn comes"
        return (
            f"Compiled ahead: {self.builds} builds in {self.seconds:.1f} s "
            f"by {self.processes} processes{end}"
        )


Work = Callable[[Sequence[Unit], Selection, int, "Synchronized[int]", "Synchronized[int]"], None]
"""What each process does: units, selection, how many processes share the GPU, the number of the
next unit to take, and the number of builds that were made."""


def core_count() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compile_ahead(
    jobs: Sequence[Job],
    selection: Selection,
    *,
    processes: int,
    timeout: float,
    work: Work | None = None,
) -> Ahead:
    """Compile what the jobs need, for `timeout` seconds at most. No process has to succeed."""
    units = [unit for job in jobs for unit in units_of(job)]
    context = multiprocessing.get_context("spawn")
    following, builds = context.Value("q", 0), context.Value("q", 0)
    count = min(processes, len(units))
    started = time.monotonic()
    running = [
        context.Process(
            target=work or compile_units, args=(units, selection, count, following, builds)
        )
        for _ in range(count)
    ]
    for process in running:
        process.start()
    try:
        for process in running:
            process.join(max(0.0, started + timeout - time.monotonic()))
        codes = [process.exitcode for process in running]
    finally:
        for process in running:
            process.kill()
            process.join()
    is_complete = following.value >= len(units) and all(code == 0 for code in codes)
    return Ahead(builds.value, count, time.monotonic() - started, is_complete)


def units_of(job: Job) -> list[Unit]:
    """A job in parts of a few candidates."""
    case = job.problem().case
    candidates = sum(len(kernel.search) for kernel in (case.phobos, *case.phobos.others))
    candidates += len(case.triton.search) if case.triton else 0
    parts = math.ceil(candidates / _CANDIDATES_AT_ONCE)
    return [Unit(job, part, parts) for part in range(parts)]


# In the other processes --------------------------------------------------------------------------


def add_to(number: Synchronized[int], count: int = 1) -> int:
    """Count up a number that processes share; returns what it was."""
    with number.get_lock():
        before = number.value
        number.value += count
    return before


def compile_units(
    units: Sequence[Unit],
    selection: Selection,
    processes: int,
    following: Synchronized[int],
    builds: Synchronized[int],
) -> None:
    """Take units until there are none; ends early without a GPU, or when its context is lost."""
    try:
        machine = TorchMachine()
    except BenchError:
        return
    while machine.is_alive():
        number = add_to(following)
        if number >= len(units):
            return
        made = compile_unit(units[number], machine, selection, processes)
        machine.release()
        add_to(builds, made)


def compile_unit(unit: Unit, machine: Machine, selection: Selection, processes: int) -> int:
    """Build and run the candidates of a unit, as far as they can be; returns how many could."""
    problem = unit.job.problem()
    if problem.footprint > machine.free_bytes() // processes:
        return 0
    # What PyTorch runs is compiled.
    compiling = tuple(one for one in selection.contenders if one is not Contender.TORCH)
    selection = replace(selection, contenders=compiling)
    values = make_set(problem, machine, 0)
    made = 0
    for candidate in entrants(problem, machine, selection)[unit.part :: unit.parts]:
        for build in (candidate, *older_builds(problem, selection, candidate)):
            try:
                run_once(problem, machine, build.prepare(), values)
            except Exception:  # reported where it is measured
                if not machine.is_alive():
                    return made
            else:
                made += 1
    return made
