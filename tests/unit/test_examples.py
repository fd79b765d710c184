"""Every program in examples/, for every chip and index width: assembled and run.

The emulator runs what ptxas would assemble. Chips often get the same instructions; a text that
differs in its header alone is run once.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

import phobos
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.runtime.module import Module
from phobos.targets.ptx.assembler import assemble
from tests.support.cases import run_case
from tests.support.chips import PLAIN_CHIPS
from tests.support.example_cases import ALL, EXAMPLES, Example
from tests.support.ptxas import needs_ptxas

by_example = pytest.mark.parametrize("example", ALL, ids=lambda example: example.file)
by_chip = pytest.mark.parametrize("chip", PLAIN_CHIPS)
by_width = pytest.mark.parametrize("index_bits", [32, 64])


@cache
def compiled(example: Example, chip: str, index_bits: int) -> Module:
    """With source lines, as the emulator wants them: a launch need not compile again."""
    return phobos.compile(
        example.path.read_text(),
        chip=chip,
        index_bits=index_bits,
        line_info=True,
        name=example.file,
        cache=False,
    )


def test_every_example_is_tried() -> None:
    assert {path.name for path in EXAMPLES.glob("*.ph")} == {example.file for example in ALL}


@needs_ptxas
@by_width
@by_chip
@by_example
def test_ptxas_takes_it_without_a_warning(example: Example, chip: str, index_bits: int) -> None:
    """And finds registers for all that a thread holds, as tests/unit/test_spills.py asks, too."""
    assembled = assemble(compiled(example, chip, index_bits).ptx, chip, ("-v",))
    assert assembled.warnings == ()
    assert re.findall(r"(\d+) bytes spill stores", assembled.log) == ["0"]
    assert assembled.spills == {}


@needs_ptxas
@by_example
def test_ptxas_takes_it_for_the_chip_with_a_letter(example: Example) -> None:
    assert assemble(compiled(example, "sm_90a", 32).ptx, "sm_90a").warnings == ()


_HEADER = re.compile(r"^\.(version|target).*\n", re.MULTILINE)
_right: set[tuple[str, str, int]] = set()


@by_width
@by_chip
@by_example
def test_the_emulator_gives_numpys_numbers(example: Example, chip: str, index_bits: int) -> None:
    module = compiled(example, chip, index_bits)
    key = (example.file, _HEADER.sub("", module.ptx), index_bits)
    if key in _right:
        return
    for case in example.cases(module.contract.kernel(example.kernel)):
        run_case(module, example.kernel, case, EmulatorDevice(checks="all"))
    _right.add(key)


@by_example
def test_the_default_ptx_serves_extents_that_keep_its_promise(example: Example) -> None:
    module = compiled(example, "sm_80", 32)
    fixed = Module(module.ptx, module.contract)
    cases = example.cases(module.contract.kernel(example.kernel), multiple=4)
    assert cases
    for case in cases:
        run_case(fixed, example.kernel, case, "emulator")


@by_example
def test_an_extent_multiple_of_1_serves_all_extents(example: Example) -> None:
    module = phobos.compile(
        example.path.read_text(), chip="sm_80", extent_multiple=1, name=example.file, cache=False
    )
    fixed = Module(module.ptx, module.contract)
    for case in example.cases(module.contract.kernel(example.kernel)):
        run_case(fixed, example.kernel, case, "emulator")


def test_gemm_refuses_extents_that_break_its_promise() -> None:
    (example,) = (one for one in ALL if one.file == "gemm_fp32.ph")
    module = compiled(example, "sm_80", 32)
    with pytest.raises(phobos.PhobosError, match=r"@aligned\(M = 32\), and M is 33"):
        run_case(module, "gemm", example.case({"M": 33, "N": 64, "K": 4}), "emulator")
