"""The front end as a whole: the examples, limits, and texts that are no programs."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phobos.diagnostics import PhobosError, SourceMap
from phobos.frontend import FrontendOptions, parse, to_ir
from tests.unit.frontend.emission import module

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.ph"))
WRONG = sorted((ROOT / "tests/diagnostics").glob("*.ph"))


@pytest.mark.parametrize("index_bits", [None, 32, 64])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_emit_and_verify(example: Path, index_bits: int | None) -> None:
    top = module(example.read_text(), index_bits=index_bits)
    assert sum(op.name == "gpu.func" for op in top.walk()) >= 1


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 7


def test_emission_is_deterministic() -> None:
    text = EXAMPLES[0].read_text()
    assert str(to_ir(text, "a.ph")) == str(to_ir(text, "a.ph"))


def test_errors_come_with_their_sources() -> None:
    sources = SourceMap()
    with pytest.raises(PhobosError) as caught:
        to_ir("kernel k() { x = 1 }", "k.ph", FrontendOptions(sources=sources))
    assert caught.value.sources is sources
    assert "k.ph:1:14: error:" in str(caught.value)
    assert " 1 | kernel k() { x = 1 }" in str(caught.value)


def test_errors_are_told_once_and_without_consequences() -> None:
    text = """kernel k(x: tensor<f32>[N]) {
      let a = missing + 1.0
      let b = a * 2.0
      var c = sqrt(b)
      c += a
      x[0] = where(c > b, a, b)
      if a > 0.0 { x[1] = c }
      for i in range(a, 4) { x[i] = f32(i) }
    }"""
    with pytest.raises(PhobosError) as caught:
        to_ir(text, "k.ph")
    assert [d.message for d in caught.value.diagnostics] == ["`missing` is not defined"]


def test_the_number_of_errors_is_limited() -> None:
    body = "\n".join(f"x[{i}] = missing_{i}" for i in range(50))
    with pytest.raises(PhobosError) as caught:
        to_ir(f"kernel k(x: tensor<f32>[N]) {{\n{body}\n}}", "k.ph")
    assert len(caught.value.diagnostics) == 20


def test_nesting_up_to_the_limits_is_no_trouble() -> None:
    expression = "(" * 40 + "alpha" + " + exp(1.0 * alpha))" * 40
    opened = "".join(f"for i{n} in range(2) {{ if count > {n} {{\n" for n in range(20))
    text = f"""
    fn f(alpha: f32, count: i32) -> f32 {{ return {expression} }}
    kernel k(x: tensor<f32>[N], alpha: f32, count: i32) {{
      {opened} x[0] = {expression} + f(alpha, count) {"}}" * 20}
    }}"""
    limit = sys.getrecursionlimit()
    module(text)
    assert sys.getrecursionlimit() == limit


def test_calls_nested_too_deeply_are_an_error() -> None:
    functions = "fn f0(a: f32) -> f32 { return a }\n" + "\n".join(
        f"fn f{n}(a: f32) -> f32 {{ return f{n - 1}(a) }}" for n in range(1, 40)
    )
    with pytest.raises(PhobosError, match="nested more than"):
        to_ir(f"{functions}\nkernel k(x: tensor<f32>[N]) {{ x[0] = f39(1.0) }}", "k.ph")


def test_the_ir_grows_with_the_program_and_no_faster() -> None:
    def operations(lines: int) -> int:
        body = "\n".join(
            f"let v{n} = alpha * x[base + {n} :+ BLOCK] + x[base :+ BLOCK] / {n + 1}.0\n"
            f"x[base :+ BLOCK] = where(v{n} > 0.0, v{n}, exp(v{n}))"
            for n in range(lines)
        )
        text = (
            "@autotune(BLOCK in [64])\nkernel k(x: tensor<f32>[N], alpha: f32) {\n"
            f"let base = ctx.block.x * BLOCK\n{body}\n}}"
        )
        return sum(1 for _ in to_ir(text, "k.ph").walk())

    few, more, many = operations(8), operations(16), operations(24)
    assert many - more <= more - few + 1
    assert many < 24 * 25


# Texts that are no programs ----------------------------------------------------------------------


def _pieces() -> list[str]:
    """Words and signs of real programs, right and wrong."""
    pieces: dict[str, None] = {}
    for path in (*EXAMPLES, *WRONG):
        for line in path.read_text().splitlines():
            pieces.update(dict.fromkeys(line.split()))
    return list(pieces)


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(st.lists(st.sampled_from(_pieces()), max_size=25))
def test_any_body_is_translated_or_refused(words: list[str]) -> None:
    body = " ".join(words)
    text = f"kernel k(x: tensor<f32>[N], A: tensor<i8>[M, K], alpha: f32, n: i32) {{\n{body}\n}}"
    _translate(text)


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(st.sampled_from([*EXAMPLES, *WRONG]), st.data())
def test_damaged_programs_are_translated_or_refused(path: Path, data: st.DataObject) -> None:
    words = path.read_text().split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(words) - 1))
        other = data.draw(st.sampled_from([*words, "", "0", "x", "1.5", "-", "ctx.lane", "true"]))
        words[position] = other
    _translate(" ".join(words))


def _translate(text: str) -> None:
    """Translates a text; only a PhobosError may come of it."""
    with suppress(PhobosError):
        module(text)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_politely(text: str) -> None:
    _translate(text)


def test_parse_gives_the_tree() -> None:
    program = parse(EXAMPLES[0].read_text(), "a.ph")
    assert len(program.kernels) == 1
