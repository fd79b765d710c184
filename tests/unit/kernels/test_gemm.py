"""The shipped GEMM kernels on the emulator, against NumPy in float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import phobos

FOLDER = Path(phobos.__file__).parent / "kernels"
TYPES: dict[str, tuple[npt.DTypeLike, float, dict[str, int]]] = {
    "gemm_fp32": (np.float32, 1e-5, {"TILE_M": 32, "TILE_N": 32, "TILE_K": 32}),
    "gemm_fp16tc_fp32acc": (np.float16, 2e-3, {"TILE_M": 128, "TILE_N": 128, "TILE_K": 32}),
}
"""Per kernel: element type, relative tolerance, tiles."""


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", sorted(TYPES))
def test_gemm(name: str, chip: str) -> None:
    """C = alpha A B + beta C on extents that no tile divides."""
    element, tolerance, tiles = TYPES[name]
    source = (FOLDER / f"{name}.ph").read_text()
    module = phobos.compile(source, chip=chip, constants=tiles, extent_multiple=4)
    rng = np.random.default_rng(1)
    m, n, k = 36, 100, 68
    a, b, c = (rng.standard_normal(shape).astype(element) for shape in ((m, k), (k, n), (m, n)))
    wanted = 0.5 * (a.astype(np.float64) @ b.astype(np.float64)) + 2.0 * c.astype(np.float64)
    module["gemm"](a, b, c, 0.5, 2.0, device="emulator")
    np.testing.assert_allclose(c.astype(np.float64), wanted, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("name", sorted(TYPES))
def test_parameter_list(name: str) -> None:
    """Three matrices and two scalars are 23 parameters of the launch ABI."""
    module = phobos.compile((FOLDER / f"{name}.ph").read_text(), chip="sm_80")
    assert module.ptx.count(".param") - module.ptx.count("ld.param") == 23
