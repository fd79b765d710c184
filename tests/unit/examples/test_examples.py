"""The example programs: compiled for every chip, assembled, and run against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import phobos
from phobos.targets.ptx.assembler import assemble
from tests.support.example_cases import EXAMPLES, FOLDER, Dims, Example

CHIPS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120")
TARGETS = list(itertools.product(CHIPS, (32, 64)))

RUNS = [
    pytest.param(
        example,
        dims,
        *TARGETS[number % len(TARGETS)],
        id=f"{example.file}-{'x'.join(map(str, dims))}",
    )
    for number, (example, dims) in enumerate(
        (example, dims) for example in EXAMPLES for dims in example.sizes
    )
]
"""Every example at every size, the chips and index widths in turn."""

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.file)


def test_no_example_is_left_out() -> None:
    assert {path.stem for path in FOLDER.glob("*.ph")} == {example.file for example in EXAMPLES}


@each_example
def test_an_example_begins_by_saying_what_it_teaches(example: Example) -> None:
    header = list(
        itertools.takewhile(lambda line: line.startswith("//"), example.source.splitlines())
    )
    assert any(line.startswith("// Teaches:") for line in header)
    assert any(line.startswith("// Launch") for line in header)


@pytest.mark.parametrize(("chip", "index_bits"), TARGETS)
@each_example
def test_ptxas_takes_it_without_a_warning(example: Example, chip: str, index_bits: int) -> None:
    module = phobos.compile(example.source, chip=chip, index_bits=index_bits)
    assert f".target {chip}" in module.ptx
    assert module.contract.index_bits == index_bits
    assert assemble(module.ptx, chip).warnings == ()


@pytest.mark.parametrize(("example", "dims", "chip", "index_bits"), RUNS)
def test_it_computes_what_numpy_does(
    example: Example, dims: Dims, chip: str, index_bits: int
) -> None:
    module = phobos.compile(
        example.source, chip=chip, index_bits=index_bits, constants=example.constants
    )
    problem = example.problem(np.random.default_rng(len(dims)), dims)
    module[example.kernel](*problem.arguments, grid=example.grid(dims), device="emulator")
    problem.check()


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.infers_grid], ids=lambda e: e.file)
def test_the_grid_is_inferred(example: Example) -> None:
    problem = example.problem(np.random.default_rng(0), example.sizes[-1])
    module = phobos.compile(example.source, chip="sm_80", constants=example.constants)
    module[example.kernel](*problem.arguments, device="emulator")
    problem.check()


@pytest.mark.parametrize(("file", "count"), [("saxpy_fp32", 16), ("gemm_fp32", 23)])
def test_the_number_of_parameters_is_that_of_the_abi(file: str, count: int) -> None:
    example = next(example for example in EXAMPLES if example.file == file)
    ptx = phobos.compile(example.source, chip="sm_75", index_bits=32).ptx
    assert ptx.count(".param") - ptx.count("ld.param") == count


def test_an_extent_that_breaks_the_promise_traps() -> None:
    example = next(example for example in EXAMPLES if example.file == "gemm_fp32")
    problem = example.problem(np.random.default_rng(0), (36, 32, 4))
    module = phobos.compile(example.source, chip="sm_80")
    with pytest.raises(phobos.PhobosError, match="trap"):
        module["gemm"](*problem.arguments, grid=(2, 1, 1), device="emulator")
