"""`mbarrier`: phases, counts, states, and what is reported about wrong uses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import EmulatorError, emulate
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.support.tensor_copy_kernels import module

PARAMETERS = ".param .u64 out"


def kernel(body: str, chip: str = "sm_90") -> str:
    """A kernel that ends by storing %r20 of every thread."""
    return module(
        PARAMETERS,
        f"""{body}
ld.param.u64 %d1,[out]; mul.wide.u32 %d2,%r0,4; add.u64 %d1,%d1,%d2; st.global.b32 [%d1],%r20;""",
        chip,
    )


def run(body: str, seed: int = 0, checks: str = "all", chip: str = "sm_90") -> list[int]:
    out = np.zeros(64, np.uint32)
    emulate(kernel(body, chip), "k", 1, 64, [out], 32768, checks, seed, name="k.ptx")
    return out.tolist()


TESTED = "mbarrier.test_wait.parity.shared::cta.b64 %p1,[%r2+8],{parity}; selp.u32 {to},1,0,%p1;"


def test_parities_of_a_fresh_barrier():
    body = f"""{TESTED.format(parity=0, to="%r20")} {TESTED.format(parity=1, to="%r21")}
    shl.b32 %r21,%r21,1; or.b32 %r20,%r20,%r21;"""
    assert run(body) == [2] * 64


@pytest.mark.parametrize("seed", range(4))
def test_threads_meet_again_and_again(seed: int):
    """Every thread reads in each phase what its neighbour in the other warp wrote."""
    body = """shl.b32 %r3,%r0,2; add.u32 %r3,%r3,%r1; xor.b32 %r4,%r0,63; shl.b32 %r4,%r4,2;
    add.u32 %r4,%r4,%r1; mov.u32 %r20,0; mov.u32 %r5,0; mov.u32 %r6,0;
    AGAIN: add.u32 %r7,%r0,%r5; st.shared.u32 [%r3],%r7;
    mbarrier.arrive.shared::cta.b64 _,[%r2+8];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r2+8],%r6; @!%p1 bra W;
    xor.b32 %r6,%r6,1; ld.shared.u32 %r8,[%r4]; add.u32 %r20,%r20,%r8;
    mbarrier.arrive.shared::cta.b64 _,[%r2+8];
    V: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r2+8],%r6; @!%p1 bra V;
    xor.b32 %r6,%r6,1; add.u32 %r5,%r5,1; setp.lt.u32 %p1,%r5,5; @%p1 bra AGAIN;"""
    assert run(body, seed) == [5 * (63 - t) + 10 for t in range(64)]


def test_states_and_pending_counts():
    body = """@%p0 bra REST;
    mbarrier.init.shared::cta.b64 [%r2+16],3;
    mbarrier.arrive.shared::cta.b64 %d3,[%r2+16]; mbarrier.pending_count.b64 %r20,%d3;
    mbarrier.test_wait.shared::cta.b64 %p1,[%r2+16],%d3; @%p1 add.u32 %r20,%r20,100;
    mbarrier.arrive.noComplete.shared::cta.b64 %d4,[%r2+16],1;
    mbarrier.pending_count.b64 %r21,%d4; mad.lo.u32 %r20,%r21,10,%r20;
    mbarrier.arrive.shared::cta.b64 %d4,[%r2+16];
    mbarrier.test_wait.shared::cta.b64 %p1,[%r2+16],%d3; @%p1 add.u32 %r20,%r20,1000;
    bra STORED; REST: mov.u32 %r20,7; STORED:"""
    assert run(body) == [1023] + [7] * 63


def test_generic_addresses():
    body = """mov.u32 %r20,0; @%p0 bra REST; cvt.u64.u32 %d3,%r2; cvta.shared.u64 %d3,%d3;
    mbarrier.arrive.b64 %d4,[%d3]; mbarrier.test_wait.b64 %p1,[%d3],%d4; selp.u32 %r20,1,0,%p1;
    REST:"""
    assert run(body) == [1] + [0] * 63
    with pytest.raises(EmulatorError) as caught:
        run(body.replace("cvta.shared.u64 %d3,%d3;", "ld.param.u64 %d3,[out];"))
    assert "names an mbarrier outside shared memory" in str(caught.value)


@pytest.mark.parametrize("relaxed", ["arrive", "try_wait"])
def test_relaxed_arrivals_and_waits_order_nothing(relaxed: str):
    body = """shl.b32 %r3,%r0,2; add.u32 %r3,%r3,%r1; xor.b32 %r4,%r0,63; shl.b32 %r4,%r4,2;
    add.u32 %r4,%r4,%r1; st.shared.u32 [%r3],%r0;
    mbarrier.arrive.release.cta.shared::cta.b64 _,[%r2+8];
    W: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1,[%r2+8],0; @!%p1 bra W;
    ld.shared.u32 %r20,[%r4];"""
    assert run(body) == list(range(63, -1, -1))
    for order in ("release", "acquire"):
        if (order == "release") == (relaxed == "arrive"):
            body = body.replace(order, "relaxed")
    out = np.zeros(64, np.uint32)
    text = kernel(body).replace(".version 8.0", ".version 8.6")
    with pytest.raises(EmulatorError, match="with nothing to order the two"):
        emulate(text, "k", 1, 64, [out], 32768, "race")


MANY = """bar.sync 0; @%p0 bra GO; mbarrier.init.shared::cta.b64 [%r2+16],{count};
GO: bar.sync 0; mbarrier.arrive.shared::cta.b64 _,[%r2+16]; bar.sync 0;
mbarrier.test_wait.parity.shared::cta.b64 %p1,[%r2+16],{parity}; selp.u32 %r20,1,0,%p1;"""


@pytest.mark.parametrize(("count", "phases"), [(64, 1), (32, 2), (100, 0)])
def test_arrivals_of_whole_warps(count: int, phases: int):
    found = [run(MANY.format(count=count, parity=parity))[0] for parity in (0, 1)]
    assert found == [phases % 2, 1 - phases % 2]


@pytest.mark.parametrize(("count", "phase", "left"), [(16, 0, 16), (48, 0, 16)])
def test_a_warp_does_not_arrive_in_two_phases_at_once(count: int, phase: int, left: int):
    with pytest.raises(EmulatorError) as caught:
        run(MANY.format(count=count, parity=0))
    assert (
        f"arrives at the mbarrier at 0x7810 with its warp, 32 times at once, in phase {phase}; it "
        f"waits for {left} of its {count} arrivals"
    ) in str(caught.value)


def test_dropped_arrivals_lower_the_count():
    body = """@%p0 bra REST;
    mbarrier.init.shared::cta.b64 [%r2+16],2;
    mbarrier.arrive_drop.shared::cta.b64 _,[%r2+16]; mbarrier.arrive.shared::cta.b64 _,[%r2+16];
    mbarrier.arrive.shared::cta.b64 %d3,[%r2+16];
    mbarrier.test_wait.shared::cta.b64 %p1,[%r2+16],%d3; selp.u32 %r20,1,0,%p1;
    mbarrier.inval.shared::cta.b64 [%r2+16]; mov.u32 %r21,5; st.shared.u32 [%r2+16],%r21;
    bra STORED; REST: mov.u32 %r20,7; STORED:"""
    assert run(body) == [1] + [7] * 63


ONE = "mov.u32 %r20,0; @%p0 bra STORED; {line} STORED:"
FAULTS = {
    "not_initialised": (
        "uninitialised",
        "mbarrier.arrive.shared::cta.b64 _,[%r2+16];",
        "arrives at the mbarrier at 0x7810, which nothing initialised",
    ),
    "invalidated": (
        "uninitialised",
        "mbarrier.inval.shared::cta.b64 [%r2]; "
        "mbarrier.test_wait.parity.shared::cta.b64 %p1,[%r2],0;",
        "waits at the mbarrier at 0x7800, which was invalidated",
    ),
    "twice": (
        "mbarrier",
        "mbarrier.init.shared::cta.b64 [%r2],1;",
        "initialises the mbarrier at 0x7800 again; it is in use until `mbarrier.inval`",
    ),
    "no_count": (
        "mbarrier",
        "mbarrier.init.shared::cta.b64 [%r2+16],0;",
        "initialises the mbarrier at 0x7810 with a count of 0; counts go from 1 to 1048575",
    ),
    "no_arrivals": (
        "mbarrier",
        "mbarrier.arrive.shared::cta.b64 %d3,[%r2],0;",
        "arrives at the mbarrier at 0x7800 with a count of 0; counts go from 1 to 1048575",
    ),
    "misaligned": (
        "misaligned",
        "mbarrier.arrive.shared::cta.b64 _,[%r2+4];",
        "arrives at 8 bytes at 0x7804, which is no multiple of 8",
    ),
    "outside": (
        "out of bounds",
        "mbarrier.arrive.shared::cta.b64 _,[%r2+4096];",
        "arrives at 8 bytes at 0x8800, outside `s` of 32768 bytes in shared memory",
    ),
    "too_many": (
        "mbarrier",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r2],16; "
        "mbarrier.arrive.shared::cta.b64 _,[%r2];",
        "arrives at the mbarrier at 0x7800 in phase 0, which has all of its 1 arrivals; it lacks "
        "16 more bytes",
    ),
    "would_complete": (
        "mbarrier",
        "mbarrier.arrive.noComplete.shared::cta.b64 %d3,[%r2],1;",
        "arrives at the mbarrier at 0x7800 by `.noComplete`; this would complete its phase",
    ),
    "too_many_bytes": (
        "mbarrier",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r2+8],1048576;",
        "changes the bytes that the mbarrier at 0x7808 waits for; they would be 1048576",
    ),
    "too_old": (
        "mbarrier",
        "mbarrier.arrive.shared::cta.b64 %d3,[%r2]; mbarrier.arrive.shared::cta.b64 _,[%r2]; "
        "mbarrier.test_wait.shared::cta.b64 %p1,[%r2],%d3;",
        "waits at the mbarrier at 0x7800 for phase 0; it is in phase 2, and a wait knows that and",
    ),
    "parity_of_two": (
        "mbarrier",
        "mbarrier.test_wait.parity.shared::cta.b64 %p1,[%r2],2;",
        "waits at the mbarrier at 0x7800 for parity 2; a parity is 0 or 1",
    ),
    "written": (
        "mbarrier",
        "st.shared.u32 [%r2+4],%r20;",
        "writes 4 bytes at 0x7804, in shared memory, where an mbarrier is in use",
    ),
    "read": (
        "mbarrier",
        "ld.shared.u64 %d3,[%r2];",
        "reads 8 bytes at 0x7800, in shared memory, where an mbarrier is in use",
    ),
    "never_complete": (
        "deadlock",
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r2+8],0; @!%p1 bra W;",
        "waits at the mbarrier at 0x7808 for phase 0 (parity 0), which lacks 64 of 64 arrivals "
        "that never come",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str):
    kind, line, message = FAULTS[name]
    with pytest.raises(EmulatorError) as caught:
        run(ONE.format(line=line), checks="async")
    assert caught.value.finding.kind == kind
    first = str(caught.value).splitlines()[0]
    assert re.match(r"k\.ptx:\d+:\d+: error: .*: kernel `k`, CTA \(0, 0, 0\), thread \(0, 0", first)
    assert message in first
    assert line.split()[-2].split(".")[0] in str(caught.value)


@pytest.mark.parametrize(
    ("line", "chip", "message"),
    [
        ("mbarrier.arrive.shared::cta.b64 _,[%r2],2;", "sm_80", "does not exist on sm_80"),
        ("mbarrier.arrive.global.b64 _,[%d2];", "sm_90", "works on shared memory"),
        ("mbarrier.arrive.shared::cta.b32 _,[%r2];", "sm_90", "works on .b64"),
        ("mbarrier.wait.shared::cta.b64 _,[%r2];", "sm_90", "is not supported in the emulator"),
        ("setmaxnreg.inc.sync.aligned.u32 100;", "sm_90a", "takes multiples of 8 from 24 to 256"),
        ("setmaxnreg.inc.sync.aligned.u32 96;", "sm_90", "it needs one of sm_90a"),
    ],
)
def test_forms_that_are_refused(line: str, chip: str, message: str):
    with pytest.raises(PhobosError) as caught:
        run(line, chip=chip)
    assert message in str(caught.value)


@needs_ptxas
@pytest.mark.parametrize(
    "name", sorted(FAULTS.keys() - {"no_count", "no_arrivals", "parity_of_two"})
)
def test_faults_assemble(name: str):
    assert assemble(kernel(ONE.format(line=FAULTS[name][1])), "sm_90").warnings == ()
