"""Registers: what ptxas says of every kernel that Phobos ships, at its default constants.

tests/unit/test_examples.py asks the same of every example.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import phobos
from phobos.targets.ptx.assembler import assemble
from phobos.targets.ptx.chips import chip
from tests.support.chips import PLAIN_CHIPS
from tests.support.example_cases import EXAMPLES
from tests.support.ptxas import needs_ptxas

ROOT = EXAMPLES.parent
PROGRAMS = sorted((ROOT / "phobos/kernels").glob("*.ph"))
CASES = [
    pytest.param(program, name, id=f"{program.name}-{name}")
    for program in PROGRAMS
    for name in PLAIN_CHIPS
    if chip(name).has_clusters or "@cluster" not in program.read_text()
]


@needs_ptxas
@pytest.mark.parametrize(("program", "name"), CASES)
@pytest.mark.filterwarnings("ignore::phobos.PhobosWarning")
def test_nothing_is_spilled(program: Path, name: str) -> None:
    module = phobos.compile(program, chip=name, cache=False)
    said = assemble(module.ptx, name, ("-v",)).log
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", said)
    assert spills
    assert set(spills) == {"0"}


@needs_ptxas
@pytest.mark.parametrize(("block_n", "d"), [(64, 64), (32, 128)], ids=lambda value: str(value))
def test_32_rows_of_attention_a_warp_are_not_spilled(block_n: int, d: int) -> None:
    """Their sums alone are half of the registers of a thread, or a quarter."""
    constants = {"BLOCK_M": 128, "BLOCK_N": block_n, "THREADS": 128, "D": d}
    program = ROOT / "phobos/kernels/attention_fp16.ph"
    module = phobos.compile(program, chip="sm_90", constants=constants, cache=False)
    said = assemble(module.ptx, "sm_90", ("-v",)).log
    assert set(re.findall(r"(\d+) bytes spill (?:stores|loads)", said)) == {"0"}
