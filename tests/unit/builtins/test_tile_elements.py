"""Elements and slices of tiles: values in shared memory, with the barriers that order them."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.diagnostics import listening
from phobos.driver.compilation import compile_text
from phobos.driver.options import make_options
from phobos.emulator import EmulatorError
from tests.support.cases import Arrays
from tests.unit.builtins.trying import check

SHAPES = [(16, 8), (5, 7), (1, 40), (33, 1)]


def extents(*shape: int) -> str:
    return ", ".join(f"0 :+ {extent}" for extent in shape)


@pytest.mark.parametrize("type_", ["f32", "f16", "i8", "f64"])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_threads_read_elements(rows: int, columns: int, type_: str) -> None:
    source = f"""\
kernel k(X: tensor<{type_}>[{rows}, {columns}], Y: tensor<{type_}>[{rows}, {columns}]) {{
  let t = X[:, :] + X[:, :]
  for e in range(ctx.thread, {rows * columns}, ctx.threads) {{
    let r = e / {columns}
    let c = e % {columns}
    Y[r, c] = t[{rows - 1} - r, c]
  }}
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        doubled = 2 * tensors["X"][::-1]
        return {"Y": doubled.astype(np.int8) if type_ == "i8" else doubled}

    check(source, reference, [{}], chips=("sm_80",), relative=2e-3)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_threads_write_elements(rows: int, columns: int) -> None:
    source = f"""\
@launch(64)
kernel k(X: tensor<f32>[{rows}, {columns}], Y: tensor<f32>[{rows}, {columns}]) {{
  var t: tile<f32>[{rows}, {columns}]
  for e in range(ctx.thread, {rows * columns}, ctx.threads) {{
    t[e / {columns}, e % {columns}] = X[e / {columns}, e % {columns}] + 1.0
  }}
  t = t * 2
  if ctx.thread < {rows} {{
    t[ctx.thread, 0] -= 5.0
  }}
  Y[:, :] = t
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        out = 2 * (tensors["X"] + 1)
        out[:, 0] -= 5
        return {"Y": out}

    check(source, reference, [{}], chips=("sm_80",), widths=(32, 64))


@pytest.mark.parametrize("type_", ["f32", "f16", "i8", "f64"])
@pytest.mark.parametrize(("rows", "columns"), [(16, 8), (12, 20), (7, 33)])
def test_slices_at_run_time_places(rows: int, columns: int, type_: str) -> None:
    """Reads past the end give 0, and writes there are skipped, as for a tensor."""
    source = f"""\
kernel k(X: tensor<{type_}>[{rows}, {columns}], Y: tensor<{type_}>[4, {columns}],
         Z: tensor<{type_}>[{rows}, {columns}], at: i32) {{
  let t = X[:, :]
  Y[:, :] = t[at :+ 4, :]
  var u = X[:, :]
  u[at :+ 4, 1 :+ 3] = full<{type_}>(1, 4, 3)
  Z[:, :] = u
}}
"""
    for at in (-2, 0, 3, rows - 2, rows + 1):

        def reference(tensors: Arrays, _: object, at: int = at) -> Arrays:
            x = tensors["X"]
            y, z = np.zeros((4, columns)), x.copy()
            for row in range(4):
                if 0 <= at + row < rows:
                    y[row] = x[at + row]
                    z[at + row, 1:4] = 1
            return {"Y": y, "Z": z}

        check(source, reference, [{}], scalars={"at": at}, chips=("sm_80",))


def test_a_loop_over_rows() -> None:
    source = """\
kernel k(X: tensor<f32>[12, 20], Y: tensor<f32>[12, 20]) {
  var t = X[:, :]
  for i in range(1, 12) {
    t[i, :] += t[i - 1, :]
  }
  Y[:, :] = t
}
"""
    check(
        source,
        lambda tensors, _: {"Y": np.cumsum(tensors["X"], axis=0)},
        [{}],
        absolute=1e-5,
        chips=("sm_80",),
    )


def test_a_value_without_a_name_and_a_parameter() -> None:
    source = """\
fn corner(t: tile<f32>[R, C], i: index) -> f32 {
  return t[R - 1, i]
}
kernel k(X: tensor<f32>[4, 8], Y: tensor<f32>[8], Z: tensor<f32>[2, 8]) {
  if ctx.block.x == 0 {
    let c = (X[:, :] * 3)[1, ctx.thread % 8]
    let d = corner(X[:, :], ctx.thread % 8)
    if ctx.thread < 8 {
      Y[ctx.thread] = c + d
    }
  }
  Z[:, :] = (X[:, :] - 1)[1 :+ 2, :]
}
"""
    check(
        source,
        lambda tensors, _: {
            "Y": 3 * tensors["X"][1] + tensors["X"][3],
            "Z": tensors["X"][1:3] - 1,
        },
        [{}],
        chips=("sm_80",),
    )


def test_runs_of_a_tile() -> None:
    source = """\
@launch(32)
kernel k(X: tensor<i8>[32, 16], W: tensor<i8>[1, 16], Y: tensor<i32>[32], Z: tensor<i8>[32, 16]) {
  let x = X[:, :]
  var z: tile<i8>[32, 16]
  let i = ctx.thread
  Y[i] = sum(i32(x[i, 0 :+ 16]) * i32(W[0, 0 :+ 16]))
  store(z[i, 0 :+ 16], elem(x[31 - i, 0 :+ 16]))
  Z[:, :] = z
}
"""
    check(
        source,
        lambda tensors, _: {
            "Y": (tensors["X"] * tensors["W"]).sum(axis=1),
            "Z": tensors["X"][::-1],
        },
        [{}],
    )


def test_rows_of_a_tile_by_number() -> None:
    source = """\
kernel k(X: tensor<f32>[10, 12], T: tensor<i32>[6], Y: tensor<f32>[6, 12], Z: tensor<f32>[10, 12],
         G: tensor<f32>[10, 12]) {
  let x = X[:, :] * 1
  Y[:, :] = x[T[:], :]
  var z: tile<f32>[10, 12] = 0
  z[T[:], :] = X[0 :+ 6, :]
  Z[:, :] = z
  G[:, :] = gather(x, (iota<0>(10, 12) * 7 + iota<1>(10, 12)) % 12, 1)
}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["T"][...] = [3, -1, 9, 10, 0, 5]

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        y, z = np.zeros((6, 12)), np.zeros((10, 12))
        for row, number in enumerate(tensors["T"]):
            if 0 <= number < 10:
                y[row] = x[number]
                z[number] = x[row]
        rows, columns = np.indices((10, 12))
        return {"Y": y, "Z": z, "G": np.take_along_axis(x, (rows * 7 + columns) % 12, axis=1)}

    check(source, reference, [{}], prepare=prepare, chips=("sm_80",))


def test_pad_valid_and_extent_of_a_tile() -> None:
    source = """\
kernel k(X: tensor<f32>[10, 12], Y: tensor<f32>[4, 12], V: tensor<i32>[4, 12], at: i32) {
  let x = X[:, :]
  Y[:, :] = pad(x[at :+ 4, :], 7) + f32(extent(x, 1))
  V[:, :] = i32(valid(x[at :+ 4, :]))
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        y = np.full((4, 12), 7.0)
        y[:2] = tensors["X"][8:]
        return {"Y": y + 12, "V": np.repeat([[1], [1], [0], [0]], 12, axis=1)}

    check(source, reference, [{}], scalars={"at": 8}, chips=("sm_80",))


def test_the_emulator_reports_what_nothing_wrote() -> None:
    source = """\
kernel k(Y: tensor<f32>[8]) {
  var t: tile<f32>[8]
  if ctx.thread < 7 {
    t[ctx.thread] = 1
  }
  Y[:] = t
}
"""
    with pytest.raises(EmulatorError, match="uninitialised"):
        check(source, lambda *_: {"Y": np.ones(8)}, [{}], chips=("sm_80",))


def test_the_emulator_reports_a_missing_barrier_between_points() -> None:
    source = """\
@launch(64)
kernel k(Y: tensor<f32>[64]) {
  var t: tile<f32>[64]
  t[ctx.thread] = 1
  Y[ctx.thread] = t[63 - ctx.thread]
}
"""
    with pytest.raises(EmulatorError, match="race"):
        check(source, lambda *_: {"Y": np.ones(64)}, [{}], chips=("sm_80",))
    fixed = source.replace("= 1\n", "= 1\n  barrier()\n")
    check(fixed, lambda *_: {"Y": np.ones(64)}, [{}], chips=("sm_80",))


def test_a_tile_read_before_it_is_written() -> None:
    source = """\
kernel k(Y: tensor<f32>[8]) {
  var t: tile<f32>[8]
  Y[:] = t
}
"""
    with listening() as listener:
        compile_text(source, "test.ph", make_options(chip="sm_80"))
    (one,) = listener.diagnostics
    assert one.message == "`t` is read before anything is written to it"


def test_a_tile_that_each_branch_assigns() -> None:
    source = """\
kernel k(X: tensor<f32>[8], Y: tensor<f32>[8], n: i32) {
  var t: tile<f32>[8]
  if n > 0 {
    t = X[:]
  } else {
    t = X[:] * 2
  }
  Y[:] = t
}
"""
    for n in (0, 1):
        factor = 1 if n else 2
        check(
            source,
            lambda tensors, _, f=factor: {"Y": tensors["X"] * f},
            [{}],
            scalars={"n": n},
            chips=("sm_80",),
        )
