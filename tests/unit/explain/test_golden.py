"""Explanations word for word, of examples and of the programs in this folder's `programs`.

The first line of a program names the chip, and `tensor-maps` if it takes them: `//@ sm_80`. After a
change of words, look at each one and record them anew with

    PHOBOS_UPDATE_GOLDEN=1 python -m pytest tests/unit/explain
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phobos.driver.compilation import compile_text
from phobos.driver.options import make_options
from phobos.explain.text import explanation_text
from tests.support.example_cases import EXAMPLES

FOLDER = Path(__file__).parent / "programs"
UPDATE = os.environ.get("PHOBOS_UPDATE_GOLDEN") == "1"
PROGRAMS = [
    *sorted(FOLDER.glob("*.ph")),
    EXAMPLES / "saxpy_fp32.ph",
    EXAMPLES / "softmax.ph",
    EXAMPLES / "gemm_fp16tc_fp32acc.ph",
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_explanation(program: Path) -> None:
    text = program.read_text()
    first = text.partition("\n")[0]
    chip, *others = first.removeprefix("//@ ").split() if first.startswith("//@ ") else ["sm_80"]
    options = make_options(chip=chip, tensor_maps="tensor-maps" in others)
    compilation = compile_text(text, program.name, options, explain=True)
    assert compilation.explanation is not None
    said = explanation_text(compilation.explanation)
    expected = FOLDER / f"{program.stem}.expected"
    if UPDATE:
        expected.write_text(said)
    assert expected.exists(), f"record {expected.name} with PHOBOS_UPDATE_GOLDEN=1"
    assert said == expected.read_text()


def test_every_expectation_has_a_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.expected")} == {path.stem for path in PROGRAMS}
