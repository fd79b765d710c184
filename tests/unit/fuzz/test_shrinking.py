"""Programs that fail get smaller, and still fail in the same way."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.frontend import parse
from tools.fuzz import elementwise
from tools.fuzz.generator.programs import Case
from tools.fuzz.runner import Verdict, judge
from tools.fuzz.shrink import candidates, shrink

SOURCE = """\
fn twice(a: tile<i32>[4]) -> tile<i32>[4] {
  return a + a
}

@dynshared
@launch(32)
kernel k(x: tensor<i32>[4], y: tensor<i32>[4], o: tensor<i32>[4]) {
  var t = twice(x[:]) * 3
  if x[0] > 5 {
    t = y[:]
  } else {
    t = t ^ 7
  }
  o[:] = max(t & 5, y[:])
}
"""


def test_a_wrong_operator_is_all_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {name: np.arange(4, dtype=np.int32) + 1 for name in ("x", "y", "o")}
    case = Case(1, SOURCE, dict(arrays), (1, 1, 1), "sm_80", 32)
    monkeypatch.setitem(elementwise._INTEGER, "^", np.bitwise_or)
    outcome = judge(case)
    assert outcome.verdict is Verdict.DIFFERENT
    smaller = shrink(case, outcome)
    assert judge(smaller).verdict is Verdict.DIFFERENT
    assert "^" in smaller.source
    assert "fn" not in smaller.source
    assert "if" not in smaller.source
    assert "max" not in smaller.source
    assert "dynshared" not in smaller.source


def test_candidates_lose_something() -> None:
    program = parse(SOURCE, "test.ph")
    found = list(candidates(program))
    assert len(found) > 20
    assert all(candidate != program for candidate in found)
