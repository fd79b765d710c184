"""The ptx dialect: text that parses back, and what its verifiers refuse."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, IntAttr, ModuleOp
from xdsl.ir import Operation, OpTrait
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryEffect, Pure
from xdsl.utils.exceptions import ParseError, VerifyException

from phobos.dialects import ptx
from phobos.dialects.ptx import B32, B64, PRED
from phobos.dialects.ptx.attributes import GUARD_IF, immediates_attr, suffix_attr
from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Effect
from tests.unit.ptx.forms import INSTRUCTIONS, FormModule, spellings
from tests.unit.ptx.programs import RandomKernel


def _context() -> Context:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(ptx.Ptx)
    return context


def _parse(text: str) -> ModuleOp:
    module = Parser(_context(), text).parse_module()
    module.verify()
    return module


def _in_kernel(*lines: str) -> str:
    body = "\n".join(lines)
    return f"ptx.module @m sm_80 {{ ptx.entry @k(p: u64, n: u32) {{\n{body}\nptx.ret\n}} }}"


def _generic(module: Operation) -> str:
    out = StringIO()
    Printer(out, print_generic_format=True).print_op(module)
    return out.getvalue()


@pytest.mark.parametrize("cls", INSTRUCTIONS, ids=lambda cls: cls.name)
def test_every_form_parses_back(cls: type[ptx.Instruction]):
    chosen = [spelling for spelling in spellings(Form.sample) if spelling.cls is cls]
    module = ModuleOp([FormModule("sm_80", chosen).module])
    module.verify()
    text = str(module)
    assert str(_parse(text)) == text
    assert str(_parse(_generic(module))) == text


@pytest.mark.parametrize("seed", range(5))
def test_kernels_with_loops_parse_back(seed: int):
    module = ModuleOp([RandomKernel(seed).module])
    text = str(module)
    assert str(_parse(text)) == text
    assert str(_parse(_generic(module))) == text


def test_the_text_is_what_a_reader_expects():
    text = """builtin.module {
  ptx.module @m sm_80 version 7.8 {
    ptx.shared @tile 4096 align 16
    ptx.shared extern @memory align 16
    ptx.entry @k(x: u64 ptr global align 16, n: u32, h: b8[2] align 2) maxntid 32, 2 maxnreg 64 {
      %0 = ptx.imm 0 : b32
      %1 = ptx.imm -1 : b32
      %2 = ptx.imm 0x3f800000 : b32
      %3 = ptx.param u64 0
      %4 = ptx.sreg tid.x
      %5 = ptx.symbol @tile : b32
      %6 = ptx.setp lt.u32 %4, %0
      %7, %8 = ptx.setp lt.u32 %4, %0 -> pred, pred
      %9 = ptx.fma rn.ftz.f32 %4, %2, %4
      %10, %11 = ptx.ld global.nc.L1::no_allocate.L2::128B.v2.b32 [%3 + 16] guard %6 else %0, %1
      %12 = ptx.ld global.u8 [%3] -> b32
      ptx.st global.b8 [%3 + -4], %12 guard not %6 : b64, b32
      ptx.st shared.v2.b32 [%5], {%10, %11}
      ptx.cp.async cg.shared.global [%5 + 16], [%3 + 32], 16, %4
      ptx.cp.async.wait_group 2
      %13 = ptx.lop3 b32 %4, %9, %10, 202
      ptx.bar sync 0
      ptx.cond_bra uniform %6, ^loop(%4, %13 : b32, b32), ^done
    ^loop(%14: !ptx.reg<b32>, %15: !ptx.reg<b32>):
      ptx.bra ^done
    ^done:
      ptx.exit
    }
  }
}"""
    assert str(_parse(text)) == text


def test_negative_constants_wrap_to_their_width():
    module = _parse(_in_kernel("%0 = ptx.imm -1 : b16", "%1 = ptx.imm 0xffff : b16"))
    patterns = [op.pattern for op in module.walk() if isinstance(op, ptx.ImmOp)]
    assert patterns == [0xFFFF, 0xFFFF]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%0 = ptx.add f99 %a, %a", "`add.f99` is no form of `add`"),
        ("%0 = ptx.add s32 %a", r"`add.s32` takes `t = t, t`"),
        ("%0 = ptx.add s32 %a, %a, %a", r"`add.s32` takes `t = t, t`"),
        ("%0 = ptx.add s64 %a, %a", "operand is used with type"),
        ("%0 = ptx.imm 70000 : b16", "70000 does not fit 16 bits"),
        ("%0 = ptx.imm 1 : b33", "expected a register class"),
        ("%0 = ptx.ld global.b32 [%p] guard %q", "one `else` value per result: 1, got 0"),
        ("ptx.bar sync %a", "`bar.sync` takes"),
    ],
)
def test_what_the_parser_refuses(line: str, message: str):
    setup = ("%a = ptx.param u32 1", "%p = ptx.param u64 0", "%q = ptx.setp eq.u32 %a, %a")
    with pytest.raises(ParseError, match=message):
        _parse(_in_kernel(*setup, line))


def _instruction(cls: type[ptx.Instruction], suffix: str, operands, results, **properties):
    return cls.create(
        operands=[_value(register) for register in operands],
        result_types=results,
        properties={"suffix": suffix_attr(suffix), **properties},
    )


def _value(register: ptx.RegisterType):
    return ptx.ImmOp.create(result_types=(register,), properties={"value": IntAttr(0)}).results[0]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (
            _instruction(ptx.AddOp, "s32", (B32, B64), (B32,)),
            "operand 1 is b64, expected b32",
        ),
        (_instruction(ptx.AddOp, "s32", (B32, B32), (B64,)), "result 0 is b64, expected b32"),
        (_instruction(ptx.AddOp, "s32", (B32,), (B32,)), "got 1 results and 1 operands"),
        (_instruction(ptx.CvtOp, "u16.u32", (B32,), (B32,)), "result 0 is b32, expected b16"),
        (
            _instruction(ptx.BarOp, "sync", (), (), immediates=immediates_attr((16,))),
            "literal 16 is not one of 0 to 15",
        ),
        (
            _instruction(
                ptx.CpAsyncOp, "cg.shared.global", (B32, B64), (), immediates=immediates_attr((8,))
            ),
            "literal 8 is not one of 16",
        ),
        (_instruction(ptx.BarOp, "sync", (), ()), "takes 1 literal operands, got 0"),
        (
            _instruction(ptx.LdOp, "global.b32", (B64,), (B32,), offset=IntAttr(1 << 31)),
            "offset 2147483648 is not 32-bit",
        ),
        (
            _instruction(ptx.AddOp, "s32", (B32, B32), (B32,), offset=IntAttr(4)),
            "has no address for the property `offset`",
        ),
        (
            _instruction(ptx.AddOp, "s32", (B32, B32, PRED, B32), (B32,), guard=GUARD_IF),
            "`add.s32` cannot be guarded",
        ),
        (
            _instruction(ptx.StOp, "global.b32", (B64, B32, B32), (), guard=GUARD_IF),
            "a guard is a predicate",
        ),
        (
            _instruction(ptx.LdOp, "global.b32", (B64, PRED, B64), (B32,), guard=GUARD_IF),
            "has an `else` value of",
        ),
    ],
)
def test_what_the_verifier_refuses(op: ptx.Instruction, message: str):
    with pytest.raises(VerifyException, match=message):
        op.verify_()


def test_branches_pass_what_blocks_take():
    text = _in_kernel(
        "%a = ptx.param u32 1",
        "ptx.bra ^b(%a : b32)",
        "^b(%x: !ptx.reg<b64>):",
    )
    with pytest.raises(VerifyException, match=r"passes \(b32\) to a block that takes \(b64\)"):
        _parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ptx.module @m sm_80 { ptx.shared @s 4 align 3 }", "alignment 3 is no power of two"),
        ("ptx.module @m sm_80 { ptx.shared @s 0 align 4 }", "has a size, or is extern"),
        (
            "ptx.module @m sm_80 { ptx.entry @k(a: u32, a: u32) { ptx.ret } }",
            "two parameters `a`",
        ),
        (
            "ptx.module @m sm_80 { ptx.entry @k() maxntid 1, 1, 1, 1 { ptx.ret } }",
            "one to three numbers",
        ),
        ("ptx.module @m sm_80 { ptx.entry @k(a: u99) { ptx.ret } }", "`u99` is no type for it"),
        ("ptx.module @m sm_80 { ptx.entry @k(a: b8[0]) { ptx.ret } }", "`a` has 0 elements"),
        (
            "ptx.module @m sm_80 { ptx.entry @k(a: u64 ptr global align 3) { ptx.ret } }",
            "alignment 3 is no power of two",
        ),
        ("ptx.module @m sm_80 { ptx.entry @k() { ptx.ret ptx.ret } }", "but more follows it"),
        (
            "ptx.module @m sm_80 { ptx.entry @k() { ptx.ret } ptx.entry @k() { ptx.ret } }",
            'Redefinition of symbol "k"',
        ),
    ],
)
def test_what_containers_refuse(text: str, message: str):
    with pytest.raises(VerifyException, match=message):
        _parse(text)


@pytest.mark.parametrize("cls", INSTRUCTIONS, ids=lambda cls: cls.name)
def test_every_instruction_declares_its_effect(cls: type[ptx.Instruction]):
    traits: list[OpTrait] = list(cls.traits)
    assert cls.has_trait(Pure) == (cls.effect is Effect.NONE)
    assert any(isinstance(trait, MemoryEffect) for trait in traits)
    assert cls.__doc__
    assert cls.guardable is False or cls.effect in (Effect.READ, Effect.WRITE)


def test_what_writes_or_orders_memory_is_never_dropped():
    writers = {cls.name for cls in INSTRUCTIONS if cls.effect is Effect.WRITE}
    assert {"ptx.st", "ptx.atom", "ptx.red", "ptx.bar", "ptx.trap", "ptx.cp.async"} <= writers
    assert "ptx.ld" not in writers
    convergent = {cls.name for cls in INSTRUCTIONS if cls.effect is Effect.CONVERGENT}
    assert {"ptx.shfl", "ptx.vote", "ptx.redux", "ptx.mma", "ptx.ldmatrix"} <= convergent
