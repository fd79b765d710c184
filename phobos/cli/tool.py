"""What the command-line tools share: argument types, and the way errors leave a process.

Exit codes: 0, 1 if the input is wrong, 2 if the command line is.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from phobos.diagnostics import (
    WARNING_GROUPS,
    Diagnostic,
    Listener,
    PhobosError,
    Severity,
    SourceMap,
    listening,
    render_all,
    to_json,
)

STANDARD = "-"
"""The file name that stands for standard input or output."""
STDIN_NAME = "<stdin>"
ALL_GROUPS = "all"
"""The group that all warnings belong to."""


class CommandLineError(PhobosError):
    """Something on the command line that no program could make right."""


@contextmanager
def of_command_line() -> Iterator[None]:
    """What is wrong in here is the command line, whatever the program."""
    try:
        yield
    except CommandLineError:
        raise
    except PhobosError as error:
        raise CommandLineError(error.diagnostics, error.sources) from error


class Reporter:
    """Shows diagnostics on stderr, as text or as JSON."""

    def __init__(
        self,
        *,
        as_json: bool = False,
        debug: bool = False,
        hidden: Collection[str] = (),
        fatal: Collection[str] = (),
    ) -> None:
        """`hidden` and `fatal` are groups of warnings: not shown, and shown as errors."""
        self.as_json = as_json
        self.debug = debug
        self.hidden = frozenset(hidden)
        self.fatal = frozenset(fatal)
        self.listener = Listener()

    def show(self, diagnostics: Iterable[Diagnostic], sources: SourceMap | None) -> None:
        """Show the diagnostics of a run; as JSON, one list even if there are none."""
        diagnostics = tuple(diagnostics)
        if self.as_json:
            import json

            print(json.dumps(to_json(diagnostics, sources), indent=2), file=sys.stderr)
        elif diagnostics:
            color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
            print(render_all(diagnostics, sources, color=color), file=sys.stderr)

    def guard(self, body: Callable[[], None]) -> int:
        """Run a tool's work and return its exit code; whatever it raises becomes a diagnostic."""
        try:
            with listening() as self.listener:
                body()
            sys.stdout.flush()
            self.show(self.warnings(), self.listener.sources)
        except BrokenPipeError:
            # The reader of our output has left; keep the interpreter from flushing into nothing.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except PhobosError as error:
            self._fail(error, error)
            return 2 if isinstance(error, CommandLineError) else 1
        except KeyboardInterrupt:
            return 130
        except Exception as fault:
            from phobos.faults import diagnose

            self._fail(diagnose(fault), fault)
            return 1
        return 0

    def warnings(self) -> tuple[Diagnostic, ...]:
        """What was told so far and is not hidden; as errors where that was asked for."""
        return tuple(
            replace(one, severity=Severity.ERROR) if self._is_fatal(one) else one
            for one in self.listener.diagnostics
            if one.group not in self.hidden
        )

    def refuse_warnings(self) -> None:
        """Raise PhobosError if a warning counts as an error."""
        told = self.warnings()
        if any(one.severity is Severity.ERROR for one in told):
            self.listener.diagnostics.clear()
            raise PhobosError(told, self.listener.sources)

    def _is_fatal(self, told: Diagnostic) -> bool:
        return told.severity is Severity.WARNING and (
            ALL_GROUPS in self.fatal or told.group in self.fatal
        )

    def _fail(self, error: PhobosError, fault: BaseException) -> None:
        if self.debug:
            traceback.print_exception(fault)
        told = (*self.warnings(), *error.diagnostics)
        self.show(told, error.sources or self.listener.sources)


def leave(code: int) -> NoReturn:
    """End the process at once: taking down modules and IR costs 60 ms that help nobody."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


# Argument types ----------------------------------------------------------------------------------


def named_number(text: str) -> tuple[str, int | float]:
    """`NAME=NUMBER`."""
    name, value = _named(text, "NUMBER")
    for number in (_integer, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    raise argparse.ArgumentTypeError(f"`{value}` is not a number, in {text!r}")


def named_integer(text: str) -> tuple[str, int]:
    """`NAME=INTEGER`."""
    name, value = _named(text, "INTEGER")
    try:
        return name, _integer(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{value}` is not an integer, in {text!r}") from None


def named_extent(text: str) -> tuple[str, int]:
    """`NAME=INTEGER`, not negative."""
    name, extent = named_integer(text)
    if extent < 0:
        raise argparse.ArgumentTypeError(f"an extent cannot be negative: {text!r}")
    return name, extent


def hidden_group(text: str) -> str:
    """`no-GROUP`, of the warnings."""
    if not text.startswith("no-"):
        raise argparse.ArgumentTypeError(f"expected no-GROUP, got {text}")
    return _group(text.removeprefix("no-"), WARNING_GROUPS)


def fatal_group(text: str) -> str:
    """A group of warnings, or all."""
    return _group(text, (*WARNING_GROUPS, ALL_GROUPS))


def _group(name: str, known: Collection[str]) -> str:
    if name not in known:
        raise argparse.ArgumentTypeError(
            f"there is no group of warnings `{name}`; there are {', '.join(known)}"
        )
    return name


def named_path(text: str) -> tuple[str, Path]:
    """`NAME=FILE`."""
    name, value = _named(text, "FILE")
    return name, Path(value)


def grid(text: str) -> tuple[int, ...]:
    """`X[,Y[,Z]]`."""
    try:
        extents = tuple(map(_integer, text.split(",")))
    except ValueError:
        extents = ()
    if not 1 <= len(extents) <= 3 or min(extents) < 1:
        raise argparse.ArgumentTypeError(
            f"a grid is one to three positive integers such as 16,8, not {text!r}"
        )
    return extents


def _named(text: str, what: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise argparse.ArgumentTypeError(f"write NAME={what}, not {text!r}")
    return name.strip(), value.strip()


def _integer(text: str) -> int:
    """An integer as the language writes it: decimal, `1_000` or `0xff`."""
    return int(text, 0)


# Reading -----------------------------------------------------------------------------------------


def read_text(file: str) -> tuple[str, str]:
    """The text of a source and its name in diagnostics; `-` is standard input.

    Raises PhobosError if it cannot be read or is not UTF-8.
    """
    from phobos.driver.sources import decode_source, read_source

    if file == STANDARD:
        return decode_source(sys.stdin.buffer.read(), STDIN_NAME), STDIN_NAME
    return read_source(Path(file)), file
