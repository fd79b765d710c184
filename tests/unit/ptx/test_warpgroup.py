"""Products of a warpgroup: their forms against ptxas, and what is in which register."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B32, InstructionBuilder
from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Effect, Instruction
from phobos.dialects.ptx.warpgroup import WARPGROUP_ROWS, WGMMA_SHAPES, WgmmaShape
from phobos.explain.sass import DISASSEMBLER, disassemble
from phobos.targets.ptx import printer
from phobos.targets.ptx.assembler import assemble
from phobos.targets.ptx.cuda_tools import find_cuda_tool
from phobos.targets.ptx.parse import parse_ptx
from phobos.targets.ptx.parse.records import Immediate, Register, Vector
from phobos.targets.ptx.printer import print_module
from tests.support.ptxas import needs_ptxas
from tests.unit.ptx.programs import RandomKernel, run_kernel

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
_TOTAL_BITS = {"f32": 32, "f16": 16, "s32": 32}


def _product(build: InstructionBuilder, row: WgmmaShape, n: int, a_in_registers: bool) -> None:
    """A product of this shape that is stored, as the protocol wants it."""
    address = build.emit(ptx.CvtaOp, "to.global.u64", build.param(0, "u64"))
    words = [build.emit(ptx.LdOp, "global.b32", address, offset=4 * i) for i in range(4)]
    descriptor = build.emit(ptx.LdOp, "global.b64", address)
    sums: list[SSAValue | int] = [0] * row.accumulator_registers(n)
    inputs = [*sums, *words] if a_in_registers else sums
    fenced = build.emit_multi(ptx.WgmmaFenceOp, "sync.aligned", *inputs)
    a = fenced[len(sums) :] if a_in_registers else [descriptor]
    literals = [1] * len(row.immediates(a_in_registers=a_in_registers))
    totals = build.emit_multi(
        ptx.WgmmaMmaAsyncOp,
        row.suffix(n),
        *fenced[: len(sums)],
        *a,
        descriptor,
        imm=tuple(literals),
    )
    build.emit_multi(ptx.WgmmaCommitGroupOp, "sync.aligned")
    totals = build.emit_multi(ptx.WgmmaWaitGroupOp, "sync.aligned", *totals, imm=0)
    for index, total in enumerate(totals):
        build.emit_multi(ptx.StOp, "global.b32", address, total, offset=4 * index)


def _module(row: WgmmaShape, n: int, a_in_registers: bool) -> str:
    entry = ptx.EntryOp.make("k", [ptx.Parameter("p", "u64")], maxntid=(128,))
    build = InstructionBuilder(entry.body)
    _product(build, row, n, a_in_registers)
    build.ret()
    return print_module(ptx.PtxModuleOp.make("m", "sm_90a", [entry]))


@needs_ptxas
@pytest.mark.parametrize("a_in_registers", [False, True], ids=["shared", "registers"])
@pytest.mark.parametrize("index", range(len(WGMMA_SHAPES)))
def test_ptxas_takes_every_row_as_it_is(index: int, a_in_registers: bool) -> None:
    """With a size of its own for each, and without a remark: no wait or fence is put in."""
    row = WGMMA_SHAPES[index]
    n = row.sizes[(5 * index + 3) % len(row.sizes)]
    text = _module(row, n, a_in_registers)
    version = "8.4" if row.since > (8, 0) else "8.0"
    assert f".version {version}\n.target sm_90a\n" in text
    assert assemble(text, "sm_90a").warnings == ()
    # The zeros that the sums begin with are the only moves.
    assert len(re.findall(r"\tmov\.", text)) == row.accumulator_registers(n)


@needs_ptxas
def test_ptxas_remarks_on_sums_that_are_touched_before_the_wait() -> None:
    text = _module(WGMMA_SHAPES[0], 8, a_in_registers=False)
    (product,) = re.findall(r"\twgmma\.mma_async.*\n", text)
    (first,) = re.findall(r"\{(%r\d+),", product)
    touched = f"{product}\tadd.f32 {first}, {first}, {first};\n{product}"
    remarks = assemble(text.replace(product, touched), "sm_90a", ("-v",)).remarks
    assert any("warpgroup.wait is injected" in remark for remark in remarks)
    assert len(remarks) == len(set(remarks))


@needs_ptxas
@pytest.mark.skipif(find_cuda_tool(DISASSEMBLER) is None, reason="needs nvdisasm")
@pytest.mark.parametrize(
    ("types", "opcode"),
    [("f16 f16 f32", "HGMMA"), ("e4m3 e5m2 f16", "QGMMA"), ("s8 s8 s32", "IGMMA")],
)
def test_machine_code_has_them_by_name(types: str, opcode: str) -> None:
    (row,) = (r for r in WGMMA_SHAPES if f"{r.a} {r.b} {r.accumulator}" == types)
    listed = disassemble(assemble(_module(row, 64, a_in_registers=False), "sm_90a").cubin)
    assert isinstance(listed, dict)
    assert dict(listed["k"][0].kinds)[opcode] == 1


@needs_ptxas
@pytest.mark.parametrize("index", [0, 12])
def test_ptxas_takes_every_size(index: int) -> None:
    row = WGMMA_SHAPES[index]
    entry = ptx.EntryOp.make("k", [ptx.Parameter("p", "u64")], maxntid=(128,))
    build = InstructionBuilder(entry.body)
    for n in row.sizes:
        _product(build, row, n, a_in_registers=False)
    build.ret()
    text = print_module(ptx.PtxModuleOp.make("m", "sm_90a", [entry]))
    assert assemble(text, "sm_90a", ("-O0",)).cubin


def test_the_text_is_read_back() -> None:
    row = WGMMA_SHAPES[0]
    (kernel,) = parse_ptx(_module(row, 16, a_in_registers=True)).entries
    (product,) = (one for one in kernel.body if one.mnemonic.startswith("wgmma.mma_async"))
    assert product.mnemonic == "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16"
    sums, a, b, *literals = product.operands
    assert isinstance(sums, Vector)
    assert isinstance(a, Vector)
    assert isinstance(b, Register)
    assert (len(sums.elements), len(a.elements), b.type) == (8, 4, "b64")
    assert literals == [Immediate(1)] * 4


def test_the_sizes() -> None:
    floats, integers = WGMMA_SHAPES[0].sizes, WGMMA_SHAPES[-1].sizes
    assert floats == tuple(range(8, 257, 8))
    assert integers == (8, 16, 24, *range(32, 257, 16))


def test_rows_agree_with_the_sizes_of_their_matrices() -> None:
    """A row of K elements is 32 bytes, and 128 lanes hold the accumulator."""
    assert len({(row.a, row.b, row.accumulator) for row in WGMMA_SHAPES}) == len(WGMMA_SHAPES)
    for row in WGMMA_SHAPES:
        assert _BITS[row.a] == _BITS[row.b]
        assert row.k * _BITS[row.a] == 256
        assert row.transposable == (_BITS[row.a] == 16)
        for n in row.sizes:
            bits = WARPGROUP_ROWS * n * _TOTAL_BITS[row.accumulator]
            assert row.accumulator_registers(n) * 32 * 128 == bits
            assert row.form(a_in_registers=False).matches(row.suffix(n))


def test_nothing_may_move_merge_or_drop_them() -> None:
    classes = (
        ptx.WgmmaMmaAsyncOp,
        ptx.WgmmaFenceOp,
        ptx.WgmmaCommitGroupOp,
        ptx.WgmmaWaitGroupOp,
    )
    for cls in classes:
        assert cls.effect is Effect.WRITE
        assert not cls.guardable
    assert [cls.has_ties for cls in classes] == [True, True, False, True]
    assert not ptx.MmaOp.has_ties


class _PassOp(Instruction):
    """Hands values on in the registers that they are in; a fence that changes none."""

    name = "ptx.test.pass"
    opcode = "membar"
    effect = Effect.WRITE
    forms = (Form("cta", "b32{..} = &b32{..}"),)


class _Passing(RandomKernel):
    """A random kernel in which values are handed on all the time."""

    def _instruction(self) -> None:
        super()._instruction()
        values = [self._pick(B32) for _ in range(self.random.randint(0, 3))]
        self.values[B32] += self.build.emit_multi(_PassOp, "cta", *values)


@pytest.mark.parametrize("seed", range(20))
def test_tied_values_are_what_they_were(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether registers are shared or not, and like a kernel that hands on nothing."""
    kernel = _Passing(seed)
    shared = run_kernel(kernel.module, seed)
    with monkeypatch.context() as patch:
        patch.setattr(printer, "coalesce", lambda blocks: {})
        np.testing.assert_array_equal(shared, run_kernel(kernel.module, seed))
    for block in kernel.entry.body.blocks:
        for op in block.ops:
            if isinstance(op, _PassOp):
                for result, operand in zip(op.results, op.operands, strict=True):
                    result.replace_all_uses_with(operand)
                op.detach()
                op.erase()
    np.testing.assert_array_equal(shared, run_kernel(kernel.module, seed))
