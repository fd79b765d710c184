"""Building instructions: constants, results, offsets, guards and locations."""

from __future__ import annotations

import struct

import pytest

from phobos.dialects import ptx
from phobos.dialects.ptx import B16, B32, B64, PRED, InstructionBuilder
from phobos.ir.locations import location_attr


@pytest.fixture
def build() -> InstructionBuilder:
    return InstructionBuilder(ptx.EntryOp.make("k", [ptx.Parameter("x", "u64")]).body)


def _ops(build: InstructionBuilder) -> list[str]:
    return [op.name for op in build.body.blocks[0].ops]


def test_constants_are_made_once_and_stand_first(build):
    thread = build.sreg("tid.x")
    first = build.emit(ptx.AddOp, "s32", thread, 5)
    second = build.emit(ptx.MulOp, "lo.s32", thread, 5)
    build.emit(ptx.AddOp, "s32", first, second)
    assert _ops(build) == ["ptx.imm", "ptx.sreg", "ptx.add", "ptx.mul", "ptx.add"]
    assert build.imm(5, B32) is first.owner.operands[1]
    assert build.imm(5, B64) is not build.imm(5, B32)
    assert build.imm(-1, B32) is build.imm(0xFFFFFFFF, B32)


def test_constants_of_inner_blocks_stand_first_too(build):
    block = build.block(name="inner")
    build.bra(block)
    build.at(block)
    build.emit(ptx.AddOp, "s32", build.sreg("tid.x"), 7)
    assert _ops(build) == ["ptx.imm", "ptx.bra"]
    assert block.name_hint == "inner"
    assert build.insertion_block is block


def test_integers_take_the_class_that_the_instruction_wants(build):
    wide = build.param(0, "u64")
    shifted = build.emit(ptx.ShlOp, "b64", wide, 3)
    added = build.emit(ptx.AddOp, "u64", shifted, 3)
    assert shifted.owner.operands[1].type == B32
    assert added.owner.operands[1].type == B64


def test_results_follow_from_the_suffix_or_are_asked_for(build):
    address = build.param(0, "u64")
    assert build.emit(ptx.MulOp, "wide.u32", build.sreg("tid.x"), 4).type == B64
    assert build.emit(ptx.LdOp, "global.u8", address).type == B16
    assert build.emit(ptx.LdOp, "global.u8", address, result=B32).type == B32
    vector = build.emit_multi(ptx.LdOp, "global.v4.b32", address)
    assert [value.type for value in vector] == [B32] * 4
    both = build.emit_multi(ptx.ShflOp, "sync.idx.b32", vector[0], 0, 31, -1, results=(B32, PRED))
    assert [value.type for value in both] == [B32, PRED]
    assert build.emit_multi(ptx.BarOp, "sync", imm=0) == ()


def test_offsets_guards_and_alternatives(build):
    address = build.param(0, "u64")
    guard = build.true()
    value = build.emit(ptx.LdOp, "global.b32", address, offset=8, guard=guard, otherwise=0)
    load = value.owner
    assert load.offset() == 8
    assert load.guard is guard
    assert not load.negate_guard
    assert list(load.own_operands) == [address]
    assert list(load.otherwise) == [build.imm(0, B32)]
    build.emit_multi(ptx.StOp, "global.b32", address, value, guard=guard, negate_guard=True)
    store = build.insertion_block.last_op
    assert isinstance(store, ptx.StOp)
    assert store.negate_guard
    assert list(store.own_operands) == [address, value]
    shared = build.symbol("tile")
    build.emit_multi(ptx.CpAsyncOp, "ca.shared.global", shared, address, imm=4, offsets=(16, -32))
    copy = build.insertion_block.last_op
    assert isinstance(copy, ptx.CpAsyncOp)
    assert (copy.offset(0), copy.offset(1), copy.immediates) == (16, -32, (4,))
    assert _verified(build)


def _verified(build: InstructionBuilder) -> bool:
    for op in build.body.walk():
        op.verify_()
    return True


def test_floats_are_given_by_value(build):
    assert build.imm_f32(1.0).owner.pattern == 0x3F800000
    assert build.imm_f32(0.1).owner.pattern == struct.unpack("<I", struct.pack("<f", 0.1))[0]
    assert build.imm_f64(-2.0).owner.pattern == 0xC000000000000000


def test_every_operation_has_the_location_that_is_set(build):
    build.location = location_attr("a.ph", 3, 4)
    block = build.block([B32])
    build.bra(block, build.emit(ptx.AddOp, "s32", build.sreg("tid.x"), 1))
    build.at(block)
    build.cond_bra(build.false(), block, block, (block.args[0],), (block.args[0],))
    build.ret()
    build.exit()
    build.symbol("tile")
    assert {op.location for op in build.body.walk()} == {build.location}


def test_what_is_no_instruction_is_an_error(build):
    thread = build.sreg("tid.x")
    with pytest.raises(ValueError, match=r"add.f99 with 2 operands and 1 results is no instruc"):
        build.emit(ptx.AddOp, "f99", thread, thread)
    with pytest.raises(ValueError, match=r"add.s32 with 3 operands"):
        build.emit(ptx.AddOp, "s32", thread, thread, thread)
