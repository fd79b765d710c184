"""`wgmma` on the emulator against NumPy: types, orders in shared memory, swizzles, scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phobos.emulator import emulate
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.support.warpgroup_kernels import PRODUCT_KERNELS as KERNELS


def on_emulator(
    text: str, name: str, grid: int, block: int, arguments: list[Any], shared: int
) -> None:
    emulate(text, name, grid, block, arguments, shared, name="k.ptx")


@pytest.mark.parametrize("name", KERNELS)
def test_products(name: str):
    kernel = KERNELS[name]
    generator = np.random.default_rng(1)
    a, b = kernel.operands(generator)
    c = kernel.addend(generator)
    np.testing.assert_array_equal(kernel.run(on_emulator, a, b, c), kernel.expected(a, b, c))


@needs_ptxas
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_assemble(name: str):
    assert assemble(KERNELS[name].text, "sm_90a").warnings == ()
