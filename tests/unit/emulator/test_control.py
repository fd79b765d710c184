"""Branches, calls, barriers, warp operations and memory spaces, each against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import EmulatorError, emulate
from tests.unit.emulator.test_launch import HEADER, kernel

LOAD = """mov.u32 %r0,%tid.x; ld.param.u64 %d0,[x]; mul.wide.u32 %d1,%r0,4;
add.u64 %d0,%d0,%d1; ld.global.u32 %r1,[%d0];"""
STORE = "st.global.u32 [%d0],%r2;"


def run(body: str, x: np.ndarray, *, before: str = "", checks: str = "all") -> np.ndarray:
    """Run a body that makes %r2 from %r1 = x[thread] and %r0 = thread; returns the results."""
    out = x.astype(np.uint32)
    emulate(
        kernel(f"{LOAD} {body} OUT: {STORE}", before=before), "k", 1, len(x), [out], checks=checks
    )
    return out


def test_divergent_loops():
    body = """mov.u32 %r2,0; LOOP: setp.eq.u32 %p0,%r1,1; @%p0 bra OUT; add.u32 %r2,%r2,1;
    and.b32 %r3,%r1,1; setp.eq.u32 %p1,%r3,0; @%p1 bra EVEN; mad.lo.u32 %r1,%r1,3,1; bra LOOP;
    EVEN: shr.u32 %r1,%r1,1; bra LOOP;"""
    x = np.arange(1, 101)

    def steps(n: int) -> int:
        count = 0
        while n != 1:
            n, count = (3 * n + 1 if n % 2 else n // 2), count + 1
        return count

    assert run(body, x).tolist() == [steps(n) for n in x.tolist()]


def test_jump_tables_and_predicated_exits():
    body = """rem.u32 %r3,%r1,3; T: .branchtargets A,B,C; brx.idx %r3,T;
    A: mov.u32 %r2,10; bra OUT; B: mov.u32 %r2,20; bra OUT;
    C: setp.gt.u32 %p0,%r1,50; @%p0 exit; mov.u32 %r2,30;"""
    x = np.arange(90)
    wanted = [n if n % 3 == 2 and n > 50 else 10 * (n % 3 + 1) for n in range(90)]
    assert run(body, x).tolist() == wanted


FACTORIAL = """
.func (.param .b32 r) times(.param .b32 a, .param .b32 b)
{ .reg .b32 %r<4>; ld.param.b32 %r0,[a]; ld.param.b32 %r1,[b]; mul.lo.u32 %r2,%r0,%r1;
  st.param.b32 [r],%r2; ret; }
.func (.reg .b32 r) factorial(.reg .b32 n)
{ .reg .b32 %r<4>; .reg .pred %p; mov.u32 r,1; LOOP: setp.le.u32 %p,n,1; @%p ret;
  { .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a],r; st.param.b32 [b],n;
    call (c), times, (a, b); ld.param.b32 r,[c]; } sub.u32 n,n,1; bra LOOP; }
"""


def test_calls_with_divergent_returns():
    body = """setp.gt.u32 %p0,%r1,6; @%p0 bra BIG; call.uni (%r2), factorial, (%r1); bra OUT;
    BIG: sub.u32 %r3,%r1,6; call (%r2), factorial, (%r3); add.u32 %r2,%r2,1000;"""
    wanted = []
    for n in range(13):
        value = int(np.prod(np.arange(1, (n if n <= 6 else n - 6) + 1)))
        wanted.append(value + (1000 if n > 6 else 0))
    assert run(body, np.arange(13), before=FACTORIAL).tolist() == wanted


def test_recursion_is_refused():
    before = ".func f() { call g; ret; } .func g() { call f; ret; }"
    with pytest.raises(PhobosError, match="recursive calls are not supported"):
        run("call f; mov.u32 %r2,0;", np.arange(1), before=before)


def test_reducing_barriers():
    body = """setp.gt.u32 %p0,%r1,2; bar.red.popc.u32 %r3,0,%p0; bar.red.and.pred %p1,1,%p0;
    bar.red.or.pred %p2,2,!%p0; selp.u32 %r4,100,0,%p1; selp.u32 %r5,1000,0,%p2;
    add.u32 %r2,%r3,%r4; add.u32 %r2,%r2,%r5;"""
    assert run(body, np.full(70, 5)).tolist() == [170] * 70
    assert run(body, np.arange(70)).tolist() == [1067] * 70


def test_producers_arrive_and_consumers_wait():
    body = """mov.u32 %r6,s; mad.lo.u32 %r6,%r0,4,%r6; setp.ge.u32 %p0,%r0,32; @%p0 bra TAKE;
    st.shared.u32 [%r6],%r1; bar.arrive 3,64; mov.u32 %r2,%r1; bra OUT;
    TAKE: bar.sync 3,64; ld.shared.u32 %r2,[%r6+-128]; add.u32 %r2,%r2,500;"""
    out = run(body, np.arange(64), before=".shared .b32 s[64];")
    assert out.tolist() == [*range(32), *range(500, 532)]


@pytest.mark.parametrize(
    ("mode", "b", "c", "source"),
    [
        ("idx", 5, 31, lambda lane: 5),
        ("idx", 3, 0x181F, lambda lane: lane & 0x18 | 3),
        ("bfly", 9, 31, lambda lane: lane ^ 9),
        ("down", 4, 31, lambda lane: lane + 4 if lane + 4 < 32 else lane),
        ("down", 3, 0x1807, lambda lane: lane + 3 if lane % 8 + 3 < 8 else lane),
        ("up", 4, 0, lambda lane: lane - 4 if lane >= 4 else lane),
        ("up", 2, 0x1C00, lambda lane: lane - 2 if lane % 4 >= 2 else lane),
    ],
)
def test_shuffles(mode: str, b: int, c: int, source):
    body = f"shfl.sync.{mode}.b32 %r2|%p0,%r1,{b},{c},-1; @!%p0 add.u32 %r2,%r2,1000;"
    x = np.arange(64) * 3
    wanted = []
    for lane in range(64):
        other = source(lane % 32) + lane // 32 * 32
        # The predicate is false where the lane got its own value for want of a source.
        inside = other != lane or mode == "idx"
        wanted.append(3 * other + (0 if inside else 1000))
    assert run(body, x).tolist() == wanted


def test_votes_matches_and_reductions():
    body = """and.b32 %r3,%r1,1; setp.eq.u32 %p0,%r3,1; vote.sync.ballot.b32 %r4,%p0,-1;
    vote.sync.any.pred %p1,%p0,-1; vote.sync.all.pred %p2,%p0,-1; vote.sync.uni.pred %p3,%p0,-1;
    match.any.sync.b32 %r5,%r3,-1; redux.sync.add.u32 %r6,%r1,-1; redux.sync.max.s32 %r7,%r1,-1;
    redux.sync.xor.b32 %r8,%r1,-1; match.all.sync.b32 %r9|%p2,%r3,-1; activemask.b32 %r10;
    xor.b32 %r2,%r4,%r5; add.u32 %r2,%r2,%r6; add.u32 %r2,%r2,%r7; add.u32 %r2,%r2,%r8;
    add.u32 %r2,%r2,%r9; selp.u32 %r4,7,0,%p1; add.u32 %r2,%r2,%r4; selp.u32 %r4,9,0,%p3;
    add.u32 %r2,%r2,%r4; add.u32 %r2,%r2,%r10;"""
    x = np.arange(32) * 5 + 2
    odd = sum(1 << lane for lane, v in enumerate(x.tolist()) if v % 2)
    total, biggest, mixed = int(x.sum()), int(x.max()), int(np.bitwise_xor.reduce(x))
    rest = total + biggest + mixed + 7 + 0xFFFFFFFF
    wanted = [((odd ^ (odd if v % 2 else ~odd)) + rest) % 2**32 for v in x.tolist()]
    assert run(body, x).tolist() == wanted


def test_vote_waits_for_lanes_that_come_later():
    body = """mov.u32 %r2,0; setp.lt.u32 %p0,%r0,8; @%p0 bra FEW; mad.lo.u32 %r2,%r1,2,%r2;
    FEW: setp.gt.u32 %p1,%r2,10; vote.sync.ballot.b32 %r2,%p1,-1;"""
    x = np.arange(32)
    wanted = sum(1 << lane for lane in range(8, 32) if 2 * lane > 10)
    assert run(body, x).tolist() == [wanted] * 32


def test_elect_and_partial_masks():
    body = """mov.u32 %r2,0; setp.lt.u32 %p0,%r0,12; @%p0 bra OUT;
    elect.sync %r3|%p1,0xFFFFF000; selp.u32 %r2,1,0,%p1; mad.lo.u32 %r2,%r2,100,%r3;"""
    assert run(body, np.arange(32)).tolist() == [0] * 12 + [112] + [12] * 19


def test_generic_addresses_find_their_space():
    before = ".shared .b32 s[64]; .const .b32 c[4] = {11, 22, 33, 44}; .global .b32 g[4];"
    body = """.local .b32 l[4]; mov.u64 %d2,s; cvta.shared.u64 %d2,%d2; mov.u64 %d3,l;
    cvta.local.u64 %d3,%d3; mov.u64 %d4,c; cvta.const.u64 %d4,%d4; mov.u64 %d5,%d0;
    mul.wide.u32 %d6,%r0,4; add.u64 %d2,%d2,%d6; rem.u32 %r3,%r0,4; T: .branchtargets A,B,C,D;
    st.u32 [%d2],%r1; st.u32 [%d3+8],%r1;
    setp.eq.u32 %p0,%r3,0; @%p0 mov.u64 %d5,%d2; setp.eq.u32 %p0,%r3,1;
    @%p0 add.u64 %d5,%d3,8; setp.eq.u32 %p0,%r3,2; @%p0 add.u64 %d5,%d4,4;
    ld.u32 %r2,[%d5]; isspacep.shared %p1,%d5; @%p1 add.u32 %r2,%r2,1000;
    isspacep.local %p1,%d5; @%p1 add.u32 %r2,%r2,2000;
    isspacep.const %p1,%d5; @%p1 add.u32 %r2,%r2,3000;
    isspacep.global %p1,%d5; @%p1 add.u32 %r2,%r2,4000; bra OUT; A: B: C: D:"""
    x = np.arange(64) + 5
    wanted = [[v + 1000, v + 2000, 22 + 3000, v + 4000][i % 4] for i, v in enumerate(x.tolist())]
    assert run(body, x, before=before).tolist() == wanted


def test_vectors_bytes_and_wide_values():
    body = """ld.param.u64 %d0,[x]; ld.global.v4.u8 {%r0,%r1,_,%r2},[%d0]; ld.global.s8 %r3,[%d0+4];
    ld.global.v2.u16 {%h0,%h1},[%d0+8]; cvt.s32.s16 %r4,%h1; .reg .b128 %q; .reg .b64 %lo,%hi;
    ld.global.b128 %q,[%d0+16]; mov.b128 {%lo,%hi},%q; mov.b128 %q,{%hi,%lo};
    st.global.b128 [%d0+48],%q; st.global.v4.u32 [%d0+32],{%r0,%r1,%r2,%r3};
    st.global.u8 [%d0+47],%r4;"""
    x = np.arange(250, 250 + 64).astype(np.uint8)
    before = x.copy()
    emulate(kernel(body).replace(".version 8.0", ".version 8.3"), "k", 1, 1, [x])
    words = x[32:48].view(np.uint32).tolist()
    assert words[:3] == [250, 251, 253]
    sign = before[4].astype(np.int8)
    assert x[44:47].view(np.int8).tolist() == [sign, -1 if sign < 0 else 0, -1 if sign < 0 else 0]
    assert x[47] == before[10:12].view(np.int16).astype(np.uint8)[0]
    assert x[48:56].tolist() == before[24:32].tolist()
    assert x[56:64].tolist() == before[16:24].tolist()


def test_atomics_of_every_kind():
    body = """mov.u32 %r0,%tid.x; ld.param.u64 %d0,[x]; cvt.u64.u32 %d1,%r0; cvt.rn.f32.u32 %r1,%r0;
    red.global.add.f32 [%d0],%r1; atom.global.max.s64 %d2,[%d0+8],%d1;
    atom.global.cas.b32 %r2,[%d0+16],%r0,77; atom.global.exch.b32 %r3,[%d0+20],%r0;
    cvt.rn.f16x2.f32 %r4,%r1,%r1; atom.global.add.noftz.f16x2 %r5,[%d0+24],%r4;
    red.global.inc.u32 [%d0+28],9; cvt.rn.bf16.f32 %h0,%r1; red.global.add.noftz.bf16 [%d0+32],%h0;
    atom.global.add.v2.f32 {%r6,%r7},[%d0+40],{%r1,%r1}; atom.global.cas.b16 %h1,[%d0+34],%h0,%h0;
    """
    x = np.zeros(12, np.uint32)
    x[4] = 13
    emulate(kernel(body).replace(".version 8.0", ".version 8.1"), "k", 1, 20, [x])
    assert x[:1].view(np.float32)[0] == 190
    assert x[2:4].view(np.int64)[0] == 19
    assert (x[4], x[5]) == (77, 19)
    assert x[6:7].view(np.float16).tolist() == [190, 190]
    assert x[7] == 20 % 10
    assert x[8] & 0xFFFF == 0x433E
    assert x[10:12].view(np.float32).tolist() == [190, 190]


def test_spin_locks_make_progress():
    body = """mov.u32 %r0,%tid.x; ld.param.u64 %d0,[x];
    LOCK: atom.acquire.gpu.global.cas.b32 %r1,[%d0],0,1; setp.ne.u32 %p0,%r1,0; @%p0 bra LOCK;
    ld.global.u32 %r2,[%d0+4]; mad.lo.u32 %r2,%r2,3,1; rem.u32 %r2,%r2,1000003;
    st.global.u32 [%d0+4],%r2; membar.gl; atom.release.gpu.global.exch.b32 %r3,[%d0],0;"""
    value = 0
    for _ in range(6 * 40):
        value = (value * 3 + 1) % 1000003
    for seed in (0, 1, 2):
        x = np.zeros(2, np.uint32)
        emulate(kernel(body), "k", 6, 40, [x], checks="all", seed=seed)
        assert x.tolist() == [0, value]


def test_long_loops_over_strong_loads_are_no_deadlock():
    body = """mov.u32 %r2,0; mov.u32 %r3,0; LOOP: ld.volatile.global.u32 %r4,[%d0];
    add.u32 %r2,%r2,%r4; add.u32 %r3,%r3,1; setp.lt.u32 %p0,%r3,6000; @%p0 bra LOOP;"""
    assert run(body, np.arange(3)).tolist() == [0, 6000, 12000]


def test_overflow_of_an_index():
    body = """mov.u32 %r0,%tid.x; ld.param.u64 %d0,[x]; mul.lo.s32 %r1,%r0,70000;
    mul.lo.s32 %r2,%r1,70000; shr.s32 %r3,%r2,31; and.b32 %r3,%r3,0; mul.wide.s32 %d1,%r3,4;
    add.s64 %d0,%d0,%d1; mul.lo.s32 %r4,%r2,%r2; st.global.u32 [%d0],%r4;"""
    x = np.zeros(4, np.uint32)
    emulate(kernel(body), "k", 1, 2, [x])
    with pytest.raises(EmulatorError, match=r"overflow: .*thread \(1, 0, 0\) computes an index"):
        emulate(kernel(body), "k", 1, 2, [x], checks=("overflow",))


def test_traps_name_their_thread():
    with pytest.raises(EmulatorError, match=r"trap: kernel `k`, CTA \(0, 0, 0\), thread \(9, 0"):
        run("mov.u32 %r2,0; setp.eq.u32 %p0,%r1,9; @%p0 trap;", np.arange(20))


def test_printing():
    text = (
        f"{HEADER}.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
        ".global .b8 fmt[12] = {37, 48, 51, 100, 32, 37, 46, 49, 102, 37, 37, 0};\n"
        ".entry k() { .reg .b32 %r<4>; .reg .b64 %d<4>; .local .align 8 .b8 l[16]; .reg .b32 %t;\n"
        "mov.u32 %t,%tid.x; mov.u64 %d0,l; st.local.u32 [l],%t; mov.f64 %d1,2.25;\n"
        "st.local.f64 [l+8],%d1; cvta.local.u64 %d0,%d0; mov.u64 %d2,fmt;\n"
        "cvta.global.u64 %d2,%d2; { .param .b64 a; .param .b64 b; .param .b32 c;\n"
        "st.param.b64 [a],%d2; st.param.b64 [b],%d0; call.uni (c), vprintf, (a, b);\n"
        "ld.param.b32 %r1,[c]; } ret; }"
    )
    printed: list[str] = []
    emulate(text, "k", 1, 3, [], output=printed.append)
    assert printed == ["000 2.2%", "001 2.2%", "002 2.2%"]
