"""Kernels in PTX that copy in bulk: a frame for small ones, and a product by a ring of stages.

The same text runs on the emulator and on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

LOAD_BOX = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE_BOX = "cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group"


def module(parameters: str, body: str, chip: str = "sm_90") -> str:
    """A module with the kernel `k` on 64 threads and 32 KiB of shared memory `s`.

    %r0 is the thread, %r1 the address of `s`, %p0 true but in thread 0. At %r2, 30 KiB behind, lie
    two mbarriers of 1 and of 64 arrivals.
    """
    return f""".version 8.0
.target {chip}
.address_size 64
.extern .shared .align 1024 .b8 s[];
.visible .entry k({parameters})
.reqntid 64,1,1
{{
.reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %d<16>;
mov.u32 %r0,%tid.x; mov.u32 %r1,s; add.u32 %r2,%r1,30720;
setp.ne.u32 %p0,%r0,0;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r2],1; mbarrier.init.shared::cta.b64 [%r2+8],64;
fence.mbarrier_init.release.cluster;
READY: bar.sync 0;
{body}
DONE: ret;
}}
"""


# A ring ------------------------------------------------------------------------------------------

ROWS = 64
DEPTH = 64
THREADS = 256


@dataclass(frozen=True)
class RingKernel:
    """C = A B with A [64, k] and B [columns, k] in f16 and C in f32, by one CTA `k`.

    The first warpgroup loads boxes of 64 elements of k, each a row of 128 swizzled bytes; the
    second multiplies. Every part that `PARTS` names may be replaced by a test that breaks it.

    Args:
        columns: N.
        stages: Stages of the ring, a power of two.
        texts: Replacements for parts of the text.
    """

    columns: int = 32
    stages: int = 4
    texts: tuple[tuple[str, str], ...] = ()

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: A, then B."""
        return (ROWS + self.columns) * DEPTH * 2

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.stages * self.stage_bytes + 1024

    @property
    def registers(self) -> int:
        """Accumulators of a thread."""
        return self.columns // 2

    def part(self, name: str) -> str:
        """A part of the text."""
        return dict(self.texts).get(name, PARTS[name]).replace("BYTES", str(self.stage_bytes))

    @property
    def text(self) -> str:
        """The module."""
        c = ",".join(f"%c{i}" for i in range(self.registers))
        form = f"wgmma.mma_async.sync.aligned.m64n{self.columns}k16.f32.f16.f16"
        product = f"{form} {{{c}}},%d4,%d5,1,1,1,0,0;\nadd.u64 %d4,%d4,2; add.u64 %d5,%d5,2;"
        return f"""
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tiles[];
.visible .entry k(.param .align 64 .b8 a_map_0[128],.param .align 64 .b8 b_map_0[128],
.param .u64 c,.param .u32 turns)
.reqntid {THREADS},1,1 .minnctapersm 1
{{
.reg .pred %p<8>; .reg .b32 %r<40>,%c<{self.registers}>; .reg .b64 %d<10>;
mov.b64 %d0,a_map_0; cvta.param.u64 %d0,%d0; mov.b64 %d1,b_map_0; cvta.param.u64 %d1,%d1;
mov.u32 %r0,%tid.x; mov.u32 %r1,tiles; add.u32 %r2,%r1,{self.stages * self.stage_bytes};
ld.param.u32 %r3,[turns];
setp.ne.u32 %p0,%r0,0; @%p0 bra READY;
mov.u32 %r4,0;
MAKE: shl.b32 %r5,%r4,3; add.u32 %r5,%r5,%r2;
mbarrier.init.shared::cta.b64 [%r5],1; mbarrier.init.shared::cta.b64 [%r5+64],4;
add.u32 %r4,%r4,1; setp.lt.u32 %p1,%r4,{self.stages}; @%p1 bra MAKE;
fence.mbarrier_init.release.cluster;
READY: bar.sync 0;
mov.u32 %r6,0; mov.u32 %r7,0;
// r6: stage, r7: parity of the lap, r8: turn, r9: its full barrier, r10: its bytes
mov.u32 %r8,0;
setp.ge.u32 %p2,%r0,128; @%p2 bra CONSUMER;
setmaxnreg.dec.sync.aligned.u32 40;
setp.ge.u32 %p2,%r0,32; @%p2 bra DONE;
FILL: shl.b32 %r9,%r6,3; add.u32 %r9,%r9,%r2; mad.lo.u32 %r10,%r6,{self.stage_bytes},%r1;
xor.b32 %r11,%r7,1;
{self.part("wait for empty")}
elect.sync _|%p3,-1; @!%p3 bra FILLED;
{self.part("expect")}
shl.b32 %r12,%r8,6; mov.u32 %r13,0; add.u32 %r14,%r10,{ROWS * DEPTH * 2};
{LOAD_BOX.format(rank=2)} [%r10],[%d0,{{%r12,%r13}}],[%r9];
{LOAD_BOX.format(rank=2)} [%r14],[%d1,{{%r12,%r13}}],[%r9];
FILLED: add.u32 %r6,%r6,1; and.b32 %r6,%r6,{self.stages - 1}; setp.eq.u32 %p4,%r6,0;
@%p4 xor.b32 %r7,%r7,1;
add.u32 %r8,%r8,1; setp.lt.u32 %p1,%r8,%r3; @%p1 bra FILL;
bra DONE;
CONSUMER: setmaxnreg.inc.sync.aligned.u32 232;
{" ".join(f"mov.b32 %c{i},0;" for i in range(self.registers))}
USE: shl.b32 %r9,%r6,3; add.u32 %r9,%r9,%r2; mad.lo.u32 %r10,%r6,{self.stage_bytes},%r1;
{self.part("wait for full")}
shr.u32 %r12,%r10,4; add.u32 %r13,%r12,{ROWS * DEPTH * 2 // 16};
or.b32 %r12,%r12,0x10000; or.b32 %r13,%r13,0x10000; mov.u32 %r14,0x40000040;
mov.b64 %d4,{{%r12,%r14}}; mov.b64 %d5,{{%r13,%r14}};
wgmma.fence.sync.aligned;
{product}
{product}
{product}
{product}
wgmma.commit_group.sync.aligned;
{self.part("wait for products")}
elect.sync _|%p3,-1;
{self.part("release")}
add.u32 %r6,%r6,1; and.b32 %r6,%r6,{self.stages - 1}; setp.eq.u32 %p4,%r6,0;
@%p4 xor.b32 %r7,%r7,1;
add.u32 %r8,%r8,1; setp.lt.u32 %p1,%r8,%r3; @%p1 bra USE;
wgmma.wait_group.sync.aligned 0;
ld.param.u64 %d2,[c]; and.b32 %r15,%r0,127; shr.u32 %r16,%r15,5; shl.b32 %r16,%r16,4;
shr.u32 %r17,%r15,2; and.b32 %r17,%r17,7; add.u32 %r16,%r16,%r17;
mul.lo.u32 %r16,%r16,{4 * self.columns}; and.b32 %r17,%r15,3; shl.b32 %r17,%r17,3;
add.u32 %r16,%r16,%r17; cvt.u64.u32 %d3,%r16; add.u64 %d2,%d2,%d3;
{self._stores()}
DONE: ret;
}}
"""

    def _stores(self) -> str:
        lines = []
        for i in range(0, self.registers, 2):
            at = 32 * (i // 4) + (i // 2 % 2) * 8 * 4 * self.columns
            lines.append(f"st.global.v2.b32 [%d2+{at}],{{%c{i},%c{i + 1}}};")
        return "\n".join(lines)


PARTS = {
    "wait for empty": (
        "EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r9+64],%r11; @!%p1 bra EMPTY;"
    ),
    "expect": "mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r9],BYTES;",
    "wait for full": (
        "FULL: mbarrier.try_wait.parity.shared::cta.b64 %p1,[%r9],%r7; @!%p1 bra FULL;"
    ),
    "wait for products": "wgmma.wait_group.sync.aligned 0;",
    "release": "@%p3 mbarrier.arrive.shared::cta.b64 _,[%r9+64];",
}
"""The parts of the text that a test may replace."""
