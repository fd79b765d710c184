"""Kernels that are put into another order for lack of registers compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.analysis.register_pressure import PressureCount, register_pressure
from phobos.dialects import ptx
from phobos.dialects.ptx import B32, B64, InstructionBuilder
from phobos.transforms import ptx_limit_registers
from phobos.transforms.ptx_reorder import reorder_blocks

SOURCE = """\
@launch(64, 1, 16)
kernel k(x: tensor<f32>[M, N], y: tensor<f32>[M, N], s: tensor<f32>[M, 1]) {{
  let r = ctx.block.x * 4
  let t = x[r :+ 4, 0 :+ 256]
{body}
}}
"""
BODIES = {
    "sums of squares": "  s[r :+ 4, :] = sum<over 1>(t * t + t)",
    "a chain": "  y[r :+ 4, 0 :+ 256] = abs(t * 2.0 - t * t) + t * t * t",
    "softmax": """\
  let e = exp(t - max<over 1>(pad(x[r :+ 4, 0 :+ 256], -inf)))
  y[r :+ 4, 0 :+ 256] = e / sum<over 1>(e)
  s[r :+ 4, :] = sum<over 1>(e * t)""",
    "scans": "  y[r :+ 4, 0 :+ 256] = scan<over 1>(t) * t + scan<over 1>(t + 1.0)",
    "a loop": """\
  var total = full(0.0, 4, 256)
  for i in range(0, 3) {
    total = total * t + abs(total - t)
    y[r :+ 4, 0 :+ 256] = total
  }
  s[r :+ 4, :] = sum<over 1>(total)""",
}
UNCHANGED = ("softmax", "scans")
"""Those that keep as many values in their order as in any other."""


def run(source: str) -> tuple[str, np.ndarray, np.ndarray]:
    """The PTX, and what it writes for numbers that are always the same."""
    module = phobos.compile(source, chip="sm_80", cache=False)
    x = np.random.default_rng(0).standard_normal((4, 256), np.float32)
    y, s = np.zeros_like(x), np.zeros((4, 1), np.float32)
    module["k"](x, y, s, grid=(1, 1, 1), device="emulator")
    return module.ptx, y, s


@pytest.mark.filterwarnings("ignore:.*keeps \\d+ registers:phobos.PhobosWarning")
@pytest.mark.parametrize("name", BODIES)
def test_another_order_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SOURCE.format(body=BODIES[name])
    text, y, s = run(source)
    monkeypatch.setattr(ptx_limit_registers, "reorder_blocks", lambda *_: None)
    plain, plain_y, plain_s = run(source)
    assert (text != plain) == (name not in UNCHANGED)
    np.testing.assert_array_equal(y, plain_y)
    np.testing.assert_array_equal(s, plain_s)


def sums(count: int) -> ptx.EntryOp:
    """A kernel that reads numbers, squares them and adds them up, in this order."""
    entry = ptx.EntryOp.make("k", [ptx.Parameter("p", "u64")])
    build = InstructionBuilder(entry.body)
    base = build.param(0, "u64", B64)
    loads = [
        build.emit_multi(ptx.LdOp, "global.b32", base, results=(B32,))[0] for _ in range(count)
    ]
    squares = [build.emit(ptx.MulOp, "f32", value, value) for value in loads]
    total = squares[0]
    for square in squares[1:]:
        total = build.emit(ptx.AddOp, "f32", square, total)
    build.emit_multi(ptx.StOp, "global.b32", base, total, results=())
    build.ret()
    return entry


def test_a_long_sum_needs_few_registers() -> None:
    entry = sums(2000)
    assert register_pressure(entry).alive == 2 + 2000
    count = PressureCount(entry)
    reorder_blocks(count, 249)
    assert register_pressure(entry) == count.largest
    assert count.largest.alive == 2 + 2
    entry.verify()


def test_what_fits_is_not_touched() -> None:
    entry = sums(20)
    before = list(entry.body.blocks[0].ops)
    reorder_blocks(PressureCount(entry), 22)
    assert list(entry.body.blocks[0].ops) == before


def test_an_order_that_does_not_help_is_taken_back() -> None:
    entry = sums(1)
    before = list(entry.body.blocks[0].ops)
    count = PressureCount(entry)
    reorder_blocks(count, 1)
    assert register_pressure(entry) == count.largest
    assert list(entry.body.blocks[0].ops) == before
