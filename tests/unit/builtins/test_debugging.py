"""`assert` and `print`, which debug builds keep and others leave out."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.emulator import EmulatorError
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.runtime.module import Module
from tests.unit.builtins.trying import CHIPS, assembles

SOURCE = """\
@launch(4)
kernel k(X: tensor<f32>[4], I: tensor<i64>[4], U: tensor<u8>[4], h: f16, p: bool) {
  let i = ctx.thread
  assert(X[i] < 10, "x stays small")
  if i > 1 {
    print("{}: {} {} {}", i, X[i], I[i], U[i])
  }
  if i == 0 {
    print("50% of {{all}}: {} {}", h, p)
    print("done")
  }
}
"""


def debug_build(chip: str = "sm_80") -> Module:
    return phobos.compile(SOURCE, chip=chip, assertions=True, name="test.ph", cache=False)


def arguments(x: list[float]) -> tuple[object, ...]:
    numbers = np.array([1, -2, 1 << 40, -(1 << 40)], np.int64)
    return np.array(x, np.float32), numbers, np.array([1, 2, 200, 255], np.uint8), 0.5, True


@pytest.mark.parametrize("chip", CHIPS)
def test_print(chip: str) -> None:
    module = debug_build(chip)
    assembles(module.ptx, chip)
    said: list[str] = []
    device = EmulatorDevice(output=said.append, checks="all")
    module["k"](*arguments([0, 1, 2.5, -1e9]), grid=1, device=device)
    assert sorted("".join(said).splitlines()) == [
        "2: 2.5 1099511627776 200",
        "3: -1e+09 -1099511627776 255",
        "50% of {all}: 0.5 1",
        "done",
    ]


def test_an_assertion_that_fails_names_its_place() -> None:
    with pytest.raises(EmulatorError, match=r"fails the assertion `x stays small` at test\.ph:4"):
        debug_build()["k"](*arguments([0, 1, 20, 0]), grid=1, device="emulator")


def test_other_builds_leave_both_out() -> None:
    module = phobos.compile(SOURCE, chip="sm_80", name="test.ph", cache=False)
    assert "call" not in module.ptx
    module["k"](*arguments([0, 1, 20, 0]), grid=1, device="emulator")


def test_a_condition_of_other_threads_is_not_evaluated() -> None:
    """What a debug build leaves out is not computed either."""
    source = """\
kernel k(X: tensor<i32>[1]) {
  assert(atomic_add(X, 0, 1) >= 0, "counts up")
}
"""
    for assertions, count in ((False, 0), (True, 256)):
        x = np.zeros(1, np.int32)
        module = phobos.compile(source, chip="sm_80", assertions=assertions, cache=False)
        module["k"](x, grid=1, device="emulator")
        assert x[0] == count
