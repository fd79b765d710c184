"""Bulk copies to several CTAs of a cluster, and to another CTA than the own."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.emulator import EmulatorError, Profile, TensorMapArgument, emulate
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.support.tensor_copy_kernels import LOAD_BOX, module

CTAS = 4
ROWS = 32
BYTES = 64 * ROWS
MANY = f"{LOAD_BOX.format(rank=2)}.multicast::cluster"
MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
COPY = f"{MANY} [%r5],[%d0,{{%r6,%r7}}],[%r2],%h0;"


def shared_tile(copy: str = COPY, meet: str = MEET, expect: str = str(BYTES)) -> str:
    """Every CTA copies its share of a tile of 32 rows of 64 bytes to all CTAs of its cluster."""
    return module(
        ".param .align 64 .b8 x_map_0[128],.param .u64 out",
        f"""mov.b64 %d0,x_map_0; cvta.param.u64 %d0,%d0;
mov.u32 %r3,%cluster_ctarank; mov.u32 %r4,%cluster_nctarank; mov.u32 %r20,%clusterid.x;
mov.u32 %r8,{ROWS}; div.u32 %r8,%r8,%r4; mul.lo.u32 %r7,%r8,%r3; mad.lo.u32 %r5,%r7,64,%r1;
mad.lo.u32 %r7,%r20,{ROWS},%r7; mov.u32 %r6,0;
mov.u32 %r9,1; shl.b32 %r9,%r9,%r4; sub.u32 %r9,%r9,1; cvt.u16.u32 %h0,%r9;
{meet}
@%p0 bra W;
mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r2],{expect};
{copy}
W: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r2],0; @!%p1 bra W;
ld.param.u64 %d1,[out]; mov.u32 %r10,%ctaid.x; mul.wide.u32 %d2,%r10,{BYTES}; add.u64 %d1,%d1,%d2;
mov.u32 %r11,%r0;
OUT: shl.b32 %r12,%r11,4; setp.ge.u32 %p2,%r12,{BYTES}; @%p2 bra OVER; add.u32 %r13,%r1,%r12;
ld.shared.v4.b32 {{%r14,%r15,%r16,%r17}},[%r13]; mul.wide.u32 %d2,%r11,16; add.u64 %d2,%d1,%d2;
st.global.v4.b32 [%d2],{{%r14,%r15,%r16,%r17}}; add.u32 %r11,%r11,64; bra OUT;
OVER: {MEET}""",
    )


def run(text: str, cluster: int, seed: int = 0, profile: Profile | None = None) -> None:
    """Run a kernel and compare: every CTA has the tile of its cluster."""
    clusters = CTAS // cluster
    x = np.random.default_rng(3).integers(0, 99, (clusters * ROWS, 32)).astype(np.int16)
    out = np.zeros((CTAS, ROWS, 32), np.int16)
    arguments = [TensorMapArgument(x, "i16", (ROWS // cluster, 32), 64), out]
    emulate(
        text, "k", CTAS, 64, arguments, 32768, "all", seed, name="k.ptx", cluster=cluster,
        profile=profile,
    )  # fmt: skip
    pieces = out.view(np.uint8).reshape(CTAS, -1, 16)
    place = 16 * np.arange(pieces.shape[1])
    plain = pieces[:, (place ^ ((place >> 7 & 3) << 4)) >> 4].reshape(CTAS, ROWS, 64)
    wanted = np.repeat(x.reshape(clusters, ROWS, 32), cluster, axis=0)
    np.testing.assert_array_equal(plain.view(np.int16), wanted)


@pytest.mark.parametrize("cluster", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_a_tile_that_all_share(cluster: int, seed: int):
    run(shared_tile(), cluster, seed)


def test_what_several_get_is_read_once():
    profile = Profile()
    run(shared_tile(), 2, profile=profile)
    line = next(line for line in profile.lines if line.global_requests and line.shared_requests)
    assert (line.global_requests, line.sectors) == (CTAS, CTAS * BYTES // 2 // 32)
    assert (line.shared_requests, line.passes) == (2 * CTAS, CTAS * BYTES // 128)


REMOTE = f"""add.u32 %r18,%r3,1; and.b32 %r18,%r18,1; mapa.shared::cluster.u32 %r19,%r2,%r18;
mapa.shared::cluster.u32 %r21,%r5,%r18;
{LOAD_BOX.format(rank=2)} [%r21],[%d0,{{%r6,%r7}}],[%r19];
{LOAD_BOX.format(rank=2)} [%r5],[%d0,{{%r6,%r7}}],[%r2];"""
"""Each of two CTAs copies its half to the other and to itself."""


@pytest.mark.parametrize("seed", range(5))
def test_copies_to_another_cta(seed: int):
    run(shared_tile(REMOTE), 2, seed)


@needs_ptxas
@pytest.mark.parametrize("copy", [COPY, REMOTE])
def test_kernels_assemble(copy: str):
    # ptxas advises against multicast on the plain target.
    text = shared_tile(copy).replace(".target sm_90", ".target sm_90a")
    assert assemble(text, "sm_90a").warnings == ()


FAULTS = {
    "beyond": (
        {"copy": f"mov.b16 %h0,5; {COPY}"},
        "out of bounds",
        "copies to the CTAs of mask 0x5, but its cluster has 2",
    ),
    "to_nobody": (
        {"copy": f"mov.b16 %h0,0; {COPY}"},
        "out of bounds",
        "copies to the CTAs of mask 0x0, but its cluster has 2",
    ),
    "half_expected": (
        {"expect": str(BYTES // 2)},
        "deadlock|race|uninitialised",
        "for phase 0 (parity 0), which lacks the expectation of 1024 bytes that never come|while "
        "an asynchronous copy|which nothing wrote",
    ),
    "half_copied": (
        {"copy": f"mov.u16 %h0,1; shl.b16 %h0,%h0,%r3; {COPY}"},
        "deadlock",
        "for phase 0 (parity 0), which lacks 1024 more bytes that never come",
    ),
    "mbarrier_of_another": (
        {"copy": REMOTE.replace("[%r19];", "[%r2];")},
        "mbarrier",
        "copies to the shared memory of one CTA and counts at an mbarrier of another",
    ),
    "not_met": (
        {"meet": ""},
        "race|uninitialised",
        "an mbarrier that CTA|counts bytes at the mbarrier at 0x7800 of CTA|nothing to order",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", range(2))
def test_faults(name: str, seed: int):
    parts, kinds, message = FAULTS[name]
    with pytest.raises(EmulatorError) as caught:
        run(shared_tile(**parts), 2, seed)
    assert caught.value.finding.kind in kinds.split("|")
    assert any(part in str(caught.value).splitlines()[0] for part in message.split("|"))
