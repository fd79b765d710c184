"""The quick views of operations and blocks say what xDSL says."""

from __future__ import annotations

from phobos.dialects import ptx
from phobos.dialects.ptx import B32, InstructionBuilder
from phobos.ir.views import operands_of, operations


def kernel() -> tuple[ptx.EntryOp, InstructionBuilder]:
    entry = ptx.EntryOp.make("k", [ptx.Parameter("n", "u32")])
    build = InstructionBuilder(entry.body)
    n = build.param(0, "u32", B32)
    build.emit(ptx.FmaOp, "rn.f32", n, build.emit(ptx.AddOp, "s32", n, 7), n)
    build.ret()
    return entry, build


def test_operations_and_operands_are_those_of_the_block() -> None:
    block = kernel()[0].body.blocks[0]
    assert list(operations(block)) == list(block.ops)
    assert [operands_of(op) for op in block.ops] == [tuple(op.operands) for op in block.ops]


def test_new_operands_are_seen() -> None:
    entry, build = kernel()
    fma = next(op for op in entry.body.blocks[0].ops if isinstance(op, ptx.FmaOp))
    other = build.imm(3, B32)
    fma.operands[1] = other
    assert operands_of(fma)[1] is other
    fma.operands = (other, other, other)
    assert operands_of(fma) == (other, other, other)


def test_the_operation_given_last_may_go() -> None:
    block = kernel()[0].body.blocks[0]
    before = list(block.ops)
    seen = []
    for op in operations(block):
        seen.append(op)
        if not op.results:
            op.detach()
    assert seen == before
    assert list(block.ops) == before[:-1]


def test_kernels_are_found_at_any_depth() -> None:
    first, second = kernel()[0], ptx.EntryOp.make("l", [])
    module = ptx.PtxModuleOp.make("m", "sm_80", [first, second])
    assert list(ptx.entries_in(module)) == [first, second]
    assert list(ptx.entries_in(first)) == []
    assert all(ptx.is_instruction(op) == isinstance(op, ptx.Instruction) for op in first.walk())
