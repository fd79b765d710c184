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


def as_tf32(values: np.ndarray) -> np.ndarray:
    """f32 numbers without the bits that tf32 lacks."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize("name", ["tf32", "tf32_in_registers"])
def test_the_low_bits_of_tf32_are_ignored(name: str):
    kernel = KERNELS[name]
    a, b, c = kernel.wide_operands(np.random.default_rng(4))
    assert (a != as_tf32(a)).any()
    found = kernel.run(on_emulator, a, b, c)
    np.testing.assert_array_equal(found, kernel.run(on_emulator, as_tf32(a), as_tf32(b), c))


@pytest.mark.parametrize("name", ["f16", "bf16", "f16_into_f16", "tf32", "e4m3", "s8_saturating"])
def test_sums_are_rounded_a_little(name: str):
    kernel = KERNELS[name]
    a, b, c = kernel.wide_operands(np.random.default_rng(4))
    if kernel.types[1] == "tf32":
        a, b = as_tf32(a), as_tf32(b)
    left, right = a.astype(np.float64), b.astype(np.float64)
    exact = left @ right.T + c
    if kernel.types[0] == "s32":
        wanted = np.clip(exact, -(2**31), 2**31 - 1).astype(np.int32)
        np.testing.assert_array_equal(kernel.run(on_emulator, a, b, c), wanted)
        return
    size = np.abs(left) @ np.abs(right).T + np.abs(c)
    error = np.abs(kernel.run(on_emulator, a, b, c) - exact)
    share = {"f16": 2.0**-9, "f32": 2.0**-22}[kernel.types[0]]
    # The adder for 8-bit floats keeps 13 bits of each term.
    share = 2.0**-9 if kernel.types[1] == "e4m3" else share
    assert (error <= size * share).all()


def test_sums_of_negative_zeros_are_positive():
    """As on an H200; `mma.sync` gives a negative zero."""
    kernel = KERNELS["f16"]
    a, b = np.zeros((64, kernel.depth), np.float16), -np.zeros((64, kernel.depth), np.float16)
    found = kernel.run(on_emulator, a, b, -np.zeros((64, 64), np.float32))
    assert (found == 0).all()
    assert not np.signbit(found).any()


def test_infinities_keep_their_sign():
    kernel = KERNELS["tf32"]
    a, b = np.ones((64, kernel.depth), np.float32), np.ones((24, kernel.depth), np.float32)
    a[:, 3], b[:, 3] = -np.inf, 2.0 ** (5 * np.arange(24))
    found = kernel.run(on_emulator, a, b, np.zeros((64, 24), np.float32))
    np.testing.assert_array_equal(found, np.full((64, 24), -np.inf, np.float32))


@needs_ptxas
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_assemble(name: str):
    assert assemble(KERNELS[name].text, "sm_90a").warnings == ()
