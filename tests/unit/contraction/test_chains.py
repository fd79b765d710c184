"""Products whose sums go on: into elementwise code, folds, other products, branches and loops."""

from __future__ import annotations

import numpy as np
import pytest

import phobos

CHAIN = """
@launch(64)
@tensorcore{form}
kernel chain(A: tensor<f16>[M, K], B: tensor<f16>[K, 32], D: tensor<f16>[32, 16],
             C: tensor<f32>[M, 16], steps: i32, flag: i32) {{
  var acc: tile<f32>[32, 16] = 1.0
  for s in range(0, steps) {{
    var part: tile<f32>[32, 32] = 2.0
    for k in range(0, K, 16) {{
      part += dot(A[0 :+ 32, k :+ 16], B[k :+ 16, 0 :+ 32])
    }}
    part = part * 0.5 + f32(s)
    if flag > 0 {{
      part += dot(A[0 :+ 32, 0 :+ 16], B[0 :+ 16, 0 :+ 32])
    }}
    acc += dot(f16(part - min<over 1>(part)), D[0 :+ 32, 0 :+ 16])
  }}
  C[0 :+ 32, 0 :+ 16] = acc + rowmax(acc)
}}
"""


def _expected(a: np.ndarray, b: np.ndarray, d: np.ndarray, *, steps: int, flag: int) -> np.ndarray:
    acc = np.ones((32, 16))
    for s in range(steps):
        part = (2 + a @ b) * 0.5 + s
        if flag:
            part = part + a[:, :16] @ b[:16]
        acc = acc + (part - part.min(axis=1, keepdims=True)) @ d
    return acc + acc.max(axis=1, keepdims=True)


@pytest.mark.parametrize("form", ["", "(wmma)"])
@pytest.mark.parametrize("chip", ["sm_75", "sm_80"])
@pytest.mark.parametrize(("steps", "flag"), [(0, 1), (1, 0), (3, 1)])
def test_chain(form: str, chip: str, steps: int, flag: int) -> None:
    """Exact, as all numbers are small halves of integers."""
    rng = np.random.default_rng(steps)
    a = rng.integers(-2, 3, (32, 48)).astype(np.float16)
    b = rng.integers(-2, 3, (48, 32)).astype(np.float16)
    d = rng.integers(-1, 2, (32, 16)).astype(np.float16)
    module = phobos.compile(CHAIN.format(form=form), chip=chip)
    c = np.full((32, 16), np.nan, np.float32)
    module["chain"](a, b, d, c, steps, flag, grid=1, device="emulator")
    wanted = _expected(*(x.astype(np.float64) for x in (a, b, d)), steps=steps, flag=flag)
    np.testing.assert_array_equal(c, wanted)


BATCH = """
@launch(64)
{attribute}kernel batch(A: tensor<f16>[B, M, K], W: tensor<f16>[B, N, K],
                        C: tensor<f32>[B, M, N]) {{
  let z = ctx.block.z
  var acc: tile<f32>[1, 32, 16] = 0.0
  for k in range(0, K, 16) {{
    acc += dot_t(A[z, 0 :+ 32, k :+ 16], W[z, 0 :+ 16, k :+ 16])
  }}
  C[z, 0 :+ 32, 0 :+ 16] = acc
}}
"""


@pytest.mark.parametrize("attribute", ["", "@tensorcore(wmma)\n"])
@pytest.mark.parametrize("chip", ["sm_75", "sm_80"])
def test_batch_of_rank_3(attribute: str, chip: str) -> None:
    """Tiles with a leading axis of extent 1, one matrix a block."""
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (3, 20, 40)).astype(np.float16)
    w = rng.integers(-4, 5, (3, 12, 40)).astype(np.float16)
    c = np.full((3, 20, 12), np.nan, np.float32)
    module = phobos.compile(BATCH.format(attribute=attribute), chip=chip)
    module["batch"](a, w, c, grid=(1, 1, 3), device="emulator")
    wanted = a.astype(np.float64) @ w.astype(np.float64).transpose(0, 2, 1)
    np.testing.assert_array_equal(c, wanted)
