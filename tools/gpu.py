"""Runs the GPU tests and the benchmarks in one go, on a machine with an NVIDIA GPU.

    python tools/gpu.py [--out FOLDER] [--only tests|bench] [pytest arguments ...]

It needs no installation: the repository and the packages that it uses only have to be importable
(`PYTHONPATH`). What each step prints is kept in FOLDER (default build/gpu), and the exit code is 1
if a step failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Step:
    """One command and the name of the file that keeps what it prints."""

    name: str
    command: tuple[str, ...]


def main() -> int:
    """Run the steps; returns the exit code."""
    arguments, pytest_arguments = parse_arguments()
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    steps = [
        step
        for step in all_steps(pytest_arguments, arguments.out)
        if arguments.only in (None, kind(step))
    ]
    failed = [step.name for step in steps if run(step, arguments.out) != 0]
    print(f"\n{len(steps) - len(failed)} of {len(steps)} steps passed", end="")
    print(f"; failed: {', '.join(failed)}" if failed else "")
    return 1 if failed else 0


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    """Our arguments, and those that pytest gets."""
    parser = argparse.ArgumentParser(description="Run the GPU tests and the benchmarks.")
    parser.add_argument("--out", type=Path, default=ROOT / "build/gpu", help="folder for logs")
    parser.add_argument("--only", choices=("tests", "bench"), help="leave the other kind out")
    return parser.parse_known_args()


def all_steps(pytest_arguments: list[str], out: Path) -> list[Step]:
    """The GPU tests, then the benchmarks of kernels and of compile times."""
    # One process owns the GPU, so that timings mean something: no xdist.
    options = ("-q", "-p", "no:xdist", "-p", "no:cacheprovider")
    bench = (sys.executable, "-m", "tools.bench")
    return [
        Step("tests", (sys.executable, "-m", "pytest", *options, "tests/gpu", *pytest_arguments)),
        Step("bench", (*bench, "all", "--csv", str(out / "bench.csv"))),
        Step("compile-time", (*bench, "compile-time")),
    ]


def kind(step: Step) -> str:
    """`tests` or `bench`."""
    return "tests" if step.name == "tests" else "bench"


def run(step: Step, out: Path) -> int:
    """Run a step, showing and keeping what it prints; returns its exit code."""
    print(f"== {step.name}: {' '.join(step.command)}", flush=True)
    search_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": search_path, "PYTHONUNBUFFERED": "1"}
    started = time.perf_counter()
    process = subprocess.Popen(
        step.command, cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    with open(out / f"{step.name}.log", "w", encoding="utf-8") as log:
        for line in process.stdout:
            sys.stdout.write(line)
            log.write(line)
    code = process.wait()
    print(f"== {step.name}: exit code {code} after {time.perf_counter() - started:.1f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
