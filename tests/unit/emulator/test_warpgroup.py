"""`wgmma` on the emulator against NumPy: types, orders in shared memory, swizzles, scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phobos.emulator import emulate
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.support.warpgroup_kernels import ProductKernel

KERNELS = {
    "f16": ProductKernel(64, steps=2),
    "bf16": ProductKernel(24, ("f32", "bf16", "bf16"), steps=2),
    "f16_into_f16": ProductKernel(32, ("f16", "f16", "f16")),
    "narrow": ProductKernel(8, steps=3),
    "wide": ProductKernel(256),
    "panels": ProductKernel(128, steps=6),
    "swizzle_64": ProductKernel(24, steps=3, width=64),
    "swizzle_32": ProductKernel(24, steps=3, width=32),
    "plain": ProductKernel(24, steps=3, width=0),
    "mn": ProductKernel(72, steps=2, a="mn", b="mn"),
    "mn_64": ProductKernel(72, steps=2, width=64, a="mn", b="mn"),
    "mn_32": ProductKernel(24, steps=2, width=32, a="mn", b="mn"),
    "mn_plain": ProductKernel(24, steps=2, width=0, a="mn", b="mn"),
    "mn_narrow": ProductKernel(8, ("f32", "bf16", "bf16"), b="mn"),
    "a_in_registers": ProductKernel(40, steps=2, a="r"),
    "a_in_registers_b_mn": ProductKernel(128, ("f32", "bf16", "bf16"), steps=2, a="r", b="mn"),
    "tf32": ProductKernel(24, ("f32", "tf32", "tf32"), steps=2),
    "tf32_in_registers": ProductKernel(16, ("f32", "tf32", "tf32"), steps=2, a="r"),
    "e4m3": ProductKernel(24, ("f32", "e4m3", "e4m3"), steps=2, width=64),
    "e5m2_by_e4m3": ProductKernel(16, ("f16", "e5m2", "e4m3"), steps=2),
    "e4m3_in_registers": ProductKernel(16, ("f32", "e4m3", "e5m2"), steps=2, a="r"),
    "s8": ProductKernel(24, ("s32", "s8", "s8"), steps=2),
    "u8": ProductKernel(240, ("s32", "u8", "u8")),
    "s8_by_u8": ProductKernel(16, ("s32", "s8", "u8"), width=32),
    "s8_saturating": ProductKernel(16, ("s32", "s8", "s8"), suffix=".satfinite"),
    "overwriting": ProductKernel(16, scale_d="0"),
    "by_predicate": ProductKernel(16, scale_d="%p0"),
    "by_negated_predicate": ProductKernel(16, scale_d="!%p0"),
    "negated_a": ProductKernel(16, signs=(-1, 1)),
    "negated_b": ProductKernel(16, signs=(1, -1)),
}


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
