"""Cases: what they say about sizes, bytes and operations, and that each computes what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phobos.runtime.emulator_device import EmulatorDevice
from tests.unit.tools.numpy_machine import NumpyMachine
from tools.bench.case import Case, PhobosKernel, Problem, ceildiv, choices, read, written
from tools.bench.entrants import Contender, Selection, entrants
from tools.bench.errors import BenchError
from tools.bench.measure import check_candidates, make_set
from tools.bench.registry import all_cases, find_cases

EVERY = [
    pytest.param(case, dtype, id=f"{case.name}-{dtype}")
    for case in all_cases().values()
    for dtype in case.dtypes
]
AWKWARD_EXTENTS = (13, 9, 97)
"""None is a multiple of 4 or of any block; the last dim gets the larger one."""


@pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning")
@pytest.mark.parametrize(("case", "dtype"), EVERY)
def test_phobos_computes_every_case(
    case: Case, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a GPU: with source lines each kernel would be compiled once more.
    monkeypatch.setattr(EmulatorDevice, "wants_line_info", False)
    size = case.trial or AWKWARD_EXTENTS[-len(case.dims) :]
    kernel = case.phobos
    ends = replace(
        kernel,
        search=(kernel.search[0], kernel.search[-1]),
        ctas_per_multiprocessor=kernel.ctas_per_multiprocessor[:1],
    )
    problem = Problem(replace(case, phobos=ends), dtype, size)
    machine = NumpyMachine()
    candidates = entrants(problem, machine, Selection((Contender.PHOBOS,)))
    ready, faults = check_candidates(problem, machine, candidates, make_set(problem, machine, 0))
    assert [fault.note for fault in faults] == []
    assert len(ready) == len(candidates) >= 1


@pytest.mark.parametrize(("case", "dtype"), EVERY)
def test_triton_kernels_get_what_they_take(case: Case, dtype: str) -> None:
    assert case.triton is not None
    known = {array.name for array in case.arrays} | {*case.dims, *case.scalars}
    assert set(case.triton.arguments) <= known
    extents = Problem(case, dtype, case.sizes[0]).extents
    for chosen in case.triton.search:
        assert all(extent >= 1 for extent in case.triton.grid(extents, chosen))


def test_bytes_count_each_array_once() -> None:
    case = all_cases()["matvec"]
    problem = Problem(case, "f16", (14336, 4096))
    assert problem.extents == {"N": 14336, "K": 4096}
    assert problem.bytes == 2 * (4096 + 14336 * 4096 + 14336)
    assert problem.flops == 2 * 14336 * 4096
    assert problem.size_text == "14336x4096"


def test_an_array_may_have_a_type_of_its_own() -> None:
    problem = Problem(all_cases()["row_sum"], "bf16", (8, 16))
    types = {array.name: problem.dtype_of(array) for array in problem.case.arrays}
    assert types == {"X": "bf16", "O": "f32"}
    assert problem.bytes == 8 * 16 * 2 + 8 * 4


def test_choices_are_all_combinations() -> None:
    assert choices(BLOCK=(1, 2), num_warps=4) == (
        {"BLOCK": 1, "num_warps": 4},
        {"BLOCK": 2, "num_warps": 4},
    )
    assert choices() == ({},)


def test_ceildiv_rounds_up() -> None:
    assert [ceildiv(a, 4) for a in (1, 4, 5)] == [1, 1, 2]


def test_a_case_whose_array_has_an_unknown_dim_is_refused() -> None:
    with pytest.raises(AssertionError, match="dims \\['M'\\] are not among"):
        Case(
            name="wrong",
            summary="",
            dims=("N",),
            sizes=((1,),),
            dtypes=("f32",),
            arrays=(read("x", "M"), written("out", "N")),
            reference=lambda t: t.x,
            phobos=PhobosKernel(lambda _: "", "wrong"),
            torch={},
        )


def test_cases_are_found_by_name() -> None:
    assert [case.name for case in find_cases(["saxpy", "copy", "saxpy"])] == ["saxpy", "copy"]
    assert {case.name for case in find_cases(["all"])} == set(all_cases())
    both = [case.name for case in find_cases(["memory", "arithmetic"])]
    assert sorted(both) == sorted(all_cases())
    assert both.index("transpose") < both.index("gemm")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sapxy", "did you mean `saxpy`?"), ("zzzzz", f"the cases are {min(all_cases())}, ")],
)
def test_an_unknown_case_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(BenchError) as caught:
        find_cases([name])
    assert f"there is no case `{name}`" in str(caught.value)
    assert hint in str(caught.value)
