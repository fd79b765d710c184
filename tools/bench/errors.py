"""What the benchmarks say when they cannot be run."""

from __future__ import annotations


class BenchError(Exception):
    """Something that stops a benchmark, as one sentence for the person who started it."""


def summary(error: BaseException) -> str:
    """An error in one line: its first line, behind its class unless it is one of ours."""
    from phobos.diagnostics import PhobosError

    first = next((line for line in str(error).splitlines() if line.strip()), "no description")
    if isinstance(error, BenchError | PhobosError):
        return first
    return f"{type(error).__name__}: {first}"
