"""What the kernels of the benchmarks move on whole tiles, counted by the emulator."""

from __future__ import annotations

import pytest

import phobos
from phobos.emulator import Profile
from phobos.runtime.emulator_device import EmulatorDevice
from tests.unit.tools.numpy_machine import NumpyMachine
from tools.bench.case import Problem
from tools.bench.measure import make_set
from tools.bench.registry import all_cases

SIZES: dict[str, tuple[int, ...]] = {
    "copy": (8192,),
    "saxpy": (8192,),
    "chain": (8192,),
    "sum": (32768,),
    "softmax_short": (16, 1024),
    "rmsnorm_short": (16, 1024),
    "layernorm_short": (16, 1024),
    "softmax_long": (16, 8192),
    "rmsnorm_long": (16, 4096),
    "layernorm_long": (16, 4096),
    "row_sum": (16, 2048),
    "transpose": (128, 128),
    "cumsum": (16, 8192),
    "add_broadcast": (64, 512),
    "embedding": (16, 512, 32),
    "cross_entropy": (16, 4096),
    "matvec": (64, 2048),
    "col_sum": (512, 512),
}
"""Extents of whole tiles for the first constants that a case tries."""
CASES = [
    pytest.param(name, dtype, which, id="-".join((name, dtype, kernel.label)).rstrip("-"))
    for name in SIZES
    for dtype in ("f32", "bf16")
    for which, kernel in enumerate((all_cases()[name].phobos, *all_cases()[name].phobos.others))
]


@pytest.mark.parametrize(("name", "dtype", "which"), CASES)
def test_no_sector_and_no_access_of_shared_memory_is_in_vain(
    name: str, dtype: str, which: int
) -> None:
    case = all_cases()[name]
    kernel = (case.phobos, *case.phobos.others)[which]
    problem = Problem(case, dtype, SIZES[name])
    machine = NumpyMachine()
    values = make_set(problem, machine, 0)
    for cleared in case.zeroed:
        machine.clear(getattr(values, cleared))
    profile = Profile()
    module = phobos.compile(kernel.source(dtype), "sm_90", kernel.search[0])
    module[kernel.kernel](**vars(values), device=EmulatorDevice(profile=profile))
    total = profile.total
    # What comes once a row or a CTA, as the result of a sum, is a small part of the whole.
    assert (total.global_efficiency or 0.0) > 0.99
    if total.shared_requests:
        assert total.bank_conflict == 1.0
