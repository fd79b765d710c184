"""The PTX parser: records, scopes, literals and its error messages."""

from __future__ import annotations

import pytest

from phobos.diagnostics import PhobosError
from phobos.targets.ptx.parse import parse_ptx
from phobos.targets.ptx.parse.records import (
    Address,
    Arguments,
    FloatImmediate,
    Guard,
    Immediate,
    Negated,
    Pair,
    Register,
    Sink,
    SourcePoint,
    SpecialRegister,
    Symbol,
    Vector,
)

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def body(text: str, parameters: str = ""):
    """The instructions of a kernel with the given body."""
    module = parse_ptx(f"{HEADER}.entry k({parameters})\n{{\n{text}\n}}\n")
    return module.functions["k"].body


def operands(text: str):
    """The operands of one instruction among some declared registers."""
    declarations = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>;"
    return body(f"{declarations} {text}")[-1].operands


def test_module_header_and_files():
    module = parse_ptx(
        ".version 7.4 // comment\n.target sm_90a, debug\n.address_size 64\n"
        '.file 1 "a\\"b.ph", 12, 34\n/* more\n comment */ .file 2 "c.ph"\n'
    )
    assert module.version == (7, 4)
    assert module.target == ("sm_90a", "debug")
    assert module.chip == "sm_90a"
    assert module.files == {1: 'a"b.ph', 2: "c.ph"}


def test_entry_parameters_and_bounds():
    module = parse_ptx(
        f"{HEADER}.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 2 .b8 h[2],"
        " .param .f32 f)\n.maxntid 128, 2, 1\n.minnctapersm 2\n{ ret; }\n"
    )
    entry = module.functions["k"]
    assert [(p.name, p.type, p.size, p.align) for p in entry.parameters] == [
        ("a", "u64", 8, 8),
        ("h", "b8", 2, 2),
        ("f", "f32", 4, 4),
    ]
    assert entry.parameters[0].attributes == ("ptr_space=global", "ptr_align=16")
    assert entry.directives == {"maxntid": (128, 2, 1), "minnctapersm": (2,)}


def test_variables_with_initialisers():
    module = parse_ptx(
        f"{HEADER}.extern .shared .align 16 .b8 dyn[];\n"
        ".const .f32 c[3] = {1.5, 0f3F800000, 2};\n"
        ".global .align 8 .u64 g[2] = {c+4, generic(c)};\n.global .v4 .b32 v;\n"
        ".shared .b32 m[4][8];\n"
    )
    variables = {v.name: v for v in module.variables}
    assert variables["dyn"].count is None
    assert variables["dyn"].is_extern
    assert variables["c"].initial == (
        FloatImmediate(0x3FF8000000000000, 64),
        FloatImmediate(0x3F800000, 32),
        2,
    )
    assert variables["g"].initial == (Symbol("c", 4), Symbol("c", 0))
    assert (variables["v"].count, variables["v"].align) == (4, 16)
    assert variables["m"].size == 128


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("42", 42),
        ("-7", -7),
        ("0x1F", 31),
        ("0xFFFFFFFFFFFFFFFFU", 2**64 - 1),
        ("0b101", 5),
        ("017", 15),
        ("0", 0),
        ("~0", -1),
        ("!3", 0),
        ("(1<<4)|3", 19),
        ("2*3+4", 10),
        ("-(8/3)", -2),
        ("WARP_SZ", 32),
        ("WARP_SZ-1", 31),
    ],
)
def test_integer_literals(literal: str, value: int):
    assert operands(f"mov.b64 %d1, {literal};")[1] == Immediate(value)


@pytest.mark.parametrize(
    ("literal", "bits", "width"),
    [
        ("0f3F800000", 0x3F800000, 32),
        ("0d3FF0000000000000", 0x3FF0000000000000, 64),
        ("1.0", 0x3FF0000000000000, 64),
        ("-2.5e1", 0xC039000000000000, 64),
        ("-0f3F800000", 0xBF800000, 32),
        ("1e3", 0x408F400000000000, 64),
    ],
)
def test_float_literals(literal: str, bits: int, width: int):
    assert operands(f"mov.b64 %d1, {literal};")[1] == FloatImmediate(bits, width)


def test_operand_shapes():
    r = lambda n: Register(f"%r{n}", "b32", n)  # noqa: E731
    found = operands("op.x %r0, {%r1, _}, %r2|%p0, [%r3+-4], [buf+8], !%p1, %tid.x, (%r4), [16];")
    assert found[0] == r(0)
    assert found[1] == Vector((r(1), Sink()))
    assert found[2] == Pair(r(2), Register("%p0", "pred", 3))
    assert found[3] == Address(Register("%r3", "b32", 4), -4)
    assert found[4] == Address(Symbol("buf"), 8)
    assert found[5] == Negated(Register("%p1", "pred", 5))
    assert found[6] == SpecialRegister("tid.x")
    assert found[7] == Arguments((Register("%r4", "b32", 6),))
    assert found[8] == Address(Immediate(16))


def test_guards_suffixes_and_source_lines():
    module = parse_ptx(
        f'{HEADER}.file 1 "x.ph"\n.entry k() {{ .reg .pred %p; .reg .b32 %r;\n.loc 1 7 3\n'
        "@!%p ld.global.nc.L1::no_allocate.v4.b32 %r, [0];\n"
        ".loc 1 9 1, function_name $f, inlined_at 1 2 3\n@%p bra.uni L;\nL: ret; }"
    )
    first, second, third = module.functions["k"].body
    assert first.opcode == "ld"
    assert first.suffix == ("global", "nc", "L1::no_allocate", "v4", "b32")
    assert first.guard == Guard(Register("%p", "pred", 0), negated=True)
    assert first.source == SourcePoint(1, 7, 3)
    assert (first.position.line, first.position.column) == (7, 1)
    assert second.source == SourcePoint(1, 9, 1)
    assert second.operands == (Symbol("L"),)
    assert third.mnemonic == "ret"


def test_scopes_keep_names_apart():
    module = parse_ptx(
        f"{HEADER}.entry k() {{ .reg .b32 t; mov.b32 t, 1; {{ .reg .b64 t; mov.b64 t, 2;\n"
        "L: bra L; } { L: bra L; } L: bra L; }"
    )
    function = module.functions["k"]
    assert [r.name for r in function.registers] == ["t", "t@1"]
    assert [r.type for r in function.registers] == ["b32", "b64"]
    targets = [i.operands[0] for i in function.body if i.opcode == "bra"]
    assert targets == [Symbol("L"), Symbol("L@1"), Symbol("L@2")]
    assert function.labels == {"L": 2, "L@1": 3, "L@2": 4}


def test_device_functions_and_tables():
    module = parse_ptx(
        f"{HEADER}.extern .func (.param .b32 r) f(.param .b32 a);\n"
        ".func (.reg .b32 out) g(.reg .b32 in) { add.u32 out, in, 1; ret; }\n"
        ".entry k() { .reg .b32 %r<4>; T: .branchtargets A, B; brx.idx %r0, T;\n"
        "A: call.uni (%r1), g, (%r2);\nB: ret; }"
    )
    assert module.functions["f"].is_declaration
    g = module.functions["g"]
    assert g.parameters[0].register == Register("in", "b32", 1)
    assert g.results[0].register == Register("out", "b32", 0)
    assert module.functions["k"].tables == {"T": ("A", "B")}
    assert [e.name for e in module.entries] == ["k"]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("mov.b32 %r9, 1;", (6, 9), "`%r9` is no declared or special register"),
        ("mov.b32 %r1 1;", (6, 13), "expected `;` behind this instruction, got `1`"),
        ("bra NOWHERE;", (6, 5), "label `NOWHERE` is not defined in this function"),
        ("@%r1 ret;", (6, 2), "`%r1` guards but is no predicate"),
        ("ld.b32 %r1, [%r1-4];", (6, 17), "PTX has no `-` in an address"),
        ("mov.b32 %r1, $;", (6, 14), "stray character '$'"),
        ("L: ret; L: ret;", (6, 9), "label `L` is defined twice"),
        (".reg .b31 x;", (6, 6), "expected a type such as `.b32`, got `.b31`"),
        (".entry e() {}", (6, 1), "directive `.entry` cannot stand in a function"),
        ("mov.b32 %r1, 1.5e;", (6, 17), "expected `;` behind this instruction, got `e`"),
        ("/* ret;", (6, 1), "this comment is not closed"),
    ],
)
def test_errors_name_their_place(text: str, place: tuple[int, int], message: str):
    source = f"{HEADER}.entry k() {{ .reg .b32 %r<4>;\n\n{text}\n}}"
    with pytest.raises(PhobosError) as caught:
        parse_ptx(source, "m.ptx")
    location = caught.value.diagnostics[0].location
    assert location is not None
    assert (location.file, location.line, location.column) == ("m.ptx", *place)
    assert message in caught.value.diagnostics[0].message
    assert str(caught.value).splitlines()[1].endswith(text.split("\n")[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this PTX has no `.version` directive"),
        (".version 8.0", "this PTX has no `.target` directive"),
        (".version x", "expected a version such as 8.0, got `x`"),
        (HEADER + "ret;", "expected a directive, got `ret`"),
        (HEADER + ".func f() { ret;", "expected `}` at the end of this function"),
        (HEADER + ".entry k() { ret; }\n.entry k() { ret; }", "function `k` is defined twice"),
        (HEADER + ".unknown", "unknown directive `.unknown`"),
    ],
)
def test_module_errors(text: str, message: str):
    with pytest.raises(PhobosError, match=r"<ptx>:\d+:\d+: error: ") as caught:
        parse_ptx(text)
    assert message in str(caught.value)
