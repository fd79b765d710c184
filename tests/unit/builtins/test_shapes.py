"""Built-ins that move elements of tiles about or make tiles of coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check


def tile(array: np.ndarray, *shape: int) -> np.ndarray:
    """What a slice at the origin reads."""
    out = np.zeros(shape, array.dtype)
    part = array[tuple(slice(extent) for extent in shape)]
    out[tuple(slice(extent) for extent in part.shape)] = part
    return out


def extents(*shape: int) -> str:
    return ", ".join(f"0 :+ {extent}" for extent in shape)


@pytest.mark.parametrize("type_", ["f32", "f16", "i8", "f64"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 40), (7, 5), (16, 64), (33, 3)])
def test_transpose(rows: int, columns: int, type_: str) -> None:
    source = f"""\
kernel k(X: tensor<{type_}>[M, N], Y: tensor<{type_}>[{columns}, {rows}]) {{
  Y[{extents(columns, rows)}] = transpose(X[{extents(rows, columns)}])
}}
"""
    check(
        source,
        lambda tensors, _: {"Y": tile(tensors["X"], rows, columns).T},
        [{"M": rows, "N": columns}, {"M": max(1, rows - 1), "N": columns + 2}],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((16, 8), (128,)),
        ((16, 8), (4, 32)),
        ((3, 64), (6, 32)),
        ((5, 7), (5, 1, 7)),
        ((5, 1, 8), (5, 8)),
        ((32,), (1, 32)),
        ((3, 5), (15,)),
        ((12, 10), (8, 15)),
        ((7, 4), (4, 7)),
    ],
)
def test_reshape(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    dims = ", ".join("ABC"[: len(before)])
    source = f"""\
kernel k(X: tensor<f32>[{dims}], Y: tensor<f32>[{", ".join(map(str, after))}]) {{
  Y[{extents(*after)}] = reshape(X[{extents(*before)}], {", ".join(map(str, after))})
}}
"""
    check(
        source,
        lambda tensors, _: {"Y": tile(tensors["X"], *before).reshape(after)},
        [dict(zip("ABC", before, strict=False)), dict.fromkeys("ABC"[: len(before)], 1)],
    )


def test_flat_of_a_fold() -> None:
    source = """\
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[16]) {
  Y[:] = flat(rowmax(X[0 :+ 16, 0 :+ 64]))
}
"""
    check(
        source,
        lambda tensors, _: {"Y": tile(tensors["X"], 16, 64).max(axis=1)},
        [{"M": 16, "N": 64}, {"M": 3, "N": 5}],
    )


def test_iota_and_full() -> None:
    source = """\
kernel k(A: tensor<i32>[5], B: tensor<i32>[3, 8], C: tensor<i32>[3, 8], D: tensor<f16>[2, 3],
         E: tensor<f32>[4], F: tensor<i32>[4], value: f32) {
  A[:] = iota(5)
  B[:, :] = iota<0>(3, 8)
  C[:, :] = iota<1>(3, 8) * 10 + iota<0>(3, 8)
  D[:, :] = full<f16>(1.5, 2, 3)
  E[:] = full(value, 4)
  F[:] = full(7, 4)
}
"""

    def reference(tensors: Arrays, scalars: object) -> Arrays:
        rows, columns = np.indices((3, 8))
        return {
            "A": np.arange(5),
            "B": rows,
            "C": columns * 10 + rows,
            "D": np.full((2, 3), 1.5),
            "E": np.full(4, 0.25),
            "F": np.full(4, 7),
        }

    check(source, reference, [{}], scalars={"value": 0.25})


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (5, 9), (12, 3)])
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(name: str, rows: int, columns: int) -> None:
    source = f"""\
kernel k(X: tensor<f32>[M, N], A: tensor<f32>[{rows}, {columns}],
         B: tensor<f32>[{rows}, {columns}], diagonal: i32) {{
  let t = X[{extents(rows, columns)}]
  A[:, :] = {name}(t)
  B[:, :] = {name}(t, diagonal)
}}
"""
    for diagonal in (-2, 1, 30):

        def reference(tensors: Arrays, _: object, diagonal: int = diagonal) -> Arrays:
            function, array = getattr(np, name), tile(tensors["X"], rows, columns)
            return {"A": function(array), "B": function(array, diagonal)}

        check(
            source,
            reference,
            [{"M": rows, "N": columns}],
            scalars={"diagonal": diagonal},
            chips=("sm_80",),
        )


@pytest.mark.parametrize("type_", ["f32", "f16", "bf16", "i8", "i32", "f64"])
def test_pad(type_: str) -> None:
    source = f"""\
kernel k(X: tensor<{type_}>[M, N], Y: tensor<{type_}>[6, 40], start: i32) {{
  Y[:, :] = pad(X[start :+ 6, 0 :+ 40], 3)
}}
"""
    for start in (-2, 0, 2):

        def reference(tensors: Arrays, _: object, start: int = start) -> Arrays:
            out = np.full((6, 40), 3, tensors["X"].dtype)
            for row in range(6):
                if 0 <= row + start < tensors["X"].shape[0]:
                    line = tensors["X"][row + start, :40]
                    out[row, : len(line)] = line
            return {"Y": out}

        check(
            source,
            reference,
            [{"M": 6, "N": 40}, {"M": 4, "N": 36}, {"M": 3, "N": 33}, {"M": 9, "N": 50}],
            scalars={"start": start},
            chips=("sm_80",),
            widths=(32, 64),
        )


def test_pad_with_a_scalar_and_valid() -> None:
    source = """\
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[6, 40], V: tensor<i32>[6, 40], start: i32,
         fill: f32) {
  Y[:, :] = pad(X[start :+ 6, 0 :+ 40], fill)
  V[:, :] = i32(valid(X[start :+ 6, 0 :+ 40]))
}
"""
    for start in (-3, 0, 5):

        def reference(tensors: Arrays, _: object, start: int = start) -> Arrays:
            rows = np.arange(6)[:, None] + start
            inside = (rows >= 0) & (rows < tensors["X"].shape[0])
            inside = inside & (np.arange(40) < tensors["X"].shape[1])
            moved = np.full((6, 40), -1.5)
            for row, column in zip(*np.nonzero(inside), strict=True):
                moved[row, column] = tensors["X"][row + start, column]
            return {"Y": moved, "V": inside.astype(np.int64)}

        check(
            source,
            reference,
            [{"M": 6, "N": 40}, {"M": 4, "N": 33}, {"M": 1, "N": 1}],
            scalars={"start": start, "fill": -1.5},
            chips=("sm_80",),
            widths=(32, 64),
        )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("type_", ["f32", "f16", "bool"])
def test_cat(type_: str, axis: int) -> None:
    shapes = [(5, 8), (5, 3), (5, 16)] if axis else [(4, 7), (1, 7), (6, 7)]
    total = np.concatenate([np.zeros(shape) for shape in shapes], axis).shape
    parameters = ", ".join(
        f"{name}: tensor<{type_}>[{rows}, {columns}]"
        for name, (rows, columns) in zip("XYZ", shapes, strict=True)
    )
    source = f"""\
kernel k({parameters}, O: tensor<{type_}>[{total[0]}, {total[1]}]) {{
  O[:, :] = cat<{axis}>(X[:, :], Y[:, :], Z[:, :])
}}
"""
    check(
        source,
        lambda tensors, _: {"O": np.concatenate([tensors[name] for name in "XYZ"], axis)},
        [{}],
        chips=("sm_80",),
    )


def test_unrolled_loops() -> None:
    source = """\
kernel k(X: tensor<f32>[13, 40], A: tensor<f32>[1, 40], B: tensor<f32>[1, 40], n: i32) {
  var a = full(0.0, 1, 40)
  for<unroll> i in range(0, 13) {
    a = a * 0.5 + X[i, :]
  }
  A[:, :] = a
  var b = full(0.0, 1, 40)
  for<unroll 4> i in range(0, n) {
    b = b * 0.5 + X[i, :]
  }
  B[:, :] = b
}
"""
    for n in (0, 3, 4, 11, 13):

        def reference(tensors: Arrays, _: object, n: int = n) -> Arrays:
            a, b = np.zeros((1, 40)), np.zeros((1, 40))
            for row in range(13):
                a = a * 0.5 + tensors["X"][row]
                b = b * 0.5 + tensors["X"][row] if row < n else b
            return {"A": a, "B": b}

        check(source, reference, [{}], scalars={"n": n}, chips=("sm_80",), relative=1e-5)
