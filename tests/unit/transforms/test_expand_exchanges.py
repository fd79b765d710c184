"""Folds over many warps: what each thread fetches of the other warps' results."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check, compiled

SOURCE = """\
@launch({threads})
kernel fold(X: tensor<{kind}>[{rows}, {columns}], S: tensor<{kind}>[{rows}, 1],
            T: tensor<{kind}>[1, {columns}]) {{
  let x = X[:, :]
  S[:, :] = {name}<over 1>(x)
  T[:, :] = {name}<over 0>(x)
}}
"""


@pytest.mark.parametrize("threads", [64, 256, 512, 1024])
@pytest.mark.parametrize(("rows", "columns"), [(1, 4096), (256, 16), (33, 100)])
@pytest.mark.parametrize(("name", "kind"), [("sum", "f32"), ("max", "i32"), ("min", "f64")])
def test_folds_by_any_number_of_warps(
    threads: int, rows: int, columns: int, name: str, kind: str
) -> None:
    function = {"sum": np.sum, "max": np.max, "min": np.min}[name]

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        return {
            "S": function(x, axis=1, keepdims=True),
            "T": function(x, axis=0, keepdims=True),
        }

    source = SOURCE.format(threads=threads, kind=kind, rows=rows, columns=columns, name=name)
    check(source, reference, [{}], chips=("sm_80",), absolute=1e-4)


@pytest.mark.parametrize(("threads", "shuffles"), [(128, 5), (256, 6), (512, 7), (1024, 8)])
def test_a_thread_fetches_one_vector_and_lanes_fold_the_rest(threads: int, shuffles: int) -> None:
    source = f"""\
@launch({threads})
kernel total(x: tensor<f32>[8192], out: tensor<f32>[1]) {{
  out[:] = sum<over 0>(x[:])
}}
"""
    ptx = compiled(source).ptx
    assert len(re.findall(r"ld\.shared", ptx)) == 1
    assert len(re.findall(r"ld\.shared\.v4\.b32", ptx)) == 1
    assert len(re.findall(r"shfl\.sync\.bfly", ptx)) == shuffles
    assert len(re.findall(r"bar\.sync", ptx)) == 1
