"""A profile as text."""

from __future__ import annotations

from collections.abc import Sequence

from phobos.diagnostics import SourceMap
from phobos.emulator.profiling.counts import LineCounts, Profile

_HEADINGS = ("line", "instr.", "lanes", "mostly", "sectors", "efficiency", "passes", "conflicts")
_SOURCE_WIDTH = 48
_CLASSES_SHOWN = 2


def profile_table(profile: Profile, sources: SourceMap | None = None) -> str:
    """A table of all lines with a total below.

    Columns: instructions that warps issued, how many of the lanes took part, the commonest
    classes, 32-byte sectors of global memory and how many of them were needed, passes over the
    banks of shared memory and how many more they are than conflict-free ones.
    """
    rows = [(_place(line), _cells(line), _source(line, sources)) for line in profile.lines]
    rows.append(("total", _cells(profile.total), ""))
    table = [(*_HEADINGS, "source"), *((place, *cells, text) for place, cells, text in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(_HEADINGS))]
    return "\n".join(_format(row, widths) for row in table)


def _format(row: Sequence[str], widths: Sequence[int]) -> str:
    first = row[0].ljust(widths[0])
    rest = [
        cell.ljust(width) if heading == "mostly" else cell.rjust(width)
        for heading, cell, width in zip(_HEADINGS[1:], row[1:-1], widths[1:], strict=True)
    ]
    return "  ".join([first, *rest, row[-1]]).rstrip()


def _place(line: LineCounts) -> str:
    return f"{line.location.file.rsplit('/', 1)[-1]}:{line.location.line}"


def _cells(line: LineCounts) -> tuple[str, ...]:
    classes = ", ".join(kind.value for kind, _ in line.classes.most_common(_CLASSES_SHOWN))
    return (
        str(line.instructions),
        _percent(line.fullness),
        classes,
        str(line.sectors) if line.sectors else "",
        _percent(line.global_efficiency),
        str(line.passes) if line.passes else "",
        "" if line.bank_conflict is None else f"x{line.bank_conflict:.2f}",
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _source(line: LineCounts, sources: SourceMap | None) -> str:
    text = sources.line(line.location.file, line.location.line) if sources else None
    if text is None:
        return ""
    text = text.strip()
    return text if len(text) <= _SOURCE_WIDTH else text[: _SOURCE_WIDTH - 3] + "..."
