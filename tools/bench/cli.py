"""`python -m tools.bench`: from the command line to tables, a CSV file and a plot."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from phobos.diagnostics import PhobosError
from tools.bench.ahead import compile_ahead, core_count
from tools.bench.arguments import (
    BRIEF_ROUNDS,
    BRIEF_SECONDS,
    COMPILE_TIME,
    REPORT,
    ROUNDS,
    SECONDS,
    make_compile_time_parser,
    make_parser,
    make_report_parser,
)
from tools.bench.case import Case
from tools.bench.entrants import Contender, Selection
from tools.bench.errors import BenchError, summary
from tools.bench.measure import Settings
from tools.bench.registry import all_cases, find_cases
from tools.bench.report import run_report
from tools.bench.results import CsvFile, Result, is_fault
from tools.bench.roofline import PRODUCT_TYPES, check_plotting, write_plot
from tools.bench.table import case_list, make_console, problem_table, summary_table
from tools.bench.torch_machine import require_torch
from tools.bench.triton_language import is_installed
from tools.bench.worker import Job, Roofs, Spent, run_jobs

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST_AHEAD = 600.0
"""Seconds: compiling hangs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; returns the exit code. A wrong command line is SystemExit(2)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == [COMPILE_TIME]:
            from tools.bench.compile_time import run_compile_time

            return run_compile_time(make_compile_time_parser().parse_args(given[1:]))
        if given[:1] == [REPORT]:
            return run_report(make_report_parser().parse_args(given[1:]))
        return _run(make_parser(), given)
    except (BenchError, PhobosError, OSError) as error:
        print(f"error: {_sentence(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _sentence(error: BenchError | PhobosError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return summary(error).removeprefix("error: ")


def _run(parser: argparse.ArgumentParser, given: Sequence[str]) -> int:
    options = parser.parse_args(given)
    if options.list:
        make_console().print(case_list(list(all_cases().values())))
        return 0
    if not options.cases:
        parser.error("the following arguments are required: CASE (--list shows them)")
    try:
        cases = find_cases(options.cases)
        jobs = make_jobs(cases, options.sizes, options.dtypes)
    except BenchError as error:
        parser.error(str(error))
    if options.plot is not None:
        check_plotting(options.plot)
    if options.chip is not None:
        from phobos.targets.ptx.chips import chip

        chip(options.chip)
    require_torch()
    return _measure(jobs, options)


def make_jobs(
    cases: Sequence[Case], sizes: Sequence[tuple[int, ...]], dtypes: Sequence[str]
) -> list[Job]:
    """Every case at every size and type, those named or else its own.

    BenchError where a size has another number of extents than a case, or where no case has one
    of the types; a type that only some of the cases have is run for those.
    """
    for dtype in dtypes:
        if not any(dtype in case.dtypes for case in cases):
            names = ", ".join(case.name for case in cases)
            raise BenchError(f"there is no {dtype} version of {names}")
    jobs: list[Job] = []
    for case in cases:
        for size in sizes or case.sizes:
            if len(size) != len(case.dims):
                wanted, text = "x".join(case.dims), "x".join(map(str, size))
                raise BenchError(f"the size of {case.name} is {wanted}, and {text} was given")
            types = [dtype for dtype in case.dtypes if not dtypes or dtype in dtypes]
            jobs += [Job(case.name, dtype, size) for dtype in types]
    return jobs


def _settings(options: argparse.Namespace) -> Settings:
    chosen = tuple(c for c in Contender if not options.contenders or c in options.contenders)
    selection = Selection(
        chosen,
        options.chip,
        tuple(dict.fromkeys(options.older)),
        tuple(options.constants),
        tensor_maps=options.tensor_maps,
    )
    rounds, seconds = (BRIEF_ROUNDS, BRIEF_SECONDS) if options.brief else (ROUNDS, SECONDS)
    return Settings(
        selection,
        rounds=options.rounds or rounds,
        seconds=options.seconds or seconds,
        seed=options.seed,
    )


def _measure(jobs: Sequence[Job], options: argparse.Namespace) -> int:
    settings = _settings(options)
    console = make_console()
    if Contender.TRITON in settings.selection.contenders and not is_installed():
        console.print("Triton is not installed, so PyTorch is the only peer.")
    everything: list[Result] = []
    started = time.monotonic()
    _compile_ahead(jobs, settings, options, console)
    done = 0
    roofs: Roofs | None = None
    spent = ""
    with ExitStack() as stack:
        csv_file = stack.enter_context(CsvFile(options.csv)) if options.csv else None
        messages = run_jobs(
            jobs,
            settings,
            timeout=options.timeout,
            roofs_for=PRODUCT_TYPES if options.plot else (),
        )
        for message in messages:
            if isinstance(message, Roofs):
                roofs = message
                continue
            if isinstance(message, Spent):
                spent = message.text
                continue
            everything += message
            console.print(problem_table(message, with_search=options.candidates))
            if spent:
                console.print(f"  took {spent}\n")
                spent = ""
            if csv_file is not None:
                csv_file.add(message)
            done += 1
            if options.within is not None and time.monotonic() - started > options.within:
                break
    console.print(summary_table(everything))
    if jobs[done:]:
        console.print("Left out for lack of time:", ", ".join(map(str, jobs[done:])))
    if options.plot is not None and roofs is not None:
        write_plot(options.plot, everything, roofs)
    return 1 if any(map(is_fault, everything)) else 0


def _compile_ahead(
    jobs: Sequence[Job], settings: Settings, options: argparse.Namespace, console: Console
) -> None:
    """Let all cores compile, before all is quiet for what is measured."""
    processes = core_count() if options.ahead is None else options.ahead
    if processes:
        # What has to be measured within some time is not compiled all that time.
        timeout = options.within / 2 if options.within else _LONGEST_AHEAD
        done = compile_ahead(jobs, settings.selection, processes=processes, timeout=timeout)
        console.print(str(done))
