"""Constant folding against the emulator: what is folded is what the instruction computes."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import B64, PRED
from phobos.emulator import emulate
from phobos.targets.ptx.printer import print_module
from phobos.transforms.ptx_evaluate import evaluate, to_signed

SPECIAL = (0, 1, 2, 5, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000)
SPECIAL += (0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 1 << 63, (1 << 63) - 1, (1 << 64) - 1)
THREADS = 256


@dataclass(frozen=True)
class Case:
    """An instruction with one result, and its literal-only operands."""

    cls: type[ptx.Instruction]
    suffix: str
    count: int
    literals: tuple[int, ...] = ()

    @property
    def shape(self):
        shape = self.cls.shape_of(self.suffix, 1, self.count)
        assert shape is not None
        return shape


def _cases(cls: type[ptx.Instruction], count: int, *suffixes: str) -> list[Case]:
    return [Case(cls, suffix, count) for suffix in suffixes]


INTEGERS = [f"{kind}{bits}" for bits in (16, 32, 64) for kind in "us"]
WORDS = [f"{kind}{bits}" for bits in (32, 64) for kind in "us"]
CASES = [
    *(c for op in (ptx.AddOp, ptx.SubOp, ptx.DivOp, ptx.RemOp) for c in _cases(op, 2, *INTEGERS)),
    *(c for op in (ptx.MinOp, ptx.MaxOp) for c in _cases(op, 2, *INTEGERS)),
    *(c for part in ("lo", "hi") for c in _cases(ptx.MulOp, 2, *(f"{part}.{t}" for t in INTEGERS))),
    *_cases(ptx.MulOp, 2, *(f"wide.{t}" for t in INTEGERS[:4])),
    *(c for part in ("lo", "hi") for c in _cases(ptx.MadOp, 3, *(f"{part}.{t}" for t in INTEGERS))),
    *_cases(ptx.MadOp, 3, *(f"wide.{t}" for t in INTEGERS[:4])),
    *_cases(ptx.AbsOp, 1, "s16", "s32", "s64"),
    *_cases(ptx.NegOp, 1, "s16", "s32", "s64"),
    *(
        c
        for op in (ptx.AndOp, ptx.OrOp, ptx.XorOp)
        for c in _cases(op, 2, "b16", "b32", "b64", "pred")
    ),
    *_cases(ptx.NotOp, 1, "b16", "b32", "b64", "pred"),
    *_cases(ptx.ShlOp, 2, "b16", "b32", "b64"),
    *_cases(ptx.ShrOp, 2, "b16", "b32", "b64", *INTEGERS),
    *_cases(ptx.ShfOp, 3, "l.wrap.b32", "l.clamp.b32", "r.wrap.b32", "r.clamp.b32"),
    *(Case(ptx.Lop3Op, "b32", 3, (table,)) for table in (0xCA, 0x96, 0xE8, 0x1B)),
    *_cases(ptx.PrmtOp, 3, "b32"),
    *_cases(ptx.BfeOp, 3, *WORDS),
    *_cases(ptx.BfiOp, 4, "b32", "b64"),
    *_cases(ptx.PopcOp, 1, "b32", "b64"),
    *_cases(ptx.ClzOp, 1, "b32", "b64"),
    *_cases(ptx.BrevOp, 1, "b32", "b64"),
    *_cases(ptx.Dp4aOp, 3, "u32.u32", "u32.s32", "s32.u32", "s32.s32"),
    *_cases(
        ptx.SetpOp,
        2,
        *(f"{c}.{t}" for c in ("eq", "ne", "lt", "le", "gt", "ge") for t in INTEGERS),
        *(f"{c}.{t}" for c in ("lo", "ls", "hi", "hs") for t in ("u16", "u32", "u64")),
    ),
    *_cases(ptx.SetpOp, 3, "lt.and.s32", "lt.or.u64", "eq.xor.b16"),
    *_cases(ptx.SelpOp, 3, "b16", "b32", "b64"),
    *_cases(
        ptx.CvtOp,
        1,
        *(f"{to}.{of}" for to in ("u8", "s8", *INTEGERS) for of in ("u8", "s8", *INTEGERS)),
    ),
    *_cases(ptx.CvtOp, 1, *(f"rn.{to}.{of}" for to in ("f32", "f64") for of in INTEGERS)),
    *(c for op in (ptx.AddOp, ptx.SubOp, ptx.MulOp) for c in _cases(op, 2, "f32", "rn.f32")),
    *_cases(ptx.PackOp, 2, "b32", "b64"),
    *_cases(ptx.PackOp, 4, "b64"),
]


def _inputs(count: int, seed: int) -> list[list[int]]:
    """Operands of each thread: all pairs of a few special values, then random ones."""
    rng = random.Random(seed)
    rows = [[rng.choice(SPECIAL) for _ in range(count)] for _ in range(THREADS // 2)]
    for _ in range(THREADS - len(rows)):
        rows.append([rng.getrandbits(rng.choice((3, 6, 16, 32, 64))) for _ in range(count)])
    return rows


def _narrowed(
    build: ptx.InstructionBuilder, wide: SSAValue, register: ptx.RegisterType
) -> SSAValue:
    if register == PRED:
        return build.emit(ptx.SetpOp, "ne.u64", build.emit(ptx.AndOp, "b64", wide, 1), 0)
    if register == B64:
        return wide
    return build.emit(ptx.CvtOp, f"u{register.bits}.u64", wide)


def _widened(build: ptx.InstructionBuilder, value: SSAValue) -> SSAValue:
    if value.type == PRED:
        return build.emit(ptx.SelpOp, "b64", 1, 0, value)
    if value.type == B64:
        return value
    assert isinstance(value.type, ptx.RegisterType)
    return build.emit(ptx.CvtOp, f"u64.u{value.type.bits}", value)


def _emulated(case: Case, rows: list[list[int]]) -> list[int]:
    """What the emulator computes for each row of operands."""
    parameters = [ptx.Parameter(f"p{i}", "u64") for i in range(case.count + 1)]
    entry = ptx.EntryOp.make("k", parameters)
    build = ptx.InstructionBuilder(entry.body)
    offset = build.emit(ptx.MulOp, "wide.u32", build.sreg("tid.x"), 8)
    addresses = [
        build.emit(ptx.AddOp, "u64", build.param(i, "u64"), offset) for i in range(case.count + 1)
    ]
    operands = [
        _narrowed(build, build.emit(ptx.LdOp, "global.b64", address), slot.classes[0])
        for address, slot in zip(addresses, case.shape.operand_slots, strict=False)
    ]
    result = build.emit(case.cls, case.suffix, *operands, imm=case.literals)
    build.emit_multi(ptx.StOp, "global.b64", addresses[-1], _widened(build, result))
    build.ret()
    text = print_module(ptx.PtxModuleOp.make("m", "sm_90", [entry]))
    columns = [np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)]
    out = np.zeros(THREADS, dtype=np.uint64)
    emulate(text, "k", 1, THREADS, [*columns, out])
    return [int(value) for value in out]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.cls.opcode}.{c.suffix}-{c.count}")
def test_folding_computes_what_the_instruction_does(case: Case):
    rows = _inputs(case.count, seed=CASES.index(case))
    computed = _emulated(case, rows)
    shape = case.shape
    width = shape.result_types[0].bits
    folded_any = False
    for row, expected in zip(rows, computed, strict=True):
        operands = [
            value & ((1 << slot.classes[0].bits) - 1)
            for value, slot in zip(row, shape.operand_slots, strict=True)
        ]
        folded = evaluate(case.cls, case.suffix, (width,), operands, case.literals)
        if folded is not None:
            folded_any = True
            assert folded == (expected,), f"operands {[hex(v) for v in operands]}"
    assert folded_any


def test_what_ptx_leaves_open_is_not_folded():
    assert evaluate(ptx.DivOp, "u32", (32,), (7, 0)) is None
    assert evaluate(ptx.RemOp, "s32", (32,), (7, 0)) is None
    assert evaluate(ptx.DivOp, "s32", (32,), (0x80000000, 0xFFFFFFFF)) is None
    assert evaluate(ptx.AddOp, "f32", (32,), (0x7F800000, 0xFF800000)) is None
    assert evaluate(ptx.MulOp, "f32", (32,), (0x7F000000, 0x7F000000)) is None
    assert evaluate(ptx.AddOp, "ftz.f32", (32,), (1, 1)) is None
    assert evaluate(ptx.AddOp, "sat.s32", (32,), (1, 1)) is None


def test_narrow_results_fill_the_register_they_sit_in():
    assert evaluate(ptx.CvtOp, "s8.s32", (32,), (0x80,)) == (0xFFFFFF80,)
    assert evaluate(ptx.CvtOp, "s8.s32", (16,), (0x80,)) == (0xFF80,)
    assert evaluate(ptx.CvtOp, "u8.s32", (64,), (0x180,)) == (0x80,)


def test_unpack_cuts_from_the_low_end():
    assert evaluate(ptx.UnpackOp, "b32", (16, 16), (0x12345678,)) == (0x5678, 0x1234)
    assert evaluate(ptx.UnpackOp, "b64", (16,) * 4, (0x1111222233334444,)) == (
        0x4444,
        0x3333,
        0x2222,
        0x1111,
    )


def test_to_signed_reads_twos_complement():
    assert to_signed(0xFFFF, 16) == -1
    assert to_signed(0x8000, 16) == -0x8000
    assert to_signed(0x17FFF, 16) == 0x7FFF
