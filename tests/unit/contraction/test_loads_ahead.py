"""Tiles on their way in registers through an iteration, with trip counts around the stages."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import phobos
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas

SOURCE = """
@launch(64)
@pipeline
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x * 64
  let column = ctx.block.y * 128
  var acc: tile<f32>[64, 128] = 2.0
  for k in range(0, K, 16) {
    acc += dot(A[row :+ 64, k :+ 16], B[k :+ 16, column :+ 128])
  }
  C[row :+ 64, column :+ 128] = acc
}
"""


@pytest.mark.parametrize("k", [0, 1, 17, 33, 48, 65])
def test_any_number_of_iterations_is_exact(k: int) -> None:
    rng = np.random.default_rng(k)
    m, n = 70, 131
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    phobos.compile(SOURCE, chip="sm_75")["product"](a, b, c, device="emulator")
    np.testing.assert_array_equal(c, 2 + a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("seed", [1, 2])
def test_threads_do_not_race(seed: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 80), (80, 128)))
    c = np.full((64, 128), np.nan, np.float32)
    device = EmulatorDevice(checks=("bounds", "init", "race"), seed=seed)
    phobos.compile(SOURCE, chip="sm_75")["product"](a, b, c, device=device)
    np.testing.assert_array_equal(c, 2 + a.astype(np.float64) @ b.astype(np.float64))


DEEP = """
@launch(128)
@dynshared
@pipeline
kernel product(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x * 128
  let column = ctx.block.y * 128
  var acc: tile<f32>[128, 128] = 2.0
  for k in range(0, K, 64) {
    acc += dot(A[row :+ 128, k :+ 64], B[k :+ 64, column :+ 128])
  }
  C[row :+ 128, column :+ 128] = acc
}
"""
"""A quarter of a thread's registers is on its way; what is left is short for addresses."""


@pytest.mark.parametrize("k", [0, 8, 64, 136, 200])
def test_tiles_that_take_many_registers_are_exact(k: int) -> None:
    rng = np.random.default_rng(k)
    m, n = 136, 40
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    module = phobos.compile(DEEP, chip="sm_75", extent_multiple=8)
    device = EmulatorDevice(checks=("bounds", "init", "race"), seed=k)
    module["product"](a, b, c, device=device)
    np.testing.assert_array_equal(c, 2 + a.astype(np.float64) @ b.astype(np.float64))


def test_tiles_that_take_many_registers_have_one_address_each() -> None:
    """Two stages and one barrier an iteration; addresses take steps, and products are in turn."""
    ptx = phobos.compile(DEEP, chip="sm_75", extent_multiple=8).ptx
    loop = ptx[ptx.index("$L_loop_1:") : ptx.index("$L_endloop_1:")]
    assert loop.count("bar.sync") == 1
    assert loop.count("ld.global.v4.b32") == loop.count("st.shared.v4.b32") == 16
    assert "mul.wide" not in loop
    assert loop.count("mad.wide") == 1
    kinds = re.findall(r"\t(?:@%p\d+ )?(mma|ldmatrix|st.shared|bar)\b", loop)
    runs = [(kind, len(list(run))) for kind, run in itertools.groupby(kinds)]
    step = [("ldmatrix", 4), ("mma", 16), ("st.shared", 3), ("mma", 16)]
    assert runs[:4] == step
    assert runs[-3:] == [("bar", 1), ("ldmatrix", 4), ("mma", 32)]


@needs_ptxas
@pytest.mark.parametrize("source", [SOURCE, DEEP])
def test_the_tiles_have_room_in_registers(source: str) -> None:
    ptx = phobos.compile(source, chip="sm_75", extent_multiple=16).ptx
    assert assemble(ptx, "sm_75", ("-v",)).spills == {}
