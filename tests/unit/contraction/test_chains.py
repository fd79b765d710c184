"""Products whose sums go on: into elementwise code, folds, other products, branches and loops."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.runtime.emulator_device import EmulatorDevice

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


WRITTEN = """
@launch(64)
@pipeline({stages})
kernel steps(A: tensor<f16>[M, K], B: tensor<f16>[K, 16], C: tensor<f32>[16, 16]) {{
  var acc: tile<f32>[16, 16] = 0.0
  for k in range(0, K, 16) {{
    acc += dot(A[0 :+ 16, k :+ 16], B[k :+ 16, 0 :+ 16])
    A[0 :+ 16, k + 16 :+ 16] = f16(acc) * 0.125
  }}
  C[0 :+ 16, 0 :+ 16] = acc
}}
"""


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("chip", ["sm_75", "sm_80"])
def test_what_a_loop_writes_is_not_read_ahead(chip: str, stages: int) -> None:
    """An operand that the iteration before has written."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (16, 64)).astype(np.float16)
    b = rng.integers(-1, 2, (64, 16)).astype(np.float16)
    c = np.full((16, 16), np.nan, np.float32)
    left, wanted = a.copy(), np.zeros((16, 16), np.float32)
    for k in range(0, 64, 16):
        wanted += left[:, k : k + 16].astype(np.float32) @ b[k : k + 16].astype(np.float32)
        if k + 16 < 64:
            left[:, k + 16 : k + 32] = wanted.astype(np.float16) * np.float16(0.125)
    module = phobos.compile(WRITTEN.format(stages=stages), chip=chip)
    module["steps"](a, b, c, grid=1, device="emulator")
    np.testing.assert_array_equal(c, wanted)


def test_what_is_not_pipelined_says_why() -> None:
    """A warning at the loop, and what stands against it."""
    late = WRITTEN.format(stages=2).replace("B[k :+ 16", "B[0 :+ 16")
    with pytest.warns(
        phobos.PhobosWarning, match="not applied to this loop: no operand comes"
    ) as w:
        phobos.compile(late, chip="sm_80", cache=False)
    assert ":6:3: warning" in str(w[0].message)


COMPUTED = """
@launch(64)
@pipeline
kernel scaled(A: tensor<f16>[M, K], W: tensor<i8>[N, K], S: tensor<f16>[N, K],
              C: tensor<f32>[M, N]) {
  var acc: tile<f32>[32, 32] = 0.0
  for k in range(0, K, 32) {
    let w = f16(W[0 :+ 32, k :+ 32]) * S[0 :+ 32, k :+ 32]
    acc += dot_t(A[0 :+ 32, k :+ 32], w + 1.0)
  }
  C[0 :+ 32, 0 :+ 32] = acc
}
"""


@pytest.mark.parametrize("k", [20, 96, 100])
@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90"])
def test_computed_operand(chip: str, k: int) -> None:
    """One operand copied, the other dequantised on its way."""
    rng = np.random.default_rng(k)
    a = rng.integers(-2, 3, (30, k)).astype(np.float16)
    w = rng.integers(-4, 5, (29, k)).astype(np.int8)
    s = rng.integers(1, 3, (29, k)).astype(np.float16)
    c = np.full((30, 29), np.nan, np.float32)
    module = phobos.compile(COMPUTED, chip=chip)
    module["scaled"](a, w, s, c, grid=1, device="emulator")
    wide = w.astype(np.float32) * s.astype(np.float32) + 1
    np.testing.assert_array_equal(c, a.astype(np.float32) @ wide.T)


BROADCAST = """
@launch(64)
kernel spread(A: tensor<f16>[K, 32], b: tensor<f16>[K, 1], r: tensor<f16>[1, N],
              C: tensor<f32>[32, N], D: tensor<f32>[32, N]) {
  let ones = full(0.0, 16, 48)
  let columns = f16(ones) + b[0 :+ 16, 0 :+ 1]
  C[:, 0 :+ 48] = dot(transpose(A[0 :+ 16, :]), columns)
  let rows = f16(ones) + r[0 :+ 1, 0 :+ 48]
  D[:, 0 :+ 48] = t_dot(A[0 :+ 16, :], rows)
}
"""


@pytest.mark.parametrize("chip", ["sm_75", "sm_80"])
def test_broadcast_and_transposed_operands(chip: str) -> None:
    """A column and a row repeated over an operand, and a transposed slice."""
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (16, 32)).astype(np.float16)
    b = rng.integers(-4, 5, (16, 1)).astype(np.float16)
    r = rng.integers(-4, 5, (1, 40)).astype(np.float16)
    c, d = np.full((32, 40), np.nan, np.float32), np.full((32, 40), np.nan, np.float32)
    module = phobos.compile(BROADCAST, chip=chip)
    module["spread"](a, b, r, c, d, grid=1, device="emulator")
    wide = a.astype(np.float32).T
    np.testing.assert_array_equal(c, np.repeat(wide @ b.astype(np.float32), 40, axis=1))
    np.testing.assert_array_equal(d, wide.sum(axis=1, keepdims=True) * r.astype(np.float32))


HALVED = """
@launch(32)
kernel halved(A: tensor<f16>[16, K], C: tensor<f32>[16, 16], z: f32) {{
  var acc: tile<f32>[16, 16] = 0.0
  for k in range(0, K, 16) {{
    var y = full(z, 16, 16)
{steps}
    acc += dot(A[:, k :+ 16], f16(y))
  }}
  C[:, :] = acc
}}
"""


def test_a_long_computation_that_a_loop_does_not_change() -> None:
    """Each step reads the one before twice: following every way back would never end."""
    steps = "    y = (y + y) * 0.5\n" * 64
    module = phobos.compile(HALVED.format(steps=steps), chip="sm_80")
    a = np.random.default_rng(0).integers(-4, 5, (16, 32)).astype(np.float16)
    c = np.full((16, 16), np.nan, np.float32)
    module["halved"](a, c, 3.0, grid=1, device="emulator")
    rows = a.astype(np.float32).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(c, np.repeat(3 * rows, 16, axis=1))


FILLED = """
@launch(64)
@pipeline(2)
kernel filled(A: tensor<{t}>[M, K], B: tensor<{t}>[K, 16], C: tensor<f32>[32, 16]) {{
  var acc: tile<f32>[32, 16] = 0.0
  for k in range(0, K, 48) {{
    acc += dot(pad(A[0 :+ 32, k :+ 48], 1.0), pad(B[k :+ 48, :], 1.0))
  }}
  C[:, :] = acc
}}
"""


@pytest.mark.filterwarnings("ignore:.*pipeline:phobos.PhobosWarning")
@pytest.mark.parametrize("chip", ["sm_75", "sm_80"])
@pytest.mark.parametrize(("t", "element"), [("f16", np.float16), ("f32", np.float32)])
def test_filled_operands_count_to_the_end_of_the_tile(
    t: str, element: type[np.generic], chip: str
) -> None:
    """Tiles of 48 along K, so that layouts of 64 go beyond them; 100 = 2 * 48 + 4."""
    c = np.full((32, 16), np.nan, np.float32)
    module = phobos.compile(FILLED.format(t=t), chip=chip)
    a, b = np.full((30, 100), 2, element), np.full((100, 16), 3, element)
    module["filled"](a, b, c, grid=1, device="emulator")
    np.testing.assert_array_equal(c[:30], np.full((30, 16), 6 * 100 + 44))
    np.testing.assert_array_equal(c[30:], np.full((2, 16), 3 * 100 + 44))


FIXED = """
@launch(64)
{attribute}@pipeline
kernel fixed(A: tensor<f16>[32, 16], B: tensor<f16>[K, N], W: tensor<i8>[16, 16],
             C: tensor<f32>[32, 16], steps: i32) {{
  var acc: tile<f32>[32, 16] = 1.0
  for s in range(0, steps) {{
    for k in range(0, K, 16) {{
      let w = f16(W[:, :]) + 0.5
      acc += dot(A[:, :], B[k :+ 16, 0 :+ 16]) + dot(A[:, :], w)
    }}
  }}
  C[:, :] = acc
}}
"""


@pytest.mark.parametrize("attribute", ["", "@tensorcore(wmma)\n"])
@pytest.mark.parametrize(("steps", "k"), [(0, 32), (2, 0), (1, 16), (2, 40)])
def test_operands_that_a_loop_does_not_change(attribute: str, steps: int, k: int) -> None:
    """Loaded once, whether the loops run or not."""
    rng = np.random.default_rng(k)
    a = rng.integers(-2, 3, (32, 16)).astype(np.float16)
    b = rng.integers(-2, 3, (k, 16)).astype(np.float16)
    w = rng.integers(-4, 5, (16, 16)).astype(np.int8)
    c = np.full((32, 16), np.nan, np.float32)
    module = phobos.compile(FIXED.format(attribute=attribute), chip="sm_80")
    module["fixed"](a, b, w, c, steps, grid=1, device="emulator")
    wide, padded = a.astype(np.float32), np.zeros((-(-k // 16) * 16, 16), np.float32)
    padded[:k] = b
    wanted = np.ones((32, 16), np.float32)
    for first in list(range(0, k, 16)) * steps:
        wanted += wide @ padded[first : first + 16] + wide @ (w.astype(np.float32) + 0.5)
    np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize("source", [CHAIN.format(form=""), COMPUTED], ids=["chain", "computed"])
@pytest.mark.parametrize("chip", ["sm_75", "sm_80"])
def test_no_race_between_stages(chip: str, source: str) -> None:
    """Of a loop in a loop, whose stages the next round fills again, and of a computed operand."""
    a, d = np.ones((32, 48), np.float16), np.ones((32, 16), np.float16)
    b, w = np.ones((48, 32), np.float16), np.ones((32, 48), np.int8)
    c = np.zeros((32, 32), np.float32)
    module = phobos.compile(source, chip=chip)
    device = EmulatorDevice(checks=("bounds", "init", "race"), seed=1)
    if "chain" in module.kernels:
        module["chain"](a, b, d, c[:, :16].copy(), 2, 1, grid=1, device=device)
    else:
        module["scaled"](a, w, w.astype(np.float16), c, grid=1, device=device)
