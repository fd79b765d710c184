"""Control flow keeps its meaning: what a program stores is what its IR stores."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from phobos.diagnostics import PhobosError
from phobos.frontend import parse
from phobos.frontend.exits import MAX_NESTING
from tests.unit.frontend.emission import emitted, module, operations
from tests.unit.frontend.interpreters import IrInterpreter, TooLong, Trace, TreeInterpreter

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
MEMORY = [3, -1, 4, 1, -5, 9, 2, -6]


def traces(text: str) -> tuple[Trace, Trace]:
    expected = TreeInterpreter(parse(text, "test.ph"), MEMORY).run()
    return expected, IrInterpreter(module(text), MEMORY).run()


def program(body: str, functions: str = "") -> str:
    return f"{functions}\nkernel k(n: tensor<i32>[N]) {{\n{body}\n}}\n"


PROGRAMS = {
    "early return": """
        for i in range(0, 8) { if n[i] < 0 { n[i] = 1; return }; n[i] = 2 }
        n[100] = 3""",
    "break": """
        var last = 0
        for i in range(0, 8) { if n[i] == 9 { break }; last = i; n[i] = i32(last) }
        n[100] = i32(last)""",
    "continue": """
        for i in range(0, 8, 3) { if n[i] == 1 { continue }; n[i] = 7 }""",
    "break and continue nested in if and else": """
        for i in range(0, 8) {
          if n[i] > 0 { if n[i] > 3 { break } else { if i == 2 { continue } } } else { n[i] = 0 }
          n[i + 10] = i32(i)
        }
        n[200] = 1""",
    "loop in loop": """
        for i in range(0, 4) {
          for j in range(0, 4) {
            if j > i { break }
            if i == 2 { continue }
            if i * j == 9 { return }
            n[i * 10 + j] = n[j]
          }
          n[i] = 5
        }
        n[300] = 6""",
    "while with return": """
        var i = 0
        while n[i] != 9 && i < 8 { i += 1; if n[i] == -5 { n[i] = 1; return } }
        n[i] = 2""",
    "while true": """
        var i = 0
        while true { if i > 5 { break }; n[i] = 1; i += 2 }
        n[i] = 3""",
    "both branches leave": """
        for i in range(0, 8) {
          if n[i] > 0 { n[i] = 1; continue } else { n[i] = 2; break }
          n[i] = 3
        }
        n[50] = 4""",
    "downward": """
        var sum = 0
        for i in range(7, -1, -2) { sum = sum * 3 + i; n[i] = i32(sum) }
        for i in range(0, 8, -1) { n[i] = 99 }""",
    "downward with break": """
        for i in range(7, -1, -1) { if n[i] == 1 { break }; n[i] = 0 }""",
    "step known at run time": """
        var step = 3
        if n[0] == 3 { step = -3 }
        for i in range(7, 0, step) { n[i] = 1 }
        for i in range(0, 7, step) { n[i] = 2 }
        step = 0
        for i in range(0, 7, step) { n[i] = 3 }""",
    "variables in branches": """
        var a = 1
        var b = 2
        if n[0] > 0 { a = 5 } else { b = 7 }
        if n[1] > 0 { let t = a; a = b; b = t }
        if n[2] > 100 { a = 0 } else if n[2] > 3 { b = a + b } else { a = 9 }
        n[a] = i32(b)""",
    "short circuit": """
        for i in range(0, 12) {
          if i < 8 && n[i] > 0 || i == 9 { n[i] = 1 }
          if !(i >= 8 || n[i] > 0) { n[i] = 2 }
        }""",
    "constant conditions": """
        if true { n[0] = 1 } else { n[0] = 2 }
        if false { n[1] = 1 } else if 3 > 2 { n[1] = 2 }
        while false { n[2] = 1 }
        if true { return }
        n[3] = 1""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_stores_are_those_of_the_program(name: str) -> None:
    expected, found = traces(program(PROGRAMS[name]))
    assert found == expected
    assert expected or name == "constant conditions"


def test_functions_return_from_anywhere() -> None:
    functions = """
    fn first_above(limit: index) -> index {
      for i in range(0, 8) { if index(3 * i) > limit { return i } }
      return 100
    }
    fn sign(a: index) -> index {
      if a < 0 { return -1 } else if a == 0 { return 0 }
      return 1
    }"""
    body = """
    for i in range(0, 20, 4) { n[i] = i32(first_above(i) * sign(i - 8)) }"""
    expected, found = traces(program(body, functions))
    assert found == expected
    assert [value for _, value in found] == [-1, -2, 0, 5, 6]


# Random programs ---------------------------------------------------------------------------------

_CONDITIONS = st.sampled_from(
    ["a > b", "a % 3 == 0", "n[j] > 0", "b < 4 && n[j] != 1", "!(a == b) || j == 5", "a + j < 9"]
)
_VALUES = st.sampled_from(["a + 1", "b - 2", "j", "a * 2 - b", "i", "b % 5 + a / 3", "7"])
_SIMPLE = st.one_of(
    st.builds("a = {}".format, _VALUES),
    st.builds("b += {}".format, _VALUES),
    st.builds("n[j] = i32({})".format, _VALUES),
    st.builds("let j = ({}) % 8 * ({} % 2)\nn[c] = i32(a)".format, _VALUES, _VALUES),
)
_LEAVE = st.sampled_from(["break", "continue", "return", "break", "continue"])


def _block(depth: int) -> st.SearchStrategy[str]:
    statement = _SIMPLE if depth == 0 else st.one_of(_SIMPLE, _SIMPLE, _LEAVE, _nested(depth - 1))
    return st.lists(statement, min_size=1, max_size=4).map(
        lambda parts: "\n".join(f"if true {{ {p} }}" if p.startswith("let") else p for p in parts)
    )


@st.composite
def _nested(draw: st.DrawFn, depth: int) -> str:
    body = draw(_block(depth))
    match draw(st.sampled_from(["if", "if", "else", "for", "while", "down"])):
        case "if":
            return f"if {draw(_CONDITIONS)} {{\n{body}\n}}"
        case "else":
            return f"if {draw(_CONDITIONS)} {{\n{body}\n}} else {{\n{draw(_block(depth))}\n}}"
        case "for":
            return f"for j in range(0, 8, {draw(st.sampled_from(['1', '3', 'c']))}) {{\n{body}\n}}"
        case "down":
            return f"for j in range(7, {draw(st.sampled_from(['-1', 'i']))}, -2) {{\n{body}\n}}"
        case _:
            return f"while c < 12 {{\nc += 1\n{body}\n}}"


@settings(max_examples=120, deadline=None, suppress_health_check=SLOW)
@given(_block(3))
def test_random_programs(body: str) -> None:
    text = program(
        f"""var a = 5
        var b = 2
        var c = 1
        let j = 3
        for i in range(0, 3) {{
          {body}
        }}
        n[99] = i32(a * 100 + b)"""
    )
    try:
        expected = TreeInterpreter(parse(text, "test.ph"), MEMORY).run()
    except TooLong:
        assume(False)
        return
    assert IrInterpreter(module(text), MEMORY).run() == expected


# Form --------------------------------------------------------------------------------------------


def test_no_flags_where_none_are_needed() -> None:
    text = emitted("if ctx.thread > 3 { return }\nx[0] = 1.0")
    assert "%returned" not in text
    assert text.count("scf.if") == 1
    assert "scf.while" not in text


def test_continue_needs_no_flag_if_its_branch_always_ends_there() -> None:
    text = emitted("for i in range(0, N) { if x[i] > 0.0 { continue }\nx[i] = 1.0 }")
    assert "continued" not in text
    assert "scf.for" in text


def test_only_assigned_variables_are_carried() -> None:
    text = emitted(
        "var a = 1.0\nvar c = 2.0\nfor i in range(0, N) { a += c }\nx[0] = a + c",
    )
    assert text.count("iter_args") == 1
    assert "iter_args(%a" in text
    assert "%c" not in text.split("iter_args")[1].split("{")[0]


@pytest.mark.parametrize(
    "step",
    ["ctx.blocks.x * 16", "ctx.threads", "2 * ctx.lanes", "max(count, 1)", "ctx.blocks.y + 1"],
)
def test_steps_that_are_positive_by_form_make_for_loops(step: str) -> None:
    assert "scf.for" in operations(f"for i in range(0, N, {step}) {{ x[i] = 0.0 }}")


def test_a_let_keeps_the_sign_of_its_value() -> None:
    names = operations("let s = ctx.blocks.x * 4\nfor i in range(0, N, s) { x[i] = 0.0 }")
    assert "scf.for" in names


@pytest.mark.parametrize("step", ["count", "N", "ctx.block.x"])
def test_steps_of_unknown_sign_make_while_loops(step: str) -> None:
    names = operations(f"for i in range(0, N, {step}) {{ x[i] = 0.0 }}")
    assert "scf.while" in names
    assert "scf.for" not in names


def test_downward_loops_count_the_distance() -> None:
    text = emitted("for i in range(N, 0, -1) { x[i] = 0.0 }")
    assert "scf.for" in text
    assert "arith.subi" in text


def test_narrow_counters_count_in_32_bits() -> None:
    text = emitted("for i in range(small, 127, small * small + 100) { q[0, 0] = i }")
    assert "arith.trunci" in text
    text = emitted("for i in range(i8(0), 100) { q[0, 0] = i }")
    assert "scf.for" in text
    assert ": i32 {" in text


def test_unsigned_counters_count_in_a_wider_signed_type() -> None:
    text = emitted("for i in range(0, mask) { x[i] = 0.0 }")
    assert "arith.extui %mask : i32 to i64" in text


def test_unroll_is_recorded() -> None:
    top = module("kernel k(x: tensor<f32>[N]) { for<unroll 4> i in range(N) { x[i] = 0.0 } }")
    loop = next(op for op in top.walk() if op.name == "scf.for")
    assert str(loop.attributes["phobos.unroll"]) == "4 : i32"


def test_short_circuit_is_lazy_only_where_it_matters() -> None:
    assert "scf.if" not in operations("let p = count > 3 && alpha > 1.0\nx[0] = f32(p)")
    names = operations("let p = count > 3 && x[count] > 1.0\nx[0] = f32(p)")
    assert names.index("scf.if") < names.index("memref.load")


def test_too_many_ways_out_are_an_error() -> None:
    body = "\n".join(f"if count == {i} {{ return }}" for i in range(MAX_NESTING + 5))
    with pytest.raises(PhobosError, match="ways out of one block"):
        emitted(body + "\nx[0] = 1.0")
