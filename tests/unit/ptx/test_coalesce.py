"""Sharing registers: the text changes, what it computes does not."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.targets.ptx import printer
from phobos.targets.ptx.coalesce import coalesce
from phobos.transforms.ptx_canonicalize import canonicalize_entry
from tests.unit.ptx.programs import RandomKernel, run_kernel


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_shared_registers_change_no_result(seed: int, canonical: bool, monkeypatch):
    kernel = RandomKernel(seed)
    if canonical:
        canonicalize_entry(kernel.entry)
    shared = run_kernel(kernel.module, seed)
    monkeypatch.setattr(printer, "coalesce", lambda blocks: {})
    np.testing.assert_array_equal(shared, run_kernel(kernel.module, seed))


def test_sharing_removes_most_moves():
    moves = {"shared": 0, "own": 0}
    for seed in range(60, 80):
        kernel = RandomKernel(seed)
        canonicalize_entry(kernel.entry)
        moves["shared"] += printer.print_module(kernel.module).count("\tmov.b")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(printer, "coalesce", lambda blocks: {})
            moves["own"] += printer.print_module(kernel.module).count("\tmov.b")
    assert moves["shared"] < 0.7 * moves["own"]


def test_a_kernel_without_block_arguments_costs_nothing():
    assert coalesce([]) == {}
