"""Built-ins on the bits of values, of scalars, runs and tiles; pow and erf."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tests.support.cases import Arrays
from tests.unit.builtins.trying import check

PAIRS = [
    ("f32", "i32"),
    ("f32", "u32"),
    ("f64", "i64"),
    ("f16", "u16"),
    ("bf16", "i16"),
    ("f16", "bf16"),
    ("u8", "i8"),
    ("i32", "u32"),
]
NUMPY = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def numpy_type(name: str) -> np.dtype:
    if name in NUMPY:
        return np.dtype(NUMPY[name])
    return np.dtype({"i": "i", "u": "u"}[name[0]] + str(int(name[1:]) // 8))


@pytest.mark.parametrize(("source", "target"), [*PAIRS, *((b, a) for a, b in PAIRS)])
def test_bitcast(source: str, target: str) -> None:
    text = f"""\
@launch(32)
kernel k(X: tensor<{source}>[32, 8], T: tensor<{target}>[32, 8], S: tensor<{target}>[32],
         R: tensor<{target}>[32, 8]) {{
  T[:, :] = bitcast<{target}>(X[:, :])
  let i = ctx.thread
  S[i] = bitcast<{target}>(X[i, 0])
  store(R[i, 0 :+ 8], bitcast<{target}>(elem(X[i, 0 :+ 8])))
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        narrow = tensors["X"].astype(numpy_type(source))
        bits = narrow.view(numpy_type(target)).astype(np.float64 if target in NUMPY else np.int64)
        return {"T": bits, "S": bits[:, 0], "R": bits}

    def prepare(tensors: Arrays) -> None:
        # Negative integers have the bits of NaN, whose own bits NumPy does not keep.
        if source not in NUMPY:
            tensors["X"][...] = np.abs(tensors["X"].astype(np.int64))

    check(text, reference, [{}], prepare=prepare, relative=0, absolute=0)


@pytest.mark.parametrize("type_", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_reversed_bits(type_: str) -> None:
    text = f"""\
kernel k(X: tensor<{type_}>[40], T: tensor<{type_}>[40], S: tensor<{type_}>[1]) {{
  T[:] = brev(X[:])
  if ctx.thread == 0 {{
    S[0] = brev(X[1])
  }}
}}
"""
    bits = int(type_[1:])

    def turned(value: int) -> int:
        return int(f"{value % (1 << bits):0{bits}b}"[::-1], 2)

    def reference(tensors: Arrays, _: object) -> Arrays:
        values = [turned(int(x)) for x in tensors["X"]]
        out = np.array(values, f"u{bits // 8}").view(numpy_type(type_))
        return {"T": out, "S": out[1:2]}

    check(text, reference, [{}], chips=("sm_80",))


def test_permuted_bytes() -> None:
    text = """\
kernel k(A: tensor<u32>[64], B: tensor<u32>[64], T: tensor<u32>[64], S: tensor<i32>[64]) {
  T[:] = byteperm(A[:], B[:], 0x7215)
  if ctx.thread < 64 {
    S[ctx.thread] = byteperm(i32(A[ctx.thread]), 3, 0x4321)
  }
}
"""

    def prepare(tensors: Arrays) -> None:
        for name in "AB":
            words = np.random.default_rng(5).integers(0, 1 << 32, 64, np.uint64)
            tensors[name][...] = words.astype(np.uint32)

    def reference(tensors: Arrays, _: object) -> Arrays:
        def permuted(a: int, b: int, selector: int) -> int:
            pool = (b << 32) | a
            return sum((pool >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i for i in range(4))

        pairs = zip(tensors["A"], tensors["B"], strict=True)
        words = np.array([permuted(int(a), int(b), 0x7215) for a, b in pairs], np.uint32)
        other = np.array([permuted(int(a), 3, 0x4321) for a in tensors["A"]], np.uint32)
        return {"T": words, "S": other.view(np.int32)}

    check(text, reference, [{}], prepare=prepare, chips=("sm_80",))


def test_f16_from_bits() -> None:
    text = """\
kernel k(X: tensor<i32>[64], T: tensor<f16>[64], S: tensor<f32>[64]) {
  T[:] = f16bits(X[:])
  if ctx.thread < 64 {
    S[ctx.thread] = f32(f16bits(u32(X[ctx.thread]) >> 2))
  }
}
"""

    def prepare(tensors: Arrays) -> None:
        tensors["X"][...] = np.random.default_rng(5).integers(0, 0x7C00, 64) + (3 << 20)

    def reference(tensors: Arrays, _: object) -> Arrays:
        low = (tensors["X"] & 0xFFFF).astype(np.uint16).view(np.float16)
        other = (tensors["X"] >> 2 & 0xFFFF).astype(np.uint16).view(np.float16)
        return {"T": low.astype(np.float64), "S": other.astype(np.float64)}

    check(text, reference, [{}], prepare=prepare, relative=0, absolute=0)


@pytest.mark.parametrize("type_", ["f32", "f16", "bf16"])
def test_pow_and_erf(type_: str) -> None:
    text = f"""\
kernel k(X: tensor<{type_}>[64], P: tensor<{type_}>[64], Q: tensor<{type_}>[64],
         E: tensor<{type_}>[64]) {{
  let x = X[:]
  P[:] = pow(abs(x), 1.5)
  Q[:] = pow(x, 2)
  E[:] = erf(x)
}}
"""

    def reference(tensors: Arrays, _: object) -> Arrays:
        x = tensors["X"]
        return {"P": np.abs(x) ** 1.5, "Q": x**2, "E": np.vectorize(math.erf)(x)}

    bound = {"f32": 5e-7, "f16": 1e-3, "bf16": 8e-3}[type_]
    check(text, reference, [{}], relative=bound, absolute=1e-7, chips=("sm_75", "sm_80"))
