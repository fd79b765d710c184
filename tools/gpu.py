"""Runs the GPU tests and the benchmarks in one go, on a machine with an NVIDIA GPU.

    python tools/gpu.py [--out FOLDER] [--only STEP]... [--bench ARGUMENTS] [pytest arguments ...]

It needs no installation: the repository and the packages that it uses only have to be importable
(`PYTHONPATH`). What each step prints is kept in FOLDER (default $OUT, or else build/gpu), beside
the measurements as CSV files and a roofline plot; the exit code is 1 if a step failed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS, COMPILE_TIME, BENCH = "tests", "compile-time", "bench"
BENCHES = "memory arithmetic --older sm_75,sm_80,sm_89 --within 300"
"""All cases, on the GPU's own chip and on older ones, in the time that tests and compile times
leave of eight minutes."""
PACKAGES = ("xdsl", "numpy", "ml_dtypes", "rich", "pytest", "cuda")
"""What every run needs. The benchmarks say themselves that they need PyTorch."""


@dataclass(frozen=True)
class Step:
    """One command and the name of the file that keeps what it prints."""

    name: str
    command: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps; returns the exit code."""
    options, pytest_arguments = make_parser().parse_known_args(arguments)
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        print(f"error: cannot import {', '.join(missing)}; install them or set PYTHONPATH")
        return 1
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    steps = [
        step
        for step in all_steps(pytest_arguments, shlex.split(options.bench), out)
        if not options.only or step.name in options.only
    ]
    failed = [step.name for step in steps if run(step, out) != 0]
    print(f"\n{len(steps) - len(failed)} of {len(steps)} steps passed", end="")
    print(f"; failed: {', '.join(failed)}" if failed else "")
    return 1 if failed else 0


def make_parser() -> argparse.ArgumentParser:
    """Our arguments; pytest gets those that it does not know."""
    parser = argparse.ArgumentParser(
        description="Run the GPU tests and the benchmarks.", allow_abbrev=False
    )
    add = parser.add_argument
    default = Path(os.environ.get("OUT") or ROOT / "build/gpu")
    add("--out", type=Path, default=default, help="folder for logs and measurements")
    add(
        "--only", action="append", default=[], choices=(TESTS, COMPILE_TIME, BENCH),
        help="run this step; may be repeated (default all)",
    )  # fmt: skip
    add("--bench", default=BENCHES, help=f"arguments for `python -m tools.bench` ({BENCHES})")
    return parser


def all_steps(
    pytest_arguments: Sequence[str], bench_arguments: Sequence[str], out: Path
) -> list[Step]:
    """The GPU tests, compile times, and last the benchmark, whose summary is what one looks for."""
    # One process owns the GPU, so that timings mean something: no xdist.
    options = ("-q", "-p", "no:xdist", "-p", "no:cacheprovider")
    bench = (sys.executable, "-m", "tools.bench")
    plot = ("--plot", str(out / "roofline.svg")) if find_spec("matplotlib") else ()
    return [
        Step(TESTS, (sys.executable, "-m", "pytest", *options, "tests/gpu", *pytest_arguments)),
        Step(COMPILE_TIME, (*bench, COMPILE_TIME, "--csv", str(out / "compile-time.csv"))),
        Step(BENCH, (*bench, *bench_arguments, "--csv", str(out / "bench.csv"), *plot)),
    ]


def run(step: Step, out: Path) -> int:
    """Run a step, showing and keeping what it prints; returns its exit code."""
    print(f"== {step.name}: {shlex.join(step.command)}", flush=True)
    search_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": search_path, "PYTHONUNBUFFERED": "1"}
    started = time.perf_counter()
    with (
        open(out / f"{step.name}.log", "w", encoding="utf-8") as log,
        subprocess.Popen(
            step.command, cwd=ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            # A run that is cut short leaves what it had printed.
            log.write(line)
            log.flush()
    code = process.returncode
    print(f"== {step.name}: exit code {code} after {time.perf_counter() - started:.1f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
