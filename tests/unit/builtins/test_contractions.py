"""`dot`, `dot_t` and `t_dot` from source; the instructions that they become are tested apart."""

from __future__ import annotations

import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check
from tests.unit.frontend.emission import emitted

KERNEL = """\
kernel k(A: tensor<{type}>[{a}], B: tensor<{type}>[{b}], C: tensor<{total}>[{m}, {n}]) {{
  C[:, :] = {name}(A[:, :], B[:, :])
}}
"""
_NAMES = {"dot": (False, False), "dot_t": (False, True), "t_dot": (True, False)}


def source(name: str, type_: str, total: str, m: int, n: int, k: int) -> str:
    turn_a, turn_b = _NAMES[name]
    a = (k, m) if turn_a else (m, k)
    b = (n, k) if turn_b else (k, n)
    return KERNEL.format(
        name=name,
        type=type_,
        total=total,
        m=m,
        n=n,
        a=", ".join(map(str, a)),
        b=", ".join(map(str, b)),
    )


@pytest.mark.parametrize("name", list(_NAMES))
@pytest.mark.parametrize(
    ("type_", "total"),
    [("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("u8", "i32"), ("f64", "f64")],
)
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (5, 3, 7), (33, 8, 20), (1, 1, 1)])
def test_products(name: str, type_: str, total: str, m: int, n: int, k: int) -> None:
    turn_a, turn_b = _NAMES[name]

    def reference(tensors: Arrays, _: object) -> Arrays:
        a = tensors["A"].T if turn_a else tensors["A"]
        return {"C": a @ (tensors["B"].T if turn_b else tensors["B"])}

    check(source(name, type_, total, m, n, k), reference, [{}], absolute=1e-5, relative=1e-5)


@pytest.mark.parametrize(
    "sum_", ["acc + dot(a, b)", "dot(a, b) + acc", "1.0 + dot(a, b)", "acc + dot(a, b) + acc"]
)
def test_a_sum_is_part_of_the_product(sum_: str) -> None:
    text = emitted(
        "let a = A[0 :+ 16, 0 :+ 16]\nlet b = A[16 :+ 16, 0 :+ 16]\n"
        "let acc = A[32 :+ 16, 0 :+ 16]\n"
        f"A[0 :+ 16, 0 :+ 16] = {sum_}"
    )
    assert text.count("arith.addf") == (1 if sum_.endswith("+ acc") and "acc +" in sum_ else 0)


def test_points_leave_axes_of_extent_1() -> None:
    text = """\
kernel k(A: tensor<f32>[2, 16, 8], B: tensor<f32>[2, 8, 16], C: tensor<f32>[1, 16, 16]) {
  C[:, :, :] = dot(A[1, :, :], B[0, :, :])
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"C": (tensors["A"][1] @ tensors["B"][0])[None]}

    check(text, reference, [{}], absolute=1e-5)
