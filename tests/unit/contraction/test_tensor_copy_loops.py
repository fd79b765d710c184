"""Loops of all shapes that tensor copies feed, on the emulator with all checks: small integers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import phobos
from phobos import PhobosError
from phobos.emulator.errors import EmulatorError
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.runtime.module import Module

CHIP = "sm_90a"
COPY = re.compile(r"cp\.async\.bulk\.tensor\.(\d)d")
pytestmark = pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning")


def compiled(text: str, **options: Any) -> phobos.Module:
    given = {"extent_multiple": 8, **options}
    return phobos.compile(text, chip=CHIP, tensor_maps=True, name="program.ph", **given)


def launch(module: Module, *values: Any, seed: int = 0, **given: Any) -> None:
    (kernel,) = module.contract.kernels
    device = EmulatorDevice(checks="all", seed=seed)
    module[kernel.name](*values, device=device, grid=1, **given)


def copies(module: Module) -> int:
    """Instructions that copy boxes; no thread copies anything for itself."""
    assert "cp.async.c" not in module.ptx
    return len(COPY.findall(module.ptx))


def integers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float16)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


HEAD = """\
@launch(128)
@pipeline(2)
kernel k(
  A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], D: tensor<f16>[M, L],
  E: tensor<f16>[L, N], n: i32
) {
"""


def run(body: str, *, k: int = 104, extent: int = 72, n: int = 1, seed: int = 0) -> Any:
    """The module and C of a kernel of HEAD, beside A, B, D and E as it got them."""
    module = compiled(HEAD + body + "}\n")
    a, b = integers(40, k), integers(k, 64, seed=1)
    d, e = integers(40, extent, seed=2), integers(extent, 64, seed=3)
    c = np.full((40, 64), np.nan, np.float32)
    launch(module, a, b, c, d, e, n, seed=seed)
    return module, c, a, b, d, e


@pytest.mark.parametrize("seed", range(4))
def test_two_loops_take_turns_in_the_same_memory(seed: int) -> None:
    """The second loop's copies land where the first one's products read, rings included."""
    module, c, a, b, d, e = run(
        """
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  for k in range(0, L, 32) {
    acc += dot(D[0 :+ 64, k :+ 32], E[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
""",
        seed=seed,
    )
    assert copies(module) == 8
    # Two stages of both operands and four barriers, not four stages.
    assert module.contract.kernels[0].static_shared_bytes < 3 * 8192
    np.testing.assert_array_equal(c, product(a, b) + product(d, e))


def test_two_loops_on_the_same_tensors() -> None:
    """Copies only read: a later loop takes them too."""
    module, c, a, b, _, _ = run(
        """
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, 64, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  acc = acc * 2.0
  for k in range(64, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
"""
    )
    assert copies(module) == 8
    assert len(module.contract.kernels[0].tensor_maps) == 2
    np.testing.assert_array_equal(c, 2 * product(a[:, :64], b[:64]) + product(a[:, 64:], b[64:]))


def test_a_barrier_of_the_author_in_the_loop() -> None:
    module, c, a, b, _, _ = run(
        """
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
    barrier()
  }
  C[0 :+ 64, 0 :+ 64] = acc
"""
    )
    assert copies(module) == 4
    np.testing.assert_array_equal(c, product(a, b))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_loop_under_a_condition_in_a_loop(n: int) -> None:
    """Some rounds skip it: the ring is opened as often as it is closed."""
    module, c, a, b, d, e = run(
        """
  var acc: tile<f32>[64, 64] = 0.0
  for round in range(n) {
    if round % 2 == 0 {
      for k in range(0, K, 32) {
        acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
      }
    } else {
      for k in range(0, L, 32) {
        acc += dot(D[0 :+ 64, k :+ 32], E[k :+ 32, 0 :+ 64])
      }
    }
  }
  C[0 :+ 64, 0 :+ 64] = acc
""",
        n=n,
    )
    assert copies(module) == 8
    np.testing.assert_array_equal(c, (n + 1) // 2 * product(a, b) + n // 2 * product(d, e))


def test_a_loop_in_a_loop_with_tensors_of_its_own() -> None:
    """Both are fed at one time, from rings side by side."""
    module, c, a, b, d, e = run(
        """
  var acc: tile<f32>[64, 64] = 0.0
  for l in range(0, L, 32) {
    acc += dot(D[0 :+ 64, l :+ 32], E[l :+ 32, 0 :+ 64])
    for k in range(0, K, 32) {
      acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
    }
  }
  C[0 :+ 64, 0 :+ 64] = acc
"""
    )
    assert copies(module) == 8
    np.testing.assert_array_equal(c, 3 * product(a, b) + product(d, e))


def test_products_of_one_slice_in_one_loop() -> None:
    """An operand of two products is copied once, and released when both have read it."""
    module, c, a, b, _, _ = run(
        """
  var acc: tile<f32>[64, 64] = 0.0
  var other: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    let rows = A[0 :+ 64, k :+ 32]
    acc += dot(rows, B[k :+ 32, 0 :+ 64])
    other += dot(rows, B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc + other
"""
    )
    assert COPY.search(module.ptx)
    np.testing.assert_array_equal(c, 2 * product(a, b))


STACK = """\
@launch(128)
@pipeline(2)
kernel k(A: tensor<f16>[S, T, M, K], B: tensor<f16>[S, T, K, N], C: tensor<f32>[S, T, M, N]) {
  for s in range(0, S) {
    for t in range(0, T) {
      var acc: tile<f32>[1, 1, 64, 64] = 0.0
      for k in range(0, K, 32) {
        acc += dot(A[s :+ 1, t :+ 1, 0 :+ 64, k :+ 32], B[s :+ 1, t :+ 1, k :+ 32, 0 :+ 64])
      }
      C[s :+ 1, t :+ 1, 0 :+ 64, 0 :+ 64] = acc
    }
  }
}
"""


def test_tensors_of_four_axes() -> None:
    """Rows of one matrix do not run into the next: past its end is 0."""
    module = compiled(STACK)
    assert set(COPY.findall(module.ptx)) == {"4"}
    assert {one.box for one in module.contract.kernels[0].tensor_maps} == {
        (1, 1, 64, 32),
        (1, 1, 32, 64),
    }
    a, b = integers(2, 3, 40, 40), integers(2, 3, 40, 56, seed=1)
    c = np.full((2, 3, 40, 56), np.nan, np.float32)
    launch(module, a, b, c)
    np.testing.assert_array_equal(c, product(a, b))


FAR = """\
@launch(128)
@pipeline(2)
kernel k(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], row: i64) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[row :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
"""


@pytest.mark.parametrize(
    "row", [8, -8, 2**31 - 8, 2**31, 2**32, 2**32 + 8, 2**40, -(2**31), -(2**32), -(2**40) + 8]
)
def test_places_that_no_coordinate_has(row: int) -> None:
    """A coordinate has 32 bits: what is farther away is outside as well, and reads as 0."""
    module = compiled(FAR, index_bits=64)
    assert copies(module) == 4
    a, b = integers(64, 64), integers(64, 64, seed=1)
    c = np.full((64, 64), np.nan, np.float32)
    launch(module, a, b, c, row)
    moved = np.zeros_like(a)
    if abs(row) < 64:
        moved[max(0, -row) : 64 - max(0, row)] = a[max(0, row) : 64 + min(0, row)]
    np.testing.assert_array_equal(c, product(moved, b))


CHECKED = """\
@launch(128)
@pipeline(2)
kernel k(
  A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], x: tensor<f32>[8], n: i32
) {
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    assert(k < 1000, "few steps")
    acc += dot(A[0 :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[0 :+ 64, 0 :+ 64] = acc * x[n]
}
"""


def test_checks_of_bounds_and_assertions_beside_tensor_copies() -> None:
    """Slices past the end stay right; a point past the end traps at its line."""
    module = compiled(CHECKED, check_bounds=True, assertions=True)
    assert copies(module) == 4
    a, b = integers(40, 104), integers(104, 56, seed=1)
    x, c = np.full(8, 2, np.float32), np.full((40, 56), np.nan, np.float32)
    launch(module, a, b, c, x, 7)
    np.testing.assert_array_equal(c, 2 * product(a, b))
    with pytest.raises(PhobosError, match=r"program\.ph:11:"):
        launch(module, a, b, c, x, 8)
    with pytest.raises(PhobosError, match=r"program\.ph:8:(.|\n)*few steps"):
        launch(module, integers(8, 1056), integers(1056, 8), np.zeros((8, 8), np.float32), x, 7)


def broken(module: Module, pattern: str, by: str) -> Module:
    """A module with some text of its PTX replaced."""
    ptx, count = re.subn(pattern, by, module.ptx, flags=re.M)
    assert count
    return Module(ptx, module.contract)


LINES = """
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    let rows = A[0 :+ 64, k :+ 32]
    let columns = B[k :+ 32, 0 :+ 64]
    acc = 0.5 * (acc + dot(rows, columns))
  }
  C[0 :+ 64, 0 :+ 64] = acc
}
"""
WAIT = r"^(\s*)mbarrier\.try_wait\.parity\.shared\.b64 (%p\d+), "


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        # Behind the 16 KB of stages, two barriers say what is full, and two what is empty.
        (WAIT + r"\[%r\d+\+16384\].*$", r"program\.ph:12:(.|\n)*program\.ph:10:(.|\n)*issued by"),
        (WAIT + r"\[%r\d+\+16400\].*$", r"program\.ph:10:(.|\n)*copies to(.|\n)*program\.ph:12:"),
    ],
)
def test_a_fault_of_a_copy_names_the_line_of_its_slice(wait: str, said: str) -> None:
    """A stage that is read before it is full, and one that is filled before it is empty.

    Two warpgroups, so that one does not know what the other has read.
    """
    module = compiled(HEAD.replace("128", "256") + LINES, line_info=True)
    hasty = broken(module, wait, r"\1setp.eq.u32 \2, 0, 0;")
    a, b = integers(40, 104), integers(104, 64, seed=1)
    c, d, e = np.zeros((40, 64), np.float32), integers(40, 8), integers(8, 64)
    with pytest.raises(EmulatorError, match=said):
        launch(hasty, a, b, c, d, e, 1)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_copies_tensors_in_its_whole_tiles_and_at_its_edge(causal: int) -> None:
    """Two loops on the same keys and values, for which a query head has a place of its own."""
    heads, queries, keys, d = 2, 104, 136, 64
    module = compiled(
        phobos.kernels.path("attention_fp16").read_text(), constants={"D": d, "CAUSAL": causal}
    )
    assert copies(module)
    rng = np.random.default_rng(1)
    q = rng.standard_normal((heads, queries, d)).astype(np.float16)
    k, v = (rng.standard_normal((1, keys, d)).astype(np.float16) for _ in range(2))
    out = np.empty_like(q)
    module["attention"](q, k, v, out, d**-0.5, device=EmulatorDevice(checks="all"))
    scores = q.astype(float) @ k.astype(float).swapaxes(1, 2) * d**-0.5
    seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
    weights = np.exp(np.where(seen | (not causal), scores, -np.inf))
    wanted = weights / weights.sum(axis=2, keepdims=True) @ v.astype(float)
    np.testing.assert_allclose(out.astype(float), wanted, atol=2e-3)
