"""Diagnostics: what went wrong, where in the source, and how to put it right.

Every fault that a user can cause becomes a `Diagnostic` inside a `PhobosError`. A diagnostic has
a place, a one-sentence message, notes at related places and an optional line of help. `render`
draws it under an excerpt of the source:

    saxpy.ph:3:14: error: `BLOK` is not defined
     3 |   let base = BLOK * 2
       |              ^~~~
    help: did you mean `BLOCK`?

The module knows nothing about the language and needs the standard library only, so that every
part of the compiler, the emulator and the runtime can raise the same error.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, NoReturn, Self

from phobos.record import Record, Value, record

MAX_ERRORS = 20
"""Errors reported in one run; what follows the twentieth is rarely news."""

_TAB_STOP = 4
_EXCERPT_WIDTH = 100
_ELLIPSIS = "..."
_MAX_WHOLE_LINES = 4


class Severity(StrEnum):
    """How grave a diagnostic is; the value is the word that is printed."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@record
class Location(Value):
    """A place or span in a source file.

    Lines and columns count from 1, columns in characters. `end_line` and `end_column` name the
    first place behind the span; both are None where only the start is known.
    """

    file: str
    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None

    def __str__(self) -> str:
        """`file:line:column`, the form that editors and terminals turn into a link."""
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def start(self) -> Location:
        """The place where the span begins, without its end."""
        return Location(self.file, self.line, self.column)

    def to(self, other: Location) -> Location:
        """The span from where this one starts to where `other` ends."""
        end_line = other.line if other.end_line is None else other.end_line
        end_column = other.column if other.end_column is None else other.end_column
        return Location(self.file, self.line, self.column, end_line, end_column)


@record
class Note(Value):
    """A remark that belongs to a diagnostic, with its own place where it has one."""

    message: str
    location: Location | None = None


WARNING_GROUPS = ("fallback", "masked-fold", "unwritten")
"""The groups of warnings: what is slower than it could be; a fold that sees the zeros past the end
of a tensor; elements that are read and never written."""


@record
class Diagnostic(Value):
    """One thing to tell the user.

    `message` is one sentence without a capital or full stop; names of the program stand in
    backquotes. `help` says what to do about it. A warning's `group` is what `-W` and `--werror`
    call it and others like it.
    """

    severity: Severity
    message: str
    location: Location | None = None
    notes: tuple[Note, ...] = ()
    help: str | None = None
    group: str | None = None

    @classmethod
    def error(
        cls,
        message: str,
        location: Location | None = None,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
    ) -> Self:
        """An error; shorthand for the constructor."""
        return cls(Severity.ERROR, message, location, tuple(notes), help)

    @classmethod
    def warning(
        cls,
        message: str,
        location: Location | None = None,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
        group: str | None = None,
    ) -> Self:
        """A warning; shorthand for the constructor."""
        return cls(Severity.WARNING, message, location, tuple(notes), help, group)


class SourceMap:
    """The texts that locations refer to, and the spans of the expressions in them.

    IR locations carry a file, a line and a column and no end. The frontend remembers for each
    such place the span it stands for (`remember`), and `resolve` gives it back, so that an error
    from a late pass still underlines the whole expression.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lines: dict[str, list[str]] = {}
        self._spans: dict[tuple[str, int, int], Location] = {}

    def add(self, name: str, text: str) -> None:
        """Make `text` the content of the source called `name`; what was there is forgotten."""
        if name in self._texts:
            self._lines.pop(name, None)
            self._spans = {key: span for key, span in self._spans.items() if key[0] != name}
        # A byte order mark is no part of the first line: columns count from behind it.
        self._texts[name] = text.removeprefix("\ufeff")

    def text(self, name: str) -> str | None:
        """The text of a source, or None if it is not known."""
        return self._texts.get(name)

    def names(self) -> tuple[str, ...]:
        """The names of all sources, in the order they were added."""
        return tuple(self._texts)

    def line(self, name: str, number: int) -> str | None:
        """Line `number` (from 1) of a source without its line end, or None if there is none."""
        lines = self._lines.get(name)
        if lines is None:
            text = self._texts.get(name)
            if text is None:
                return None
            # Not splitlines: that also splits at form feeds and other characters that the lexer
            # does not count as line ends.
            lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            self._lines[name] = lines
        return lines[number - 1] if 1 <= number <= len(lines) else None

    def remember(self, line: int, column: int, span: Location) -> None:
        """Record that the place (line, column) of `span.file` stands for the whole of `span`."""
        self._spans[span.file, line, column] = span

    def resolve(self, location: Location) -> Location:
        """`location` with an end: the span remembered for its place if it has none itself."""
        if location.end_column is not None:
            return location
        return self._spans.get((location.file, location.line, location.column), location)


class PhobosError(Exception):
    """The error for everything that is wrong with what the user gave us.

    `str()` is the rendered text of all its diagnostics. `sources` may be attached later by
    whoever knows the text (`with_sources`).
    """

    def __init__(
        self,
        diagnostics: Diagnostic | Iterable[Diagnostic],
        sources: SourceMap | None = None,
    ) -> None:
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        self.sources = sources
        super().__init__(self.diagnostics, sources)

    @classmethod
    def at(
        cls,
        location: Location | None,
        message: str,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
    ) -> Self:
        """An error of one diagnostic: `raise PhobosError.at(span, "...", help="...")`."""
        return cls(Diagnostic.error(message, location, notes=notes, help=help))

    def with_sources(self, sources: SourceMap) -> Self:
        """This same error, with the texts that its locations refer to."""
        self.sources = sources
        return self

    def render(self, *, color: bool = False) -> str:
        """The text of all diagnostics, one blank line between two."""
        return render_all(self.diagnostics, self.sources, color=color)

    def __str__(self) -> str:
        """The rendered text, without colour."""
        return self.render()


class DiagnosticCollector:
    """Gathers diagnostics over a stage, so that one run reports several errors.

    Errors beyond `limit` are dropped, and so is a second error at a place that has one already,
    since it is almost always a consequence of the first.
    """

    def __init__(self, sources: SourceMap | None = None, limit: int = MAX_ERRORS) -> None:
        self.sources = sources
        self.limit = limit
        self._diagnostics: list[Diagnostic] = []
        self._places: set[Location] = set()
        self._errors = 0

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was gathered, in source order; diagnostics without a place come first."""
        return tuple(sorted(self._diagnostics, key=_source_order))

    @property
    def has_errors(self) -> bool:
        """Whether an error was gathered (warnings do not count)."""
        return self._errors > 0

    @property
    def is_full(self) -> bool:
        """Whether the limit of errors is reached, so that looking further is of no use."""
        return self._errors >= self.limit

    def add(self, diagnostic: Diagnostic) -> None:
        """Gather a diagnostic."""
        if diagnostic.severity is Severity.ERROR:
            if self.is_full:
                return
            if diagnostic.location is not None:
                place = diagnostic.location.start
                if place in self._places:
                    return
                self._places.add(place)
            self._errors += 1
        self._diagnostics.append(diagnostic)

    def error(
        self,
        location: Location | None,
        message: str,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
    ) -> None:
        """Gather an error."""
        self.add(Diagnostic.error(message, location, notes=notes, help=help))

    def warning(
        self,
        location: Location | None,
        message: str,
        *,
        notes: Iterable[Note] = (),
        help: str | None = None,
    ) -> None:
        """Gather a warning."""
        self.add(Diagnostic.warning(message, location, notes=notes, help=help))

    def raise_if_errors(self) -> None:
        """Raise a PhobosError with everything gathered, if an error is among it."""
        if self.has_errors:
            self.raise_all()

    def raise_all(self) -> NoReturn:
        """Raise a PhobosError with everything gathered."""
        raise PhobosError(self.diagnostics, self.sources)


class PhobosWarning(UserWarning):
    """What `phobos.compile` gives Python's `warnings`; its text is the diagnostic."""


# Warnings ----------------------------------------------------------------------------------------


@record
class Listener(Record):
    """What was told while somebody listened, and the texts that it is about."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    sources: SourceMap = field(default_factory=SourceMap)


_listener: ContextVar[Listener | None] = ContextVar("phobos_listener", default=None)


@contextmanager
def listening() -> Iterator[Listener]:
    """Receives what is told while the context lasts."""
    listener = Listener()
    token = _listener.set(listener)
    try:
        yield listener
    finally:
        _listener.reset(token)


def tell(*diagnostics: Diagnostic, sources: SourceMap | None = None) -> None:
    """Tells whoever listens, innermost, something that is no error; else it is lost.

    With `sources` the listener gets the texts too, and each place its end.
    """
    listener = _listener.get()
    if listener is None:
        return
    if sources is None:
        listener.diagnostics.extend(diagnostics)
        return
    listener.diagnostics.extend(with_spans(one, sources) for one in diagnostics)
    for name in sources.names():
        text = sources.text(name)
        if text is not None and listener.sources.text(name) is None:
            listener.sources.add(name, text)


def with_spans(diagnostic: Diagnostic, sources: SourceMap) -> Diagnostic:
    """A diagnostic whose places have their ends, so that the text alone draws it."""

    def resolved(place: Location | None) -> Location | None:
        return None if place is None else sources.resolve(place)

    notes = tuple(replace(note, location=resolved(note.location)) for note in diagnostic.notes)
    return replace(diagnostic, location=resolved(diagnostic.location), notes=notes)


def suggest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` is most likely a misspelling of, or None if none is near."""
    known = list(candidates)
    lowered = name.lower()
    for candidate in known:
        if candidate.lower() == lowered:
            return candidate
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A help line that offers the nearest candidate, or None if none is near."""
    match = suggest(name, candidates)
    return None if match is None else f"did you mean `{match}`?"


# Rendering ---------------------------------------------------------------------------------------

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "35", Severity.NOTE: "36"}


def render(diagnostic: Diagnostic, sources: SourceMap | None = None, *, color: bool = False) -> str:
    """Draw one diagnostic: headline, excerpt, notes with their excerpts, help; no line end."""
    sources = sources or SourceMap()
    parts = [
        (diagnostic.severity, diagnostic.message, diagnostic.location),
        *((Severity.NOTE, note.message, note.location) for note in diagnostic.notes),
    ]
    if diagnostic.group is not None:
        parts[0] = (parts[0][0], f"{diagnostic.message} [-W {diagnostic.group}]", parts[0][2])
    resolved = [
        (severity, message, None if place is None else sources.resolve(place))
        for severity, message, place in parts
    ]
    last_lines = [p.end_line or p.line for _, _, p in resolved if p is not None]
    gutter = max((len(str(number)) for number in last_lines), default=1)
    out: list[str] = []
    for severity, message, place in resolved:
        out.append(_headline(severity, message, place, color=color))
        if place is not None:
            out.extend(_excerpt(place, sources, gutter, _COLORS[severity] if color else None))
    if diagnostic.help is not None:
        out.append(f"{_paint('help:', '32' if color else None)} {_visible(diagnostic.help)}")
    return "\n".join(out)


def render_all(
    diagnostics: Sequence[Diagnostic], sources: SourceMap | None = None, *, color: bool = False
) -> str:
    """Draw several diagnostics with a blank line between two."""
    return "\n\n".join(render(diagnostic, sources, color=color) for diagnostic in diagnostics)


def to_json(
    diagnostics: Iterable[Diagnostic], sources: SourceMap | None = None
) -> list[dict[str, Any]]:
    """The diagnostics as JSON values for editors; with `sources`, spans get their ends."""
    sources = sources or SourceMap()

    def place(location: Location | None) -> dict[str, Any] | None:
        if location is None:
            return None
        location = sources.resolve(location)
        return {
            "file": location.file,
            "line": location.line,
            "column": location.column,
            "end_line": location.end_line,
            "end_column": location.end_column,
        }

    return [
        {
            "severity": diagnostic.severity.value,
            "message": diagnostic.message,
            "location": place(diagnostic.location),
            "notes": [
                {"message": note.message, "location": place(note.location)}
                for note in diagnostic.notes
            ],
            "help": diagnostic.help,
            "group": diagnostic.group,
        }
        for diagnostic in diagnostics
    ]


def _source_order(diagnostic: Diagnostic) -> tuple[str, int, int]:
    place = diagnostic.location
    return ("", 0, 0) if place is None else (place.file, place.line, place.column)


def _paint(text: str, code: str | None) -> str:
    return text if code is None else f"\x1b[1;{code}m{text}\x1b[0m"


def _spelled(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def _visible(text: str) -> str:
    """Text from a program made harmless for a terminal: what would not be seen is spelt out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _spelled(c) for c in text)


def _headline(severity: Severity, message: str, place: Location | None, *, color: bool) -> str:
    where = "" if place is None else f"{place}: "
    word = _paint(f"{severity}:", _COLORS[severity] if color else None)
    return f"{_visible(where)}{word} {_visible(message)}"


def _excerpt(place: Location, sources: SourceMap, gutter: int, code: str | None) -> list[str]:
    """The source lines of a span, each with a line that underlines its part of the span."""
    end_line = place.end_line or place.line
    numbers = list(range(place.line, end_line + 1))
    skipped = len(numbers) > _MAX_WHOLE_LINES
    if skipped:
        numbers = [*numbers[:2], numbers[-1]]
    out: list[str] = []
    for index, number in enumerate(numbers):
        text = sources.line(place.file, number)
        if text is None:
            break
        if skipped and index == 2:
            out.append(f" {'.' * gutter} |")
        out.extend(_underlined(text, number, replace(place, end_line=end_line), gutter, code))
    return out


def _underlined(
    text: str, number: int, place: Location, gutter: int, code: str | None
) -> list[str]:
    """One source line and its underline; `place` has an end line."""
    cells = _cells(text)
    starts_here = number == place.line
    indent = len(text) - len(text.lstrip())
    begin = place.column - 1 if starts_here else indent
    end = len(text.rstrip())
    if number == place.end_line:
        end = begin + 1 if place.end_column is None else place.end_column - 1
    begin = max(0, min(begin, len(text)))
    before = sum(width for _, width in cells[:begin])
    marked = max(1, sum(width for _, width in cells[begin : max(begin, end)]))
    content = "".join(cell for cell, _ in cells)
    content, before, marked = _trimmed(content, cells, before, marked)
    mark = ("^" if starts_here else "~") + "~" * (marked - 1)
    margin = f" {number:>{gutter}} | "
    blank = f" {' ' * gutter} | "
    return [
        f"{margin}{content}".rstrip(),
        f"{blank}{' ' * before}{_paint(mark, code)}",
    ]


def _cells(text: str) -> list[tuple[str, int]]:
    """Each character as it is shown, with the columns it takes on a terminal.

    Tabs go to the next tab stop; characters that would be invisible or could reorder the line
    are spelt out, so that the excerpt shows what is there.
    """
    out: list[tuple[str, int]] = []
    column = 0
    for char in text:
        if char == "\t":
            width = _TAB_STOP - column % _TAB_STOP
            cell = " " * width
        elif char.isprintable():
            cell = char
            wide = unicodedata.east_asian_width(char) in "WF"
            width = 0 if unicodedata.combining(char) else 2 if wide else 1
        else:
            cell = _spelled(char)
            width = len(cell)
        out.append((cell, width))
        column += width
    return out


def _trimmed(
    content: str, cells: list[tuple[str, int]], before: int, marked: int
) -> tuple[str, int, int]:
    """Cut a long line to a window around the span; gives content, offset and length of the mark."""
    total = sum(width for _, width in cells)
    if total <= _EXCERPT_WIDTH:
        return content, before, marked
    marked = min(marked, _EXCERPT_WIDTH - 20)
    first = max(0, min(before - (_EXCERPT_WIDTH - marked) // 2, total - _EXCERPT_WIDTH))
    if before + marked <= _EXCERPT_WIDTH - 10:
        first = 0
    column = 0
    kept: list[str] = []
    offset: int | None = None
    for cell, width in cells:
        if column >= first and column + width <= first + _EXCERPT_WIDTH:
            offset = column if offset is None else offset
            kept.append(cell)
        column += width
    offset = offset or 0
    head = _ELLIPSIS if offset > 0 else ""
    tail = _ELLIPSIS if first + _EXCERPT_WIDTH < total else ""
    return f"{head}{''.join(kept)}{tail}", before - offset + len(head), marked
