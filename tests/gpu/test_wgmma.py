"""Products of warpgroups on a GPU: what NumPy says, and bit for bit what the emulator says."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.emulator import emulate
from phobos.runtime.cuda_device import cuda_fault
from phobos.runtime.detect import gpu_capability
from tests.support.gpu_launch import launch_on_gpu
from tests.support.warpgroup_kernels import PRODUCT_KERNELS

pytestmark = pytest.mark.skipif(
    cuda_fault() is not None or gpu_capability() != 90, reason="needs a GPU that runs sm_90a"
)


@pytest.mark.parametrize("name", PRODUCT_KERNELS)
def test_products(name: str) -> None:
    kernel = PRODUCT_KERNELS[name]
    generator = np.random.default_rng(1)
    a, b = kernel.operands(generator)
    c = kernel.addend(generator)
    np.testing.assert_array_equal(kernel.run(launch_on_gpu, a, b, c), kernel.expected(a, b, c))


@pytest.mark.parametrize("name", PRODUCT_KERNELS)
def test_the_emulator_rounds_alike(name: str) -> None:
    kernel = PRODUCT_KERNELS[name]
    operands = kernel.wide_operands(np.random.default_rng(2))
    np.testing.assert_array_equal(
        kernel.run(launch_on_gpu, *operands), kernel.run(emulate, *operands)
    )
