"""Profiles: instruction counts, sectors and bank conflicts of accesses with known costs."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.diagnostics import SourceMap
from phobos.emulator import Profile, emulate, profile_table
from phobos.emulator.profiling.classes import InstructionClass
from tests.unit.emulator.test_launch import kernel


def profile(body: str, threads: int = 32, elements: int = 4096) -> Profile:
    """The counts of a body that starts with %r0 = thread, %d0 = x and %r6 = shared memory."""
    before = ".shared .align 16 .b8 s[8192];"
    prelude = "mov.u32 %r0,%tid.x; ld.param.u64 %d0,[x]; mov.u32 %r6,s;"
    counts = Profile()
    emulate(
        kernel(f"{prelude} {body}", before=before),
        "k",
        1,
        threads,
        [np.zeros(elements, np.uint32)],
        checks=(),
        profile=counts,
    )
    return counts


GLOBAL = "mul.wide.u32 %d1,%r0,{}; add.u64 %d0,%d0,%d1; st.global.{} [%d0+{}],{};"


@pytest.mark.parametrize(
    ("stride", "kind", "offset", "sectors", "ideal"),
    [
        (4, "u32", 0, 4, 4),  # a warp of words side by side: 128 bytes
        (4, "u32", 16, 5, 4),  # shifted by half a sector
        (8, "u32", 0, 8, 4),  # every other word
        (128, "u32", 0, 32, 4),  # a sector a thread
        (0, "u32", 0, 1, 1),  # one word for all
        (1, "u8", 0, 1, 1),
        (16, "v4.u32", 0, 16, 16),
    ],
)
def test_sectors(stride: int, kind: str, offset: int, sectors: int, ideal: int):
    value = {"v4.u32": "{%r0,%r0,%r0,%r0}"}.get(kind, "%r0")
    total = profile(GLOBAL.format(stride, kind, offset, value)).total
    assert (total.sectors, total.ideal_sectors) == (sectors, ideal)
    assert total.global_requests == 1
    assert total.global_efficiency == ideal / sectors


SHARED = "mul.lo.u32 %r1,%r0,{}; add.u32 %r1,%r1,%r6; ld.shared.{} {},[%r1];"


@pytest.mark.parametrize(
    ("stride", "kind", "passes", "ideal"),
    [
        (4, "u32", 1, 1),
        (8, "u32", 2, 1),
        (128, "u32", 32, 1),
        (132, "u32", 1, 1),
        (0, "u32", 1, 1),
        (8, "v2.u32", 2, 2),
        (16, "v4.u32", 4, 4),
        (128, "v4.u32", 32, 4),
        (1, "u8", 1, 1),
    ],
)
def test_bank_conflicts(stride: int, kind: str, passes: int, ideal: int):
    target = {"v2.u32": "{%r2,%r3}", "v4.u32": "{%r2,%r3,%r4,%r5}"}.get(kind, "%r2")
    total = profile(SHARED.format(stride, kind, target)).total
    assert (total.passes, total.ideal_passes) == (passes, ideal)
    assert total.bank_conflict == passes / ideal


def test_divergent_instructions_count_once_a_warp():
    total = profile("setp.lt.u32 %p0,%r0,8; @!%p0 bra OUT; add.u32 %r1,%r0,1; OUT:", 64).total
    # Three moves, a comparison, a branch, an addition in one warp, a return in both.
    assert total.instructions == 2 * (3 + 2 + 1) + 1
    assert total.threads == 64 * 6 + 8
    assert total.classes[InstructionClass.INTEGER] == 2 + 1


def test_tables_show_source_lines():
    sources = SourceMap()
    sources.add("add.ph", "kernel add\n  out[i] = x[i] + 1\n")
    text = kernel(
        "mov.u32 %r0,%tid.x; ld.param.u64 %d0,[x];\n.loc 1 2 3\nmul.wide.u32 %d1,%r0,4;"
        "add.u64 %d0,%d0,%d1; ld.global.u32 %r1,[%d0]; st.global.u32 [%d0],%r1;"
    ).replace(".visible", '.file 1 "add.ph"\n.visible')
    counts = Profile()
    emulate(text, "k", 2, 32, [np.zeros(32, np.uint32)], profile=counts, name="add.ptx")
    line = next(line for line in counts.lines if line.location.file == "add.ph")
    assert (line.location.line, line.instructions, line.sectors) == (2, 10, 16)
    table = profile_table(counts, sources).splitlines()
    assert table[0].split() == [
        "line",
        "instr.",
        "lanes",
        "mostly",
        "sectors",
        "efficiency",
        "passes",
        "conflicts",
        "source",
    ]
    row = next(row for row in table if row.startswith("add.ph:2"))
    assert row.endswith("out[i] = x[i] + 1")
    assert "100 %" in row
    assert table[-1].startswith("total")
