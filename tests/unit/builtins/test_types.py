"""Bools in memory, tiles of many axes, and 8-bit floats."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import CHIPS, check, compiled


def test_bools_in_memory() -> None:
    source = """\
@launch(64)
kernel k(X: tensor<bool>[M, N], Y: tensor<bool>[M, N], A: tensor<bool>[8, 64],
         B: tensor<bool>[8, 64], C: tensor<i32>[64], F: tensor<f32>[8, 64], p: bool) {
  let x = X[0 :+ 8, 0 :+ 64]
  A[:, :] = x && !Y[0 :+ 8, 0 :+ 64]
  B[:, :] = where(x, F[:, :] > 0, pad(Y[0 :+ 8, 0 :+ 64], true))
  let i = ctx.thread
  var n: i32 = 0
  if i < N {
    if X[0, i] && p {
      n = 1
    }
    n += i32(Y[0, i])
  }
  C[i] = n
}
"""

    def padded(array: np.ndarray, value: bool) -> np.ndarray:
        out = np.full((8, 64), value)
        part = array[:8, :64]
        out[: part.shape[0], : part.shape[1]] = part
        return out

    for p in (0, 1):

        def reference(tensors: Arrays, _: object, p: int = p) -> Arrays:
            x, y = (tensors[name].astype(bool) for name in "XY")
            count = np.zeros(64, np.int64)
            n = x.shape[1]
            count[:n] = (x[0] & bool(p)).astype(int) + y[0]
            return {
                "A": padded(x, False) & ~padded(y, False),
                "B": np.where(padded(x, False), tensors["F"] > 0, padded(y, True)),
                "C": count,
            }

        check(
            source,
            reference,
            [{"M": 8, "N": 64}, {"M": 3, "N": 33}, {"M": 1, "N": 62}],
            scalars={"p": p},
            chips=("sm_80",),
        )


def test_bool_tiles_with_elements() -> None:
    source = """\
@launch(32)
kernel k(X: tensor<f32>[40], Y: tensor<bool>[40], Z: tensor<i32>[40]) {
  var t = X[:] > 0
  if ctx.thread == 3 {
    t[7] = !t[7]
  }
  Y[:] = t
  let u = (X[:] < 0)[8 :+ 16]
  Z[:] = 0
  Z[0 :+ 16] = i32(u)
}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        positive = tensors["X"] > 0
        positive[7] = not positive[7]
        z = np.zeros(40)
        z[:16] = tensors["X"][8:24] < 0
        return {"Y": positive, "Z": z}

    check(source, reference, [{}], chips=("sm_80",))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 2, 2, 4, 8), (1, 3, 1, 2, 33)])
def test_tiles_of_many_axes(shape: tuple[int, ...]) -> None:
    dims, ones = "ABCDE"[: len(shape)], ", ".join("0 :+ " + str(n) for n in shape)
    folded = [1 if axis == 1 else n for axis, n in enumerate(shape)]
    turned = [*shape[:-2], shape[-1], shape[-2]]
    source = f"""\
kernel k(X: tensor<f32>[{", ".join(dims)}], Y: tensor<f32>[{", ".join(map(str, shape))}],
         S: tensor<f32>[{", ".join(map(str, folded))}],
         T: tensor<f32>[{", ".join(map(str, turned))}],
         F: tensor<f32>[{np.prod(shape)}]) {{
  let x = X[{ones}]
  let s = sum<over 1>(x)
  Y[{", ".join(":" * len(shape))}] = x - s
  S[{", ".join(":" * len(shape))}] = s
  T[{", ".join(":" * len(shape))}] = transpose(x)
  F[:] = flat(x)
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = np.zeros(shape)
        part = tensors["X"][tuple(slice(n) for n in shape)]
        x[tuple(slice(n) for n in part.shape)] = part
        s = x.sum(axis=1, keepdims=True)
        return {"Y": x - s, "S": s, "T": np.swapaxes(x, -1, -2), "F": x.ravel()}

    check(
        source,
        reference,
        [dict(zip(dims, shape, strict=True)), dict.fromkeys(dims, 2)],
        chips=("sm_80",),
        widths=(32, 64),
    )


# 8-bit floats ------------------------------------------------------------------------------------

SMALL = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}
by_format = pytest.mark.parametrize("type_", list(SMALL))
FP8_CHIPS = ("sm_75", "sm_80", "sm_89")


@by_format
def test_every_8_bit_float_widens(type_: str) -> None:
    source = f"""\
kernel k(X: tensor<{type_}>[256], A: tensor<f32>[256], B: tensor<f16>[256], C: tensor<bf16>[256],
         D: tensor<f64>[256], S: tensor<f32>[256]) {{
  let x = X[:]
  A[:] = f32(x)
  B[:] = f16(x)
  C[:] = bf16(x)
  D[:] = f64(x)
  S[ctx.thread] = f32(X[ctx.thread])
}}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["X"][...] = np.arange(256, dtype=np.uint8).view(SMALL[type_])

    def reference(tensors: Arrays, _: object) -> Arrays:
        return dict.fromkeys("ABCDS", tensors["X"])

    check(
        source,
        reference,
        [{}],
        prepare=prepare,
        chips=FP8_CHIPS,
        relative=0,
        absolute=0,
    )


def narrowed(values: np.ndarray, type_: str) -> np.ndarray:
    """To nearest even, saturating."""
    clipped = np.clip(values.astype(np.float64), -LARGEST[type_], LARGEST[type_])
    return clipped.astype(SMALL[type_]).astype(np.float64)


def awkward(count: int, type_: str) -> np.ndarray:
    """Numbers of all sizes, halfway ones, and ones next to those."""
    generator = np.random.default_rng(3)
    grid = np.arange(256, dtype=np.uint8).view(SMALL[type_]).astype(np.float32)
    grid = np.unique(grid[np.isfinite(grid)])
    middles = (grid[1:] + grid[:-1]) / 2
    near = [np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(-np.inf))]
    sizes = generator.standard_normal(count) * np.exp2(generator.uniform(-30, 20, count))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38]
    return np.concatenate([middles, *near, special, sizes])[:count].astype(np.float32)


@by_format
@pytest.mark.parametrize("source_type", ["f32", "f16", "f64", "bf16"])
def test_narrowing_rounds_once_and_saturates(source_type: str, type_: str) -> None:
    source = f"""\
kernel k(X: tensor<{source_type}>[2048], A: tensor<{type_}>[2048], S: tensor<{type_}>[256]) {{
  A[:] = {type_}(X[:])
  S[ctx.thread] = {type_}(X[ctx.thread])
}}
"""

    def prepare(tensors: Arrays) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            tensors["X"][...] = awkward(2048, type_).astype(tensors["X"].dtype)

    def reference(tensors: Arrays, _: object) -> Arrays:
        with np.errstate(invalid="ignore"):
            narrow = narrowed(tensors["X"], type_)
        return {"A": narrow, "S": narrow[:256]}

    check(source, reference, [{}], prepare=prepare, chips=FP8_CHIPS, relative=0, absolute=0)


@by_format
def test_integers_and_constants(type_: str) -> None:
    source = f"""\
kernel k(X: tensor<i32>[64], L: tensor<i64>[64], A: tensor<{type_}>[64], B: tensor<{type_}>[64],
         C: tensor<i32>[64], D: tensor<{type_}>[64], P: tensor<{type_}>[64], Q: tensor<{type_}>[N],
         s: {type_}) {{
  A[:] = {type_}(X[:])
  B[:] = {type_}(L[:])
  C[:] = i32({type_}(X[:])) + i32(bool({type_}(X[:])))
  D[:] = full<{type_}>(0.3, 64)
  P[:] = pad(Q[0 :+ 64], -1.5)
  if ctx.thread < 4 {{
    D[ctx.thread] = s
  }}
}}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["X"][...] *= 7

    def reference(tensors: Arrays, scalars: object) -> Arrays:
        x, small = tensors["X"], SMALL[type_]
        d = np.full(64, float(np.array(0.3).astype(small)))
        d[:4] = 0.75
        padded = np.full(64, -1.5)
        padded[: min(64, len(tensors["Q"]))] = tensors["Q"][:64]
        return {
            "A": narrowed(x, type_),
            "B": narrowed(tensors["L"], type_),
            "C": narrowed(x, type_) + (x != 0),
            "D": d,
            "P": padded,
        }

    check(
        source,
        reference,
        [{"N": 64}, {"N": 33}, {"N": 8}],
        scalars={"s": 0.75},
        prepare=prepare,
        chips=FP8_CHIPS,
        relative=0,
        absolute=0,
    )


@by_format
def test_8_bit_floats_move_and_multiply(type_: str) -> None:
    source = f"""\
kernel k(X: tensor<{type_}>[16, 32], W: tensor<f8e4m3>[32, 16], T: tensor<{type_}>[32, 16],
         Y: tensor<f32>[16, 16], I: tensor<i32>[8], G: tensor<{type_}>[8, 32]) {{
  let x = X[:, :]
  T[:, :] = transpose(x)
  Y[:, :] = dot(x, W[:, :])
  G[:, :] = x[I[:], :]
}}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["I"][...] = [3, 1, 4, 1, 5, 9, 2, 6]

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        return {"T": x.T, "Y": x @ tensors["W"], "G": x[tensors["I"]]}

    check(source, reference, [{}], prepare=prepare, chips=FP8_CHIPS, relative=1e-5, absolute=1e-4)


@by_format
def test_8_bit_floats_are_chosen(type_: str) -> None:
    source = f"""\
@launch(64)
kernel k(X: tensor<{type_}>[16, 16], Y: tensor<{type_}>[16, 16], A: tensor<{type_}>[16, 16],
         B: tensor<{type_}>[16, 16], C: tensor<{type_}>[16, 16], D: tensor<{type_}>[64]) {{
  let x = X[:, :]
  A[:, :] = where(f32(x) > f32(Y[:, :]), x, Y[:, :])
  B[:, :] = tril(x)
  C[:, :] = triu(where(iota<0>(16, 16) < 8, x, 1.5), 1)
  D[ctx.thread] = where(ctx.thread % 2 == 0, X[1, ctx.thread % 16], 0)
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x, y = tensors["X"], tensors["Y"]
        i = np.arange(64)
        upper = np.where(np.arange(16)[:, None] < 8, x, 1.5)
        return {
            "A": np.where(x > y, x, y),
            "B": np.tril(x),
            "C": np.triu(upper, 1),
            "D": np.where(i % 2 == 0, x[1, i % 16], 0),
        }

    check(source, reference, [{}], chips=("sm_75", "sm_89"), relative=0, absolute=0)


def test_packed_values_in_and_behind_branches() -> None:
    """Halves that one branch takes apart are whole again behind it."""
    source = """\
@launch(32)
kernel k(A: tensor<f16>[32, 8], B: tensor<f16>[32, 8], C: tensor<f32>[32], T: tensor<f16>[64, 64],
         U: tensor<f16>[64, 64], n: i32) {
  let i = ctx.thread
  let r = elem(A[i, 0 :+ 8])
  let t = T[:, :]
  var s: f32 = 0
  if n > 3 {
    s = f32(sum(r))
    U[:, :] = t * 2
  }
  var j = n
  while j > 0 {
    s += f32(sum(r))
    j -= 3
  }
  if n > 5 {
    U[:, :] = t + 1
  }
  store(B[i, 0 :+ 8], r + r)
  C[i] = s + f32(sum(r))
  T[:, :] = t + t
}
"""
    for n in (0, 4, 6):

        def prepare(tensors: Arrays) -> None:
            for name in "ATU":
                tensors[name][...] = np.round(tensors[name] * 8)

        def reference(tensors: Arrays, _: object, n: int = n) -> Arrays:
            a, t, u = tensors["A"], tensors["T"], tensors["U"]
            sums = a.sum(axis=1)
            u = 2 * t if n > 3 else u
            u = t + 1 if n > 5 else u
            times = 1 + (n > 3) + -(-n // 3)
            return {"B": 2 * a, "C": times * sums, "T": 2 * t, "U": u}

        check(source, reference, [{}], scalars={"n": n}, prepare=prepare, chips=("sm_75", "sm_80"))


def test_fma_of_bf16_rounds_once_on_every_chip() -> None:
    """Next to ties and far from them; sm_75 has no such instruction."""
    source = """\
kernel k(A: tensor<bf16>[N], B: tensor<bf16>[N], C: tensor<bf16>[N], D: tensor<bf16>[N]) {
  let i = ctx.block.x * 1024
  D[i :+ 1024] = fma(A[i :+ 1024], B[i :+ 1024], C[i :+ 1024])
}
"""
    generator = np.random.default_rng(5)
    bf16 = ml_dtypes.bfloat16
    near_one = [(1 + generator.integers(0, 128, 2048) / 128).astype(bf16) for _ in range(2)]
    tiny = (generator.choice((-1, 1), 2048) * np.exp2(generator.integers(-60, 10, 2048))).astype(
        bf16
    )
    bits = [generator.integers(0, 1 << 16, 2048).astype(np.uint16).view(bf16) for _ in range(3)]
    a, b, c = (
        np.concatenate(pair) for pair in zip((*near_one, tiny), bits, strict=True)
    )  # fmt: skip
    results = []
    for chip in CHIPS:
        out = np.zeros_like(a)
        compiled(source, chip)["k"](a, b, c, out, device="emulator")
        results.append(out)
    assert "fma.rn.bf16" in compiled(source, "sm_80").ptx
    np.testing.assert_array_equal(*(one.astype(np.float32) for one in results))
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a[:2048], b[:2048], c[:2048], strict=True)
    ]
    errors = [
        abs(Fraction(float(got)) - right) for got, right in zip(results[0], exact, strict=False)
    ]
    unit = [Fraction(2) ** (math.frexp(float(got))[1] - 8) for got in results[0][:2048]]
    assert all(error <= half / 2 for error, half in zip(errors, unit, strict=True))
