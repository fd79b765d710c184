"""What kernels bound by memory move, counted by the emulator: no sector and no pass too many."""

from __future__ import annotations

import pytest

import phobos
from phobos.emulator import Profile
from phobos.runtime.emulator_device import EmulatorDevice
from tests.support.cases import run_case
from tests.support.example_cases import ALL, Example

DIMS: dict[str, dict[str, int]] = {
    "saxpy_fp32.ph": {"N": 8192},
    "scale.ph": {"N": 8192},
    "copy2d.ph": {"M": 64, "N": 128},
    "axpby_bf16.ph": {"M": 32, "N": 256},
    "batch_add.ph": {"BATCH": 2, "M": 16, "N": 256},
    "softmax.ph": {"M": 2, "N": 1024},
    "layernorm.ph": {"M": 2, "N": 1024},
    "rmsnorm_bf16.ph": {"M": 2, "N": 1024},
    "row_sum.ph": {"R": 2, "K": 1024},
    "matvec.ph": {"N": 16, "K": 256},
    "transpose.ph": {"M": 128, "N": 128},
    "cumsum.ph": {"R": 2, "K": 2048},
    "linear_attention.ph": {"H": 1, "T": 32},
}
"""Extents of whole tiles, as in a kernel's main loop."""
CONSTANTS = {
    "saxpy_fp32.ph": {"BLOCK": 1024},
    "copy2d.ph": {"TILE_M": 32, "TILE_N": 64},
}
by_example = pytest.mark.parametrize(
    "example", [one for one in ALL if one.file in DIMS], ids=lambda one: one.file
)


def profile_of(example: Example) -> Profile:
    """The counts of one launch on whole tiles."""
    module = phobos.compile(
        example.path.read_text(),
        chip="sm_90",
        constants=CONSTANTS.get(example.file),
        name=example.file,
        cache=False,
    )
    profile = Profile()
    case = example.case(DIMS[example.file])
    run_case(module, example.kernel, case, EmulatorDevice(profile=profile))
    return profile


@by_example
def test_no_sector_is_moved_in_vain(example: Example) -> None:
    assert profile_of(example).total.global_efficiency == 1.0


@by_example
def test_no_access_of_shared_memory_waits_for_a_bank(example: Example) -> None:
    total = profile_of(example).total
    if total.shared_requests:
        assert total.bank_conflict == 1.0
