"""Comparisons with NaN: ptxas must not drop what is true for every number but not for NaN."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.explain.sass import DISASSEMBLER, disassemble
from phobos.targets.ptx.assembler import assemble
from phobos.targets.ptx.cuda_tools import find_cuda_tool
from tests.support.chips import PLAIN_CHIPS
from tests.support.ptxas import needs_ptxas

CONDITIONS = {
    "magnitude": "abs(x) >= 0",
    "negated": "1 > -abs(x)",
    "abs_and_one": "abs(x) + 1 > 0",
    "a_difference": "2 - abs(x) < 3",
    "square": "x * x >= 0",
    "squares": "x * x + y * y > -1",
    "power": "exp2(x) > -1",
    "a_condition": "where(y > 0, abs(x), x * x) >= 0",
    "not_less": "!(abs(x) < 0) && abs(x) > -1",
    "of_f64": "f64(abs(x)) + 1 > 0",
    "of_f16": "abs(f16(x)) + 1 > 0",
}
"""All are true for every number x and y, and false for x = NaN."""

LOOP = """
@launch(32)
kernel in_a_loop(v: tensor<f32>[N], w: tensor<f32>[N], out: tensor<i32>[N]) {
  var total: f32 = 0
  for k in range(4) {
    total += abs(v[(ctx.thread + k) & 31])
  }
  out[ctx.thread] = i32(where(total >= 0, 1, 2))
}
"""

SOURCE = LOOP + "".join(
    f"""
@launch(32)
kernel {name}(v: tensor<f32>[N], w: tensor<f32>[N], out: tensor<i32>[N]) {{
  let x = v[ctx.thread]
  let y = w[ctx.thread]
  out[ctx.thread] = i32(where({condition}, 1, 2))
}}
"""
    for name, condition in CONDITIONS.items()
)
KERNELS = ("in_a_loop", *CONDITIONS)


@needs_ptxas
@pytest.mark.skipif(find_cuda_tool(DISASSEMBLER) is None, reason="needs nvdisasm")
@pytest.mark.parametrize("chip", PLAIN_CHIPS)
def test_ptxas_looks_at_the_operand(chip: str) -> None:
    module = phobos.compile(SOURCE, chip=chip, cache=False)
    listed = disassemble(assemble(module.ptx, chip).cubin)
    assert isinstance(listed, dict)
    # What is stored depends on nothing else: dropping the comparison would drop the loads, too.
    loads = {name: "LDG" in dict(mixes[0].kinds) for name, mixes in listed.items()}
    assert loads == dict.fromkeys(KERNELS, True)


@pytest.mark.parametrize("chip", ["sm_75", "sm_120"])
def test_what_is_compared_with_nan_is_false(chip: str) -> None:
    module = phobos.compile(SOURCE, chip=chip, cache=False)
    x = np.array([np.nan, -np.inf, -1.0, -0.0, 0.0, 1e-45, 2.0, np.inf] * 4, np.float32)
    y = np.repeat(np.array([-1.0, 0.5, 0.0, 3.0], np.float32), 8)
    expected = {name: np.where(np.isnan(x), 2, 1) for name in KERNELS}
    around = np.stack([np.roll(x, -k) for k in range(4)])
    expected["in_a_loop"] = np.where(np.isnan(around).any(axis=0), 2, 1)
    for name in KERNELS:
        out = np.zeros(32, np.int32)
        module[name](x, y, out, grid=1, device="emulator")
        np.testing.assert_array_equal(out, expected[name], err_msg=name)
