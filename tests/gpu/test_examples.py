"""Every program in examples/ on a GPU: awkward extents, both index widths, large arrays."""

from __future__ import annotations

import pytest

import phobos
from tests.support.cases import run_case
from tests.support.example_cases import ALL, Example, large_shapes

by_example = pytest.mark.parametrize("example", ALL, ids=lambda example: example.file)


@pytest.mark.parametrize("index_bits", [32, 64])
@by_example
def test_awkward_extents(example: Example, index_bits: int) -> None:
    module = phobos.compile(example.path.read_text(), index_bits=index_bits, name=example.file)
    for case in example.cases(module.contract.kernel(example.kernel)):
        run_case(module, example.kernel, case, "cuda")


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_86", "sm_89"])
@by_example
def test_ptx_for_older_chips_runs_on_this_gpu(example: Example, chip: str) -> None:
    module = phobos.compile(example.path.read_text(), chip=chip, name=example.file)
    for case in example.cases(module.contract.kernel(example.kernel), multiple=4):
        run_case(module, example.kernel, case, "cuda")


@by_example
def test_large_arrays(example: Example) -> None:
    module = phobos.compile(example.path.read_text(), name=example.file)
    run_case(module, example.kernel, example.case(large_shapes(example)), "cuda")
