"""Registers: what ptxas says of every program at its default constants, on every chip."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import phobos
from phobos.targets.ptx.assembler import assemble
from phobos.targets.ptx.chips import CHIPS
from tests.support.example_cases import EXAMPLES
from tests.support.ptxas import needs_ptxas

ROOT = EXAMPLES.parent
PROGRAMS = sorted([*EXAMPLES.glob("*.ph"), *(ROOT / "phobos/kernels").glob("*.ph")])


@needs_ptxas
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore::phobos.PhobosWarning")
def test_nothing_is_spilled(program: Path, chip: str) -> None:
    module = phobos.compile(program, chip=chip, cache=False)
    said = assemble(module.ptx, chip, ("-v",)).log
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", said)
    assert spills
    assert set(spills) == {"0"}
