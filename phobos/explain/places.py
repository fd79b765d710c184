"""What things are called: places of the source with their text, names of values and tensors."""

from __future__ import annotations

from xdsl.dialects import gpu
from xdsl.ir import BlockArgument, Operation, SSAValue

from phobos.diagnostics import Location, SourceMap
from phobos.explain.records import Place
from phobos.ir.kernel import argument_name
from phobos.ir.locations import location_of, location_of_value

MAX_TEXT = 60
_DOTS = "..."


class Places:
    """Turns locations into places; `sources` knows the text and the end of each."""

    def __init__(self, sources: SourceMap) -> None:
        self.sources = sources

    def of(self, op: Operation) -> Place | None:
        """The place of an op."""
        return self.at(location_of(op))

    def of_target(self, op: Operation) -> Place | None:
        """The place of an op that writes: of an assignment, what stands left of the sign."""
        return self.at(location_of(op), is_target=True)

    def of_value(self, value: SSAValue) -> Place | None:
        """The place where a value is made."""
        return self.at(location_of_value(value))

    def at(self, location: Location | None, *, is_target: bool = False) -> Place | None:
        """The place of a location; None for none."""
        if location is None:
            return None
        span = self.sources.resolve(location)
        text = self._text(span)
        if is_target:
            text = _left_side(text)
        return Place(span.file, span.line, span.column, shortened(text))

    def _text(self, span: Location) -> str:
        first = self.sources.line(span.file, span.line)
        if first is None:
            return ""
        if span.end_column is None:
            return _word(first, span.column - 1)
        last_number = span.end_line or span.line
        if last_number == span.line:
            return first[span.column - 1 : span.end_column - 1]
        middle = [self.sources.line(span.file, n) or "" for n in range(span.line + 1, last_number)]
        last = self.sources.line(span.file, last_number) or ""
        return " ".join([first[span.column - 1 :], *middle, last[: span.end_column - 1]])


def _word(line: str, start: int) -> str:
    """The word that begins at a place whose end is not known."""
    end = start
    while end < len(line) and (line[end].isalnum() or line[end] in "_."):
        end += 1
    return line[start : max(end, start + 1)]


def _left_side(text: str) -> str:
    """What an assignment assigns to; all of what is no assignment."""
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "=" and depth == 0 and index:
            return text[:index].rstrip("+-*/%&|^<> ")
    return text


def shortened(text: str, width: int = MAX_TEXT) -> str:
    """A text on one line, its middle left out if it is long."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    kept = width - len(_DOTS)
    return f"{text[: kept - kept // 4]}{_DOTS}{text[-(kept // 4) :]}"


def order_of(place: Place | None) -> tuple[int, int]:
    """Sorts by place in the source; what has none comes last."""
    return (1 << 30, 0) if place is None else (place.line, place.column)


def tensor_name(mem: SSAValue) -> str:
    """What the program calls a tensor or a tile in memory."""
    if isinstance(mem, BlockArgument):
        kernel = mem.block.parent_op()
        if isinstance(kernel, gpu.FuncOp):
            return argument_name(kernel, mem.index)
    return mem.name_hint or "the tile"
