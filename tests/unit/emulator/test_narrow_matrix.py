"""`mma.sync` on 8-, 6- and 4-bit floats with and without block scales, against ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import emulate

TYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
LANE = np.arange(32)
GROUP, QUAD = LANE // 4, LANE % 4


def numbers(generator: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small numbers that the type holds exactly."""
    return generator.choice([-2.0, -1.5, -1.0, 0.0, 0.5, 1.0, 3.0], shape).astype(TYPES[kind])


def registers(matrix: np.ndarray, kind: str, packed: bool) -> np.ndarray:
    """Fragments [register, lane] of A (16 x K, or of B as N x K with 8 rows)."""
    rows, depth = matrix.shape
    patterns = matrix.view(np.uint8).astype(np.uint32)
    bits = 4 if packed else 8
    if kind == "e2m1" and not packed:
        patterns = patterns << 2
    per = 32 // bits
    count = rows * depth // 32 // per
    found = np.zeros((count, 32), np.uint32)
    for register in range(count):
        for i in range(per):
            if rows == 16:
                row, k = GROUP + 8 * (register % 2), per * QUAD + i + 4 * per * (register // 2)
            else:
                row, k = GROUP, per * QUAD + i + 4 * per * register
            found[register] |= patterns[row, k] << np.uint32(bits * i)
    return found


def multiply(form: str, a: np.ndarray, b: np.ndarray, tail: str = "", scales=()) -> np.ndarray:
    """D (16 x 8) of one warp; `scales` are registers by lane, in %s0 and %s1."""
    lines = [
        ".version 8.8\n.target sm_120a\n.address_size 64",
        ".entry k(.param .u64 pa, .param .u64 pb, .param .u64 ps, .param .u64 pd) {",
        ".reg .b32 %a<8>,%b<8>,%c<4>,%s<2>,%t; .reg .b64 %p,%o;",
        "mov.u32 %t,%tid.x; mul.wide.u32 %o,%t,4;",
    ]
    for name, count in (("a", len(a)), ("b", len(b)), ("s", len(scales))):
        lines.append(f"ld.param.u64 %p,[p{name}]; add.u64 %p,%p,%o;")
        lines += [f"ld.global.b32 %{name}{i},[%p+{128 * i}];" for i in range(count)]
    lines += [f"mov.b32 %c{i},0;" for i in range(4)]
    vector = {
        n: ",".join(f"%{n}{i}" for i in range(c))
        for n, c in (("a", len(a)), ("b", len(b)), ("c", 4))
    }
    lines.append(
        f"mma.sync.aligned.{form} {{{vector['c']}}},{{{vector['a']}}},{{{vector['b']}}},"
        f"{{{vector['c']}}}{tail}; ld.param.u64 %p,[pd]; add.u64 %p,%p,%o;"
    )
    lines += [f"st.global.b32 [%p+{128 * i}],%c{i};" for i in range(4)]
    out = np.zeros((4, 32), np.float32)
    extra = np.array(scales, np.uint32) if len(scales) else np.zeros(1, np.uint32)
    emulate("\n".join([*lines, "ret; }"]), "k", 1, 32, [a, b, extra, out])
    d = np.zeros((16, 8), np.float32)
    for i in range(4):
        d[GROUP + 8 * (i // 2), 2 * QUAD + i % 2] = out[i]
    return d


@pytest.mark.parametrize("a_kind", TYPES)
@pytest.mark.parametrize("b_kind", ["e4m3", "e2m3", "e2m1"])
def test_any_two_types_of_a_byte(a_kind: str, b_kind: str):
    generator = np.random.default_rng(1)
    a, b = numbers(generator, a_kind, (16, 32)), numbers(generator, b_kind, (8, 32))
    form = f"m16n8k32.row.col.kind::f8f6f4.f32.{a_kind}.{b_kind}.f32"
    d = multiply(form, registers(a, a_kind, False), registers(b, b_kind, False))
    np.testing.assert_array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.parametrize(
    ("kind", "vector", "scale", "blocks", "packed"),
    [
        ("mxf8f6f4", ".scale_vec::1X", "ue8m0", 1, False),
        ("mxf8f6f4", "", "ue8m0", 1, False),
        ("mxf4", ".scale_vec::2X", "ue8m0", 2, True),
        ("mxf4nvf4", ".scale_vec::4X", "ue4m3", 4, True),
    ],
)
def test_block_scales(kind: str, vector: str, scale: str, blocks: int, packed: bool):
    generator = np.random.default_rng(2)
    depth = 64 if packed else 32
    a, b = numbers(generator, "e2m1", (16, depth)), numbers(generator, "e2m1", (8, depth))
    scales = (
        generator.integers(125, 130, (2, 32, 4))
        if scale == "ue8m0"
        else (generator.integers(0x30, 0x40, (2, 32, 4)))
    )
    words = (scales.astype(np.uint32) << (8 * np.arange(4, dtype=np.uint32))).sum(axis=2)
    byte = {1: 2, 2: 2, 4: 0}[blocks]
    thread_a, thread_b = 1, 3
    form = f"{'m16n8k64' if packed else 'm16n8k32'}.row.col.kind::{kind}.block_scale{vector}"
    form += f".f32.e2m1.e2m1.f32.{scale}"
    tail = f",%s0,{{{byte},{thread_a}}},%s1,{{{byte},{thread_b}}}"
    d = multiply(
        form,
        registers(a, "e2m1", packed),
        registers(b, "e2m1", packed),
        tail,
        words.astype(np.uint32),
    )
    if scale == "ue8m0":
        value = 2.0 ** (scales.astype(np.float64) - 127)
    else:
        value = scales.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    row, column = np.arange(16), np.arange(8)
    of_row = value[0, 4 * (row % 8) + 2 * thread_a + row // 8, byte : byte + blocks]
    of_column = value[1, 4 * column + thread_b, byte : byte + blocks]
    length = depth // blocks
    left = a.astype(np.float64) * np.repeat(of_row, length, axis=1)
    right = b.astype(np.float64) * np.repeat(of_column, length, axis=1)
    np.testing.assert_allclose(d, left @ right.T, rtol=1e-6)


def test_kinds_need_their_chip():
    text = (
        ".version 8.7\n.target sm_120\n.entry k() { .reg .b32 %r<12>; mma.sync.aligned.m16n8k32"
        ".row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 {%r0,%r1,%r2,%r3},{%r4,%r5,%r6,%r7},{%r8,%r9},"
        "{%r0,%r1,%r2,%r3}; ret; }"
    )
    with pytest.raises(PhobosError, match="it needs one of sm_120a, sm_120f"):
        emulate(text, "k", 1, 32, [])
