"""How long compiling takes: inside a warm process, as a whole process, and in Triton.

Phobos' time is from text to PTX, without its cache on disk. Triton's is that of the case whose
Phobos program is the same example, from a Python function to PTX, its cache empty; the time that
both would spend in ptxas is shown beside it.
"""

from __future__ import annotations

import argparse
import csv
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools.bench.case import ROOT
from tools.bench.errors import BenchError
from tools.bench.growth import growth_table, measure_growth
from tools.bench.spread import Spread, spread
from tools.bench.table import make_console, make_table, time_text

if TYPE_CHECKING:
    from rich.table import Table

TOTAL = "text to PTX"
PROCESS = "whole process"
PTXAS = "ptxas"
TRITON = "triton"
_PROCESS_SHARE = 3
"""Whole processes are slow and steady: a third of the repeats is enough for them."""
_REST = "not in a step"


@dataclass(frozen=True)
class Timing:
    """One step of one compiler on one program."""

    program: str
    compiler: str
    step: str
    seconds: Spread


@dataclass(frozen=True)
class Failure:
    """A peer that cannot compile its kernel: the kind of error, and what it says."""

    program: str
    compiler: str
    kind: str
    reason: str


def run_compile_time(options: argparse.Namespace) -> int:
    """Measure, print the tables, write the CSV file; returns the exit code."""
    programs = options.programs or default_programs(with_kernels=not options.growth)
    for path in programs:
        if not path.is_file():
            raise BenchError(f"there is no file {path}")
    if options.growth:
        growths = [measure_growth(path, options.chip, options.repeats) for path in programs]
        make_console().print(growth_table(growths, options.chip))
        return 0
    timings, failures = measure_all(programs, options.chip, options.repeats)
    console = make_console()
    console.print(overview(timings, failures, options.chip))
    for one in failures:
        console.print(f"{one.compiler} on {one.program}: {one.kind}: {one.reason}")
    if options.steps:
        console.print(step_table(timings))
    if options.csv is not None:
        write_csv(options.csv, timings, failures)
    return 0


def default_programs(*, with_kernels: bool) -> list[Path]:
    """The examples, and behind them the kernels that Phobos ships."""
    programs = sorted((ROOT / "examples").glob("*.ph"))
    if with_kernels:
        programs += sorted((ROOT / "phobos" / "kernels").glob("*.ph"))
    return programs


def label(path: Path) -> str:
    """What a program is called in tables: a shipped kernel is told from an example."""
    return f"kernels/{path.name}" if path.parent.name == "kernels" else path.name


def measure_all(
    programs: Sequence[Path], chip: str, repeats: int
) -> tuple[list[Timing], list[Failure]]:
    """Every measurement of every program, and where a peer has none.

    A peer may lack what a kernel needs on the chip; what Phobos cannot compile is a PhobosError.
    """
    from tools.bench.triton_compile import compile_in_triton, kernels_by_example

    equivalents = kernels_by_example()
    timings: list[Timing] = []
    failures: list[Failure] = []
    for path in programs:
        timings += compile_warm(path, chip, repeats)
        timings.append(compile_in_process(path, chip, max(1, repeats // _PROCESS_SHARE)))
        problem = equivalents.get(path.resolve())
        if problem is None:
            continue
        try:
            steps = compile_in_triton(problem, chip, repeats)
        except Exception as error:
            failures.append(_failure(label(path), error))
            continue
        timings += [Timing(label(path), TRITON, step, spread(v)) for step, v in steps.items()]
    return timings, failures


def _failure(program: str, error: Exception) -> Failure:
    """Triton shows the code first and says last what is wrong with it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[-1] if lines else "no description"
    return Failure(program, TRITON, type(error).__name__, reason)


def compile_warm(path: Path, chip: str, repeats: int) -> list[Timing]:
    """Phobos in this process: the total and every step, after one compilation that warms up."""
    from phobos.driver.compilation import compile_text
    from phobos.driver.modules import read_source
    from phobos.driver.options import make_options

    text, options = read_source(path), make_options(chip=chip)
    compile_text(text, path.name, options)
    samples: dict[str, list[float]] = {TOTAL: []}
    for _ in range(repeats):
        gc.collect()
        started = time.perf_counter()
        compilation = compile_text(text, path.name, options)
        total = time.perf_counter() - started
        steps = _by_step((one.name, one.seconds) for one in compilation.times)
        samples[TOTAL].append(total)
        for name, seconds in {**steps, _REST: total - sum(steps.values())}.items():
            samples.setdefault(name, []).append(seconds)
    return [Timing(label(path), "phobos", step, spread(own)) for step, own in samples.items()]


def _by_step(times: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The steps of one compilation; a pass that runs twice counts as one step."""
    total: dict[str, float] = {}
    for name, seconds in times:
        total[name] = total.get(name, 0.0) + seconds
    return total


def compile_in_process(path: Path, chip: str, repeats: int) -> Timing:
    """`phobos-compile` from start to end. BenchError if it fails."""
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "phobos.cli.compile", str(path.resolve())]
        command += ["--chip", chip, "-o", str(Path(folder) / "out.ptx")]
        for _ in range(repeats):
            started = time.perf_counter()
            finished = subprocess.run(
                command, cwd=ROOT, check=False, capture_output=True, text=True
            )
            times.append(time.perf_counter() - started)
            if finished.returncode != 0:
                raise BenchError(f"phobos-compile failed on {path}: {finished.stderr.strip()}")
    return Timing(label(path), "phobos", PROCESS, spread(times))


# Output ------------------------------------------------------------------------------------------


def overview(timings: Sequence[Timing], failures: Sequence[Failure], chip: str) -> Table:
    """One line a program: the totals of each compiler, or what kind of error it ended with."""
    columns = (
        ("phobos", TOTAL), ("phobos", PROCESS), (TRITON, TOTAL), (TRITON, PTXAS),
    )  # fmt: skip
    table = make_table(
        f"Compile times for {chip}, medians",
        ("program", *(f"{compiler}: {step}" for compiler, step in columns)),
        right=range(1, 1 + len(columns)),
    )
    known = {
        (one.program, one.compiler, one.step): time_text(one.seconds.median) for one in timings
    }
    known.update({(one.program, one.compiler, TOTAL): f"failed: {one.kind}" for one in failures})
    for program in dict.fromkeys(one.program for one in timings):
        table.add_row(program, *(known.get((program, *column), "-") for column in columns))
    return table


def step_table(timings: Sequence[Timing]) -> Table:
    """Phobos' steps in order, one column a program."""
    own = [one for one in timings if one.compiler == "phobos"]
    programs = list(dict.fromkeys(one.program for one in own))
    table = make_table(
        "Steps of Phobos' compiler, medians in ms",
        ("step", *(program.removesuffix(".ph") for program in programs)),
        right=range(1, 1 + len(programs)),
    )
    known = {(one.program, one.step): one.seconds.median for one in own}
    for step in dict.fromkeys(one.step for one in own):
        cells = [known.get((program, step)) for program in programs]
        table.add_row(step, *("-" if cell is None else f"{1e3 * cell:.2f}" for cell in cells))
    return table


def write_csv(path: Path, timings: Sequence[Timing], failures: Sequence[Failure]) -> None:
    """One row a measurement, times in seconds; of a failure the note alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        head = ("program", "compiler", "step", "median_s", "p20_s", "p80_s", "samples", "note")
        writer.writerow(head)
        for one in timings:
            values = (one.seconds.median, one.seconds.low, one.seconds.high)
            times = [f"{value:.6g}" for value in values]
            writer.writerow((one.program, one.compiler, one.step, *times, one.seconds.count, ""))
        for one in failures:
            note = f"failed: {one.kind}: {one.reason}"
            writer.writerow((one.program, one.compiler, TOTAL, "", "", "", "", note))
