"""The shipped attention kernel on the emulator, against NumPy in float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import phobos

SOURCE = (Path(phobos.__file__).parent / "kernels/attention.ph").read_text()
ROWS = 64
"""BLOCK_M, whose first value is compiled in."""


def reference(
    q: npt.NDArray[np.float16],
    k: npt.NDArray[np.float16],
    v: npt.NDArray[np.float16],
    scale: float,
    *,
    causal: bool,
) -> npt.NDArray[np.float64]:
    """One head: softmax(scale q k^T) v; a row without keys is 0."""
    scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
    if causal:
        row, column = np.arange(len(q))[:, None], np.arange(len(k))
        scores = np.where(column <= row + len(k) - len(q), scores, -np.inf)
    top = scores.max(axis=1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0.0, top))
    total = weights.sum(axis=1, keepdims=True)
    return weights @ v.astype(np.float64) / np.where(total == 0.0, 1.0, total)


CASES = [
    # chip, query heads, key heads, queries, keys, columns, causal
    ("sm_80", 1, 1, 64, 64, 64, False),
    ("sm_90", 2, 1, 68, 100, 64, True),  # grouped heads, odd lengths
    ("sm_86", 1, 1, 100, 36, 64, True),  # more queries than keys: rows without any
    ("sm_75", 1, 1, 20, 36, 128, True),
    ("sm_89", 1, 1, 100, 4, 32, False),
    ("sm_120", 2, 2, 1, 200, 64, True),  # one row
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_attention(case: tuple[str, int, int, int, int, int, bool]) -> None:
    """Against float64, with a poisoned output."""
    chip, heads, groups, queries, keys, columns, causal = case
    constants = {"D": columns, "CAUSAL": int(causal)}
    module = phobos.compile(SOURCE, chip=chip, constants=constants, extent_multiple=1)
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.standard_normal((count, length, columns)).astype(np.float16)
        for count, length in ((heads, queries), (groups, keys), (groups, keys))
    )
    out = np.full((heads, queries, columns), np.nan, np.float16)
    scale = columns**-0.5
    grid = (-(-queries // ROWS), 1, heads)
    module["attention"](q, k, v, out, scale, grid=grid, device="emulator")
    for head in range(heads):
        group = head // (heads // groups)
        wanted = reference(q[head], k[group], v[group], scale, causal=causal)
        np.testing.assert_allclose(out[head], wanted, rtol=2e-3, atol=2e-3)
