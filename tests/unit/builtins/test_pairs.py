"""Arithmetic on tiles of 16-bit floats, two elements at a time: the same bits as one at a time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check, compiled

CHIPS = ("sm_75", "sm_80", "sm_90")
LENGTHS = (1, 5, 64, 512, 700)
SOURCE = """\
@launch(32)
kernel k(X: tensor<T>[N], Y: tensor<T>[N], A: tensor<T>[N], B: tensor<T>[N], C: tensor<T>[N],
         D: tensor<T>[N], E: tensor<T>[N], s: f32) {
  let i = ctx.block.x * 256
  let x = X[i :+ 256]
  let y = Y[i :+ 256]
  A[i :+ 256] = max(x, y)
  B[i :+ 256] = min(abs(x), -y)
  C[i :+ 256] = x + y
  D[i :+ 256] = (x - T(s)) * 0.5
  E[i :+ 256] = fma(x, y, x)
}
"""


def _with_specials(tensors: Arrays) -> None:
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-6, -1e-6, 3e4]
    for shift, name in enumerate("XY"):
        array = tensors[name]
        count = min(len(array), 32)
        array[:count] = np.roll(np.resize(special, 32), shift * 3)[:count]


@pytest.mark.parametrize(("dtype", "relative"), [("f16", 1e-3), ("bf16", 8e-3)])
def test_arithmetic(dtype: str, relative: float) -> None:
    def reference(tensors: Arrays, scalars: object) -> Arrays:
        assert isinstance(scalars, dict)
        x, y = tensors["X"], tensors["Y"]
        with np.errstate(all="ignore"):
            return {
                "A": np.fmax(x, y),
                "B": np.fmin(abs(x), -y),
                "C": x + y,
                "D": (x - scalars["s"]) * 0.5,
                "E": x * y + x,
            }

    check(
        SOURCE.replace("T>", f"{dtype}>").replace("T(", f"{dtype}("),
        reference,
        [{"N": n} for n in LENGTHS],
        scalars={"s": 1.5},
        grid=(3,),
        chips=CHIPS,
        relative=relative,
        absolute=1e-6,
        prepare=_with_specials,
    )


@pytest.mark.parametrize(
    ("chip", "dtype", "pairs"),
    [
        ("sm_75", "f16", ("add.rn.f16x2", "neg.f16x2", "fma.rn.f16x2")),
        ("sm_80", "f16", ("max.f16x2", "min.f16x2", "mul.rn.f16x2")),
        ("sm_80", "bf16", ("max.bf16x2", "fma.rn.bf16x2")),
        ("sm_90", "bf16", ("max.bf16x2", "add.rn.bf16x2", "sub.rn.bf16x2", "abs.bf16x2")),
    ],
)
def test_each_instruction_computes_two(chip: str, dtype: str, pairs: tuple[str, ...]) -> None:
    """Eight elements a thread: four instructions each."""
    text = compiled(SOURCE.replace("T>", f"{dtype}>").replace("T(", f"{dtype}("), chip).ptx
    for instruction in pairs:
        assert text.count(f"\t{instruction} ") == 4, instruction


def test_what_the_chip_cannot_do_in_pairs_it_does_one_by_one() -> None:
    text = compiled(SOURCE.replace("T>", "f16>").replace("T(", "f16("), "sm_75").ptx
    assert "max.f16" not in text
    text = compiled(SOURCE.replace("T>", "bf16>").replace("T(", "bf16("), "sm_80").ptx
    assert "add.rn.bf16" not in text
