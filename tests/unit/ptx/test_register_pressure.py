"""Counting live registers, and the CTAs that they leave room for."""

from __future__ import annotations

import pytest

import phobos
from phobos.analysis.register_pressure import Pressure, register_pressure
from phobos.dialects import ptx
from phobos.dialects.ptx import B32, B64, InstructionBuilder
from phobos.targets.ptx.chips import chip
from phobos.transforms.ptx_limit_registers import occupancy


def entry() -> tuple[ptx.EntryOp, InstructionBuilder]:
    made = ptx.EntryOp.make("k", [ptx.Parameter("p", "u64")])
    return made, InstructionBuilder(made.body)


def test_values_count_from_where_they_are_made_to_their_last_use() -> None:
    kernel, build = entry()
    base = build.param(0, "u64", B64)
    loads = [build.emit_multi(ptx.LdOp, "global.b32", base, results=(B32,))[0] for _ in range(4)]
    total = loads[0]
    for value in loads[1:]:
        total = build.emit(ptx.AddOp, "f32", total, value)
    build.emit_multi(ptx.StOp, "global.b32", base, total, results=())
    build.ret()
    # The address has 64 bits. Only the sum has to wait for the store: a parameter is read again.
    assert register_pressure(kernel) == Pressure(2 + 4, 1)


def test_what_comes_from_memory_is_kept_and_what_comes_from_parameters_is_not() -> None:
    kernel, build = entry()
    base = build.param(0, "u64", B64)
    index = build.emit_multi(ptx.LdOp, "global.b32", base, results=(B32,))[0]
    own = [build.emit(ptx.AddOp, "s64", base, 8 * step) for step in range(1, 4)]
    found = build.emit(ptx.MadOp, "wide.s32", index, 4, base)
    for address in (*own, found):
        build.emit_multi(ptx.StOp, "global.b32", address, 0, results=())
    build.ret()
    assert register_pressure(kernel) == Pressure(2 + 2 * 3 + 1, 2)


def test_constants_and_predicates_are_free() -> None:
    kernel, build = entry()
    x = build.param(0, "u32", B32)
    predicate = build.emit(ptx.SetpOp, "lt.s32", x, 7)
    y = build.emit(ptx.SelpOp, "b32", 1, 2, predicate)
    build.emit(ptx.AddOp, "s32", x, y)
    build.ret()
    assert register_pressure(kernel) == Pressure(2, 0)


def test_what_a_loop_needs_lives_through_it() -> None:
    kernel, build = entry()
    base = build.param(0, "u64", B64)
    kept = [build.emit_multi(ptx.LdOp, "global.b32", base, results=(B32,))[0] for _ in range(3)]
    loop = build.block([B32], "loop")
    done = build.block((), "done")
    build.bra(loop, build.imm(0, B32))
    build.at(loop)
    inner = [build.emit_multi(ptx.LdOp, "global.b32", base, results=(B32,))[0] for _ in range(5)]
    total = loop.args[0]
    for value in inner:
        total = build.emit(ptx.AddOp, "f32", total, value)
    again = build.emit(ptx.SetpOp, "lt.f32", total, 0x40000000)
    build.cond_bra(again, loop, done, [total])
    build.at(done)
    for value in kept:
        build.emit_multi(ptx.StOp, "global.b32", base, value, results=())
    build.ret()
    assert register_pressure(kernel) == Pressure(2 + 3 + 5 + 1, 3 + 1)  # 1 is the sum so far


@pytest.mark.parametrize(
    ("name", "needed", "threads", "wanted"),
    [
        ("sm_90", 20, 256, (8, 32)),
        ("sm_90", 33, 256, (6, 40)),
        ("sm_90", 65, 256, (3, 80)),
        ("sm_90", 200, 256, (1, 255)),
        ("sm_90", 300, 256, (1, 255)),
        ("sm_90", 90, 1024, (1, 64)),
        ("sm_90", 20, 32, (32, 64)),
        ("sm_75", 20, 256, (4, 64)),
        ("sm_86", 20, 1024, (1, 64)),
        ("sm_90", 20, 100, (16, 32)),
        # A multiprocessor has four parts, and a warp is in one of them.
        ("sm_90", 120, 96, (5, 128)),
        ("sm_90", 108, 64, (8, 128)),
        ("sm_90", 150, 416, (1, 128)),
    ],
)
def test_as_many_ctas_as_leave_enough_registers(
    name: str, needed: int, threads: int, wanted: tuple[int, int]
) -> None:
    assert occupancy(needed, threads, chip(name)) == wanted


def test_tiles_beyond_the_registers_are_told() -> None:
    source = """\
kernel twice(x: tensor<f32>[N], out: tensor<f32>[N]) {
  let t = x[0 :+ 65536]
  out[0 :+ 65536] = t + sum<over 0>(t)
}
"""
    with pytest.warns(phobos.PhobosWarning, match=r"time and has 255: (.|\n)*\[-W fallback\]"):
        phobos.compile(source, cache=False)


def test_a_launch_bound_that_leaves_too_few_registers_is_told() -> None:
    source = """\
@launch(256, 8)
kernel twice(x: tensor<f32>[N], out: tensor<f32>[N]) {
  let t = x[0 :+ 16384]
  out[0 :+ 16384] = t + sum<over 0>(t)
}
"""
    with pytest.warns(phobos.PhobosWarning, match="time and has 32: "):
        phobos.compile(source, cache=False)
