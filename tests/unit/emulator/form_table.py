"""The forms that are compared with a GPU."""

from __future__ import annotations

from collections.abc import Iterable

from tests.unit.emulator.forms import Form

_INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
_WORDS = ("u32", "s32", "u64", "s64")
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def _plain(
    op: str, kind: str, arity: int, result: str | None = None, *, is_exact: bool = True
) -> Form:
    operands = ", ".join(f"{{{letter}}}" for letter in "abcdef"[:arity])
    return Form(f"{op}.{kind} {{d}}, {operands}", result or kind, (kind,) * arity, is_exact)


def _integer_forms() -> Iterable[Form]:
    for kind in _INTEGERS:
        for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
            yield _plain(op, kind, 2)
        yield _plain("mad.lo", kind, 3)
        for op in ("div", "rem"):
            # A zero divisor gives a number that PTX leaves open.
            yield Form(
                f"or.b{kind[1:]} {{b}}, {{b}}, 1; {op}.{kind} {{d}}, {{a}}, {{b}}",
                kind,
                (kind, kind),
            )
        if kind[0] == "s":
            yield _plain("neg", kind, 1)
            yield _plain("abs", kind, 1)
    for kind in ("u32", "s32", "u64", "s64"):
        yield _plain("mad.hi", kind, 3)
        yield _plain("sad", kind, 3)
        yield _plain("bfind", kind, 1, "u32")
        yield _plain("bfind.shiftamt", kind, 1, "u32")
        yield Form(f"bfe.{kind} {{d}}, {{a}}, {{b}}, {{c}}", kind, (kind, "u32", "u32"))
    for kind, wide in _WIDE.items():
        yield Form(f"mul.wide.{kind} {{d}}, {{a}}, {{b}}", wide, (kind, kind))
        yield Form(f"mad.wide.{kind} {{d}}, {{a}}, {{b}}, {{c}}", wide, (kind, kind, wide))
    for kind in ("u32", "s32"):
        for op in ("mul24.lo", "mul24.hi"):
            yield _plain(op, kind, 2)
        yield _plain("mad24.lo", kind, 3)
        yield Form(f"szext.clamp.{kind} {{d}}, {{a}}, {{b}}", kind, (kind, "u32"))
        yield Form(f"szext.wrap.{kind} {{d}}, {{a}}, {{b}}", kind, (kind, "u32"))
    for op in ("add.sat", "sub.sat", "min.relu", "max.relu"):
        yield _plain(op, "s32", 2)
    for op in ("add", "min", "max"):
        yield _plain(op, "u16x2", 2)
        yield _plain(op, "s16x2", 2)
    yield _plain("max.relu", "s16x2", 2)
    for bits in ("b32", "b64"):
        yield _plain("popc", bits, 1, "u32")
        yield _plain("clz", bits, 1, "u32")
        yield _plain("brev", bits, 1)
        yield Form(
            f"bfi.{bits} {{d}}, {{a}}, {{b}}, {{c}}, {{e}}", bits, (bits, bits, "u32", "u32")
        )
    yield from _carry_forms()
    yield from _logic_forms()


def _carry_forms() -> Iterable[Form]:
    for width, kind in ((32, "u32"), (64, "u64")):
        high = f"mov.b{width} {{d}}, {{a}}"
        yield Form(
            f"add.cc.{kind} {{d}}, {{a}}, {{b}}; addc.{kind} {{d}}, {{c}}, 0",
            kind,
            (kind, kind, kind),
        )
        yield Form(
            f"sub.cc.{kind} {{d}}, {{a}}, {{b}}; subc.{kind} {{d}}, {{c}}, 0",
            kind,
            (kind, kind, kind),
        )
        yield Form(
            f"{high}; add.cc.{kind} {{d}}, {{a}}, {{b}}; addc.cc.{kind} {{d}}, {{b}}, "
            f"{{c}}; addc.{kind} {{d}}, {{d}}, {{a}}",
            kind,
            (kind, kind, kind),
        )
    yield Form(
        "mad.lo.cc.u32 {d}, {a}, {b}, {c}; madc.hi.u32 {d}, {a}, {b}, {c}",
        "u32",
        ("u32", "u32", "u32"),
    )


def _logic_forms() -> Iterable[Form]:
    for bits in ("b16", "b32", "b64"):
        for op in ("and", "or", "xor"):
            yield _plain(op, bits, 2)
        yield _plain("not", bits, 1)
        yield _plain("cnot", bits, 1)
        yield Form(f"shl.{bits} {{d}}, {{a}}, {{b}}", bits, (bits, "u32"))
    for kind in _INTEGERS:
        yield Form(f"shr.{kind} {{d}}, {{a}}, {{b}}", kind, (kind, "u32"))
    for op in ("and", "or", "xor"):
        yield _plain(op, "pred", 2)
    yield _plain("not", "pred", 1)
    for direction in "lr":
        for mode in ("wrap", "clamp"):
            yield _plain(f"shf.{direction}.{mode}", "b32", 3)
    for table in (0x96, 0xCA, 0xE8, 0x01, 0xFE):
        yield Form(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table:#x}", "b32", ("b32",) * 3)
    yield _plain("prmt", "b32", 3)
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield Form(f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}}", "b32", ("b32",) * 3)
    for mode in ("clamp", "wrap"):
        yield Form(f"bmsk.{mode}.b32 {{d}}, {{a}}, {{b}}", "b32", ("u32", "u32"))
    yield Form("fns.b32 {d}, {a}, {b}, {c}", "b32", ("b32", "u32", "s32"))
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            yield Form(f"dp4a.{a}.{b} {{d}}, {{a}}, {{b}}, {{c}}", "b32", ("b32",) * 3)
            for half in ("lo", "hi"):
                yield Form(f"dp2a.{half}.{a}.{b} {{d}}, {{a}}, {{b}}, {{c}}", "b32", ("b32",) * 3)
    for kind in ("b16", "b32", "b64", "f32", "f64"):
        yield Form(f"selp.{kind} {{d}}, {{a}}, {{b}}, {{c}}", kind, (kind, kind, "pred"))
    yield Form("slct.s32.s32 {d}, {a}, {b}, {c}", "s32", ("s32", "s32", "s32"))
    for flush in ("", ".ftz"):
        yield Form(f"slct{flush}.u32.f32 {{d}}, {{a}}, {{b}}, {{c}}", "u32", ("u32", "u32", "f32"))


_ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def _comparison_forms() -> Iterable[Form]:
    for kind in _INTEGERS:
        for relation in _ORDERED:
            yield _plain(f"setp.{relation}", kind, 2, "pred")
    for relation in ("lo", "ls", "hi", "hs"):
        yield _plain(f"setp.{relation}", "u32", 2, "pred")
    for kind in ("f16", "bf16", "f32", "f64"):
        for relation in (*_ORDERED, *_UNORDERED):
            yield _plain(f"setp.{relation}", kind, 2, "pred")
    for relation in ("lt", "equ", "ne"):
        yield _plain(f"setp.{relation}.ftz", "f32", 2, "pred")
    for combine in ("and", "or", "xor"):
        yield Form(
            f"setp.lt.{combine}.s32 {{d}}, {{a}}, {{b}}, {{c}}", "pred", ("s32", "s32", "pred")
        )
        yield Form(
            f"setp.lt.{combine}.f32 %p6|{{d}}, {{a}}, {{b}}, !{{c}}", "pred", ("f32", "f32", "pred")
        )
    for half in ("f16x2", "bf16x2"):
        yield Form(f"setp.lt.{half} {{d}}|%p6, {{a}}, {{b}}", "pred", (half, half))
        yield Form(f"setp.leu.{half} %p6|{{d}}, {{a}}, {{b}}", "pred", (half, half))
    for result in ("u32", "s32", "f32"):
        for kind in ("u32", "s32", "f32", "f64"):
            yield Form(f"set.lt.{result}.{kind} {{d}}, {{a}}, {{b}}", result, (kind, kind))
    yield Form("set.geu.f16.f16 {d}, {a}, {b}", "f16", ("f16", "f16"))
    yield Form("set.lt.f16x2.f16x2 {d}, {a}, {b}", "f16x2", ("f16x2", "f16x2"))
    yield Form("set.lt.u32.bf16 {d}, {a}, {b}", "u32", ("bf16", "bf16"))


def _float_forms() -> Iterable[Form]:
    for op in ("add", "sub", "mul"):
        yield _plain(op, "f32", 2)
        for mode in _ROUNDINGS:
            yield _plain(f"{op}.{mode}", "f32", 2)
            yield _plain(f"{op}.{mode}", "f64", 2)
        for flags in ("ftz", "sat", "ftz.sat", "rz.ftz"):
            yield _plain(f"{op}.{flags}", "f32", 2)
    for mode in _ROUNDINGS:
        for flags in ("", ".ftz", ".sat", ".ftz.sat"):
            yield _plain(f"fma.{mode}{flags}", "f32", 3)
        yield _plain(f"fma.{mode}", "f64", 3)
        for kind in ("f32", "f64"):
            yield _plain(f"div.{mode}", kind, 2)
            yield _plain(f"rcp.{mode}", kind, 1)
            yield _plain(f"sqrt.{mode}", kind, 1)
        for op, arity in (("div", 2), ("rcp", 1), ("sqrt", 1)):
            yield _plain(f"{op}.{mode}.ftz", "f32", arity)
    for kind in ("f32", "f64"):
        for op in ("min", "max"):
            yield _plain(op, kind, 2)
        for op in ("neg", "abs"):
            yield _plain(op, kind, 1)
        yield _plain("copysign", kind, 2)
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield _plain(f"testp.{test}", kind, 1, "pred")
    for flags in ("ftz", "NaN", "ftz.NaN", "xorsign.abs", "NaN.xorsign.abs"):
        for op in ("min", "max"):
            yield _plain(f"{op}.{flags}", "f32", 2)
    for op in ("neg.ftz", "abs.ftz"):
        yield _plain(op, "f32", 1)
    yield from _approximate_forms()


def _approximate_forms() -> Iterable[Form]:
    for flush in ("", ".ftz"):
        yield _plain(f"ex2.approx{flush}", "f32", 1, is_exact=False)
        yield _plain(f"rcp.approx{flush}", "f32", 1, is_exact=False)
        yield _plain(f"rsqrt.approx{flush}", "f32", 1, is_exact=False)
        yield _plain(f"sqrt.approx{flush}", "f32", 1, is_exact=False)
        yield _plain(f"div.approx{flush}", "f32", 2, is_exact=False)
        yield _plain(f"div.full{flush}", "f32", 2, is_exact=False)
        for op in ("lg2", "sin", "cos"):
            yield _plain(f"{op}.approx{flush}", "f32", 1, is_exact=False)
    yield _plain("tanh.approx", "f32", 1, is_exact=False)
    yield _plain("rsqrt.approx", "f64", 1, is_exact=False)
    for op in ("rcp.approx.ftz", "rsqrt.approx.ftz"):
        yield _plain(op, "f64", 1, is_exact=False)
    for kind in ("f16", "f16x2"):
        yield _plain("ex2.approx", kind, 1, is_exact=False)
        yield _plain("tanh.approx", kind, 1, is_exact=False)
    for kind in ("bf16", "bf16x2"):
        yield _plain("ex2.approx.ftz", kind, 1, is_exact=False)
        yield _plain("tanh.approx", kind, 1, is_exact=False)


def _half_forms() -> Iterable[Form]:
    for kind in ("f16", "f16x2", "bf16", "bf16x2"):
        for op in ("add", "sub", "mul"):
            yield _plain(f"{op}.rn", kind, 2)
        for flags in ("", ".relu"):
            yield _plain(f"fma.rn{flags}", kind, 3)
        for op in ("neg", "abs"):
            yield _plain(op, kind, 1)
        for op in ("min", "max"):
            for flags in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                yield _plain(f"{op}{flags}", kind, 2)
    for kind in ("f16", "f16x2"):
        for op in ("add", "sub", "mul"):
            for flags in ("ftz", "sat", "ftz.sat"):
                yield _plain(f"{op}.{flags}", kind, 2)
        for flags in ("ftz", "sat", "ftz.sat", "ftz.relu"):
            yield _plain(f"fma.rn.{flags}", kind, 3)
        for op in ("min.ftz", "max.ftz"):
            yield _plain(op, kind, 2)
        for op in ("neg.ftz", "abs.ftz"):
            yield _plain(op, kind, 1)


def _convert(flags: str, target: str, source: str, operands: int = 1) -> Form:
    letters = ", ".join(f"{{{letter}}}" for letter in "abc"[:operands])
    middle = f".{flags}" if flags else ""
    return Form(f"cvt{middle}.{target}.{source} {{d}}, {letters}", target, (source,) * operands)


def _contains(target: str, source: str) -> bool:
    """Whether an integer type has every number of another, so that `.sat` has no meaning."""
    wider = int(target[1:]) > int(source[1:])
    return wider and (target[0] == "s" or source[0] == "u")


def _conversion_forms() -> Iterable[Form]:
    floats, integers = ("f16", "bf16", "f32", "f64"), _INTEGERS
    for source in integers:
        for target in integers:
            if source[1:] != target[1:]:
                yield _convert("", target, source)
            if source != target and not _contains(target, source):
                yield _convert("sat", target, source)
    for narrow in ("u8", "s8"):
        for target in ("u32", "s32", "u64", "s64", "u16", "s16"):
            source = "u32" if target[1:] == "16" else target
            yield Form(f"cvt.{target}.{narrow} {{d}}, {{a}}", target, ("b32",))
            yield (
                Form(f"cvt.{narrow}.{source} {{d}}, {{a}}", "b32", (source,))
                if source[1:] == "32"
                else _convert("", target, "u32")
            )
        for target in ("u8", "s8"):
            yield Form(f"cvt.sat.{target}.s32 {{d}}, {{a}}", "b32", ("s32",))
    for source in floats:
        for target in integers:
            for mode in ("rni", "rzi", "rmi", "rpi"):
                yield _convert(mode, target, source)
        for mode in ("rni", "rzi", "rmi", "rpi"):
            yield _convert(mode, source, source)
    for target in integers:
        yield _convert("rzi.ftz", target, "f32")
    for target in ("s8", "u8"):
        yield Form(f"cvt.rni.sat.{target}.f32 {{d}}, {{a}}", "b32", ("f32",))
    for source in integers:
        for target in ("f16", "f32", "f64"):
            for mode in _ROUNDINGS:
                yield _convert(mode, target, source)
        yield _convert("rn", "bf16", source)
    yield from _float_conversions()


def _float_conversions() -> Iterable[Form]:
    for mode in _ROUNDINGS:
        yield _convert(mode, "f32", "f64")
        for source in ("f32", "f64"):
            yield _convert(mode, "f16", source)
        yield _convert(mode, "bf16", "f32")
        yield _convert(f"{mode}.ftz", "f16", "f32")
        yield _convert(f"{mode}.ftz", "bf16", "f32")
        yield _convert(f"{mode}.ftz", "f32", "f64")
    yield _convert("rn", "bf16", "f64")
    for source in ("f16", "bf16"):
        yield _convert("", "f32", source)
        yield _convert("ftz", "f32", source)
        yield _convert("", "f64", source)
    yield _convert("sat", "f32", "f16")
    yield _convert("rn", "f16", "bf16")
    yield _convert("rn", "bf16", "f16")
    yield _convert("", "f64", "f32")
    yield _convert("ftz", "f64", "f32")
    yield _convert("sat", "f64", "f32")
    yield _convert("sat", "f32", "f32")
    yield _convert("ftz", "f32", "f32")
    yield _convert("rn.sat", "f16", "f32")
    for target in ("f16", "bf16"):
        yield _convert("rn.satfinite", target, "f32")
        yield _convert("rn.relu", target, "f32")
        for flags in ("rn", "rz", "rn.relu", "rn.satfinite", "rz.satfinite.relu"):
            flags = flags.replace("satfinite.relu", "relu.satfinite")
            yield _convert(flags, f"{target}x2", "f32", 2)
    for flags in ("rna", "rn", "rz", "rn.relu", "rz.relu", "rna.satfinite"):
        yield _convert(flags, "tf32", "f32")
    for small in ("e4m3x2", "e5m2x2"):
        yield _convert("rn.satfinite", small, "f32", 2)
        yield _convert("rn.satfinite.relu", small, "f32", 2)
        yield _convert("rn.satfinite", small, "f16x2")
        yield _convert("rn", "f16x2", small)
        yield _convert("rn.relu", "f16x2", small)
    for kind in ("s16", "u16"):
        yield Form(f"cvt.pack.sat.{kind}.s32 {{d}}, {{a}}, {{b}}", "b32", ("s32", "s32"))
    for kind in ("s8", "u8", "s4", "u4", "s2", "u2"):
        yield Form(
            f"cvt.pack.sat.{kind}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}}", "b32", ("s32", "s32", "b32")
        )


def _warp_forms() -> Iterable[Form]:
    for mode in ("up", "down", "bfly", "idx"):
        yield Form(f"shfl.sync.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}, -1", "b32", ("u32",) * 3)
        yield Form(f"shfl.sync.{mode}.b32 %r9|{{d}}, {{a}}, {{b}}, {{c}}, -1", "pred", ("u32",) * 3)
    for mode in ("all", "any", "uni"):
        yield Form(
            f"and.pred {{a}}, {{a}}, {{b}}; vote.sync.{mode}.pred {{d}}, {{a}}, -1",
            "pred",
            ("pred", "pred"),
        )
        yield Form(
            f"bar.red.popc.u32 %r9, 0, {{a}}; setp.gt.u32 {{a}}, %r9, 128; "
            f"vote.sync.{mode}.pred {{d}}, {{a}}, -1",
            "pred",
            ("pred",),
        )
    yield Form("vote.sync.ballot.b32 {d}, {a}, -1", "b32", ("pred",))
    for mode in ("and", "or"):
        yield Form(f"bar.red.{mode}.pred {{d}}, 0, {{a}}", "pred", ("pred",))
    yield Form("bar.red.popc.u32 {d}, 0, {a}", "u32", ("pred",))
    yield Form("and.b32 {a}, {a}, 3; match.any.sync.b32 {d}, {a}, -1", "b32", ("b32",))
    yield Form("and.b64 {a}, {a}, 5; match.any.sync.b64 {d}, {a}, -1", "b32", ("b64",))
    yield Form("and.b32 {a}, {a}, 0x80000000; match.all.sync.b32 {d}|%p6, {a}, -1", "b32", ("b32",))
    for op in ("add", "min", "max"):
        for kind in ("u32", "s32"):
            yield Form(f"redux.sync.{op}.{kind} {{d}}, {{a}}, -1", kind, (kind,))
    for op in ("and", "or", "xor"):
        yield Form(f"redux.sync.{op}.b32 {{d}}, {{a}}, -1", "b32", ("b32",))
    yield Form("elect.sync {d}|%p6, -1", "b32", ("b32",))
    yield Form(
        "mov.u32 %m0, %laneid; setp.ge.u32 %p6, {a}, 512; selp.u32 {d}, 1, 2, %p6; "
        "@%p6 activemask.b32 %m0; vote.sync.ballot.b32 {d}, %p6, -1",
        "b32",
        ("u32",),
    )
    for relation in ("eq", "lt", "le", "gt", "ge"):
        yield Form(f"mov.u32 {{d}}, %lanemask_{relation}", "u32", ("u32",))


def _atomic(name: str, kind: str, space: str, operands: int = 1, *, old: bool) -> Form:
    """An atomic on the thread's own place, which holds the first operand; old or new value."""
    place = "[{g}]" if space == "global" else "[{s}]"
    width = {"f16x2": "b32", "bf16x2": "b32", "f16": "b16", "bf16": "b16"}.get(kind, f"b{kind[1:]}")
    values = ", ".join("{b}{c}"[3 * i : 3 * i + 3] for i in range(operands))
    fill = f"st.{space}.{width} {place}, {{a}}; "
    if old:
        line = f"{fill}atom.{space}.{name}.{kind} {{d}}, {place}, {values}"
    else:
        opcode = "red" if name.split(".")[0] not in ("exch", "cas") else "atom"
        result = "" if opcode == "red" else "{d}, "
        line = (
            f"{fill}{opcode}.{space}.{name}.{kind} {result}{place}, {values}; "
            f"ld.{space}.{width} {{d}}, {place}"
        )
    return Form(line, kind, (kind,) * (operands + 1))


def _atomic_forms() -> Iterable[Form]:
    table = [
        ("add", ("u32", "s32", "u64", "f32", "f64")),
        ("and", ("b32", "b64")),
        ("or", ("b32", "b64")),
        ("xor", ("b32", "b64")),
        ("exch", ("b32", "b64")),
        ("min", ("u32", "s32", "u64", "s64")),
        ("max", ("u32", "s32", "u64", "s64")),
        ("inc", ("u32",)),
        ("dec", ("u32",)),
        ("add.noftz", ("f16", "f16x2", "bf16", "bf16x2")),
        ("cas", ("b16", "b32", "b64")),
    ]
    for name, kinds in table:
        for kind in kinds:
            for space in ("global", "shared"):
                operands = 2 if name == "cas" else 1
                yield _atomic(name, kind, space, operands, old=True)
                yield _atomic(name, kind, space, operands, old=False)


def _memory_forms() -> Iterable[Form]:
    fill = "st.shared.v4.b32 [{s}], {{{a}, {b}, {c}, {e}}}; bar.warp.sync -1; "
    mix = "; mad.lo.u32 %m0, %m1, 3, %m0; mad.lo.u32 {d}, %m2, 5, %m0; mad.lo.u32 {d}, %m3, 7, {d}"
    zero = "mov.b32 %m1, 0; mov.b32 %m2, 0; mov.b32 %m3, 0; "
    words = ("b32",) * 4
    for count in (1, 2, 4):
        registers = ", ".join(f"%m{i}" for i in range(count))
        for trans in ("", ".trans"):
            yield Form(
                f"{fill}{zero}ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 "
                f"{{{{{registers}}}}}, [{{s}}]{mix}",
                "b32",
                words,
            )
            stored = ", ".join(("{a}", "{b}", "{c}", "{e}")[:count])
            yield Form(
                f"{fill}stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [{{s}}], "
                f"{{{{{stored}}}}}; bar.warp.sync -1; "
                f"ld.shared.v4.b32 {{{{%m0, %m1, %m2, %m3}}}}, [{{s}}]{mix}",
                "b32",
                words,
            )
    yield Form("movmatrix.sync.aligned.m8n8.trans.b16 {d}, {a}", "b32", ("b32",))
    yield Form(
        "st.global.b32 [{g}], {a}; membar.cta; cp.async.ca.shared.global [{s}], [{g}], 4; "
        "cp.async.wait_all; ld.shared.b32 {d}, [{s}]",
        "b32",
        ("b32",),
    )
    yield Form(
        "st.global.b64 [{g}], {a}; membar.cta; and.b32 %m0, {b}, 7; "
        "cp.async.ca.shared.global [{s}], [{g}], 8, %m0; cp.async.commit_group; "
        "cp.async.wait_group 0; ld.shared.b64 {d}, [{s}]",
        "b64",
        ("b64", "b32"),
    )
    for width in ("u8", "s8", "u16", "s16"):
        yield Form(
            f"st.shared.b32 [{{s}}], {{a}}; ld.shared.{width} {{d}}, [{{s}}+2]", "b32", ("b32",)
        )
    yield Form(
        "st.shared.b32 [{s}], {a}; st.shared.b8 [{s}+1], {b}; ld.shared.b32 {d}, [{s}]",
        "b32",
        ("b32", "b32"),
    )


def all_forms() -> list[Form]:
    """Every form, without repetition."""
    forms = [
        *_integer_forms(),
        *_comparison_forms(),
        *_float_forms(),
        *_half_forms(),
        *_conversion_forms(),
        *_warp_forms(),
        *_atomic_forms(),
        *_memory_forms(),
    ]
    return list(dict.fromkeys(forms))
