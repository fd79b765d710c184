"""Runs the `RUN:` lines of a lit test in this process.

A lit test is a file whose comments say how to run it and what to expect:

    // RUN: phobos-opt %s -p canonicalize | filecheck %s
    // CHECK: arith.constant 3

lit starts two processes for that, a third of a second; called as functions the same tools take
some milliseconds. Understood are pipes, `not`, `2>&1`, `> FILE`, a `\\` at the end of a line,
quotes, and `%s` (the file), `%S` (its folder) and `%t` (a scratch path). Anything else needs lit.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

RUN_LINE = re.compile(r"^\s*//\s*RUN:\s*(.*?)\s*$")


class RunLineError(Exception):
    """A test's command failed, or a `RUN:` line is not understood; the text says all."""


@dataclass(frozen=True)
class Stage:
    """One command of a pipe."""

    tool: str
    arguments: tuple[str, ...]
    fails: bool = False
    merges_stderr: bool = False
    output: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """What one command printed and returned."""

    code: int
    stdout: bytes
    stderr: bytes


def run_lines_of(text: str) -> list[str]:
    """The commands of a test, lines that end in `\\` joined to the next."""
    commands: list[str] = []
    continues = False
    for line in text.splitlines():
        found = RUN_LINE.match(line)
        if found is None:
            continue
        part = found[1]
        if continues:
            commands[-1] += " " + part.removesuffix("\\")
        else:
            commands.append(part.removesuffix("\\"))
        continues = part.endswith("\\")
    return commands


def parse_command(command: str, test: Path, scratch: Path) -> list[Stage]:
    """The stages of one `RUN:` line; raises RunLineError on what needs a real shell."""
    names = {"%s": str(test), "%S": str(test.parent), "%t": str(scratch), "%%": "%"}
    command = re.sub(r"%[sSt%]", lambda found: names[found[0]], command)
    stages: list[Stage] = []
    words: list[str] = []
    for word in [*shlex.split(command), "|"]:
        if word != "|":
            words.append(word)
            continue
        stages.append(_stage(words, command))
        words = []
    return stages


def _stage(words: Sequence[str], command: str) -> Stage:
    rest = list(words)
    fails = rest[:1] == ["not"]
    if fails:
        rest = rest[1:]
    merges = "2>&1" in rest
    rest = [word for word in rest if word != "2>&1"]
    output = None
    if ">" in rest:
        index = rest.index(">")
        output = Path(rest[index + 1])
        del rest[index : index + 2]
    if not rest or rest[0] not in TOOLS:
        known = ", ".join(sorted(TOOLS))
        raise RunLineError(f"cannot run `{command}`: the tools are {known}, not and filecheck")
    return Stage(rest[0], tuple(rest[1:]), fails, merges, output)


def run_test(test: Path, scratch: Path) -> None:
    """Run all commands of a test file; raises RunLineError at the first that fails."""
    commands = run_lines_of(test.read_text())
    if not commands:
        raise RunLineError(f"{test} has no RUN: line")
    for command in commands:
        data = b""
        log: list[str] = []
        for stage in parse_command(command, test, scratch):
            outcome = run_stage(stage, data)
            data = outcome.stdout
            log.append(f"$ {stage.tool} {shlex.join(stage.arguments)}\n{_decode(outcome.stderr)}")
            if (outcome.code != 0) != stage.fails:
                wanted = "not 0" if stage.fails else "0"
                raise RunLineError(
                    f"RUN: {command}\n{stage.tool} exited with {outcome.code}, wanted {wanted}\n\n"
                    + "\n".join(log)
                    + f"\nstdout:\n{_decode(data)}"
                )


def run_stage(stage: Stage, data: bytes) -> Outcome:
    """Call one tool with `data` on its standard input."""
    outcome = call_tool(stage.tool, stage.arguments, data, merge=stage.merges_stderr)
    if stage.output is None:
        return outcome
    stage.output.write_bytes(outcome.stdout)
    return Outcome(outcome.code, b"", outcome.stderr)


def call_tool(
    name: str, arguments: Sequence[str], data: bytes = b"", *, merge: bool = False
) -> Outcome:
    """Call a command-line tool as a function, its standard streams replaced by buffers.

    With `merge`, stderr goes into stdout in the order written. A traceback that leaves the tool
    is printed to its stderr and makes the code 1, as in a process.
    """
    out, err = io.BytesIO(), io.BytesIO()
    with _streams(data, out, out if merge else err):
        code = _exit_code(TOOLS[name], name, arguments)
    return Outcome(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _streams(data: bytes, out: io.BytesIO, err: io.BytesIO) -> Iterator[None]:
    stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    stderr = stdout if err is out else io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    try:
        with (
            mock.patch.object(sys, "stdin", stdin),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            yield
    finally:
        # Detach, or closing the wrapper would close the buffer that is still to be read.
        for stream in {stdout, stderr}:
            stream.detach()


def _exit_code(tool: Callable[[list[str]], int | None], name: str, arguments: Sequence[str]) -> int:
    try:
        with mock.patch.object(sys, "argv", [name, *arguments]):
            return tool(list(arguments)) or 0
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
            return 1
        return stop.code or 0
    except BaseException as fault:  # xDSL has an error that is no Exception
        if isinstance(fault, KeyboardInterrupt):
            raise
        traceback.print_exc()
        return 1


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# The tools ---------------------------------------------------------------------------------------


def _phobos_opt(arguments: list[str]) -> int:
    from phobos.cli.opt import main

    return main(arguments)


def _phobos_compile(arguments: list[str]) -> int | None:
    from phobos.cli.compile import main

    return main(arguments)


def _phobos_run(arguments: list[str]) -> int | None:
    from phobos.cli.run import main

    return main(arguments)


def _xdsl_opt(arguments: list[str]) -> None:
    from xdsl.xdsl_opt_main import xDSLOptMain  # noqa: TID251

    xDSLOptMain(args=arguments).run()


def _filecheck(arguments: list[str]) -> None:
    from filecheck.main import main

    main(["filecheck", *arguments])


TOOLS: dict[str, Callable[[list[str]], int | None]] = {
    "phobos-opt": _phobos_opt,
    "phobos-compile": _phobos_compile,
    "phobos-run": _phobos_run,
    "xdsl-opt": _xdsl_opt,
    "filecheck": _filecheck,
}
"""What a `RUN:` line may call, by the name of its console script."""
