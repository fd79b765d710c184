"""Wrong programs and the messages they give, word for word.

Each `name.ph` in this folder is wrong, and `name.expected` holds what the compiler says to it.
Lines that start with `//@ ` give options: `//@ set NAME=VALUE`, `//@ kernel NAME` and
`//@ index-bits 64`.

After a change of messages, look at each one and record them anew with

    PHOBOS_UPDATE_GOLDEN=1 python -m pytest tests/diagnostics
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phobos.diagnostics import PhobosError
from phobos.driver.compilation import compile_text
from phobos.driver.options import CompileOptions, make_options

FOLDER = Path(__file__).parent
UPDATE = os.environ.get("PHOBOS_UPDATE_GOLDEN") == "1"
PROGRAMS = sorted(FOLDER.glob("*.ph"))


def read_options(text: str) -> CompileOptions:
    """The options that the `//@` lines of a program give."""
    constants: dict[str, int | float] = {}
    kernel: str | None = None
    index_bits: int | None = None
    for line in text.splitlines():
        if not line.startswith("//@ "):
            continue
        word, _, value = line.removeprefix("//@ ").partition(" ")
        match word:
            case "set":
                name, _, number = value.partition("=")
                constants[name] = float(number) if "." in number else int(number)
            case "kernel":
                kernel = value
            case "index-bits":
                index_bits = int(value)
            case _:
                raise AssertionError(f"unknown option: {line}")
    return make_options(chip="sm_80", constants=constants, kernel=kernel, index_bits=index_bits)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_message(program: Path) -> None:
    text = program.read_text()
    with pytest.raises(PhobosError) as caught:
        compile_text(text, program.name, read_options(text))
    said = f"{caught.value}\n"
    expected = program.with_suffix(".expected")
    if UPDATE:
        expected.write_text(said)
    assert expected.exists(), f"record {expected.name} with PHOBOS_UPDATE_GOLDEN=1"
    assert said == expected.read_text()


def test_every_expectation_has_a_program() -> None:
    recorded = {path.stem for path in FOLDER.glob("*.expected")}
    assert recorded == {path.stem for path in PROGRAMS}
    assert len(recorded) >= 75
