"""Products of stacks of matrices: axes before the last two count them."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.emulator import Profile
from phobos.runtime.emulator_device import EmulatorDevice
from tests.unit.builtins.trying import compiled
from tests.unit.contraction.test_products import ELEMENTS, PATHS

SOURCE = """
@launch({threads})
@dynshared{attributes}
kernel products(A: tensor<{a}>[Z, {a_dims}], B: tensor<{b}>[Z, {b_dims}], C: tensor<{total}>[Z, M, N]) {{
  let z = ctx.block.z * {tz}
  let row = ctx.block.x * {tm}
  let column = ctx.block.y * {tn}
  var acc: tile<{total}>[{tz}, {tm}, {tn}] = {zero}
  for k in range(0, K, {tk}) {{
    acc += {form}(A[z :+ {tz}, {a_slice}], B[z :+ {tz}, {b_slice}])
  }}
  C[z :+ {tz}, row :+ {tm}, column :+ {tn}] = acc
}}
"""  # noqa: E501
STACKS = [(4, 16, 32, 32), (3, 16, 8, 16), (2, 24, 20, 32)]
"""Products, rows, columns and depth of a tile."""


def check(
    name: str,
    chip: str,
    tile: tuple[int, ...],
    form: str = "dot",
    threads: int = 128,
    *,
    ahead: bool = False,
) -> Profile:
    """Multiplies stacks of small integers by one CTA and a part of others, exactly."""
    path, (tz, tm, tn, tk) = PATHS[name], tile
    rows, depth, columns = f"row :+ {tm}", f"k :+ {tk}", f"column :+ {tn}"
    z, m, n, k = tz + 1, tm + 3, tn, tk + 5
    module = compiled(
        SOURCE.format(
            a=path.a, b=path.b, total=path.total, threads=threads,
            attributes=path.attributes + "\n@pipeline" * ahead,
            tz=tz, tm=tm, tn=tn, tk=tk, zero="0" if path.total == "i32" else "0.0", form=form,
            a_dims="K, M" if form == "t_dot" else "M, K",
            b_dims="N, K" if form == "dot_t" else "K, N",
            a_slice=f"{depth}, {rows}" if form == "t_dot" else f"{rows}, {depth}",
            b_slice=f"{columns}, {depth}" if form == "dot_t" else f"{depth}, {columns}",
        ),
        chip=chip,
        extents={"Z": z, "M": m, "N": n, "K": k},
    )  # fmt: skip
    rng = np.random.default_rng(5)
    low = 0 if "u8" in (path.a, path.b) else -2
    a, b = rng.integers(low, 3, (z, m, k)), rng.integers(low, 3, (z, k, n))
    given_a = a.swapaxes(1, 2) if form == "t_dot" else a
    given_b = b.swapaxes(1, 2) if form == "dot_t" else b
    c = np.full((z, m, n), 77).astype(ELEMENTS[path.total])
    profile = Profile()
    module["products"](
        A=np.ascontiguousarray(given_a).astype(ELEMENTS[path.a]),
        B=np.ascontiguousarray(given_b).astype(ELEMENTS[path.b]),
        C=c, grid=(2, 1, 2), device=EmulatorDevice(profile=profile),
    )  # fmt: skip
    assert np.array_equal(c.astype(np.float64), a @ b)
    return profile


@pytest.mark.parametrize("tile", STACKS, ids=str)
@pytest.mark.parametrize("name", ["f16", "f32", "i8", "f16 in f16", "f64"])
def test_types(name: str, tile: tuple[int, ...]) -> None:
    check(name, "sm_90", tile)


@pytest.mark.filterwarnings("ignore:.*tensor cores are not used")
@pytest.mark.parametrize("chip", ["sm_75", "sm_89"])
@pytest.mark.parametrize("name", ["f16", "u8 by i8", "f8e4m3", "tf32", "wmma f16"])
def test_chips(name: str, chip: str) -> None:
    check(name, chip, STACKS[0], threads=64)


@pytest.mark.parametrize("form", ["dot_t", "t_dot"])
@pytest.mark.parametrize("name", ["f16", "f32", "i8"])
def test_turned_operands(name: str, form: str) -> None:
    check(name, "sm_90", STACKS[2], form)


def test_warps_without_a_part_of_one_product_take_others() -> None:
    text = """
    @launch(128)
    kernel products(A: tensor<f16>[4, 16, 16], B: tensor<f16>[4, 16, 8], C: tensor<f32>[4, 16, 8]) {
      C[:, :, :] = dot(A[:, :, :], B[:, :, :])
    }
    """
    module = phobos.compile(text, chip="sm_90")
    assert module.ptx.count("mma.sync") == 1
    rng = np.random.default_rng(1)
    a, b = rng.integers(-3, 4, (4, 16, 16)), rng.integers(-3, 4, (4, 16, 8))
    c = np.zeros((4, 16, 8), np.float32)
    module["products"](a.astype(np.float16), b.astype(np.float16), c, grid=1, device="emulator")
    assert np.array_equal(c, a @ b)


def test_multiply_adds_that_are_rolled_up() -> None:
    check("f32", "sm_90", (2, 64, 32, 32), threads=64)


@pytest.mark.parametrize("form", ["dot", "dot_t"])
def test_copies_that_turn_matrices(form: str) -> None:
    """64 results a thread, of two products, from copies that run ahead of the loop."""
    profile = check("f32", "sm_90", (2, 64, 32, 16), form, threads=64, ahead=True)
    assert profile.total.passes == profile.total.ideal_passes


def test_a_chain_of_stacks() -> None:
    text = """
    @launch(64)
    kernel attend(Q: tensor<f16>[Z, 32, 32], K: tensor<f16>[Z, N, 32], V: tensor<f16>[Z, N, 32],
                  O: tensor<f16>[Z, 32, 32]) {
      let z = ctx.block.x * 2
      let q = Q[z :+ 2, :, :]
      var acc: tile<f32>[2, 32, 32] = 0.0
      var top: tile<f32>[2, 32, 1] = -inf
      for n in range(0, N, 16) {
        let scores = dot_t(q, K[z :+ 2, n :+ 16, :])
        top = max(top, max<over 2>(scores))
        acc += dot(f16(scores), V[z :+ 2, n :+ 16, :])
      }
      O[z :+ 2, :, :] = f16(acc + top)
    }
    """
    module = phobos.compile(text, chip="sm_80", extent_multiple=16)
    rng = np.random.default_rng(2)
    q, k, v = (rng.integers(-1, 2, (2, rows, 32)) * (rng.random((2, rows, 32)) < 0.3)
               for rows in (32, 32, 32))  # fmt: skip
    out = np.zeros((2, 32, 32), np.float16)
    module["attend"](*(x.astype(np.float16) for x in (q, k, v)), out, grid=1, device="emulator")
    scores = q @ k.swapaxes(1, 2)
    assert np.array_equal(out, scores @ v + scores.max(axis=2, keepdims=True))


def test_four_axes_and_computed_operands() -> None:
    text = """
    @launch(32)
    kernel products(A: tensor<f32>[2, 3, 8, 16], B: tensor<i8>[2, 3, 16, 8],
                    C: tensor<f32>[2, 3, 8, 8]) {
      C[:, :, :, :] = dot(A[:, :, :, :] * 2.0, f32(B[:, :, :, :])) + 1.0
    }
    """
    rng = np.random.default_rng(4)
    a, b = rng.integers(-3, 4, (2, 3, 8, 16)), rng.integers(-3, 4, (2, 3, 16, 8))
    for attribute in ("", "@tensorcore(tf32)"):
        c = np.zeros((2, 3, 8, 8), np.float32)
        module = phobos.compile(attribute + text, chip="sm_80")
        module["products"](a.astype(np.float32), b.astype(np.int8), c, grid=1, device="emulator")
        assert np.array_equal(c, 2 * (a @ b) + 1)
