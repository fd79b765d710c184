"""Tiles read and written at places that a tile of subscripts names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check


def subscripts(name: str, extent: int, *, distinct: bool = False) -> Callable[[Arrays], None]:
    """Random subscripts, some of them outside, or distinct ones that are all inside."""

    def prepare(tensors: Arrays) -> None:
        generator = np.random.default_rng(7)
        array = tensors[name]
        if distinct:
            array.reshape(-1)[...] = generator.permutation(extent)[: array.size]
        else:
            array[...] = generator.integers(-2, extent + 2, array.shape)

    return prepare


def taken(array: np.ndarray, rows: np.ndarray, axis: int) -> np.ndarray:
    """np.take that gives 0 outside."""
    inside = (rows >= 0) & (rows < array.shape[axis])
    result = np.take(array, np.where(inside, rows, 0), axis=axis)
    shape = [1] * array.ndim
    shape[axis] = len(rows)
    return np.where(inside.reshape(shape), result, 0)


@pytest.mark.parametrize(
    ("type_", "subscript", "count", "columns"),
    [
        ("f32", "i32", 8, 64),
        ("f16", "i64", 5, 12),
        ("i8", "u32", 1, 33),
        ("f64", "u8", 5, 12),
        ("bf16", "i32", 8, 64),
    ],
)
def test_rows(type_: str, subscript: str, count: int, columns: int) -> None:
    source = f"""\
kernel k(T: tensor<{subscript}>[{count}], W: tensor<{type_}>[V, D],
         O: tensor<{type_}>[{count}, {columns}]) {{
  O[:, :] = W[T[:], 0 :+ {columns}]
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        rows = taken(tensors["W"], tensors["T"], 0)
        out = np.zeros((count, columns))
        out[:, : rows.shape[1]] = rows[:, :columns]
        return {"O": out}

    dims = [{"V": 20, "D": columns}, {"V": 3, "D": columns + 5}, {"V": 1, "D": 4}]
    unsigned = subscript.startswith("u")
    for extents in dims:

        def prepare(tensors: Arrays, extent: int = extents["V"]) -> None:
            subscripts("T", extent)(tensors)
            if unsigned:
                tensors["T"][...] = np.abs(tensors["T"].astype(np.int8))

        check(source, reference, [extents], prepare=prepare, chips=("sm_80",), widths=(32, 64))


def test_wide_subscripts_are_not_cut() -> None:
    source = """\
kernel k(T: tensor<i64>[4], W: tensor<f32>[V], O: tensor<f32>[4]) {
  O[:] = W[T[:]]
}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["T"][...] = [1, (1 << 32) + 1, -(1 << 32) + 1, 3]

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"O": np.array([tensors["W"][1], 0, 0, tensors["W"][3]])}

    check(source, reference, [{"V": 8}], prepare=prepare, chips=("sm_80",), widths=(32, 64))


def test_the_last_and_a_middle_axis() -> None:
    source = """\
kernel k(T: tensor<i32>[6], W: tensor<f32>[3, V, 20], A: tensor<f32>[2, 6, 20],
         B: tensor<f32>[1, 4, 6]) {
  A[:, :, :] = W[1 :+ 2, T[:], :]
  B[:, :, :] = W[0, 0 :+ 4, T[:]]
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {
            "A": taken(tensors["W"], tensors["T"], 1)[1:3],
            "B": taken(tensors["W"][0:1, 0:4], tensors["T"], 2),
        }

    check(source, reference, [{"V": 9}], prepare=subscripts("T", 9))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_subscript_for_each_element(axis: int) -> None:
    source = f"""\
kernel k(T: tensor<i32>[5, 9], W: tensor<f32>[M, N], O: tensor<f32>[5, 9]) {{
  O[:, :] = gather(W, T[:, :], {axis})
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        out, (rows, columns) = np.zeros((5, 9)), tensors["W"].shape
        for place in np.ndindex(5, 9):
            at = list(place)
            at[axis] = tensors["T"][place]
            if 0 <= at[0] < rows and 0 <= at[1] < columns:
                out[place] = tensors["W"][tuple(at)]
        return {"O": out}

    check(source, reference, [{"M": 5, "N": 9}, {"M": 4, "N": 12}], prepare=subscripts("T", 6))


@pytest.mark.parametrize("type_", ["f32", "bf16", "i8"])
@pytest.mark.parametrize(("count", "columns"), [(8, 64), (5, 12), (3, 1)])
def test_scatter(type_: str, count: int, columns: int) -> None:
    source = f"""\
kernel k(T: tensor<i32>[{count}], X: tensor<{type_}>[{count}, {columns}],
         O: tensor<{type_}>[V, D]) {{
  O[T[:], 0 :+ {columns}] = X[:, :]
  barrier()
  if ctx.thread == 0 {{
    O[V - 1, D - 1] = O[V - 1, D - 1]
  }}
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        out = tensors["O"].copy()
        for row, line in zip(tensors["T"], tensors["X"], strict=True):
            if row < out.shape[0]:
                out[row, :columns] = line[: out.shape[1]]
        return {"O": out}

    for rows, width in ((12, columns), (4, columns + 3), (9, max(1, columns - 3))):
        check(
            source,
            reference,
            [{"V": rows, "D": width}],
            prepare=subscripts("T", 16, distinct=True),
            chips=("sm_80",),
        )
