"""Small kernels with one fault each, beside the same kernels repaired.

A body is PTX in which `<<faulty|repaired>>` marks the only difference. All run on `ctas` CTAs of
`threads` threads; the prelude leaves these registers:

    %r0  thread      %r1  CTA          %r2  4 * thread   %r3  address of s[thread] in shared memory
    %d0  x           %d1  y            %d2  &x[index]    %d3  &y[index]   with index over the grid
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

_MARK = re.compile(r"<<(.*?)\|(.*?)>>", re.DOTALL)


@dataclass(frozen=True)
class FaultyKernel:
    """One kernel; `finding` is the word that the report of the fault starts with."""

    name: str
    finding: str
    body: str
    threads: int = 64
    ctas: int = 1
    elements: int = 128
    uninitialised: tuple[int, ...] = ()
    target: str = "sm_90"

    def text(self, *, faulty: bool) -> str:
        """The PTX with or without the fault."""
        body = _MARK.sub(lambda match: match.group(1 if faulty else 2), self.body)
        return (
            f".version 8.0\n.target {self.target}\n.address_size 64\n"
            f".visible .entry k(.param .u64 px, .param .u64 py)\n{{\n{_PRELUDE}\n{body}\n"
            "END: ret;\n}\n"
        )

    def arguments(self) -> list[np.ndarray]:
        """x counts up from 1 in every word, y is zero."""
        x = np.arange(1, self.elements + 1, dtype=np.uint32)
        return [x, np.zeros(self.elements, dtype=np.uint32)]


_PRELUDE = """
.reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %d<16>;
.shared .align 128 .b8 s[1024];
ld.param.u64 %d0,[px]; cvta.to.global.u64 %d0,%d0;
ld.param.u64 %d1,[py]; cvta.to.global.u64 %d1,%d1;
mov.u32 %r0,%tid.x; mov.u32 %r1,%ctaid.x; mov.u32 %r4,%ntid.x;
mad.lo.u32 %r5,%r1,%r4,%r0; mul.wide.u32 %d4,%r5,4;
add.u64 %d2,%d0,%d4; add.u64 %d3,%d1,%d4;
shl.b32 %r2,%r0,2; mov.u32 %r6,s; add.u32 %r3,%r6,%r2;
"""

_SWAP = "xor.b32 %r7,%r2,128; add.u32 %r7,%r7,%r6; ld.shared.u32 %r8,[%r7];"
"""Reads what the other warp wrote."""

SHARED_RACES = [
    FaultyKernel(
        "missing_barrier",
        "race",
        f"""
        ld.global.u32 %r8,[%d2]; st.shared.u32 [%r3],%r8;
        <<|bar.sync 0;>> {_SWAP} st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "missing_second_barrier",
        "race",
        f"""
        ld.global.u32 %r8,[%d2]; st.shared.u32 [%r3],%r8; bar.sync 0; {_SWAP}
        <<|bar.sync 0;>> st.shared.u32 [%r3],%r8; st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "single_buffer_for_double",
        "race",
        f"""
        mov.u32 %r10,0; mov.u32 %r11,0;
        LOOP: add.u32 %r12,%r3,%r11; add.u32 %r13,%r10,%r0; st.shared.u32 [%r12],%r13;
        bar.sync 0; {_SWAP.replace("%r6;", "%r6; add.u32 %r7,%r7,%r11;")}
        st.global.u32 [%d3],%r8; xor.b32 %r11,%r11,<<0|256>>;
        add.u32 %r10,%r10,1; setp.lt.u32 %p1,%r10,4; @%p1 bra LOOP;""",
    ),
    FaultyKernel(
        "barrier_in_the_wrong_place",
        "race",
        f"""
        <<bar.sync 0;|>> st.shared.u32 [%r3],%r0; <<|bar.sync 0;>> {_SWAP}
        st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "missing_warp_sync",
        "race",
        """
        st.shared.u32 [%r3],%r0; <<|bar.warp.sync -1;>>
        xor.b32 %r7,%r2,4; add.u32 %r7,%r7,%r6; ld.shared.u32 %r8,[%r7];
        st.global.u32 [%d3],%r8;""",
        threads=32,
    ),
    FaultyKernel(
        "warp_sync_between_warps",
        "race",
        f"""
        st.shared.u32 [%r3],%r0; <<bar.warp.sync -1;|bar.sync 0;>> {_SWAP}
        st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "shared_counter_without_atomics",
        "race",
        """
        mov.u32 %r8,0; setp.eq.u32 %p1,%r0,0; @%p1 st.shared.u32 [%r6],%r8; bar.sync 0;
        <<ld.shared.u32 %r9,[%r6]; add.u32 %r9,%r9,1; st.shared.u32 [%r6],%r9;
        |atom.shared.add.u32 %r9,[%r6],1;>>
        bar.sync 0; ld.shared.u32 %r9,[%r6]; st.global.u32 [%d3],%r9;""",
    ),
    FaultyKernel(
        "two_threads_one_place",
        "race",
        """
        and.b32 %r7,%r2,<<0x7c|0xfc>>; add.u32 %r7,%r7,%r6; st.shared.u32 [%r7],%r0;
        bar.sync 0; ld.shared.u32 %r8,[%r7]; st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "named_barrier_without_the_reader",
        "race",
        """
        setp.ge.u32 %p1,%r0,64; @%p1 bra READ; st.shared.u32 [%r3],%r0;
        bar.sync 1,<<64|96>>; bra END;
        READ: <<|bar.sync 1,96;>> ld.shared.u32 %r8,[%r3+-256]; st.global.u32 [%d3],%r8;""",
        threads=96,
    ),
]

ASYNC_FAULTS = [
    FaultyKernel(
        "wait_count_off_by_one",
        "race",
        """
        cp.async.ca.shared.global [%r3],[%d2],4; cp.async.commit_group;
        cp.async.ca.shared.global [%r3+256],[%d2],4; cp.async.commit_group;
        cp.async.wait_group <<2|1>>; bar.sync 0;
        ld.shared.u32 %r8,[%r3]; st.global.u32 [%d3],%r8; cp.async.wait_all;""",
    ),
    FaultyKernel(
        "copy_without_wait",
        "race",
        """
        cp.async.ca.shared.global [%r3],[%d2],4; cp.async.commit_group;
        <<|cp.async.wait_all;>> bar.sync 0; ld.shared.u32 %r8,[%r3]; st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "copy_without_commit",
        "race",
        """
        cp.async.ca.shared.global [%r3],[%d2],4; <<|cp.async.commit_group;>>
        cp.async.wait_group 0; bar.sync 0; ld.shared.u32 %r8,[%r3]; st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "wait_without_barrier",
        "race",
        f"""
        cp.async.ca.shared.global [%r3],[%d2],4; cp.async.commit_group; cp.async.wait_group 0;
        <<|bar.sync 0;>> {_SWAP} st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "stage_refilled_while_read",
        "race",
        f"""
        ld.global.u32 %r8,[%d2]; st.shared.u32 [%r3],%r8; bar.sync 0; {_SWAP}
        <<|bar.sync 0;>> cp.async.ca.shared.global [%r3],[%d2],4; cp.async.wait_all;
        bar.sync 0; st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "copy_past_the_end",
        "out of bounds",
        """
        add.u64 %d5,%d2,<<4|0>>; shl.b32 %r9,%r0,2; mov.u32 %r10,4;
        cp.async.ca.shared.global [%r3],[%d5],4,%r10; cp.async.wait_all;
        ld.shared.u32 %r8,[%r3]; st.global.u32 [%d3],%r8;""",
        elements=64,
    ),
    FaultyKernel(
        "zero_fill_forgotten",
        "out of bounds",
        """
        setp.lt.u32 %p1,%r0,40; selp.u32 %r9,4,<<4|0>>,%p1;
        cp.async.ca.shared.global [%r3],[%d2],4,%r9; cp.async.wait_all;
        ld.shared.u32 %r8,[%r3]; @%p1 st.global.u32 [%d3],%r8;""",
        elements=40,
    ),
]

GLOBAL_RACES = [
    FaultyKernel(
        "ctas_write_one_word",
        "race",
        """
        setp.ne.u32 %p1,%r0,0; @%p1 bra END;
        mul.wide.u32 %d5,%r1,<<0|4>>; add.u64 %d5,%d1,%d5; st.global.u32 [%d5],%r1;""",
        ctas=2,
    ),
    FaultyKernel(
        "global_counter_without_atomics",
        "race",
        """
        <<ld.global.u32 %r8,[%d1]; add.u32 %r8,%r8,1; st.global.u32 [%d1],%r8;
        |red.global.add.u32 [%d1],1;>>""",
        ctas=2,
    ),
    FaultyKernel(
        "flag_without_fence",
        "race",
        """
        setp.ne.u32 %p1,%r0,0; @%p1 bra END; setp.ne.u32 %p1,%r1,0; @%p1 bra READ;
        st.global.u32 [%d1],7; <<|membar.gl;>> atom.global.exch.b32 %r8,[%d1+4],1; bra END;
        READ: ld.volatile.global.u32 %r8,[%d1+4]; setp.eq.u32 %p2,%r8,0; @%p2 bra READ;
        membar.gl; ld.global.u32 %r9,[%d1]; st.global.u32 [%d1+8],%r9;""",
        ctas=2,
    ),
    FaultyKernel(
        "data_behind_a_flag_without_fence",
        "race",
        """
        setp.ne.u32 %p1,%r0,0; @%p1 bra END; setp.ne.u32 %p1,%r1,0; @%p1 bra READ;
        st.global.u32 [%d1],7; membar.gl; atom.global.exch.b32 %r8,[%d1+4],1; bra END;
        READ: ld.volatile.global.u32 %r8,[%d1+4]; setp.eq.u32 %p2,%r8,0; @%p2 bra READ;
        <<|membar.gl;>> ld.global.u32 %r9,[%d1]; st.global.u32 [%d1+8],%r9;""",
        ctas=2,
    ),
    FaultyKernel(
        "data_behind_an_atomic_that_does_not_acquire",
        "race",
        """
        setp.ne.u32 %p1,%r0,0; @%p1 bra END; setp.ne.u32 %p1,%r1,0; @%p1 bra READ;
        st.global.u32 [%d1],7; st.release.gpu.global.u32 [%d1+4],1; bra END;
        READ: atom.<<relaxed|acquire>>.gpu.global.add.u32 %r8,[%d1+4],0; setp.eq.u32 %p2,%r8,0;
        @%p2 bra READ; ld.global.u32 %r9,[%d1]; st.global.u32 [%d1+8],%r9;""",
        ctas=2,
    ),
    FaultyKernel(
        "plain_store_for_release",
        "race",
        """
        setp.ne.u32 %p1,%r0,0; @%p1 bra END; setp.ne.u32 %p1,%r1,0; @%p1 bra READ;
        st.global.u32 [%d1],7; st.<<relaxed|release>>.gpu.global.u32 [%d1+4],1; bra END;
        READ: ld.acquire.gpu.global.u32 %r8,[%d1+4]; setp.eq.u32 %p2,%r8,0; @%p2 bra READ;
        ld.global.u32 %r9,[%d1]; st.global.u32 [%d1+8],%r9;""",
        ctas=2,
    ),
    FaultyKernel(
        "plain_load_of_a_flag",
        "race",
        """
        setp.ne.u32 %p1,%r0,0; @%p1 bra END; setp.ne.u32 %p1,%r1,0; @%p1 bra READ;
        st.release.gpu.global.u32 [%d1],7; bra END;
        READ: ld.<<global|relaxed.gpu.global>>.u32 %r8,[%d1]; st.global.u32 [%d1+8],%r8;""",
        ctas=2,
    ),
    FaultyKernel(
        "neighbour_after_cta_barrier_only",
        "race",
        """
        st.global.u32 [%d3],%r0; bar.sync 0;
        sub.u32 %r7,<<127|63>>,%r0; <<|mad.lo.u32 %r7,%r1,%r4,%r7;>>
        mul.wide.u32 %d5,%r7,4; add.u64 %d5,%d1,%d5; ld.global.u32 %r8,[%d5];
        bar.sync 0; st.global.u32 [%d3],%r8;""",
        ctas=2,
    ),
]

MEMORY_FAULTS = [
    FaultyKernel(
        "read_past_the_end",
        "out of bounds",
        """
        ld.global.u32 %r8,[%d2+<<4|0>>]; st.global.u32 [%d3],%r8;""",
        elements=64,
    ),
    FaultyKernel(
        "write_before_the_start",
        "out of bounds",
        """
        st.global.u32 [%d3+<<-4|0>>],%r0;""",
    ),
    FaultyKernel(
        "unguarded_tail",
        "out of bounds",
        """
        setp.ge.u32 %p1,%r5,<<128|50>>; @%p1 bra END;
        ld.global.u32 %r8,[%d2]; st.global.u32 [%d3],%r8;""",
        elements=50,
    ),
    FaultyKernel(
        "shared_past_the_end",
        "out of bounds",
        """
        st.shared.u32 [%r3+<<772|768>>],%r0;""",
    ),
    FaultyKernel(
        "local_past_the_end",
        "out of bounds",
        """
        .local .align 4 .b8 l[256]; mov.u64 %d5,l; cvt.u64.u32 %d6,%r2; add.u64 %d5,%d5,%d6;
        st.local.u32 [%d5+<<4|0>>],%r0; ld.local.u32 %r8,[%d5+<<4|0>>]; st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "null_pointer",
        "out of bounds",
        """
        mov.u64 %d5,%d3; setp.eq.u32 %p1,%r0,63; @%p1 mov.u64 %d5,<<0|%d3>>;
        st.global.u32 [%d5],%r0;""",
    ),
    FaultyKernel(
        "misaligned_vector",
        "misaligned",
        """
        setp.ge.u32 %p1,%r0,32; @%p1 bra END; mul.wide.u32 %d5,%r0,8; add.u64 %d5,%d0,%d5;
        ld.global.v2.u32 {%r8,%r9},[%d5+<<4|8>>]; st.global.u32 [%d3],%r9;""",
    ),
    FaultyKernel(
        "misaligned_shared",
        "misaligned",
        """
        mov.u64 %d5,5; mad.lo.u32 %r7,%r0,<<12|16>>,%r6; st.shared.u64 [%r7],%d5;""",
    ),
    FaultyKernel(
        "misaligned_atomic",
        "misaligned",
        """
        mov.u64 %d5,1; atom.global.add.u64 %d6,[%d1+<<4|8>>],%d5;""",
    ),
    FaultyKernel(
        "misaligned_matrix_row",
        "misaligned",
        """
        mad.lo.u32 %r7,%r0,16,%r6;
        st.shared.v4.u32 [%r7],{%r0,%r0,%r0,%r0}; bar.warp.sync -1;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8},[%r7+<<8|0>>]; st.global.u32 [%d3],%r8;""",
        threads=32,
    ),
    FaultyKernel(
        "uninitialised_shared",
        "uninitialised",
        """
        setp.lt.u32 %p1,%r0,<<63|64>>; @%p1 st.shared.u32 [%r3],%r0; bar.sync 0;
        ld.shared.u32 %r8,[%r3]; st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "uninitialised_register",
        "uninitialised",
        """
        setp.lt.u32 %p1,%r0,<<63|64>>; @%p1 mov.u32 %r8,%r0; st.global.u32 [%d3],%r8;""",
    ),
    FaultyKernel(
        "uninitialised_output",
        "uninitialised",
        """
        <<|st.global.u32 [%d3],%r0;>> ld.global.u32 %r8,[%d3]; add.u32 %r8,%r8,1;
        st.global.u32 [%d3],%r8;""",
        uninitialised=(1,),
    ),
    FaultyKernel(
        "jump_table_index",
        "out of bounds",
        """
        and.b32 %r7,%r0,<<3|1>>; T: .branchtargets A,B; brx.idx %r7,T;
        A: st.global.u32 [%d3],%r0; bra END; B: st.global.u32 [%d3],%r4;""",
    ),
]

CONVERGENCE_FAULTS = [
    FaultyKernel(
        "divergent_shuffle",
        "divergent",
        """
        mov.u32 %r8,0; setp.ge.u32 %p1,%r0,<<16|32>>; @%p1 bra OUT;
        shfl.sync.bfly.b32 %r8,%r0,1,31,-1; OUT: bar.warp.sync -1;
        st.global.u32 [%d3],%r8;""",
        threads=32,
    ),
    FaultyKernel(
        "shuffle_in_both_branches",
        "divergent",
        """
        and.b32 %r7,%r0,1; setp.eq.u32 %p1,%r7,<<0|2>>; @%p1 bra EVEN;
        shfl.sync.bfly.b32 %r8,%r0,1,31,-1; bra OUT;
        EVEN: shfl.sync.bfly.b32 %r8,%r0,2,31,-1;
        OUT: st.global.u32 [%d3],%r8;""",
        threads=32,
    ),
    FaultyKernel(
        "shuffle_from_an_absent_lane",
        "divergent",
        """
        setp.ge.u32 %p1,%r0,16; @%p1 bra END;
        shfl.sync.bfly.b32 %r8,%r0,<<16|8>>,31,0xffff; st.global.u32 [%d3],%r8;""",
        threads=32,
    ),
    FaultyKernel(
        "mask_without_oneself",
        "divergent",
        """
        setp.ne.u32 %p1,%r0,5; vote.sync.ballot.b32 %r8,%p1,<<0xffffffdf|-1>>;
        st.global.u32 [%d3],%r8;""",
        threads=32,
    ),
    FaultyKernel(
        "divergent_product",
        "divergent",
        """
        setp.ge.u32 %p1,%r0,<<31|32>>; @%p1 bra END; mov.b32 %r8,0;
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r10,%r11,%r12,%r13},{%r8,%r8},{%r8},
        {%r8,%r8,%r8,%r8}; st.global.u32 [%d3],%r10;""",
        threads=32,
    ),
    FaultyKernel(
        "divergent_barrier",
        "divergent",
        """
        setp.lt.u32 %p1,%r0,<<16|64>>; @%p1 bra IN; bra END; IN: bar.sync 0;
        st.global.u32 [%d3],%r0;""",
    ),
    FaultyKernel(
        "barriers_in_both_branches",
        "divergent",
        """
        setp.lt.u32 %p1,%r0,<<16|32>>; @%p1 bra LOW; bar.sync 0; bra OUT; LOW: bar.sync 0;
        OUT: st.global.u32 [%d3],%r0;""",
    ),
    FaultyKernel(
        "exit_before_the_barrier",
        "divergent",
        """
        setp.ge.u32 %p1,%r0,50; <<@%p1 bra END;|>> bar.sync 0; @%p1 bra END;
        st.global.u32 [%d3],%r0;""",
    ),
]

DEADLOCKS = [
    FaultyKernel(
        "barrier_for_too_many",
        "deadlock",
        """
        bar.sync 1,<<96|64>>; st.global.u32 [%d3],%r0;""",
    ),
    FaultyKernel(
        "two_names_for_one_barrier",
        "deadlock",
        """
        setp.lt.u32 %p1,%r0,32; @%p1 bra LOW; bar.sync <<2|1>>,64; bra OUT;
        LOW: bar.sync 1,64; OUT: st.global.u32 [%d3],%r0;""",
    ),
    FaultyKernel(
        "arrivals_that_do_not_add_up",
        "deadlock",
        """
        setp.lt.u32 %p1,%r0,32; @%p1 bra LOW; bar.arrive 1,<<96|64>>; bra END;
        LOW: bar.sync 1,<<96|64>>; st.global.u32 [%d3],%r0;""",
    ),
    FaultyKernel(
        "flag_that_nobody_sets",
        "deadlock",
        """
        setp.ne.u32 %p1,%r0,0; @%p1 bra END; <<|st.release.gpu.global.u32 [%d1+4],1;>>
        SPIN: ld.acquire.gpu.global.u32 %r8,[%d1+4]; setp.eq.u32 %p2,%r8,0; @%p2 bra SPIN;
        st.global.u32 [%d1],%r8;""",
    ),
    FaultyKernel(
        "grid_barrier_one_short",
        "deadlock",
        """
        setp.ne.u32 %p1,%r0,0; @%p1 bra END; mov.u32 %r9,%nctaid.x; <<add.u32 %r9,%r9,1;|>>
        membar.gl; red.global.add.u32 [%d1],1;
        SPIN: ld.acquire.gpu.global.u32 %r8,[%d1]; setp.lt.u32 %p2,%r8,%r9; @%p2 bra SPIN;
        """,
        ctas=3,
    ),
]

FAULTY_KERNELS = [
    *SHARED_RACES,
    *ASYNC_FAULTS,
    *GLOBAL_RACES,
    *MEMORY_FAULTS,
    *CONVERGENCE_FAULTS,
    *DEADLOCKS,
]
