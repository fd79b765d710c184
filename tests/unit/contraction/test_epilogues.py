"""How results leave the tensor cores: right to the last bit, in whole sectors of memory."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.emulator import Profile
from phobos.runtime.emulator_device import EmulatorDevice
from tests.unit.builtins.trying import compiled
from tests.unit.contraction.test_products import ELEMENTS

SOURCE = """
@launch({threads})
kernel product(A: tensor<{operand}>[M, K], B: tensor<{operand}>[K, N], C: tensor<{result}>[M, N]) {{
  let row = ctx.block.x * {tm}
  let column = ctx.block.y * {tn}
  var acc: tile<{total}>[{tm}, {tn}] = {zero}
  for k in range(0, K, 32) {{
    acc += dot(A[row :+ {tm}, k :+ 32], B[k :+ 32, column :+ {tn}])
  }}
  acc += {total}(C[row :+ {tm}, column :+ {tn}])
  C[row :+ {tm}, column :+ {tn}] = {result}(acc)
}}
"""
TYPES: list[tuple[str, str, str]] = [
    ("f16", "f32", "f16"),
    ("f16", "f16", "f16"),
    ("bf16", "f32", "bf16"),
    ("f16", "f32", "f8e4m3"),
    ("i8", "i32", "i8"),
    ("i8", "i32", "u8"),
    ("i8", "i32", "i16"),
    ("f16", "f32", "f32"),
]
"""Operands, sums and results."""


def product(
    types: tuple[str, str, str],
    chip: str,
    tile: tuple[int, int],
    extents: tuple[int, int],
    threads: int = 128,
) -> tuple[phobos.Module, Profile]:
    """Runs a product of small integers, which must be exact; the program and its counts."""
    operand, total, result = types
    (m, n), k = extents, 64
    module = compiled(
        SOURCE.format(
            operand=operand, total=total, result=result, tm=tile[0], tn=tile[1],
            threads=threads, zero="0" if total == "i32" else "0.0",
        ),
        chip=chip,
        extents={"M": m, "N": n, "K": k},
    )  # fmt: skip
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, (m, k)).astype(ELEMENTS[operand])
    b = rng.integers(-1, 2, (k, n)) * (rng.random((k, n)) < 0.2)
    old = rng.integers(0, 4, (m, n))
    c = old.astype(_NUMPY[result])
    wanted = old + a.astype(np.int64) @ b.astype(np.int64)
    profile = Profile()
    grid = (-(-m // tile[0]), -(-n // tile[1]), 1)
    device = EmulatorDevice(profile=profile)
    module["product"](A=a, B=b.astype(ELEMENTS[operand]), C=c, grid=grid, device=device)
    assert np.array_equal(c, wanted.astype(_NUMPY[result]))
    return module, profile


_NUMPY = {**ELEMENTS, "i16": np.int16}


@pytest.mark.parametrize("chip", ["sm_75", "sm_90"])
@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_no_sector_is_moved_in_vain(types: tuple[str, str, str], chip: str) -> None:
    module, profile = product(types, chip, (64, 64), (64, 64))
    assert profile.total.global_efficiency == 1.0
    # Multiply-adds and sums of 32 bits fill sectors with 8 bytes a lane.
    is_full = types[2] == "f32" or (types[0] == "bf16" and chip == "sm_75")
    wide = "v2.b32" if is_full else "v4.b32"
    assert f"st.global.{wide}" in module.ptx
    assert f"ld.global.{wide}" in module.ptx


@pytest.mark.parametrize("types", [TYPES[0], TYPES[3], TYPES[4]], ids="-".join)
@pytest.mark.parametrize(
    ("tile", "threads"), [((16, 16), 32), ((32, 8), 64), ((16, 128), 128), ((48, 80), 96)], ids=str
)
def test_edges(types: tuple[str, str, str], tile: tuple[int, int], threads: int) -> None:
    product(types, "sm_90", tile, (40, 104), threads)
    product(types, "sm_80", tile, (17, 35), threads)


def test_a_store_in_the_loop_of_the_products_has_no_exchange() -> None:
    module = phobos.compile(
        """
        @launch(32)
        kernel products(A: tensor<f16>[M, 16], B: tensor<f16>[16, N], C: tensor<f16>[M, N]) {
          for n in range(0, N, 32) {
            C[0 :+ 16, n :+ 32] = f16(dot(A[0 :+ 16, :], B[:, n :+ 32]))
          }
        }
        """,
        chip="sm_90",
        extent_multiple=16,
    )
    assert "mma.sync" in module.ptx
    assert "shfl" not in module.ptx
