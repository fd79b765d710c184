"""Every seeded fault is found, and the repaired kernels report nothing under twenty schedules."""

from __future__ import annotations

import re

import numpy as np
import pytest

from phobos.emulator import EmulatorError, emulate
from tests.unit.emulator.faulty_kernels import FAULTY_KERNELS, FaultyKernel

BY_NAME = pytest.mark.parametrize("kernel", FAULTY_KERNELS, ids=lambda kernel: kernel.name)


def run(kernel: FaultyKernel, *, faulty: bool, seed: int) -> list[np.ndarray]:
    """Run a kernel with every check and return its arrays."""
    arguments = kernel.arguments()
    text = kernel.text(faulty=faulty)
    emulate(
        text,
        "k",
        kernel.ctas,
        kernel.threads,
        arguments,
        checks="all",
        seed=seed,
        uninitialised=kernel.uninitialised,
        name="k.ptx",
    )
    return arguments


@BY_NAME
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fault_is_found(kernel: FaultyKernel, seed: int):
    with pytest.raises(EmulatorError) as caught:
        run(kernel, faulty=True, seed=seed)
    first = str(caught.value).splitlines()[0]
    # A reader that overtakes the writer finds nothing written yet: the same fault seen earlier.
    words = (
        f"{kernel.finding}|uninitialised" if seed and kernel.finding == "race" else kernel.finding
    )
    assert re.match(
        rf"k\.ptx:\d+:\d+: error: ({words}): kernel `k`, CTA \(\d, 0, 0\), thread ", first
    ), first


@BY_NAME
def test_repaired_kernel_is_clean(kernel: FaultyKernel):
    outcomes = [run(kernel, faulty=False, seed=seed) for seed in range(20)]
    for outcome in outcomes[1:]:
        for array, first in zip(outcome, outcomes[0], strict=True):
            if kernel.name != "plain_load_of_a_flag":
                np.testing.assert_array_equal(array, first)
