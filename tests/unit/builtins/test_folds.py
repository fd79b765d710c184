"""Folds of tiles along axes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check

KERNEL = """\
kernel k(X: tensor<{type}>[M, N], Y: tensor<{result}>[{out}]) {{
  let t = X[0 :+ {rows}, 0 :+ {columns}]
  Y[{store}] = {fold}
}}
"""


def fold(array: np.ndarray, name: str, axes: tuple[int, ...]) -> np.ndarray:
    function = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[name]
    return function(array, axis=axes, keepdims=True)


def padded(array: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The tile that a slice at the origin reads."""
    out = np.zeros((rows, columns), array.dtype)
    part = array[:rows, :columns]
    out[: part.shape[0], : part.shape[1]] = part
    return out


def kernel(type_: str, name: str, axes: tuple[int, ...], rows: int, columns: int) -> str:
    shape = [1 if axis in axes else extent for axis, extent in enumerate((rows, columns))]
    return KERNEL.format(
        type=type_,
        result=type_,
        out=", ".join(map(str, shape)),
        rows=rows,
        columns=columns,
        store=", ".join(f"0 :+ {extent}" for extent in shape),
        fold=f"{name}<over {', '.join(map(str, axes))}>(t)",
    )


@pytest.mark.parametrize(("rows", "columns"), [(1, 64), (16, 1), (7, 5), (8, 300), (33, 128)])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("name", ["sum", "max"])
def test_every_shape(name: str, axes: tuple[int, ...], rows: int, columns: int) -> None:
    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"Y": fold(padded(tensors["X"], rows, columns), name, axes)}

    check(
        kernel("f32", name, axes, rows, columns),
        reference,
        [{"M": rows, "N": columns}, {"M": max(1, rows - 3), "N": columns + 1}, {"M": 1, "N": 1}],
        absolute=2e-5,
    )


@pytest.mark.parametrize("type_", ["f16", "bf16", "f64", "i8", "u8", "i16", "u16", "i32", "u64"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_every_type(name: str, type_: str) -> None:
    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"Y": fold(padded(tensors["X"], 6, 40), name, (1,))}

    check(kernel(type_, name, (1,), 6, 40), reference, [{"M": 6, "N": 40}, {"M": 3, "N": 33}])


def test_products() -> None:
    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"Y": fold(padded(tensors["X"], 4, 12), "prod", (1,))}

    check(kernel("f32", "prod", (1,), 4, 12), reference, [{"M": 4, "N": 12}], relative=1e-5)
