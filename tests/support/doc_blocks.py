"""Reads the code blocks of the documentation and runs them.

The words behind a block's fence say what the block is:

- `ph`: a whole program; it must compile.
- `ph error`: a program that must be refused. A `text` block behind it is the exact message.
- `python`: run in order with the other `python` blocks of the page; `source` holds the text of
  the last program above.
- `mlir`: IR that must parse and verify; `ir` holds its text for the `python` blocks below.
- `console`: commands behind `$ ` and what they print. The commands run in a folder with the
  repository's examples. Printed lines must be the same, where `...` stands for any text and,
  alone on a line, for any lines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.run_lines import TOOLS, call_tool

FENCE = re.compile(r"^```(.*)$")


@dataclass(frozen=True)
class Block:
    """One fenced block: what it is, its text, and the line of its fence (from 1)."""

    kind: str
    text: str
    line: int


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in order."""
    kind: str | None = None
    start = 0
    lines: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif kind is None:
            kind, start, lines = fence[1].strip(), number, []
        else:
            yield Block(kind, "\n".join(lines) + "\n", start)
            kind = None
    assert kind is None, f"{page}:{start}: this block has no end"


@dataclass(frozen=True)
class Command:
    """One command of a console block and the lines that it prints."""

    words: tuple[str, ...]
    output: tuple[str, ...]


def commands_of(block: Block) -> list[Command]:
    """The commands of a console block; a line that ends in `\\` goes on in the next."""
    commands: list[Command] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            text = line[2:]
            while text.endswith("\\"):
                text = text[:-1] + next(lines)
            commands.append(Command(tuple(shlex.split(text)), ()))
        else:
            last = commands[-1]
            commands[-1] = Command(last.words, (*last.output, line))
    return commands


def run_command(command: Command) -> list[str]:
    """Run a command of ours in this process; returns what it printed, stderr before stdout.

    `cat FILE` prints a file, since readers want to see what a tool has written.
    """
    name, *arguments = command.words
    if name == "cat":
        return Path(arguments[0]).read_text().splitlines()
    assert name in TOOLS, f"the documentation calls `{name}`, which no test can run"
    outcome = call_tool(name, arguments)
    printed = (outcome.stderr + outcome.stdout).decode()
    assert outcome.code == 0 or "error:" in "\n".join(command.output), printed
    return [line.rstrip() for line in printed.splitlines()]


def matches(expected: tuple[str, ...], printed: list[str]) -> bool:
    """Whether lines are as expected, where `...` stands for any text, alone for any lines."""
    pattern = "".join(
        "(?:.*\n)*" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
        for line in expected
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None
