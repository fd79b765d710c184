"""Left operands that a loop does not change, which it has in registers (`ph-hold-operands`)."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.runtime.emulator_device import EmulatorDevice

PROGRAM = """
@launch(64)
@pipeline{attributes}
kernel held(A: tensor<{type}>[M, K], B: tensor<{type}>[K, N], C: tensor<{total}>[M, 16]) {{
  let left = A[ctx.block.x * 32 :+ 32, 0 :+ 48]
  var sums: tile<{total}>[32, 16] = 0
  for n in range(0, N, 16) {{
    sums += dot(left, B[0 :+ 48, n :+ 16])
  }}
  C[ctx.block.x * 32 :+ 32, :] = sums
}}
"""
KINDS = {
    "f16": ("f16", "f32", "", np.float16, np.float32),
    "tf32": ("f32", "f32", "\n@tensorcore(tf32)", np.float32, np.float32),
    "i8": ("i8", "i32", "", np.int8, np.int32),
    "f64": ("f64", "f64", "", np.float64, np.float64),
}


@pytest.mark.parametrize(
    ("kind", "chip"),
    [("f16", "sm_75"), ("f16", "sm_90"), ("i8", "sm_75"), ("i8", "sm_80"), ("tf32", "sm_80"),
     ("f64", "sm_80"), ("f64", "sm_90")],
)  # fmt: skip
def test_held(kind: str, chip: str) -> None:
    """Exact, as all numbers are small integers; rows and columns past the end are 0."""
    type_, total, attributes, in_memory, summed = KINDS[kind]
    rng = np.random.default_rng(7)
    a = rng.integers(-3, 4, (50, 40)).astype(in_memory)
    b = rng.integers(-3, 4, (40, 44)).astype(in_memory)
    text = PROGRAM.format(type=type_, total=total, attributes=attributes)
    c = np.full((50, 16), -1, summed)
    module = phobos.compile(text, chip=chip)
    module["held"](a, b, c, grid=2, device=EmulatorDevice(checks="all"))
    padded = np.pad(b.astype(np.int64), ((0, 0), (0, 4)))
    wanted = (a.astype(np.int64) @ padded).reshape(50, 3, 16).sum(axis=1)
    np.testing.assert_array_equal(c, wanted)
