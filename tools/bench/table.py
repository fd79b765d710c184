"""Results as tables for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.bench.case import Case, Rate
from tools.bench.entrants import Contender
from tools.bench.results import (
    Result,
    Stage,
    Status,
    is_fault,
    ratio_to_own,
    ratio_to_peer,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH_OF_LOGS = 132
_NONE = "-"
"""What stands for a number that is not known."""


def make_console() -> Console:
    """A console on stdout; as wide as tables need where that is no terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_OF_LOGS
    return Console(width=width, highlight=False, markup=False)


def case_list(cases: Sequence[Case]) -> Table:
    """The cases with their dims, sizes and types."""
    table = make_table("Cases", ("case", "computes", "size", "default sizes", "types"))
    for case in cases:
        sizes = ", ".join("x".join(map(str, size)) for size in case.sizes)
        table.add_row(case.name, case.summary, "x".join(case.dims), sizes, " ".join(case.dtypes))
    return table


def problem_table(results: Sequence[Result], *, with_search: bool = False) -> Table:
    """The contenders of one problem, and every candidate that failed; on request the search."""
    first = results[0]
    title = f"{first.case} {first.dtype} {first.size}" + (f" on {first.gpu}" if first.gpu else "")
    table = make_table(
        title,
        ("contender", "choices", "median", "p20 - p80", "rate", "of best peer", "host", ""),
        right=(2, 3, 4, 5, 6),
    )
    for result in results:
        is_search = result.stage is Stage.SEARCH and result.status is Status.OK
        is_shown = with_search or not is_search
        if is_shown:
            table.add_row(*_problem_row(result, results), style=_style(result))
    return table


def _problem_row(result: Result, results: Sequence[Result]) -> tuple[str, ...]:
    seconds = result.seconds
    if seconds is None:
        return (
            result.contender, result.choices, _NONE, _NONE, _NONE, _NONE, _NONE,
            f"{result.status}: {result.note}",
        )  # fmt: skip
    ratio = ratio_to_peer(result, results) if result.is_final else None
    return (
        result.contender,
        result.choices,
        time_text(seconds.median),
        f"{time_text(seconds.low)} - {time_text(seconds.high)}",
        rate_text(result),
        _NONE if ratio is None else f"{ratio:.3f}",
        _NONE if result.host_seconds is None else time_text(result.host_seconds),
        _remark(result, results),
    )


def _remark(result: Result, results: Sequence[Result]) -> str:
    """What a time is, where it is not the one that counts."""
    ratio = ratio_to_own(result, results)
    if ratio is not None:
        return f"for {result.chip}: {ratio:.3f} of own"
    return "" if result.is_final else result.stage


def summary_table(results: Sequence[Result]) -> Table:
    """One line a problem: how Phobos fares against its peers."""
    chips = sorted({one.chip for one in results if one.stage is Stage.OLDER and one.chip})
    head = ("case", "type", "size", "phobos", "torch", "triton", "rate", "ratio", *chips)
    title = "Summary (times are medians; the ratio is the faster peer's time over Phobos'"
    if chips:
        title += "; for older chips, Phobos' own time over that of its build for the chip"
    table = make_table(f"{title})", (*head, "phobos with"), right=range(3, len(head)))
    for problem in dict.fromkeys(result.problem for result in results):
        own = [result for result in results if result.problem == problem]
        table.add_row(*_summary_row(own, chips), style="red" if any(map(is_fault, own)) else None)
    return table


def _summary_row(own: Sequence[Result], chips: Sequence[str]) -> tuple[str, ...]:
    best = {result.contender: result for result in own if result.is_final and result.seconds}
    times = [_median_text(best.get(contender)) for contender in Contender]
    phobos = best.get(Contender.PHOBOS)
    ratio = None if phobos is None else ratio_to_peer(phobos, own)
    faults = [result for result in own if is_fault(result)]
    notes = [
        " ".join(filter(None, (f"{result.status}:", result.choices, result.note)))
        for result in faults[:1]
    ]
    if len(faults) > 1:
        notes.append(f"(and {len(faults) - 1} more)")
    return (
        *own[0].problem,
        *times,
        _NONE if phobos is None else rate_text(phobos),
        _NONE if ratio is None else f"{ratio:.3f}",
        *(_chip_ratio(own, chip) for chip in chips),
        " ".join([*([phobos.choices] if phobos else []), *notes]),
    )


def _chip_ratio(own: Sequence[Result], chip: str) -> str:
    """How the build for an older chip fares against Phobos' own."""
    ratios = [ratio_to_own(result, own) for result in own if result.chip == chip]
    known = [ratio for ratio in ratios if ratio is not None]
    return f"{known[0]:.3f}" if known else _NONE


def _median_text(result: Result | None) -> str:
    return _NONE if result is None or result.seconds is None else time_text(result.seconds.median)


def _style(result: Result) -> str | None:
    if result.status is not Status.OK:
        return "red" if is_fault(result) else "yellow"
    return "bold" if result.contender is Contender.PHOBOS and result.is_final else None


def make_table(title: str, columns: Sequence[str], right: Sequence[int] = ()) -> Table:
    """An empty table; the columns at the places in `right` hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for number, column in enumerate(columns):
        is_text = number not in right
        table.add_column(
            column,
            justify="left" if is_text else "right",
            overflow="fold",
            no_wrap=not is_text,
        )
    return table


# Numbers -----------------------------------------------------------------------------------------


def time_text(seconds: float) -> str:
    """A time with four digits: `0.7394 ms`, `12.35 us`."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        # Times from 0.1 ms on are read as milliseconds.
        if seconds * factor >= (1.0 if unit == "s" else 0.1):
            return f"{seconds * factor:#.4g} {unit}"
    return f"{seconds * 1e6:#.4g} us"


def rate_text(result: Result) -> str:
    """What the case is measured in, a second: `4312 GB/s`, `612.0 TFLOP/s`."""
    rate = result.rate
    if rate is None:
        return _NONE
    if result.rate_kind is Rate.BYTES:
        return f"{rate / 1e9:.0f} GB/s"
    return f"{rate / 1e12:.1f} TFLOP/s"
