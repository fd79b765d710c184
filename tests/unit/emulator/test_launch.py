"""Launching: arguments, geometry, what is refused and that nothing is written then."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import EmulatorError, FindingKind, emulate

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<16>;"


def kernel(body: str, parameters: str = ".param .u64 x", before: str = "") -> str:
    """A module with one kernel `k`."""
    return f"{HEADER}{before}\n.visible .entry k({parameters})\n{{ {REGISTERS}\n{body}\nret; }}\n"


STORE_ONE = kernel("ld.param.u64 %d0,[x]; st.global.u32 [%d0],1;")


@pytest.mark.parametrize(
    ("parameter", "value", "bits"),
    [
        (".u32", np.int32(-1), 0xFFFFFFFF),
        (".u32", 7, 7),
        (".s32", -7, 0xFFFFFFF9),
        (".f32", 1.5, 0x3FC00000),
        (".f32", np.float32(-2), 0xC0000000),
        (".b32", np.uint32(9), 9),
        (".b32", np.float32(1), 0x3F800000),
        (".u8", np.uint8(200), 200),
        (".s16", -2, 0xFFFE),
        (".align 2 .b8", np.float16(1), 0x3C00),
        (".align 2 .b8", ml_dtypes.bfloat16(1), 0x3F80),
        (".f16", np.float16(2), 0x4000),
        (".align 4 .b8", b"\x01\x02\x03\x04", 0x04030201),
    ],
)
def test_scalars_by_value(parameter: str, value: Any, bits: int):
    size = {"u8": 1, "s16": 2, "f16": 2}.get(parameter.split(".")[-1], 4)
    name = "v"
    if "align" in parameter:
        size = int(parameter.split()[1])
        name = f"v[{size}]"
    body = f"ld.param.b{8 * size} %r0,[v]; ld.param.u64 %d0,[x]; st.global.u32 [%d0],%r0;"
    out = np.zeros(1, np.uint32)
    emulate(kernel(body, f".param {parameter} {name}, .param .u64 x"), "k", 1, 1, [value, out])
    assert out[0] == bits


def test_wide_scalars_and_alignment_of_the_parameter_block():
    body = """ld.param.u64 %d0,[x]; ld.param.u64 %d1,[b]; ld.param.f64 %d2,[c];
    st.global.v2.u64 [%d0],{%d1,%d2};"""
    out = np.zeros(2, np.uint64)
    parameters = ".param .u8 a, .param .u64 b, .param .f64 c, .param .u64 x"
    emulate(kernel(body, parameters), "k", 1, 1, [1, np.int64(-5), 2.0, out])
    assert out.view(np.int64)[0] == -5
    assert out.view(np.float64)[1] == 2.0


INCREMENT = kernel("""mov.u32 %r0,%tid.x; ld.param.u64 %d0,[x]; mul.wide.u32 %d1,%r0,4;
add.u64 %d0,%d0,%d1; ld.global.u32 %r1,[%d0]; add.u32 %r1,%r1,1; st.global.u32 [%d0],%r1;""")


def test_arrays_are_written_in_place():
    x = np.arange(10, dtype=np.int32)
    emulate(INCREMENT, "k", 1, 10, [x])
    assert x.tolist() == list(range(1, 11))


def test_views_share_memory_as_on_the_host():
    whole = np.zeros(16, dtype=np.uint32)
    emulate(INCREMENT, "k", 1, 4, [whole[4:8]])
    assert whole.tolist() == [0] * 4 + [1] * 4 + [0] * 8
    body = """ld.param.u64 %d0,[x]; ld.param.u64 %d1,[y]; st.global.u32 [%d0],5;
    ld.global.u32 %r0,[%d1]; add.u32 %r0,%r0,1; st.global.u32 [%d1+4],%r0;"""
    emulate(kernel(body, ".param .u64 x, .param .u64 y"), "k", 1, 1, [whole, whole])
    assert whole[:2].tolist() == [5, 6]
    emulate(kernel(body, ".param .u64 x, .param .u64 y"), "k", 1, 1, [whole[10:], whole[9:]])
    assert whole[9:11].tolist() == [0, 1]


def test_strided_and_small_arrays():
    column = np.zeros((4, 3), dtype=np.uint32)[:, 1]
    emulate(STORE_ONE, "k", 1, 1, [column])
    assert column.tolist() == [1, 0, 0, 0]
    single = np.array(7, dtype=np.uint32)
    emulate(STORE_ONE, "k", 1, 1, [single])
    assert single == 1
    low = np.zeros(4, dtype=ml_dtypes.bfloat16)
    text = kernel("ld.param.u64 %d0,[x]; mov.b16 %h0,0x3F80; st.global.b16 [%d0+2],%h0;")
    emulate(text, "k", 1, 1, [low])
    assert low.tolist() == [0, 1, 0, 0]


def test_grid_and_block_indices():
    body = """mov.u32 %r0,%tid.x; mov.u32 %r1,%tid.y; mov.u32 %r2,%tid.z; mov.u32 %r3,%ctaid.x;
    mov.u32 %r4,%ctaid.y; mov.u32 %r5,%ctaid.z; mov.u32 %r6,%ntid.x; mov.u32 %r7,%ntid.y;
    mov.u32 %r9,%nctaid.x; mov.u32 %r10,%nctaid.y; mov.u32 %r12,%ntid.z;
    mad.lo.u32 %r11,%r5,%r10,%r4; mad.lo.u32 %r11,%r11,%r9,%r3;
    mad.lo.u32 %r11,%r11,%r12,%r2; mad.lo.u32 %r11,%r11,%r7,%r1; mad.lo.u32 %r11,%r11,%r6,%r0;
    ld.param.u64 %d0,[x]; mul.wide.u32 %d1,%r11,4; add.u64 %d0,%d0,%d1;
    add.u32 %r11,%r11,1; red.global.add.u32 [%d0],%r11;"""
    out = np.zeros(2 * 3 * 2 * 5 * 3 * 2, np.uint32)
    emulate(kernel(body), "k", (2, 3, 2), (5, 3, 2), [out])
    assert out.tolist() == list(range(1, out.size + 1))


@pytest.mark.parametrize("threads", [1, 31, 33, 96, 100, 1024])
def test_odd_block_sizes(threads: int):
    x = np.zeros(threads, dtype=np.uint32)
    emulate(INCREMENT, "k", 1, threads, [x])
    assert (x == 1).all()


def test_dynamic_shared_memory():
    body = """mov.u32 %r0,%tid.x; mov.u32 %r1,dyn; mad.lo.u32 %r2,%r0,4,%r1;
    st.shared.u32 [%r2],%r0; bar.sync 0; mov.u32 %r3,%ntid.x; sub.u32 %r3,%r3,1;
    sub.u32 %r3,%r3,%r0; mad.lo.u32 %r3,%r3,4,%r1; ld.shared.u32 %r4,[%r3];
    ld.param.u64 %d0,[x]; mul.wide.u32 %d1,%r0,4; add.u64 %d0,%d0,%d1; st.global.u32 [%d0],%r4;"""
    text = kernel(body, before=".extern .shared .align 16 .b8 dyn[];")
    out = np.zeros(64, np.uint32)
    emulate(text, "k", 1, 64, [out], shared=256)
    assert out.tolist() == list(range(63, -1, -1))
    with pytest.raises(EmulatorError, match=r"out of bounds: .* outside `dyn` of 252 bytes"):
        emulate(text, "k", 1, 64, [out], shared=252)


WRONG_LAUNCHES = [
    ({"args": []}, r"takes 1 arguments \(x\), got 0"),
    ({"args": [1.5]}, r"argument 0 \(`x`\) .* is .u64 and takes an integer, got 1.5"),
    ({"args": [np.float32(1)]}, r"is .u64 and takes an integer, got float32"),
    ({"args": ["text"]}, "must be a NumPy array, a tensor map, a scalar or bytes, got str"),
    ({"args": [2**64]}, "which cannot hold"),
    ({"entry": "kk"}, r"no kernel `kk`; it has `k`(?s:.*)did you mean `k`"),
    ({"grid": 0}, "extent x of the grid must be from 1 to"),
    ({"grid": (1, 65536)}, "extent y of the grid"),
    ({"block": (1, 1, 65)}, "extent z of the block"),
    ({"block": (32, 64)}, "a CTA has at most 1024 threads, got 2048"),
    ({"block": ()}, "the block has one to three extents, got 0"),
    ({"checks": ("bound",)}, "there is no check `bound`(?s:.*)did you mean `bounds`"),
    ({"uninitialised": (3,)}, "argument 3 counts as uninitialised but is no array"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_LAUNCHES)
def test_wrong_launches_are_refused(change: dict[str, Any], message: str):
    x = np.zeros(4, np.uint32)
    launch: dict[str, Any] = {"entry": "k", "grid": 1, "block": 1, "args": [x], **change}
    with pytest.raises(PhobosError, match=message) as caught:
        emulate(STORE_ONE, **launch)
    assert not isinstance(caught.value, EmulatorError)
    assert not x.any()


def test_launch_bounds():
    limited = STORE_ONE.replace("u64 x)", "u64 x)\n.maxntid 64,1,1 .minnctapersm 1")
    with pytest.raises(PhobosError, match="allows at most 64 threads in a CTA"):
        emulate(limited, "k", 1, 65, [np.zeros(1, np.uint32)])
    required = STORE_ONE.replace("u64 x)", "u64 x)\n.reqntid 64,1,1")
    with pytest.raises(PhobosError, match=r"requires blocks of \(64, 1, 1\)"):
        emulate(required, "k", 1, 32, [np.zeros(1, np.uint32)])


def test_a_finding_leaves_the_arrays_alone():
    body = "ld.param.u64 %d0,[x]; st.global.u32 [%d0],1; st.global.u32 [%d0+400],1;"
    x = np.zeros(4, np.uint32)
    with pytest.raises(EmulatorError) as caught:
        emulate(kernel(body), "k", 1, 1, [x], name="f.ptx")
    assert not x.any()
    finding = caught.value.finding
    assert finding.kind is FindingKind.BOUNDS
    assert (finding.kernel, finding.cta, finding.thread) == ("k", (0, 0, 0), (0, 0, 0))
    assert finding.address is not None
    assert "388 bytes past the end of `x` of 16 bytes" in str(caught.value)


def test_read_only_arrays_can_be_read_but_not_written():
    x = np.arange(4, dtype=np.uint32)
    x.flags.writeable = False
    with pytest.raises(EmulatorError, match="`x`, which is read-only"):
        emulate(INCREMENT, "k", 1, 4, [x])
    y = np.zeros(4, np.uint32)
    body = """ld.param.u64 %d0,[x]; ld.param.u64 %d1,[y]; ld.global.u32 %r0,[%d0+8];
    st.global.u32 [%d1],%r0;"""
    emulate(kernel(body, ".param .u64 x, .param .u64 y"), "k", 1, 1, [x, y])
    assert y[0] == 2


@pytest.mark.parametrize(
    ("target", "version", "line", "message"),
    [
        ("sm_75", "7.0", "cp.async.wait_all;", "does not exist on sm_75; it needs sm_80 or newer"),
        ("sm_75", "7.0", "redux.sync.add.u32 %r0,%r1,-1;", "`redux.sync.add.u32`: does not exist"),
        ("sm_80", "7.4", "add.bf16 %h0,%h1,%h2;", "it needs sm_90 or newer"),
        ("sm_80", "7.0", "ld.global.L1::no_allocate.u32 %r0,[%d0];", "needs .version 7.4"),
        ("sm_90", "8.0", "wgmma.fence.sync.aligned;", "it needs sm_90a"),
        ("sm_90", "7.0", "mov.u32 %r0,1;", "sm_90 needs .version 7.8 or newer"),
        ("sm_90", "8.0", "frobnicate.b32 %r0,%r1;", "`frobnicate.b32`: is not supported"),
        ("sm_90", "8.0", "add.u32 %r0,%r1;", "takes 3 operands, got 2"),
        ("sm_90", "8.0", "add.u32 %r0,%h1,%r2;", "`%h1` has 16 bits, expected 32"),
        ("sm_90", "8.0", "add.f32 %r0,%r1,2;", "integer literal 2 cannot be .f32"),
        ("sm_80", "8.0", "mov.u32 %r0,%cluster_ctarank;", "`%cluster_ctarank` does not exist"),
    ],
)
def test_instructions_are_refused_with_the_reason(
    target: str, version: str, line: str, message: str
):
    text = kernel(line, "").replace("8.0", version).replace("sm_90", target)
    with pytest.raises(PhobosError) as caught:
        emulate(text, "k", 1, 1, [])
    assert message in str(caught.value)


def test_progress_and_waves():
    seen: list[tuple[int, int]] = []
    x = np.zeros(1, np.uint32)
    text = kernel("ld.param.u64 %d0,[x]; red.global.add.u32 [%d0],1;")
    emulate(text, "k", 10, 32, [x], resident=4, progress=lambda *done: seen.append(done))
    assert x[0] == 320
    assert seen == [(4, 10), (8, 10), (10, 10)]


def test_a_seed_repeats_its_schedule():
    body = """mov.u32 %r0,%tid.x; mov.u32 %r1,%ctaid.x; ld.param.u64 %d0,[x];
    atom.global.add.u32 %r2,[%d0],1; mov.u32 %r3,%ntid.x; mad.lo.u32 %r3,%r1,%r3,%r0;
    mul.wide.u32 %d1,%r3,4; add.u64 %d1,%d0,%d1; st.global.u32 [%d1+4],%r2;"""

    def order(seed: int) -> list[int]:
        x = np.zeros(1 + 8 * 64, np.uint32)
        emulate(kernel(body), "k", 8, 64, [x], seed=seed)
        assert sorted(x[1:].tolist()) == list(range(512))
        return x[1:].tolist()

    assert order(0) == list(range(512))
    assert order(3) == order(3)
    assert len({tuple(order(seed)) for seed in range(5)}) > 3
