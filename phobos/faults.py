"""Turns whatever a tool run raises into diagnostics, so that no user sees a traceback.

xDSL reports wrong input with a dozen exception classes; some name a span, some hold the whole
module as a note, one is no `Exception` at all. `diagnose` brings them to one form.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace

from xdsl.ir import Operation
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    MultipleSpansParseError,
    ParseError,
)
from xdsl.utils.lexer import Input, Span

from phobos.diagnostics import Diagnostic, Location, Note, PhobosError
from phobos.ir.dominance import check_dominance
from phobos.ir.locations import location_of

_OP_TEXT_LIMIT = 200


class PhParseError(ParseError):
    """A wrong `.ph` text, in the form that xDSL's tools report.

    Its text is that of all the diagnostics in `error`; its span is where the first one is.
    """

    def __init__(self, error: PhobosError, text: str, name: str) -> None:
        first = error.diagnostics[0]
        super().__init__(_span_of(first.location, Input(text, name)), first.message)
        self.error = error

    def __str__(self) -> str:
        """The diagnostics as `phobos-compile` prints them."""
        return str(self.error)


def diagnose(fault: BaseException, stage: str = "") -> PhobosError:
    """The error to show for `fault`.

    `stage` says what the tool was doing, as in "in pass `canonicalize`"; it becomes a note where
    the fault does not name a place in the user's text itself. KeyboardInterrupt and SystemExit
    are raised again.
    """
    if isinstance(fault, PhobosError):
        return fault
    if isinstance(fault, KeyboardInterrupt | SystemExit):
        raise fault
    for kind, handler in _HANDLERS:
        if isinstance(fault, kind):
            diagnostics = handler(fault)
            break
    else:
        diagnostics = (_internal(fault),)
    return PhobosError([_with_stage(diagnostic, stage) for diagnostic in diagnostics])


def verify_located(module: Operation) -> None:
    """Verify an op and all inside it, and that values are defined before they are used.

    xDSL checks no order of definition and use, and does not say where an op is that is wrong.
    Raises PhobosError at the first such op.
    """
    try:
        module.verify()
    except Exception as fault:
        culprit = next(filter(_is_wrong, module.walk()), None)
        raise PhobosError(_verification(fault, culprit)) from fault
    check_dominance(module)


def _is_wrong(op: Operation) -> bool:
    """Whether an op fails its own verification, whatever is nested in it."""
    try:
        op.verify(verify_nested_ops=False)
    except Exception:  # verifiers of xDSL raise bare exceptions too
        return True
    return False


def _verification(fault: Exception, culprit: Operation | None) -> Diagnostic:
    message = _first_paragraph(str(fault)) or type(fault).__name__
    if culprit is None:
        return Diagnostic.error(message)
    place = location_of(culprit)
    notes = () if place is not None else (Note(f"the operation is: {_op_text(culprit)}"),)
    return Diagnostic.error(f"`{culprit.name}` is not valid: {message}", place, notes=notes)


def _op_text(op: Operation) -> str:
    """The first line of an op as it is printed, cut to a readable length."""
    try:
        text = str(op).split("\n", 1)[0]
    except Exception:  # an op that does not verify may not print either
        return op.name
    return text if len(text) <= _OP_TEXT_LIMIT else text[:_OP_TEXT_LIMIT] + " ..."


def _parse_error(fault: ParseError) -> tuple[Diagnostic, ...]:
    if isinstance(fault, PhParseError):
        return fault.error.diagnostics
    notes: tuple[Note, ...] = ()
    if isinstance(fault, MultipleSpansParseError):
        notes = tuple(Note(text or "see here", _place(span)) for span, text in fault.refs)
    message = fault.msg.strip().rstrip(".") or "this cannot be parsed"
    place = _place(_span_of_unregistered(fault) or fault.span)
    return (Diagnostic.error(_uncapitalized(message), place, notes=notes),)


def _span_of_unregistered(fault: ParseError) -> Span[str] | Span[bytes] | None:
    """Where the name of an unknown operation stands; xDSL points at the token behind it."""
    found = re.match(r"Operation (\S+) is not registered", fault.msg)
    if found is None:
        return None
    content = fault.span.input.content
    if isinstance(content, bytes):
        start = content.rfind(found[1].encode(), 0, fault.span.start)
    else:
        start = content.rfind(found[1], 0, fault.span.start)
    return replace(fault.span, start=start, end=start + len(found[1])) if start >= 0 else None


def _place(span: Span[str] | Span[bytes]) -> Location:
    """The place of a span, in characters; xDSL counts bytes where the input is bytes."""
    content = span.input.content
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    start, end = span.start, max(span.end, span.start + 1)
    if isinstance(content, bytes):
        start, end = (len(content[:place].decode("utf-8", "replace")) for place in (start, end))
    line, column = _line_and_column(text, start)
    end_line, end_column = _line_and_column(text, end)
    return Location(
        span.input.name, line + span.line_offset, column, end_line + span.line_offset, end_column
    )


def _span_of(place: Location | None, source: Input[str]) -> Span[str]:
    """The characters of `source` that a location covers, at least one; all of line 1 for None."""
    line, column = (1, 1) if place is None else (place.line, place.column)
    starts = [0]
    for text in source.content.split("\n"):
        starts.append(starts[-1] + len(text) + 1)
    start = starts[min(line, len(starts) - 1) - 1] + column - 1
    return Span(start, start + 1, source)


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _spec_error(fault: ArgSpecParseError) -> tuple[Diagnostic, ...]:
    """The message of a malformed pass or target list: its token is in the text only."""
    lines = [line for line in str(fault).splitlines()[1:] if line.strip()]
    place, excerpt, carets, message = (*lines, "", "", "", "")[:4]
    column = re.search(r":(\d+)$", place)
    where = f" at character {column[1]}" if column else ""
    text = _uncapitalized(message.strip()) or "this is not a list of passes"
    return (
        Diagnostic.error(
            f"cannot read the list of passes{where}: {text}",
            notes=(Note(f"{excerpt}\n      {carets}"),) if excerpt else (),
            help="passes are written NAME,NAME{option=value other=1,2}",
        ),
    )


def _file_error(fault: OSError) -> tuple[Diagnostic, ...]:
    reason = os.strerror(fault.errno) if fault.errno else str(fault)
    name = fault.filename if isinstance(fault.filename, str) else "the stream"
    return (Diagnostic.error(f"cannot open `{name}`: {reason}"),)


def _encoding_error(fault: UnicodeDecodeError) -> tuple[Diagnostic, ...]:
    byte = fault.object[fault.start]
    return (
        Diagnostic.error(
            f"the input is not UTF-8 text: byte 0x{byte:02x} at offset {fault.start}",
            help="is it a compiled file? a source is plain text",
        ),
    )


def _nesting_error(_: RecursionError) -> tuple[Diagnostic, ...]:
    return (Diagnostic.error("the input is nested too deeply", help="split it into smaller parts"),)


def _plain_error(fault: BaseException) -> tuple[Diagnostic, ...]:
    return (Diagnostic.error(_first_paragraph(str(fault)) or type(fault).__name__),)


def _internal(fault: BaseException) -> Diagnostic:
    return Diagnostic.error(
        f"internal error: {type(fault).__name__}: {_first_paragraph(str(fault))}",
        help="this is a fault of the tool; --debug shows the traceback to report",
    )


def _with_stage(diagnostic: Diagnostic, stage: str) -> Diagnostic:
    if not stage or diagnostic.location is not None:
        return diagnostic
    notes = (*diagnostic.notes, Note(stage))
    return Diagnostic(
        diagnostic.severity, diagnostic.message, None, notes=notes, help=diagnostic.help
    )


def _first_paragraph(text: str) -> str:
    """The text up to an empty line: xDSL appends whole modules to some messages."""
    return text.strip().split("\n\n", 1)[0]


def _uncapitalized(text: str) -> str:
    """The text with a small first letter, unless its first word is a name in capitals."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


_HANDLERS: tuple[tuple[type[BaseException], Callable[..., tuple[Diagnostic, ...]]], ...] = (
    (ParseError, _parse_error),
    (ArgSpecParseError, _spec_error),
    (DiagnosticException, _plain_error),
    (UnicodeDecodeError, _encoding_error),
    (OSError, _file_error),
    (RecursionError, _nesting_error),
)
"""What turns each class of fault into diagnostics; the first that fits is taken."""
