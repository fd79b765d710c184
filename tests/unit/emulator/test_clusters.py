"""Clusters of CTAs: shape, barriers, shared memory of one another, remote mbarriers."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import EmulatorError, emulate
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.support.tensor_copy_kernels import module

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
NAMES = [
    *(f"{name}.{axis}" for name in ("cluster_ctaid", "cluster_nctaid") for axis in "xyz"),
    *(f"{name}.{axis}" for name in ("clusterid", "nclusterid") for axis in "xyz"),
    *("cluster_ctarank", "cluster_nctarank"),
]


def registers(directive: str = "") -> str:
    """A kernel that stores the special registers of every CTA."""
    stores = "\n".join(
        f"mov.u32 %r0,%{name}; st.global.u32 [%d0+{4 * i}],%r0;" for i, name in enumerate(NAMES)
    )
    return f"""{HEADER}.visible .entry k(.param .u64 x) {directive}
    {{ .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d0,[x]; mov.u32 %r0,%ctaid.x; mov.u32 %r1,%ctaid.y; mov.u32 %r2,%ctaid.z;
    mov.u32 %r3,%nctaid.x; mov.u32 %r4,%nctaid.y; mad.lo.u32 %r1,%r2,%r4,%r1;
    mad.lo.u32 %r0,%r1,%r3,%r0; mul.wide.u32 %d1,%r0,64; add.u64 %d0,%d0,%d1;
    {stores}
    mov.pred %p,%is_explicit_cluster; selp.u32 %r0,1,0,%p; st.global.u32 [%d0+56],%r0;
    ret; }}"""


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1), (1, 2, 3), (2, 2, 1)])
def test_special_registers(cluster: tuple[int, int, int], seed: int):
    x = np.zeros((3, 2, 4, 16), np.uint32)
    emulate(registers(), "k", (4, 2, 3), 1, [x], seed=seed, cluster=cluster)
    for cta_z, cta_y, cta_x in np.ndindex(3, 2, 4):
        cta = np.array([cta_x, cta_y, cta_z])
        found = x[cta_z, cta_y, cta_x]
        inside = cta % cluster
        np.testing.assert_array_equal(found[:3], inside)
        np.testing.assert_array_equal(found[3:6], cluster)
        np.testing.assert_array_equal(found[6:9], cta // cluster)
        np.testing.assert_array_equal(found[9:12], np.array([4, 2, 3]) // cluster)
        assert found[12] == inside @ [1, cluster[0], cluster[0] * cluster[1]]
        assert found[13] == np.prod(cluster)
        assert found[14] == (cluster != (1, 1, 1))


def test_the_kernel_may_require_a_cluster():
    text = registers(".reqntid 1,1,1 .reqnctapercluster 2,1,1")
    x = np.zeros((4, 16), np.uint32)
    emulate(text, "k", 4, 1, [x])
    assert x[:, 12].tolist() == [0, 1, 0, 1]
    with pytest.raises(PhobosError, match=r"requires clusters of \(2, 1, 1\), got \(4, 1, 1\)"):
        emulate(text, "k", 4, 1, [x], cluster=4)


@pytest.mark.parametrize(
    ("text", "cluster", "message"),
    [
        (registers(), 3, "has a grid of (4, 1, 1), which clusters of (3, 1, 1) do not divide"),
        (registers(), (4, 4), "has clusters of at most 8 CTAs, got (4, 4, 1)"),
        (registers(), 9, "extent x of the cluster must be from 1 to 8, got 9"),
        (registers().replace("sm_90", "sm_89"), 2, "is for sm_89, which has no clusters"),
    ],
)
def test_wrong_clusters_are_refused(text: str, cluster: int, message: str):
    with pytest.raises(PhobosError) as caught:
        emulate(text, "k", 4, 1, [np.zeros((4, 16), np.uint32)], cluster=cluster)
    assert message in str(caught.value)


# Barriers and shared memory ----------------------------------------------------------------------

ARRIVE = "barrier.cluster.arrive.release.aligned;"
MEET = f"{ARRIVE} barrier.cluster.wait.acquire.aligned;"
CTAS = 4
AHEAD = """mov.u32 %r3,%cluster_ctarank; mov.u32 %r4,%cluster_nctarank; add.u32 %r5,%r3,1;
rem.u32 %r5,%r5,%r4; shl.b32 %r6,%r0,2; add.u32 %r6,%r1,%r6; mapa.shared::cluster.u32 %r7,%r6,%r5;
mul.lo.u32 %r8,%r3,1000; add.u32 %r8,%r8,%r0;"""
"""%r3: rank, %r5: rank of the next CTA, %r6: own word, %r7: that of the next CTA, %r8: a number."""


def clustered(body: str) -> str:
    """A kernel that ends by storing %r20 of every thread."""
    return module(
        ".param .u64 out",
        f"""{AHEAD} {body}
ld.param.u64 %d1,[out]; mov.u32 %r9,%ctaid.x; mad.lo.u32 %r9,%r9,64,%r0; mul.wide.u32 %d2,%r9,4;
add.u64 %d1,%d1,%d2; st.global.b32 [%d1],%r20;""",
    )


def run(
    body: str, cluster: int = 2, seed: int = 0, checks: str | tuple[str, ...] = "all"
) -> np.ndarray:
    out = np.zeros((CTAS, 64), np.uint32)
    text = clustered(body)
    emulate(text, "k", CTAS, 64, [out], 32768, checks, seed, name="k.ptx", cluster=cluster)
    return out


def of_the_next(cluster: int) -> np.ndarray:
    cta, thread = np.arange(CTAS)[:, None], np.arange(64)
    return (cta % cluster + 1) % cluster * 1000 + thread


EXCHANGES = {
    "loaded": f"st.shared.u32 [%r6],%r8; {MEET} ld.shared::cluster.u32 %r20,[%r7]; {MEET}",
    "stored": f"""sub.u32 %r9,%r5,%r3; mul.lo.u32 %r9,%r9,1000; add.u32 %r9,%r8,%r9; {MEET}
        st.shared::cluster.u32 [%r7],%r9; {MEET} ld.shared.u32 %r20,[%r6];
        sub.u32 %r20,%r20,%r8; add.u32 %r20,%r20,%r9;""",
    "generic": f"""st.shared.u32 [%r6],%r8; {MEET} cvt.u64.u32 %d3,%r6; cvta.shared.u64 %d3,%d3;
        mapa.u64 %d3,%d3,%r5; ld.u32 %r20,[%d3]; {MEET}""",
    "atomic": f"""mov.u32 %r9,0; st.shared.u32 [%r6],%r9; {MEET}
        mapa.shared::cluster.u32 %r10,%r6,%r3; atom.shared::cluster.add.u32 %r11,[%r10],%r8; {MEET}
        ld.shared::cluster.u32 %r20,[%r7]; {MEET}""",
}


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_exchanges(name: str, cluster: int):
    for seed in range(4):
        np.testing.assert_array_equal(
            run(EXCHANGES[name], cluster, seed), of_the_next(cluster), err_msg=f"seed {seed}"
        )


def test_arrivals_and_waits_may_be_apart():
    body = """st.shared.u32 [%r6],%r8; barrier.cluster.arrive; mov.u32 %r20,7;
    barrier.cluster.wait; ld.shared::cluster.u32 %r20,[%r7]; barrier.cluster.arrive.release;
    setp.lt.u32 %p1,%r0,32; @%p1 bra LATE; barrier.cluster.wait.acquire; bra MET;
    LATE: barrier.cluster.wait.acquire; MET:"""
    np.testing.assert_array_equal(run(body, seed=3), of_the_next(2))


def test_threads_that_have_exited_count_as_arrived():
    body = f"""st.shared.u32 [%r6],%r8; {MEET} setp.ge.u32 %p1,%r0,32; @%p1 bra DONE;
    ld.shared::cluster.u32 %r20,[%r7]; {MEET}"""
    found = run(body, checks="async")
    np.testing.assert_array_equal(found[:, :32], of_the_next(2)[:, :32])


def test_ranks_of_addresses():
    body = """getctarank.shared::cluster.u32 %r20,%r7; getctarank.shared::cluster.u32 %r10,%r6;
    mad.lo.u32 %r20,%r10,10,%r20;"""
    assert run(body, 2)[:, 0].tolist() == [1, 10, 1, 10]


REMOTE = f"""mapa.shared::cluster.u32 %r10,%r2,%r5; {MEET}
st.shared::cluster.u32 [%r7],%r8; mov.u32 %r11,0; bar.sync 0;
@!%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r10];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1,[%r2],%r11; @!%p1 bra W;
ld.shared.u32 %r20,[%r6]; {MEET}"""


@pytest.mark.parametrize("seed", range(6))
def test_remote_arrivals(seed: int):
    thread, cta = np.arange(64), np.arange(CTAS)[:, None]
    wanted = (cta + 3) % 4 * 1000 + thread
    np.testing.assert_array_equal(run(REMOTE, 4, seed), wanted)


LEFT = "setp.eq.u32 %p1,%r3,1; @!%p1 bra STAYED; ret; STAYED:"
FAULTS = {
    "ended": (
        "out of bounds",
        f"st.shared.u32 [%r6],%r8; {MEET} {LEFT} ld.shared::cluster.u32 %r20,[%r7];",
        "reads 4 bytes at 0x0, in shared memory of CTA (1, 0, 0), which has ended",
    ),
    "beyond": (
        "out of bounds",
        "mapa.shared::cluster.u32 %r20,%r1,2;",
        "asks for CTA 2 of a cluster of 2",
    ),
    "outside": (
        "out of bounds",
        f"ld.shared::cluster.u32 %r20,[%r7+32768]; {MEET}",
        ", outside `s` of 32768 bytes in shared memory",
    ),
    "no_cluster_address": (
        "out of bounds",
        f"ld.shared.u32 %r20,[%r7]; {MEET}",
        ", outside `s` of 32768 bytes in shared memory",
    ),
    "arrived_twice": (
        "divergent",
        f"{ARRIVE} {MEET}",
        "arrives at the barrier of its cluster again without having waited there",
    ),
    "waited_only": (
        "divergent",
        "barrier.cluster.wait.acquire.aligned;",
        "waits at the barrier of its cluster without having arrived there",
    ),
    "never_met": (
        "deadlock",
        f"setp.eq.u32 %p1,%r3,1; @%p1 bra OTHER; {MEET} OTHER: bar.sync 0; @!%p1 bra MET; "
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p2,[%r2],0; @!%p2 bra W; MET:",
        "waits at the mbarrier at 0x7800 of CTA (1, 0, 0) for phase 0 (parity 0), which lacks 1",
    ),
    "waits_for_ever": (
        "deadlock",
        f"setp.eq.u32 %p1,%r3,1; @%p1 bra OTHER; {MEET} bra MET; OTHER: bar.sync 1,96; MET:",
        "waits at barrier 1 for threads that never come",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", [0, 2])
def test_faults(name: str, seed: int):
    kind, body, message = FAULTS[name]
    with pytest.raises(EmulatorError) as caught:
        run(body, seed=seed, checks=("async", "divergence"))
    assert caught.value.finding.kind == kind
    assert message in str(caught.value).splitlines()[0]


RACES = {
    "not_met": (
        f"st.shared.u32 [%r6],%r8; ld.shared::cluster.u32 %r20,[%r7]; {MEET}",
        "in shared memory, which CTA (",
    ),
    "relaxed": (
        f"st.shared.u32 [%r6],%r8; barrier.cluster.arrive.relaxed.aligned; "
        f"barrier.cluster.wait.acquire.aligned; ld.shared::cluster.u32 %r20,[%r7]; {MEET}",
        "with nothing to order the two",
    ),
    "stored_over": (
        f"{EXCHANGES['loaded'].removesuffix(MEET)} st.shared.u32 [%r6],%r8; {MEET}",
        "with nothing to order the two",
    ),
    "not_met_at_the_end": (
        EXCHANGES["loaded"].removesuffix(MEET),
        "in shared memory of CTA (",
    ),
    "arrived_at_the_end": (
        REMOTE.removesuffix(MEET).replace("W: mb", "bra MET; W: mb") + " MET: mov.u32 %r20,0;",
        "in shared memory of CTA (",
    ),
    "flag_without_order": (
        REMOTE.replace("bar.sync 0;", ""),
        "in shared memory, which CTA (",
    ),
}


@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize("seed", range(3))
def test_races(name: str, seed: int):
    body, message = RACES[name]
    with pytest.raises(EmulatorError) as caught:
        run(body, seed=seed, checks="race")
    # What really came too late is out of bounds.
    assert caught.value.finding.kind in ("race", "out of bounds")
    assert message in str(caught.value).splitlines()[0]


def test_only_threads_of_the_cta_wait_at_its_mbarriers():
    body = "W: mbarrier.try_wait.parity.shared::cluster.b64 %p1,[%r7],0; @!%p1 bra W;"
    with pytest.raises(PhobosError, match="works on mbarriers of the own CTA only"):
        run(body)


@needs_ptxas
@pytest.mark.parametrize("body", [*EXCHANGES.values(), REMOTE])
def test_kernels_assemble(body: str):
    assert assemble(clustered(body), "sm_90").warnings == ()
