"""The warning about elements past a tensor's end that may decide a fold."""

from __future__ import annotations

import pytest

import phobos
from phobos.diagnostics import listening, render
from phobos.driver.compilation import compile_text
from phobos.driver.options import make_options

KERNEL = """\
@aligned(P = 64)
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M, 64], Q: tensor<i8>[M, N], W: tensor<u8>[M, N],
         Z: tensor<f32>[M, P]) {{
  let x = X[0 :+ 16, 0 :+ 64]
{body}
}}
"""


def told(body: str) -> list[str]:
    """The warnings of a kernel with these statements, rendered."""
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    text = KERNEL.format(body=lines)
    with listening() as listener:
        compile_text(text, "test.ph", make_options(chip="sm_80"))
    return [render(one, listener.sources) for one in listener.diagnostics]


@pytest.mark.parametrize(
    "body",
    [
        "Y[0 :+ 16, 0 :+ 1] = max<over 1>(x)",
        "Y[0 :+ 16, 0 :+ 1] = min<over 1>(x * 2.0 + 1.0)",
        "Y[0 :+ 1, 0 :+ 64] = prod<over 0>(x)",
        "Y[0 :+ 1, 0 :+ 16] = max<over 0>(transpose(x))",
        "Y[0 :+ 1, 0 :+ 1] = max<over 0, 1>(x)",
        "Y[0 :+ 16, 0 :+ 16] = max<over 1>(dot_t(x, Z[0 :+ 16, 0 :+ 64]) * 1.0) + full(0.0, 16, 16)"
        " * min<over 0>(Z[0 :+ 16, 0 :+ 16])",
        "var m = full(0.0, 16, 64)\nfor i in range(0, 4) {\n  m += X[i * 16 :+ 16, 0 :+ 64]\n}\n"
        "Y[0 :+ 16, 0 :+ 1] = max<over 1>(m)",
        "Y[0 :+ 16, 0 :+ 1] = f32(all<over 1>(x > 0))",
        "Y[0 :+ 1, 0 :+ 1] = max<over 0>(sum<over 1>(x))",
        "var b = x\nif M > 3 {\n  b = x + 1\n}\nY[0 :+ 16, 0 :+ 1] = max<over 1>(b)",
    ],
)
def test_a_fold_that_zeros_may_decide(body: str) -> None:
    assert any("which read as 0 [-W masked-fold]" in one for one in told(body))


@pytest.mark.parametrize(
    "body",
    [
        "Y[0 :+ 16, 0 :+ 1] = sum<over 1>(x)",
        "Y[0 :+ 16, 0 :+ 1] = max<over 1>(pad(X[0 :+ 16, 0 :+ 64], -inf))",
        "Y[0 :+ 16, 0 :+ 1] = max<over 1>(where(valid(X[0 :+ 16, 0 :+ 64]), x, -1.0))",
        "Y[0 :+ 16, 0 :+ 1] = max<over 1>(abs(x))",
        "Y[0 :+ 16, 0 :+ 1] = max<over 1>(Z[0 :+ 16, 0 :+ 64])",
        "Y[0 :+ 16, 0 :+ 1] = max<over 1>(Y[0 :+ 16, 0 :+ 64])",
        "Y[0 :+ 1, 0 :+ 64] = max<over 0>(sum<over 0>(x))",
        "Y[0 :+ 16, 0 :+ 1] = f32(any<over 1>(x > 0))",
        "Y[0 :+ 16, 0 :+ 1] = max<over 1>(f32(W[0 :+ 16, 0 :+ 1] + full<u8>(1, 16, 4)))",
    ],
)
def test_a_fold_that_zeros_do_not_touch(body: str) -> None:
    assert told(body) == []


def test_the_whole_message() -> None:
    (text,) = told("Y[0 :+ 16, 0 :+ 1] = max<over 1>(x)")
    assert (
        text
        == """\
test.ph:5:24: warning: `max` may take in elements past the end of `X`, which read as 0 \
[-W masked-fold]
 5 |   Y[0 :+ 16, 0 :+ 1] = max<over 1>(x)
   |                        ^~~~~~~~~~~~~~
test.ph:4:11: note: this slice may end past axis 1 of `X`
 4 |   let x = X[0 :+ 16, 0 :+ 64]
   |           ^~~~~~~~~~~~~~~~~~~
help: pad with what changes nothing, as in `pad(X[...], -inf)`, or promise `@aligned(N = 64)`"""
    )


@pytest.mark.parametrize(
    ("fold", "value"),
    [
        ("max<over 1>(Q[0 :+ 16, 0 :+ 64])", "-128"),
        ("min<over 1>(Q[0 :+ 16, 0 :+ 64])", "127"),
        ("min<over 1>(W[0 :+ 16, 0 :+ 64])", "255"),
        ("prod<over 1>(x)", "1"),
        ("min<over 1>(x)", "inf"),
    ],
)
def test_the_value_to_pad_with(fold: str, value: str) -> None:
    (text,) = told(f"Y[0 :+ 16, 0 :+ 1] = f32({fold})")
    assert f"[...], {value})`" in text


def test_unsigned_max_starts_at_0() -> None:
    assert told("Y[0 :+ 16, 0 :+ 1] = f32(max<over 1>(W[0 :+ 16, 0 :+ 64]))") == []


def test_python_hears_of_it() -> None:
    text = KERNEL.format(body="  Y[0 :+ 16, 0 :+ 1] = max<over 1>(x)")
    for _ in range(2):  # not from the cache either
        with pytest.warns(phobos.PhobosWarning, match="may take in elements"):
            phobos.compile(text, chip="sm_80")
