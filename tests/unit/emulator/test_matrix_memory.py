"""Matrices between memory and fragments: ldmatrix, stmatrix, movmatrix, wmma."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from phobos.emulator import emulate
from tests.unit.emulator.test_launch import kernel

LANE = np.arange(32)
ROW, COLUMN = LANE // 4, 2 * (LANE % 4)
FILL = """mov.u32 %r0,%tid.x; ld.param.u64 %d0,[x]; mul.wide.u32 %d1,%r0,16; add.u64 %d2,%d0,%d1;
ld.global.v4.u32 {%r1,%r2,%r3,%r4},[%d2]; mov.u32 %r6,s; mad.lo.u32 %r7,%r0,16,%r6;"""
SHARED = ".shared .align 128 .b8 s[512];"


def fragments(matrices: np.ndarray, transpose: bool) -> np.ndarray:
    """What each lane holds, [lane, matrix, 2], of matrices [matrix, 8, 8]."""
    if transpose:
        matrices = matrices.transpose(0, 2, 1)
    return np.stack([matrices[:, ROW, COLUMN], matrices[:, ROW, COLUMN + 1]], -1).swapaxes(0, 1)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transpose", [False, True])
def test_ldmatrix(count: int, transpose: bool):
    registers = ",".join(f"%r{8 + i}" for i in range(count))
    form = f"x{count}{'.trans' if transpose else ''}"
    stores = "".join(f"st.global.u32 [%d2+{4 * i}],%r{8 + i};" for i in range(count))
    body = f"""{FILL} st.shared.v4.u32 [%r7],{{%r1,%r2,%r3,%r4}}; bar.warp.sync -1;
    ldmatrix.sync.aligned.m8n8.{form}.shared.b16 {{{registers}}},[%r7]; {stores}"""
    x = np.arange(4 * 64, dtype=np.uint16).reshape(4, 8, 8)
    out = x.copy()
    emulate(kernel(body, before=SHARED), "k", 1, 32, [out], checks="all")
    got = out.reshape(32, 4, 2)[:, :count]
    np.testing.assert_array_equal(got, fragments(x, transpose)[:, :count])


@pytest.mark.parametrize("transpose", [False, True])
def test_stmatrix_undoes_ldmatrix(transpose: bool):
    trans = ".trans" if transpose else ""
    body = f"""{FILL} stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r7],{{%r1,%r2,%r3,%r4}};
    bar.warp.sync -1; ld.shared.v4.u32 {{%r8,%r9,%r10,%r11}},[%r7];
    st.global.v4.u32 [%d2],{{%r8,%r9,%r10,%r11}};"""
    wanted = np.arange(4 * 64, dtype=np.uint16).reshape(4, 8, 8)
    x = np.ascontiguousarray(fragments(wanted, transpose)).astype(np.uint16)
    emulate(kernel(body, before=SHARED), "k", 1, 32, [x], checks="all")
    np.testing.assert_array_equal(x.reshape(4, 8, 8), wanted)


def test_movmatrix_transposes():
    body = f"{FILL} movmatrix.sync.aligned.m8n8.trans.b16 %r8,%r1; st.global.u32 [%d2],%r8;"
    matrix = np.arange(64, dtype=np.uint16).reshape(1, 8, 8)
    x = np.zeros((32, 8), np.uint16)
    x[:, :2] = fragments(matrix, False)[:, 0]
    emulate(kernel(body, before=SHARED), "k", 1, 32, [x])
    np.testing.assert_array_equal(x[:, :2], fragments(matrix, True)[:, 0])


# wmma --------------------------------------------------------------------------------------------

# shape, element type, accumulator, registers of A, B and C.
WMMA = [
    ("m16n16k16", "f16", "f32", 8, 8, 8),
    ("m16n16k16", "f16", "f16", 8, 8, 4),
    ("m32n8k16", "f16", "f32", 8, 8, 8),
    ("m8n32k16", "f16", "f32", 8, 8, 8),
    ("m16n16k16", "bf16", "f32", 4, 4, 8),
    ("m32n8k16", "bf16", "f32", 8, 2, 8),
    ("m16n16k8", "tf32", "f32", 4, 4, 8),
    ("m16n16k16", "s8", "s32", 2, 2, 8),
    ("m16n16k16", "u8", "s32", 2, 2, 8),
    ("m32n8k16", "s8", "s32", 4, 1, 8),
    ("m8n32k16", "u8", "s32", 1, 4, 8),
    ("m8n8k4", "f64", "f64", 1, 1, 2),
]
NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
    "f64": np.float64,
}


@pytest.mark.parametrize(("shape", "kind", "result", "na", "nb", "nc"), WMMA)
@pytest.mark.parametrize("layouts", ["row.col", "col.row"])
def test_wmma(shape: str, kind: str, result: str, na: int, nb: int, nc: int, layouts: str):
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    generator = np.random.default_rng(5)
    low = 0 if kind == "u8" else -4
    a = generator.integers(low, 5, (m, k)).astype(NUMPY[kind])
    b = generator.integers(low, 5, (k, n)).astype(NUMPY[kind])
    c = generator.integers(-9, 9, (m, n)).astype(NUMPY[result])
    d = np.zeros((n, m), NUMPY[result])
    width = 64 if kind == "f64" else 32
    la, lb = layouts.split(".")
    vectors = {
        name: "{" + ",".join(f"%{name}{i}" for i in range(count)) + "}"
        for name, count in (("a", na), ("b", nb), ("c", nc))
    }
    types = f"{result}.{result}" if kind == "f16" else f"{result}.{kind}.{kind}.{result}"
    text = f""".version 8.0\n.target sm_90\n.address_size 64
    .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {{
    .reg .b{width} %a<9>,%b<9>,%c<9>; .reg .b64 %p<4>; .reg .b32 %ld<4>;
    ld.param.u64 %p0,[pa]; ld.param.u64 %p1,[pb]; ld.param.u64 %p2,[pc]; ld.param.u64 %p3,[pd];
    mov.u32 %ld0,{k if la == "row" else m}; mov.u32 %ld1,{n if lb == "row" else k};
    mov.u32 %ld2,{n}; mov.u32 %ld3,{m};
    wmma.load.a.sync.aligned.{la}.{shape}.global.{kind} {vectors["a"]},[%p0],%ld0;
    wmma.load.b.sync.aligned.{lb}.{shape}.global.{kind} {vectors["b"]},[%p1],%ld1;
    wmma.load.c.sync.aligned.row.{shape}.global.{result} {vectors["c"]},[%p2],%ld2;
    wmma.mma.sync.aligned.{la}.{lb}.{shape}.{types}
      {vectors["c"]},{vectors["a"]},{vectors["b"]},{vectors["c"]};
    wmma.store.d.sync.aligned.col.{shape}.global.{result} [%p3],{vectors["c"]},%ld3;
    ret; }}"""
    left = np.ascontiguousarray(a if la == "row" else a.T)
    right = np.ascontiguousarray(b if lb == "row" else b.T)
    emulate(text, "k", 1, 32, [left, right, c, d], checks="all")
    wanted = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(d.T.astype(np.float64), wanted)
