"""Stages that bulk copies fill: what the barriers do, and what ptxas makes of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from phobos.dialects import ptx
from phobos.dialects.ptx import B32, InstructionBuilder
from phobos.dialects.ptx.instruction import Effect
from phobos.dialects.tensor_copies import BARRIER_BYTES
from phobos.emulator import TensorMapArgument, emulate
from phobos.explain.sass import DISASSEMBLER, disassemble
from phobos.targets.ptx.assembler import assemble
from phobos.targets.ptx.chips import chip as chip_of
from phobos.targets.ptx.cuda_tools import find_cuda_tool
from phobos.targets.ptx.printer import print_module
from phobos.transforms.lowering import mbarriers
from phobos.transforms.lowering.control import move_behind
from phobos.transforms.lowering.state import Lowering
from phobos.transforms.ptx_canonicalize import canonicalize_entry
from phobos.transforms.ptx_verify import verify_module
from tests.support.ptxas import needs_ptxas

THREADS = 128
STAGES = 4
BOX_BYTES = 4096
BARRIERS = STAGES * BOX_BYTES
"""Where the barriers are: one a stage for what is filled, then one a stage for what is emptied."""
EMPTY = STAGES * BARRIER_BYTES


def _lowering(chip: str, threads: int = THREADS) -> tuple[Lowering, ptx.EntryOp]:
    """The state of a sweep over a kernel with nothing in it."""
    kernel = gpu.FuncOp(
        "k",
        ([], []),
        Region(Block()),
        known_block_size=(threads, 1, 1),
    )
    parameters = [
        ptx.Parameter("out", "u64"),
        ptx.Parameter("n", "u32"),
        ptx.Parameter("x_map_0", "b8", align=64, count=128),
    ]
    entry = ptx.EntryOp.make("k", parameters, maxntid=(threads,))
    low = Lowering(kernel, InstructionBuilder(entry.body), chip_of(chip), lambda kind: None)
    return low, entry


def _module(low: Lowering, entry: ptx.EntryOp) -> ptx.PtxModuleOp:
    size = BARRIERS + 2 * EMPTY
    shared = ptx.SharedOp.make("memory", size, 128)
    return ptx.PtxModuleOp.make("m", low.chip.name, [shared, entry])


def summed_boxes(chip: str) -> ptx.PtxModuleOp:
    """Each thread adds its word of each of n boxes of 32 x 32 words, one under the other."""
    low, entry = _lowering(chip)
    build = low.build
    emit = build.emit
    count, tensor_map, memory = (
        build.param(1, "u32"),
        build.param_address(2),
        build.symbol("memory"),
    )
    with mbarriers.elected(low):
        for stage in range(STAGES):
            at = BARRIERS + stage * BARRIER_BYTES
            mbarriers.initialise(build, memory, 1, offset=at)
            mbarriers.initialise(build, memory, THREADS // 32, offset=at + EMPTY)
    mbarriers.publish(build)
    build.emit_multi(ptx.BarOp, "sync", imm=0)
    loop, done = build.block([B32] * 4, "loop"), build.block([B32], "done")
    build.bra(loop, *(build.imm(0, B32),) * 4)
    build.at(loop)
    step, stage, parity, total = loop.args
    barrier = emit(ptx.AddOp, "s32", memory, emit(ptx.ShlOp, "b32", stage, 3))
    box = emit(ptx.AddOp, "s32", memory, emit(ptx.ShlOp, "b32", stage, 12))
    with mbarriers.first_warp(low):
        emptied = emit(ptx.XorOp, "b32", parity, 1)
        mbarriers.wait(build, barrier, emptied, offset=BARRIERS + EMPTY)
        with mbarriers.one_lane(low):
            mbarriers.expect_bytes(build, barrier, BOX_BYTES, offset=BARRIERS)
            row = emit(ptx.ShlOp, "b32", step, 5)
            mbarriers.copy_box(low, box, tensor_map, (0, row), barrier, offsets=(0, BARRIERS))
    mbarriers.wait(build, barrier, parity, offset=BARRIERS)
    mine = emit(ptx.MadOp, "lo.s32", low.thread, 4, box)
    total = emit(ptx.AddOp, "s32", total, emit(ptx.LdOp, "shared.b32", mine))
    build.emit_multi(ptx.BarOp, "warp.sync", -1)
    is_zero = emit(ptx.SetpOp, "eq.u32", low.lane, 0)
    mbarriers.arrive(build, barrier, offset=BARRIERS + EMPTY, guard=is_zero)
    following, next_stage = (emit(ptx.AddOp, "s32", value, 1) for value in (step, stage))
    wraps = emit(ptx.SetpOp, "eq.u32", next_stage, STAGES)
    next_stage = emit(ptx.SelpOp, "b32", 0, next_stage, wraps)
    flipped = emit(ptx.XorOp, "b32", parity, 1)
    parity = emit(ptx.SelpOp, "b32", flipped, parity, wraps)
    again = emit(ptx.SetpOp, "lt.u32", following, count)
    build.cond_bra(again, loop, done, (following, next_stage, parity, total), (total,))
    build.at(done)
    move_behind(done, low)
    to = emit(ptx.CvtaOp, "to.global.u64", build.param(0, "u64"))
    to = emit(ptx.MadOp, "wide.u32", low.thread, 4, to)
    build.emit_multi(ptx.StOp, "global.b32", to, done.args[0])
    build.ret()
    return _module(low, entry)


def _text(module: ptx.PtxModuleOp) -> str:
    ModuleOp([module]).verify()
    (entry,) = (op for op in module.body.ops if isinstance(op, ptx.EntryOp))
    canonicalize_entry(entry)
    verify_module(module)
    return print_module(module)


@pytest.mark.parametrize("boxes", [1, STAGES, 2 * STAGES + 1])
@pytest.mark.parametrize("chip", ["sm_90a", "sm_120"])
def test_stages_are_filled_in_turn_and_read_in_turn(chip: str, boxes: int) -> None:
    rows = np.random.default_rng(boxes).integers(0, 1 << 20, (32 * boxes, 32), dtype=np.uint32)
    sums = np.zeros(THREADS, dtype=np.uint32)
    arguments = [sums, np.uint32(boxes), TensorMapArgument(rows, "u32", (32, 32))]
    emulate(_text(summed_boxes(chip)), "k", 1, THREADS, arguments)
    each = rows.reshape(boxes, BOX_BYTES // 4)[:, :THREADS]
    np.testing.assert_array_equal(sums, each.sum(0, dtype=np.uint32))


@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_90", "sm_90a", "sm_120"])
def test_stages_assemble_at_the_version_that_the_chip_prints(chip: str) -> None:
    text = _text(summed_boxes(chip))
    major, minor = chip_of(chip).ptx_version
    assert f".version {major}.{minor}\n" in text
    assert assemble(text, chip).warnings == ()


def test_waits_stay_where_they_are() -> None:
    """Loops in which nothing happens but the wait, each before what waits for it."""
    text = _text(summed_boxes("sm_90a"))
    waits = re.findall(
        r"(\$L_\w+):\n\tmbarrier\.try_wait\S+ (%p\d+), .*\n\t@!\2 bra \1;\n\t(\S+)", text
    )
    assert [behind for _, _, behind in waits] == ["elect.sync", "mad.lo.s32"]
    order = r"(init|fence|bar\.sync|try_wait|expect_tx|bulk\.tensor|ld\.shared|arrive\.shared)"
    assert re.findall(rf"\t.*?{order}", text) == [
        *["init"] * (2 * STAGES),
        "fence",
        "bar.sync",
        "try_wait",
        "expect_tx",
        "bulk.tensor",
        "try_wait",
        "ld.shared",
        "arrive.shared",
    ]


@needs_ptxas
@pytest.mark.skipif(find_cuda_tool(DISASSEMBLER) is None, reason="needs nvdisasm")
def test_a_copy_is_one_instruction() -> None:
    """One lane is elected for the barriers and one a turn; ptxas adds no loop over the lanes."""
    listed = disassemble(assemble(_text(summed_boxes("sm_90a")), "sm_90a").cubin)
    assert isinstance(listed, dict)
    kinds = dict(listed["k"][0].kinds)
    assert (kinds["UTMALDG"], kinds["ELECT"]) == (1, 2)


def test_a_block_of_one_warp_has_no_branch_for_it() -> None:
    low, entry = _lowering("sm_90a", threads=32)
    with mbarriers.elected(low):
        mbarriers.initialise(low.build, low.build.symbol("memory"), 1)
    low.build.ret()
    text = _text(_module(low, entry))
    assert "elect.sync" in text
    assert "shfl" not in text
    assert text.count("bra") == 1


def test_the_number_of_the_warp_is_made_once_and_first() -> None:
    low, entry = _lowering("sm_90a")
    inner = low.build.block((), "inner")
    low.build.bra(inner)
    low.build.at(inner)
    assert low.uniform_warp is low.uniform_warp
    low.build.ret()
    made = [op for op in entry.body.blocks[0].ops if isinstance(op, ptx.ShflOp)]
    assert [op.results[0] for op in made] == [low.uniform_warp]
    assert [type(op) for op in inner.ops] == [ptx.RetOp]


@pytest.mark.parametrize(
    "cls",
    [
        ptx.BarrierClusterOp,
        ptx.CpAsyncBulkOp,
        ptx.CpAsyncBulkTensorOp,
        ptx.CpAsyncBulkCommitGroupOp,
        ptx.CpAsyncBulkWaitGroupOp,
        ptx.FenceOp,
        ptx.MbarrierOp,
        ptx.PrefetchOp,
        ptx.SetmaxnregOp,
    ],
)
def test_nothing_may_move_merge_or_drop_them(cls: type[ptx.Instruction]) -> None:
    assert cls.effect is Effect.WRITE


def test_addresses_may_be_taken_anywhere() -> None:
    assert ptx.MapaOp.effect is Effect.NONE
    assert ptx.ParamAddressOp.effect is Effect.NONE
