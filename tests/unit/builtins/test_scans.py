"""Running folds of tiles and over threads, and the places of what folds find."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check

SHAPES = [(1, 64), (16, 1), (7, 5), (3, 300), (64, 32), (40, 130), (2048, 1), (1, 4096)]


def tile(array: np.ndarray, rows: int, columns: int) -> np.ndarray:
    out = np.zeros((rows, columns), array.dtype)
    part = array[:rows, :columns]
    out[: part.shape[0], : part.shape[1]] = part
    return out


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_scan(axis: int, rows: int, columns: int) -> None:
    source = f"""\
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[{rows}, {columns}]) {{
  Y[:, :] = scan<over {axis}>(X[0 :+ {rows}, 0 :+ {columns}])
}}
"""
    check(
        source,
        lambda tensors, _: {"Y": np.cumsum(tile(tensors["X"], rows, columns), axis=axis)},
        [{"M": rows, "N": columns}, {"M": max(1, rows - 3), "N": columns + 4}],
        absolute=2e-4,
    )


@pytest.mark.parametrize("type_", ["f64", "i8", "u8", "i16", "i32", "u64"])
@pytest.mark.parametrize("name", ["scan", "scanmax"])
def test_types(name: str, type_: str) -> None:
    source = f"""\
kernel k(X: tensor<{type_}>[M, N], Y: tensor<{type_}>[12, 150]) {{
  Y[:, :] = {name}<over 1>(X[0 :+ 12, 0 :+ 150])
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        function = np.cumsum if name == "scan" else np.maximum.accumulate
        result = function(tile(tensors["X"], 12, 150), axis=1)
        if type_.startswith(("i", "u")):
            result = result.astype({"i": "i", "u": "u"}[type_[0]] + str(int(type_[1:]) // 8))
        return {"Y": result}

    check(source, reference, [{"M": 12, "N": 150}, {"M": 4, "N": 90}], absolute=1e-9)


def test_cumsum_of_a_contraction() -> None:
    """What a contraction sums in has a layout that no scan can use."""
    source = """\
kernel k(A: tensor<f16>[64, 32], B: tensor<f16>[32, 64], Y: tensor<f32>[64, 64]) {
  Y[:, :] = cumsum(dot(A[:, :], B[:, :]))
}
"""
    check(
        source,
        lambda tensors, _: {"Y": np.cumsum(tensors["A"] @ tensors["B"], axis=0)},
        [{}],
        absolute=1e-3,
        chips=("sm_75", "sm_80"),
    )


def test_scan_of_bools_and_both_axes() -> None:
    source = """\
@launch(96)
kernel k(X: tensor<f32>[20, 70], Y: tensor<i32>[20, 70], Z: tensor<f32>[20, 70]) {
  Y[:, :] = scan<over 1>(X[:, :] > 0)
  Z[:, :] = scan<over 1>(cumsum(X[:, :]))
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        return {"Y": np.cumsum(x > 0, axis=1), "Z": np.cumsum(np.cumsum(x, axis=0), axis=1)}

    check(source, reference, [{}], absolute=2e-3)


@pytest.mark.parametrize(("rows", "columns"), [(1, 64), (7, 5), (3, 300), (64, 32)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("name", "type_"), [("argmax", "f32"), ("argmin", "i8"), ("argmax", "u8")])
def test_positions(name: str, type_: str, axis: int, rows: int, columns: int) -> None:
    shape = [1 if i == axis else extent for i, extent in enumerate((rows, columns))]
    source = f"""\
kernel k(X: tensor<{type_}>[{rows}, {columns}], Y: tensor<i32>[{shape[0]}, {shape[1]}]) {{
  Y[:, :] = {name}<over {axis}>(X[:, :])
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        return {"Y": getattr(np, name)(tensors["X"], axis=axis, keepdims=True)}

    check(source, reference, [{}], chips=("sm_80",))


def test_the_place_of_numbers_among_nan() -> None:
    source = """\
kernel k(X: tensor<f32>[4, 40], Y: tensor<i32>[4, 1]) {
  Y[:, :] = rowargmax(X[:, :])
}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["X"][0, :] = np.nan
        tensors["X"][1, :] = np.nan
        tensors["X"][1, 7] = -3
        tensors["X"][2, :] = -np.inf
        tensors["X"][3, :] = 1
        tensors["X"][3, 5:9] = 2

    check(
        source,
        lambda tensors, _: {"Y": np.array([[0], [7], [0], [5]])},
        [{}],
        prepare=prepare,
        chips=("sm_80",),
    )


# Over threads ------------------------------------------------------------------------------------

THREADS = """\
@launch({threads})
kernel k(X: tensor<{type}>[{threads}], Y: tensor<{result}>[{threads}]) {{
  Y[ctx.thread] = {call}
}}
"""


def groups(scope: str, threads: int) -> np.ndarray:
    """A number for each thread that those it folds with share, and its place among them."""
    number = np.arange(threads)
    return {"lane": number // 32, "warp": number % 32, "thread": number * 0}[scope]


@pytest.mark.parametrize("scope", ["lane", "warp", "thread"])
@pytest.mark.parametrize(
    ("type_", "threads"), [("f32", 256), ("f32", 100), ("i32", 17), ("f64", 100), ("i8", 32)]
)
def test_scan_over_threads(type_: str, scope: str, threads: int) -> None:
    source = THREADS.format(
        threads=threads, type=type_, result=type_, call=f"scan<over ctx.{scope}>(X[ctx.thread])"
    )

    def reference(tensors: Arrays, _: object) -> Arrays:
        group, x = groups(scope, threads), tensors["X"]
        out = np.zeros(threads, x.dtype)
        for which in np.unique(group):
            out[group == which] = np.cumsum(x[group == which])
        return {"Y": out.astype(np.int8) if type_ == "i8" else out}

    check(source, reference, [{}], absolute=1e-4, chips=("sm_80",))


@pytest.mark.parametrize("scope", ["lane", "warp", "thread"])
@pytest.mark.parametrize(
    ("name", "type_", "threads"),
    [
        ("sum", "f32", 256),
        ("sum", "f32", 17),
        ("sum", "f16", 100),
        ("max", "f64", 100),
        ("min", "u16", 256),
        ("prod", "f32", 32),
        ("argmax", "f32", 100),
        ("argmin", "i16", 256),
    ],
)
def test_folds_over_threads(name: str, type_: str, scope: str, threads: int) -> None:
    is_place = name.startswith("arg")
    source = THREADS.format(
        threads=threads,
        type=type_,
        result="i32" if is_place else type_,
        call=f"{name}<over ctx.{scope}>(X[ctx.thread])",
    )

    def reference(tensors: Arrays, _: object) -> Arrays:
        group, x = groups(scope, threads), tensors["X"]
        function = getattr(np, name)
        # Over lanes the place is a lane number, over warps a warp's.
        out = np.zeros(threads, np.int64 if is_place else x.dtype)
        for which in np.unique(group):
            out[group == which] = function(x[group == which])
        return {"Y": out}

    relative = 2e-2 if type_ == "f16" else 1e-5
    check(source, reference, [{}], relative=relative, absolute=relative, chips=("sm_80",))


@pytest.mark.parametrize("threads", [64, 50])
@pytest.mark.parametrize("scope", ["lane", "warp", "thread"])
def test_flags_over_threads(scope: str, threads: int) -> None:
    source = f"""\
@launch({threads})
kernel k(X: tensor<i32>[{threads}], Y: tensor<i32>[4, {threads}]) {{
  let p = X[ctx.thread] > 40
  Y[0, ctx.thread] = i32(any<over ctx.{scope}>(p))
  Y[1, ctx.thread] = i32(all<over ctx.{scope}>(p))
  Y[2, ctx.thread] = count<over ctx.{scope}>(p)
  Y[3, ctx.thread] = scan<over ctx.{scope}>(p)
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        group, p = groups(scope, threads), tensors["X"] > 40
        out = np.zeros((4, threads), np.int64)
        for which in np.unique(group):
            own = group == which
            out[:3, own] = np.array([p[own].any(), p[own].all(), p[own].sum()])[:, None]
            out[3, own] = np.cumsum(p[own])
        return {"Y": out}

    check(source, reference, [{}], chips=("sm_80",))


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(("rows", "columns"), [(3, 33), (2, 256)])
def test_a_running_maximum_of_nan_is_nan(type_: str, rows: int, columns: int) -> None:
    """NaN loses to numbers alone: there is none before the first."""
    source = f"""\
@launch(64)
kernel k(X: tensor<{type_}>[{rows}, {columns}], Y: tensor<{type_}>[{rows}, {columns}],
         Z: tensor<{type_}>[{rows}, {columns}], M: tensor<{type_}>[{rows}, 1]) {{
  Y[:, :] = scanmax<over 1>(X[:, :])
  Z[:, :] = scanmax<over 0>(X[:, :])
  M[:, :] = max<over 1>(X[:, :])
}}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["X"][0, :] = np.nan
        tensors["X"][1, :20] = np.nan
        tensors["X"][-1, 30:] = np.nan

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        return {
            "Y": np.fmax.accumulate(x, axis=1),
            "Z": np.fmax.accumulate(x, axis=0),
            "M": np.fmax.reduce(x, axis=1, keepdims=True),
        }

    check(source, reference, [{}], prepare=prepare, chips=("sm_75", "sm_80"))
