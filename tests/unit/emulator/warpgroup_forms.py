"""Forms of `wgmma` for comparing the emulator with a GPU: operands in, accumulators out."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tests.support.warpgroup_kernels import ELEMENTS, Launcher, ProductKernel
from tests.unit.emulator.forms import _hash
from tests.unit.emulator.matrix_forms import float_words

DRAWS = 2
"""Operands of a form, each of 64 x 64 results."""

_RESULTS = {"f16": np.float16, "f32": np.float32, "s32": np.int32}
_COLUMNS = 64
_STEPS = 2


def _forms() -> dict[str, ProductKernel]:
    found: dict[str, ProductKernel] = {}

    def add(result: str, left: str, right: str, **changes: str) -> None:
        kernel = replace(ProductKernel(_COLUMNS, (result, left, right), _STEPS), **changes)
        name = " ".join(
            [f"wgmma {result}.{left}.{right}", *(f"{k}={v}" for k, v in changes.items())]
        )
        found[name] = kernel

    for d, a in (("f32", "f16"), ("f16", "f16"), ("f32", "bf16"), ("f32", "tf32")):
        add(d, a, a)
        add(d, a, a, scale_d="0")
    for d in ("f32", "f16"):
        for a in ("e4m3", "e5m2"):
            for b in ("e4m3", "e5m2"):
                add(d, a, b)
        add(d, "e4m3", "e4m3", scale_d="0")
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            add("s32", a, b)
            add("s32", a, b, suffix=".satfinite")
    for kind in ("f16", "bf16", "tf32", "e4m3"):
        add("f32", kind, kind, a="r")
    for kind in ("f16", "bf16"):
        add("f32", kind, kind, a="mn", b="mn")
    return found


PRODUCT_FORMS = _forms()
"""Every combination of types, and what else may change a sum, by name."""


def _drawn(kind: str, rows: int, columns: int, seed: int) -> npt.NDArray:
    count = rows * columns
    dtype = np.dtype({**_RESULTS, **ELEMENTS}[kind])
    words = _hash(count, seed) if kind in ("s8", "u8", "s32") else float_words(kind, count, seed)
    return words.astype(f"u{dtype.itemsize}").view(dtype).reshape(rows, columns)


def answer(name: str, launch: Launcher) -> npt.NDArray:
    """What a form computes by a launcher, shaped [draw, row, column], as bit patterns."""
    kernel = PRODUCT_FORMS[name]
    d, a, b = kernel.types
    seed = zlib.crc32(name.encode()) & 0xFFFF
    results = [
        kernel.run(
            launch,
            _drawn(a, 64, kernel.depth, seed + 100 * draw),
            _drawn(b, kernel.columns, kernel.depth, seed + 100 * draw + 1),
            _drawn(d, 64, kernel.columns, seed + 100 * draw + 2),
        )
        for draw in range(DRAWS)
    ]
    stacked = np.stack(results)
    return stacked.view(f"u{stacked.dtype.itemsize}")
