"""CSV files of measurements as Markdown tables, by themselves or in place of rows of a document."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.bench.case import Rate
from tools.bench.entrants import Contender
from tools.bench.errors import BenchError
from tools.bench.registry import all_cases
from tools.bench.results import COLUMNS, Stage

Row = dict[str, str]
"""A row of a CSV file by its columns."""
Key = tuple[str, ...]
"""Case, type and size, as a table shows them: the first cells of its lines."""

_KEY = ("case", "type", "size")
_TIMES = ("Phobos", "PyTorch", "Triton")
_RATES = {Rate.BYTES: ("GB/s", "gb_per_s", 0), Rate.FLOPS: ("TFLOP/s", "tflop_per_s", 1)}
"""By what a case is measured in: the column's head, that of the CSV file, and its digits."""


@dataclass(frozen=True)
class Table:
    """A Markdown table: its head, and its lines by their key."""

    head: tuple[str, ...]
    lines: dict[Key, tuple[str, ...]]

    def __str__(self) -> str:
        return "\n".join(map(_line, (self.head, ("---",) * len(self.head), *self.lines.values())))


def run_report(options: argparse.Namespace) -> int:
    """Print the tables, or put their lines into a document; returns the exit code."""
    tables = make_tables([read_rows(path) for path in options.files])
    if options.into is None:
        print("\n\n".join(map(str, tables)))
        return 0
    path: Path = options.into
    text, missing = merged(path.read_text(encoding="utf-8"), tables)
    path.write_text(text, encoding="utf-8")
    for table in missing:
        print(f"{path} has no table {_line(table.head)}; its lines:", table, sep="\n")
    return 0


def read_rows(path: Path) -> list[Row]:
    """The rows of a file that a benchmark wrote. BenchError if it is another one."""
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if not set(COLUMNS).issubset(reader.fieldnames or ()):
            raise BenchError(f"{path} is no CSV file of these benchmarks")
        return list(reader)


def make_tables(files: Iterable[Sequence[Row]]) -> list[Table]:
    """Tables of the times by what limits a case, and of the builds for older chips.

    Tables without a line are left out, and so are problems that Phobos has no time for; of a
    problem in several files, the last one that has a time for Phobos counts.
    """
    problems: dict[Key, list[Row]] = {}
    for file in files:
        own: dict[Key, list[Row]] = {}
        for row in file:
            key = (row["case"], row["dtype"], row["size"].replace("x", " x "))
            own.setdefault(key, []).append(row)
        problems.update({key: rows for key, rows in own.items() if _final(rows)})
    tables = [_times(problems, rate) for rate in Rate]
    return [table for table in (*tables, _older(problems)) if table.lines]


def _final(rows: Iterable[Row]) -> dict[str, Row]:
    """The rows of the contest by contender; nothing if Phobos is not among them."""
    found = {row["contender"]: row for row in rows if row["stage"] == Stage.CONTEST}
    timed = {name: row for name, row in found.items() if row["median_s"]}
    return timed if Contender.PHOBOS in timed else {}


def _times(problems: dict[Key, list[Row]], rate: Rate) -> Table:
    title, column, digits = _RATES[rate]
    lines: dict[Key, tuple[str, ...]] = {}
    for key, rows in problems.items():
        if all_cases()[key[0]].rate is not rate:
            continue
        final = _final(rows)
        own = final[Contender.PHOBOS]
        times = [_microseconds(final.get(contender)) for contender in Contender]
        ratio = f"{float(own['ratio_to_peer']):.3f}" if own["ratio_to_peer"] else ""
        lines[key] = (*key, *times, f"{float(own[column]):.{digits}f}", ratio)
    return Table((*_KEY, *_TIMES, title, "ratio"), lines)


def _microseconds(row: Row | None) -> str:
    return "" if row is None else f"{float(row['median_s']) * 1e6:.1f}"


def _older(problems: dict[Key, list[Row]]) -> Table:
    ratios = {
        key: {
            row["chip"]: f"{float(row['ratio_to_own']):.3f}" for row in rows if row["ratio_to_own"]
        }
        for key, rows in problems.items()
    }
    chips = sorted({chip for known in ratios.values() for chip in known})
    lines = {
        key: (*key, *(known.get(chip, "") for chip in chips))
        for key, known in ratios.items()
        if known
    }
    return Table((*_KEY, *chips), lines)


# Documents ---------------------------------------------------------------------------------------


def merged(text: str, tables: Sequence[Table]) -> tuple[str, list[Table]]:
    """A document with the lines of these tables, and the tables that it has no place for.

    A table of the document with the same head takes them: a line in place of the one with its
    key, or behind all others. Other lines stay as they are.
    """
    waiting = {_line(table.head): table for table in tables}
    missing = dict(waiting)
    out: list[str] = []
    fresh: dict[Key, tuple[str, ...]] = {}
    for line in (*text.splitlines(), ""):
        if not line.startswith("|"):
            out += map(_line, fresh.values())
            fresh = {}
        elif line in waiting:
            fresh = dict(missing.pop(line, Table((), {})).lines)
        key = tuple(_cells(line)[: len(_KEY)])
        out.append(_line(fresh.pop(key)) if key in fresh else line)
    return "\n".join(out[:-1]) + "\n", list(missing.values())


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
