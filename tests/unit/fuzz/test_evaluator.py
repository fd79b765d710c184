"""The evaluator knows the language: results worked out by hand, without the compiler."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.frontend import parse
from tools.fuzz import elementwise
from tools.fuzz.evaluator import evaluate
from tools.fuzz.generator.programs import Case
from tools.fuzz.memory import Memory
from tools.fuzz.runner import Verdict, judge
from tools.fuzz.scalars import memory_dtype
from tools.fuzz.values import Misuse, Undecided


def tensors(
    params: str, body: str, arrays: dict[str, np.ndarray], threads: int = 4
) -> dict[str, Memory]:
    source = f"@launch({threads})\nkernel k({params}) {{\n{body}\n}}\n"
    return evaluate(parse(source, "test.ph"), arrays, (1, 1, 1))


def of_i8(expression: str, values: list[int], result: str = "i8") -> list[int]:
    """What an expression of a tile `t` of i8 is."""
    count = len(values)
    found = tensors(
        f"x: tensor<i8>[{count}], o: tensor<{result}>[{count}]",
        f"let t = x[:]\no[:] = {expression}",
        {"x": np.array(values, np.int8), "o": np.zeros(count, memory_dtype(result))},
    )
    return found["o"].data.tolist()


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("t + 100", [100, -100], [-56, 0]),
        ("t * t", [16, -12], [0, -112]),
        ("t / 2", [-7, 7], [-3, 3]),
        ("t % 4", [-7, 7], [-3, 3]),
        ("t / -1", [-128, 5], [-128, -5]),
        ("t >> 1", [-7, 7], [-4, 3]),
        ("t << t", [3, 9, -1], [24, 0, 0]),
        ("t >> t", [-128, 9, -1], [-1, 0, -1]),
        ("-t", [-128, 5], [-128, -5]),
        ("~t", [0, 5], [-1, -6]),
        ("abs(t)", [-128, -5], [-128, 5]),
        ("i8(f32(t) * 100)", [2, -2, 0], [127, -128, 0]),
        ("i8(f32(t) / 2)", [3, -3], [1, -1]),
        ("where(t > 0, t, -1)", [5, -5], [5, -1]),
        ("max(t, 3)", [1, 4], [3, 4]),
        ("cumsum(t)", [100, 100, 1], [100, -56, -55]),
    ],
)
def test_integers(expression: str, values: list[int], expected: list[int]) -> None:
    assert of_i8(expression, values) == expected


def test_conversions_and_counts() -> None:
    assert of_i8("u8(t)", [-1, 5], "u8") == [255, 5]
    assert of_i8("popcount(t)", [-1, 5], "i32") == [8, 2]
    assert of_i8("clz(t)", [0, 1, -1], "i32") == [8, 7, 0]
    assert of_i8("i32(t) * 1000", [100], "i32") == [100_000]
    assert of_i8("t != 0", [0, 2], "bool") == [False, True]


def test_slices_are_masked() -> None:
    found = tensors(
        "x: tensor<i32>[N], o: tensor<i32>[8], q: tensor<i32>[M], v: tensor<bool>[8]",
        "o[:] = x[-2 :+ 8]\nq[1 :+ 8] = pad(x[3 :+ 8], 7)\nv[:] = valid(x[1 :+ 8])",
        {
            "x": np.arange(1, 6, dtype=np.int32),
            "o": np.zeros(8, np.int32),
            "q": np.zeros(4, np.int32),
            "v": np.zeros(8, bool),
        },
    )
    assert found["o"].data.tolist() == [0, 0, 1, 2, 3, 4, 5, 0]
    assert found["q"].data.tolist() == [0, 4, 5, 7]
    assert found["v"].data.tolist() == [True] * 4 + [False] * 4


def test_floats_round_at_each_operation() -> None:
    found = tensors(
        "x: tensor<f16>[2], o: tensor<f16>[2], q: tensor<f32>[2]",
        "let t = x[:] / 3\no[:] = t\nq[:] = exp(f32(x[:]))",
        {
            "x": np.array([1.0, 3.0], np.float16),
            "o": np.zeros(2, np.float16),
            "q": np.zeros(2, np.float32),
        },
    )
    assert found["o"].data.tolist() == [float(np.float16(1 / 3)), 1.0]
    assert not found["o"].error.any()
    assert (found["q"].error > 0).all()
    assert (found["q"].error < 1e-5).all()


def test_threads_part_and_meet() -> None:
    found = tensors(
        "o: tensor<i32>[8], s: tensor<i32>[8]",
        """
        var n: i32 = 0
        for i in range(ctx.thread, 8, 2) {
          if i == 5 { continue }
          if i > 6 { break }
          n += i32(i)
        }
        o[ctx.thread] = n
        let left = shuffle_up(n, 1)
        s[ctx.thread] = left + max<over ctx.thread>(n)
        """,
        {"o": np.zeros(8, np.int32), "s": np.zeros(8, np.int32)},
        threads=8,
    )
    own = [12, 4, 12, 3, 10, 0, 6, 0]
    assert found["o"].data.tolist() == own
    assert found["s"].data.tolist() == [n + 12 for n in [own[0], *own[:-1]]]


def test_what_is_not_said_is_not_decided() -> None:
    arrays = {"x": np.zeros(4, np.int32), "o": np.zeros(4, np.int32)}
    found = tensors("x: tensor<i32>[4], o: tensor<i32>[4]", "o[:] = 1 / x[:]", arrays)
    assert np.isinf(found["o"].error).all()
    with pytest.raises(Undecided):
        tensors("x: tensor<i32>[4], o: tensor<i32>[4]", "if 1 / x[0] == 1 { }", arrays)
    with pytest.raises(Misuse):
        tensors(
            "x: tensor<i32>[4], o: tensor<i32>[4]", "if ctx.thread == 0 { o[:] = x[:] }", arrays
        )


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "kernel k(x: tensor<i32>[4], o: tensor<i32>[4]) {\n  o[:] = x[:] + 1\n}\n"
    arrays = {"x": np.arange(4, dtype=np.int32), "o": np.zeros(4, np.int32)}
    case = Case(1, source, dict(arrays), (1, 1, 1), "sm_80", 32)
    assert judge(case).verdict is Verdict.AGREED
    monkeypatch.setitem(elementwise._INTEGER, "+", np.subtract)
    outcome = judge(case)
    assert outcome.verdict is Verdict.DIFFERENT
    assert outcome.detail.startswith("o: 4 of 4 elements differ\n  [0] is 1, expected -1")


def test_a_product_may_stay_unrounded_on_a_gpu() -> None:
    source = "kernel k(x: tensor<f32>[2], o: tensor<f32>[2]) {\n  o[:] = x[:] * x[:] - 1\n}\n"
    arrays = {"x": np.array([1.0001, 2.0], np.float32), "o": np.zeros(2, np.float32)}
    program = parse(source, "test.ph")
    assert not evaluate(program, arrays, (1, 1, 1))["o"].error.any()
    error = evaluate(program, arrays, (1, 1, 1), is_contracted=True)["o"].error
    assert 0 < error[0] < 1e-6
    assert error[1] == 0
