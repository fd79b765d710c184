"""What is known after a problem was run, and its form as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.bench.case import Problem, Rate
from tools.bench.entrants import Contender
from tools.bench.spread import Spread


class Status(StrEnum):
    """How it went."""

    OK = "ok"
    WRONG = "wrong"
    FAILED = "failed"


class Stage(StrEnum):
    """Where a measurement comes from.

    The search for the best candidate, the contest of the best ones, or the same contest for the
    best candidate of Phobos compiled for an older chip.
    """

    SEARCH = "search"
    CONTEST = "contest"
    OLDER = "older chip"


@dataclass(frozen=True)
class Result:
    """One candidate, measured on one problem; or why it was not.

    Attributes:
        case, dtype, size: the problem.
        bytes, flops: what one run moves and computes.
        rate_kind: which of the two the case is measured in.
        contender, choices: the candidate.
        stage: where it comes from.
        status, note: how it went, and more about it where it went wrong.
        gpu, chip: the machine, and what this was compiled for (None: the machine's own chip).
        seconds: the time of one run on the GPU.
        host_seconds: the time that the host takes to queue one run.
        launches: how many runs one sample holds.
        buffer_sets: how many sets of arrays the runs rotate over.
        largest_difference: from the reference, over all outputs.
    """

    case: str
    dtype: str
    size: str
    bytes: int
    flops: int
    rate_kind: Rate
    contender: Contender
    choices: str
    stage: Stage
    status: Status
    note: str = ""
    gpu: str = ""
    chip: str | None = None
    seconds: Spread | None = None
    host_seconds: float | None = None
    launches: int = 1
    buffer_sets: int = 0
    largest_difference: float | None = None

    @property
    def problem(self) -> tuple[str, str, str]:
        """What results must share to be compared."""
        return self.case, self.dtype, self.size

    @property
    def rate(self) -> float | None:
        """Bytes or operations a second, by the case's kind."""
        if self.seconds is None:
            return None
        amount = self.bytes if self.rate_kind is Rate.BYTES else self.flops
        return amount / self.seconds.median

    @property
    def is_final(self) -> bool:
        """Whether this is the measurement that counts, and not one of the search."""
        return self.stage is Stage.CONTEST


def blank(problem: Problem, contender: Contender, choices: str, stage: Stage) -> Result:
    """A result that says what was run, and nothing about how it went."""
    return Result(
        case=problem.case.name,
        dtype=problem.dtype,
        size=problem.size_text,
        bytes=problem.bytes,
        flops=problem.flops,
        rate_kind=problem.case.rate,
        contender=contender,
        choices=choices,
        stage=stage,
        status=Status.OK,
    )


def failure(problem: Problem, note: str) -> Result:
    """That a problem could not be run at all."""
    result = blank(problem, Contender.PHOBOS, "", Stage.CONTEST)
    return replace(result, status=Status.FAILED, note=note)


def ratio_to_peer(result: Result, results: Iterable[Result]) -> float | None:
    """The time of the fastest peer over this one's: above 1 is faster than every peer.

    None where either is missing.
    """
    peers = [
        other.seconds.median
        for other in results
        if other.is_final
        and other.problem == result.problem
        and other.contender is not Contender.PHOBOS
        and other.seconds is not None
    ]
    if not peers or result.seconds is None:
        return None
    return min(peers) / result.seconds.median


def ratio_to_own(result: Result, results: Iterable[Result]) -> float | None:
    """The time of Phobos over that of its build for an older chip: below 1 the latter is slower.

    None where either is missing.
    """
    if result.stage is not Stage.OLDER or result.seconds is None:
        return None
    for other in results:
        is_own = other.is_final and other.contender is Contender.PHOBOS
        if is_own and other.problem == result.problem and other.seconds is not None:
            return other.seconds.median / result.seconds.median
    return None


def is_fault(result: Result) -> bool:
    """Whether Phobos did something wrong here, which fails the whole benchmark."""
    return result.contender is Contender.PHOBOS and result.status is not Status.OK


# CSV ---------------------------------------------------------------------------------------------

COLUMNS: tuple[str, ...] = (
    "case", "dtype", "size", "contender", "choices", "stage", "status", "median_s", "p20_s",
    "p80_s", "samples", "launches", "buffer_sets", "host_s", "bytes", "flops", "gb_per_s",
    "tflop_per_s", "ratio_to_peer", "ratio_to_own", "largest_difference", "gpu", "chip", "note",
)  # fmt: skip


def row(result: Result, results: Sequence[Result]) -> dict[str, Any]:
    """A result as a CSV row; what is not known is empty."""
    seconds = result.seconds
    timing: dict[str, Any] = {}
    if seconds is not None:
        timing = {
            "median_s": f"{seconds.median:.9g}",
            "p20_s": f"{seconds.low:.9g}",
            "p80_s": f"{seconds.high:.9g}",
            "samples": seconds.count,
            "launches": result.launches,
            "gb_per_s": f"{result.bytes / seconds.median / 1e9:.6g}",
            "tflop_per_s": f"{result.flops / seconds.median / 1e12:.6g}",
        }
    ratio = ratio_to_peer(result, results) if result.is_final else None
    to_own = ratio_to_own(result, results)
    host, difference = result.host_seconds, result.largest_difference
    return {
        "case": result.case,
        "dtype": result.dtype,
        "size": result.size,
        "contender": result.contender,
        "choices": result.choices,
        "stage": result.stage,
        "status": result.status,
        "buffer_sets": result.buffer_sets or "",
        "host_s": "" if host is None else f"{host:.3g}",
        "bytes": result.bytes,
        "flops": result.flops,
        "ratio_to_peer": "" if ratio is None else f"{ratio:.4f}",
        "ratio_to_own": "" if to_own is None else f"{to_own:.4f}",
        "largest_difference": "" if difference is None else f"{difference:.3g}",
        "gpu": result.gpu,
        "chip": result.chip or "",
        "note": result.note,
        **timing,
    }


class CsvFile:
    """A CSV file that is complete after every problem, so that a run cut short leaves its rows."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115
        self._writer = csv.DictWriter(self._file, COLUMNS)
        self._writer.writeheader()

    def add(self, results: Sequence[Result]) -> None:
        """Write the results of one problem."""
        self._writer.writerows(row(result, results) for result in results)
        self._file.flush()

    def __enter__(self) -> CsvFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
