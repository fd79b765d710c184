"""What a rule of the language is to the tests: a program that keeps it and one that breaks it.

Programs are written as the body of a kernel, or whole where they begin with another word than a
statement could. The kernel around a body is

    @launch(64)
    kernel k(X: tensor<f32>[64], I: tensor<i32>[64], W: tensor<f32>[M, N], n: i32,
             Y: tensor<f32>[64]) { ... }

with X = 0, 1/2, 1, ..., I = 63, 62, ..., W = 0, 1, 2, ... of 4 rows and 16 columns, and n = 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

X = np.arange(64, dtype=np.float32) / 2
I = np.arange(64, dtype=np.int32)[::-1].copy()  # noqa: E741
W = np.arange(64, dtype=np.float32).reshape(4, 16)
N = 3
LANE, WARP, THREAD = np.arange(64) % 32, np.arange(64) // 32, np.arange(64)

HEAD = """\
@launch(64)
kernel k(X: tensor<f32>[64], I: tensor<i32>[64], W: tensor<f32>[M, N], n: i32, Y: tensor<f32>[64]) {
"""


def first(*values: float) -> np.ndarray:
    """These values and zeros behind them."""
    return np.array([*values, *[0] * (64 - len(values))])


_WHOLE = re.compile(r"^(kernel|fn|@)", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """One rule.

    `section` is the heading of docs/language.md under which it stands, `name` says it. `good`
    writes `gives` to Y. `bad` gives the error `says`, whose span is the text `at`.
    """

    section: str
    name: str
    good: str
    gives: ArrayLike
    bad: str
    says: str
    at: str
    assertions: bool = False
    """Whether the good program is built with assertions."""
    chip: str | None = None
    """The chip that it is built for, if not any will do."""


def program(text: str) -> str:
    """The whole program that a text stands for."""
    text = text.strip("\n")
    return text + "\n" if _WHOLE.search(text) else f"{HEAD}{text}\n}}\n"


def underlined(message: str) -> str:
    """The text that the first error of a message underlines."""
    lines = message.splitlines()
    marks = next(number for number, line in enumerate(lines) if re.match(r"^ *\| *\^~*", line))
    start = lines[marks].index("^")
    end = start + len(lines[marks][start:].split(" ")[0])
    return lines[marks - 1][start:end]
