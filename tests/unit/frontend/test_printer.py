"""Printing trees, and that the text parses back to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from phobos.diagnostics import PhobosError
from phobos.frontend import ast
from phobos.frontend.ast import BinaryOp, Name
from phobos.frontend.parser import parse
from phobos.frontend.printer import (
    print_declaration,
    print_expression,
    print_program,
    print_statement,
    print_type,
)
from tests.support.doc_blocks import blocks_of
from tests.support.random_ast import RandomAst
from tests.support.seed_programs import GEMM, SAXPY, SEED_PROGRAMS

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted(
    path
    for folder in ("examples", "phobos/kernels", "tests")
    for path in (ROOT / folder).rglob("*.ph")
)
PAGES = sorted((ROOT / "docs").rglob("*.md"))

A, B, C = Name("a"), Name("b"), Name("c")


def round_trip(program: ast.Program) -> str:
    """The printed program, after checking that it stands for the same tree and is stable."""
    text = print_program(program)
    again = parse(text, "printed.ph")
    assert again == program
    assert print_program(again) == text
    return text


@pytest.mark.parametrize("name", SEED_PROGRAMS)
def test_seed_programs(name: str) -> None:
    round_trip(parse(SEED_PROGRAMS[name], f"{name}.ph"))


def sources() -> Iterator[tuple[str, str]]:
    """Every program in the repository's files and documentation, with its name."""
    for path in PROGRAMS:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for page in PAGES:
        for block in blocks_of(page):
            if block.kind.startswith("ph"):
                yield f"{page.name}:{block.line}", block.text


def test_every_program_that_parses() -> None:
    count = 0
    for name, text in sources():
        try:
            program = parse(text, name)
        except PhobosError:
            continue
        count += 1
        round_trip(program)
    assert count >= 120


@pytest.mark.parametrize("seed", range(300))
def test_random_trees(seed: int) -> None:
    round_trip(RandomAst(seed).program())


def test_random_trees_hold_every_class() -> None:
    seen = {type(node) for seed in range(300) for node in ast.walk(RandomAst(seed).program())}
    every = {
        value
        for value in vars(ast).values()
        if isinstance(value, type) and issubclass(value, ast.Node) and value is not ast.Node
    }
    assert every - seen == set()


def test_saxpy_is_in_the_canonical_layout() -> None:
    assert print_program(parse(SAXPY, "saxpy.ph")) == SAXPY


def test_canonical_layout() -> None:
    source = """
@launch(256,2)
kernel k(x:tensor<f32>[N,4],n:i32){for<unroll 4>i in range(n){if i==0{continue;}else if!b{
x[:,:3,a:b,c:+4]<<=1}else{t=max<over 0,1>(t);u=bitcast<f32>(0x10)}}
  while true { } // never
  return}
fn f()->f32{return 1.50e3}
"""
    assert round_trip(parse(source, "k.ph")) == (
        """\
@launch(256, 2)
kernel k(x: tensor<f32>[N, 4], n: i32) {
  for <unroll 4> i in range(n) {
    if i == 0 {
      continue
    } else if !b {
      x[:, : 3, a : b, c :+ 4] <<= 1
    } else {
      t = max<over 0, 1>(t)
      u = bitcast<f32>(16)
    }
  }
  while true {}
  return
}

fn f() -> f32 {
  return 1500.0
}
"""
    )


def test_many_parameters_get_a_line_each() -> None:
    text = print_program(parse(GEMM, "gemm.ph"))
    assert "kernel gemm(\n    A: tensor<f32>[M, K],\n" in text
    assert "    beta: f32\n) {\n" in text
    round_trip(parse(text, "gemm.ph"))


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (ast.Binary(BinaryOp.SUBTRACT, ast.Binary(BinaryOp.SUBTRACT, A, B), C), "a - b - c"),
        (ast.Binary(BinaryOp.SUBTRACT, A, ast.Binary(BinaryOp.SUBTRACT, B, C)), "a - (b - c)"),
        (ast.Binary(BinaryOp.MULTIPLY, ast.Binary(BinaryOp.ADD, A, B), C), "(a + b) * c"),
        (ast.Binary(BinaryOp.EQUAL, ast.Binary(BinaryOp.LESS, A, B), C), "(a < b) == c"),
        (ast.Binary(BinaryOp.LESS, A, ast.Binary(BinaryOp.GREATER, B, C)), "a < (b > c)"),
        (ast.Binary(BinaryOp.EQUAL, ast.Binary(BinaryOp.BIT_AND, A, B), C), "a & b == c"),
        (ast.Unary(ast.UnaryOp.NEGATE, ast.Unary(ast.UnaryOp.NEGATE, A)), "--a"),
        (ast.Unary(ast.UnaryOp.NEGATE, ast.Binary(BinaryOp.MULTIPLY, A, B)), "-(a * b)"),
        (ast.Binary(BinaryOp.MULTIPLY, ast.Unary(ast.UnaryOp.NEGATE, A), B), "-a * b"),
        (ast.Member(ast.Unary(ast.UnaryOp.NOT, A), "x"), "(!a).x"),
        (ast.Call(ast.Binary(BinaryOp.LESS, A, B), (C,)), "(a < b)(c)"),
        (ast.StringLiteral('a"\\\n'), r'"a\"\\\n"'),
        (ast.FloatLiteral(1e-7), "1e-07"),
    ],
)
def test_parentheses_are_as_few_as_possible(tree: ast.Expression, text: str) -> None:
    assert print_expression(tree) == text
    body = f"kernel k() {{\n  {text}\n}}"
    (statement,) = parse(body, "e.ph").kernels[0].body.statements
    assert statement == ast.Evaluate(tree)


def test_parts_can_be_printed_alone() -> None:
    (kernel,) = parse(SAXPY, "saxpy.ph").kernels
    assert print_declaration(kernel) == SAXPY
    assert print_statement(kernel.body.statements[0]) == "let base = ctx.block.x * BLOCK"
    assert print_type(kernel.params[0].type) == "tensor<f32>[N]"


def test_equality_ignores_places_only() -> None:
    for seed in range(20):
        for node in ast.walk(RandomAst(seed).program()):
            compared = {entry.name for entry in fields(node) if entry.compare}
            places = {entry.name for entry in fields(node) if not entry.compare}
            assert all(name.endswith("span") for name in places)
            assert not any(name.endswith("span") for name in compared)
