"""Clusters of CTAs: their shape, what a CTA knows of its own."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import emulate

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
