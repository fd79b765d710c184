"""From text to tree, for every form of the grammar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from phobos.diagnostics import Diagnostic, Location, PhobosError, SourceMap, render
from phobos.frontend import ast
from phobos.frontend.ast import AssignOp, BinaryOp, IntLiteral, Name, UnaryOp
from phobos.frontend.parser import parse
from tests.support.seed_programs import SAXPY, SEED_PROGRAMS

A, B, C, D = Name("a"), Name("b"), Name("c"), Name("d")


def program(body: str) -> ast.Program:
    return parse(f"kernel k() {{\n{body}\n}}", "t.ph")


def statements(body: str) -> tuple[ast.Statement, ...]:
    return program(body).kernels[0].body.statements


def statement(body: str) -> ast.Statement:
    (only,) = statements(body)
    return only


def expression(text: str) -> ast.Expression:
    node = statement(text)
    assert isinstance(node, ast.Evaluate)
    return node.expression


def binary(op: str, left: ast.Expression, right: ast.Expression) -> ast.Binary:
    return ast.Binary(BinaryOp(op), left, right)


class TestExpressions:
    @pytest.mark.parametrize(
        ("text", "tree"),
        [
            ("1_000", IntLiteral(1000)),
            ("0xff", IntLiteral(255)),
            ("1.5e-1", ast.FloatLiteral(0.15)),
            ("true", ast.BoolLiteral(True)),
            ("false", ast.BoolLiteral(False)),
            ('"a\\n"', ast.StringLiteral("a\n")),
            ("inf", Name("inf")),
            ("(a)", A),
            ("-a", ast.Unary(UnaryOp.NEGATE, A)),
            ("!~-a", ast.Unary(UnaryOp.NOT, ast.Unary(UnaryOp.INVERT, expression("-a")))),
            ("-a.b", ast.Unary(UnaryOp.NEGATE, ast.Member(A, "b"))),
            ("ctx.block.x", ast.Member(ast.Member(Name("ctx"), "block"), "x")),
            ("a()", ast.Call(A, ())),
            ("a(b, c)(d)", ast.Call(ast.Call(A, (B, C)), (D,))),
            ("a[b].c", ast.Member(ast.Subscript(A, (ast.Point(B),)), "c")),
        ],
    )
    def test_operands(self, text: str, tree: ast.Expression) -> None:
        assert expression(text) == tree

    def test_precedence_from_loosest_to_tightest(self) -> None:
        levels = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">="), ("|",), ("^",), ("&",))
        levels += (("<<", ">>"), ("+", "-"), ("*", "/", "%"))
        for loose, looser in enumerate(levels):
            for tighter in levels[loose + 1 :]:
                for op in looser:
                    for tight in tighter:
                        grouped = binary(op, A, binary(tight, B, C))
                        assert expression(f"a {op} b {tight} c") == grouped
                        grouped = binary(op, binary(tight, A, B), C)
                        assert expression(f"a {tight} b {op} c") == grouped

    def test_operators_group_to_the_left(self) -> None:
        for op in BinaryOp:
            if not op.is_comparison:
                assert expression(f"a {op} b {op} c") == binary(op, binary(op, A, B), C)

    def test_unary_binds_tighter_than_any_infix_operator(self) -> None:
        negated = ast.Unary(UnaryOp.NEGATE, A)
        assert expression("-a * b") == binary("*", negated, B)
        assert expression("b * -a") == binary("*", B, negated)

    @pytest.mark.parametrize(
        ("text", "index"),
        [
            (":", ast.FullAxis()),
            ("b", ast.Point(B)),
            ("b : c", ast.Range(B, C)),
            (": c", ast.Range(None, C)),
            ("b :+ c", ast.Span(B, C)),
            ("b:+4", ast.Span(B, IntLiteral(4))),
            ("b < c :+ d", ast.Span(binary("<", B, C), D)),
        ],
    )
    def test_subscripts(self, text: str, index: ast.Index) -> None:
        assert expression(f"a[{text}]") == ast.Subscript(A, (index,))
        assert expression(f"a[d, {text}, :]") == ast.Subscript(
            A, (ast.Point(D), index, ast.FullAxis())
        )

    @pytest.mark.parametrize(
        ("text", "generic"),
        [
            ("over ctx.lane", ast.OverScope(ast.Scope.LANE)),
            ("over ctx . warp", ast.OverScope(ast.Scope.WARP)),
            ("over ctx.thread", ast.OverScope(ast.Scope.THREAD)),
            ("over 1", ast.OverAxes((1,))),
            ("over 0, 1", ast.OverAxes((0, 1))),
            ("f32", ast.TypeArgument(ast.ScalarType("f32"))),
            ("1", ast.IntArgument(1)),
            (
                "tile<i8>[4, N]",
                ast.TypeArgument(
                    ast.ShapedType(
                        ast.ShapedKind.TILE,
                        ast.ScalarType("i8"),
                        (ast.DimSize(4), ast.DimName("N")),
                    )
                ),
            ),
        ],
    )
    def test_generics(self, text: str, generic: ast.Generic) -> None:
        call = ast.Call(A, (B,), generic)
        assert expression(f"a<{text}>(b)") == call
        assert expression(f"c + a < {text} > (b)") == binary("+", C, call)
        assert expression(f"a<{text}>(b)[c]") == ast.Subscript(call, (ast.Point(C),))

    @pytest.mark.parametrize("text", ["a < b", "a < over", "a < tile", "a < 1", "a < tile(b)"])
    def test_comparisons_are_no_generics(self, text: str) -> None:
        node = expression(text)
        assert isinstance(node, ast.Binary)
        assert node.op is BinaryOp.LESS
        lines = statements(f"{text}\nb = 1")
        assert lines[0] == ast.Evaluate(node)
        assert len(lines) == 2

    def test_comparisons_in_arguments(self) -> None:
        both = (binary("<", A, B), binary(">", C, D))
        assert expression("f(a < b, c > (d))") == ast.Call(Name("f"), both)


class TestStatements:
    @pytest.mark.parametrize("op", list(AssignOp))
    def test_assignments(self, op: AssignOp) -> None:
        assert statement(f"a {op} b + c") == ast.Assign(A, op, binary("+", B, C))
        target = ast.Subscript(A, (ast.Span(B, C),))
        assert statement(f"a[b :+ c] {op} d") == ast.Assign(target, op, D)
        assert op.binary is None or f"{op.binary}=" == op

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("let a = b", ast.Declaration(False, "a", None, B)),
            ("var a: f32 = b", ast.Declaration(True, "a", ast.ScalarType("f32"), B)),
            ("var a: f32", ast.Declaration(True, "a", ast.ScalarType("f32"))),
            ("var a", ast.Declaration(True, "a")),
            ("break", ast.Break()),
            ("continue", ast.Continue()),
            ("return", ast.Return()),
            ("return a", ast.Return(A)),
            ("a(b)", ast.Evaluate(ast.Call(A, (B,)))),
            ("while a { }", ast.While(A, ast.Block(()))),
        ],
    )
    def test_simple(self, text: str, expected: ast.Statement) -> None:
        assert statement(text) == expected

    def test_tile_declaration(self) -> None:
        dims = (ast.DimName("R"), ast.DimSize(4))
        shaped = ast.ShapedType(ast.ShapedKind.TILE, ast.ScalarType("f32"), dims)
        assert statement("var t: tile<f32>[R, 4]") == ast.Declaration(True, "t", shaped)

    @pytest.mark.parametrize(
        ("bounds", "start", "stop", "step"),
        [("a", None, A, None), ("a, b", A, B, None), ("a, b, c", A, B, C)],
    )
    def test_ranges(
        self, bounds: str, start: ast.Expression, stop: ast.Expression, step: ast.Expression
    ) -> None:
        body = ast.Block((ast.Break(),))
        loop = ast.For("i", start, stop, step, body)
        assert statement(f"for i in range({bounds}) {{ break }}") == loop

    @pytest.mark.parametrize(
        ("text", "unroll"),
        [("", None), ("<unroll> ", ast.Unroll()), ("<unroll 4> ", ast.Unroll(4))],
    )
    def test_unrolling(self, text: str, unroll: ast.Unroll | None) -> None:
        loop = ast.For("i", None, A, None, ast.Block(()), unroll)
        assert statement(f"for {text}i in range(a) {{}}") == loop

    def test_chains_of_else_if(self) -> None:
        done = ast.Block((ast.Break(),))
        inner = ast.If(B, done, ast.Block((ast.Continue(),)))
        text = "if a { break } else if b {\n break\n} else { continue }"
        assert statement(text) == ast.If(A, done, inner)
        assert statement("if a { break }") == ast.If(A, done)

    def test_statements_end_at_newline_or_semicolon(self) -> None:
        expected = (ast.Assign(A, AssignOp.SET, B), ast.Assign(C, AssignOp.SET, D))
        for text in ("a = b\nc = d", "a = b; c = d", ";a = b;;\n\n;c = d;", "a = b // x\r\nc = d"):
            assert statements(text) == expected

    def test_newlines_are_free_in_brackets(self) -> None:
        call = ast.Call(A, (B, C))
        assert statements("a(\nb,\n\nc // why\n)\nd") == (ast.Evaluate(call), ast.Evaluate(D))
        assert expression("(a\n+\nb)") == binary("+", A, B)
        assert expression("a[b\n:+\nc]") == ast.Subscript(A, (ast.Span(B, C),))

    def test_a_sign_on_the_next_line_begins_a_statement(self) -> None:
        negated = ast.Evaluate(ast.Unary(UnaryOp.NEGATE, B))
        assert statements("c = a\n-b") == (ast.Assign(C, AssignOp.SET, A), negated)
        assert statements("a\n(b)") == (ast.Evaluate(A), ast.Evaluate(B))


class TestDeclarations:
    def test_kernel(self) -> None:
        tensor = ast.ShapedType(
            ast.ShapedKind.TENSOR, ast.ScalarType("f32"), (ast.DimName("N"), ast.DimSize(4))
        )
        params = (ast.Param("x", tensor), ast.Param("alpha", ast.ScalarType("f32")))
        kernel = ast.Kernel("k", params, ast.Block((ast.Break(),)))
        for text in (
            "kernel k(x: tensor<f32>[N, 4], alpha: f32) { break }",
            "kernel\nk(\nx:\ntensor<f32>[N,\n4],\nalpha: f32\n)\n{ break }\n",
        ):
            assert parse(text, "t.ph") == ast.Program((kernel,))

    def test_functions(self) -> None:
        made = parse("fn f() {} fn g(a: i32) -> tile<f32>[4] { return a }", "t.ph")
        empty, other = made.functions
        assert empty == ast.Function("f", (), None, ast.Block(()))
        assert other.params == (ast.Param("a", ast.ScalarType("i32")),)
        assert isinstance(other.result, ast.ShapedType)
        assert made.kernels == ()

    def test_attributes(self) -> None:
        text = """
        @autotune(X in [16, 0x100], Y in [1])
        @launch(256, a + b) @pipeline
        @aligned(N = X * 2)
        @tensorcore(wmma)
        kernel k() {}
        """
        positional, choice = ast.PositionalArgument, ast.ChoiceArgument
        assert parse(text, "t.ph").kernels[0].attributes == (
            ast.Attribute(
                "autotune",
                (
                    choice("X", (IntLiteral(16), IntLiteral(256))),
                    choice("Y", (IntLiteral(1),)),
                ),
            ),
            ast.Attribute("launch", (positional(IntLiteral(256)), positional(binary("+", A, B)))),
            ast.Attribute("pipeline"),
            ast.Attribute(
                "aligned", (ast.NamedArgument("N", binary("*", Name("X"), IntLiteral(2))),)
            ),
            ast.Attribute("tensorcore", (positional(Name("wmma")),)),
        )

    @pytest.mark.parametrize("name", SEED_PROGRAMS)
    def test_line_ends_and_byte_order_mark_do_not_matter(self, name: str) -> None:
        text = SEED_PROGRAMS[name]
        plain = parse(text, "t.ph")
        assert parse("\ufeff" + text, "t.ph") == plain
        assert parse(text.replace("\n", "\r\n"), "t.ph") == plain
        assert parse(text.replace("  ", "\t"), "t.ph") == plain


class TestPlaces:
    """Spans are checked by the text they cover."""

    SOURCE = """\
@launch(32)
kernel k(x: tensor<f32>[N]) {
  let y = (x[0] + 1) * -x[n :+ 4]
  x[0] += sum<over ctx.lane>(y)
  for <unroll> i in range(0, n) { break }
  if y == (2) { return } else if z {}
}
"""

    def covered(self, place: Location) -> str:
        lines = self.SOURCE.splitlines()
        assert place.end_line is not None
        assert place.end_column is not None
        if place.end_line != place.line:
            return f"{lines[place.line - 1][place.column - 1 :]}..."
        return lines[place.line - 1][place.column - 1 : place.end_column - 1]

    def spans(self, kind: type[ast.Node], field: str = "span") -> list[str]:
        tree = parse(self.SOURCE, "t.ph")
        return [self.covered(getattr(n, field)) for n in ast.walk(tree) if type(n) is kind]

    def test_spans(self) -> None:
        assert self.spans(ast.Binary) == ["(x[0] + 1) * -x[n :+ 4]", "x[0] + 1", "y == (2)"]
        assert self.spans(ast.Binary, "operator_span") == ["*", "+", "=="]
        assert self.spans(ast.Unary) == ["-x[n :+ 4]"]
        assert self.spans(ast.Subscript) == ["x[0]", "x[n :+ 4]", "x[0]"]
        assert self.spans(ast.Subscript, "bracket_span") == ["[0]", "[n :+ 4]", "[0]"]
        assert self.spans(ast.Span) == ["n :+ 4"]
        assert self.spans(ast.Call) == ["sum<over ctx.lane>(y)"]
        assert self.spans(ast.OverScope) == ["over ctx.lane"]
        assert self.spans(ast.Declaration) == ["let y = (x[0] + 1) * -x[n :+ 4]"]
        assert self.spans(ast.Assign) == ["x[0] += sum<over ctx.lane>(y)"]
        assert self.spans(ast.Assign, "operator_span") == ["+="]
        assert self.spans(ast.For) == ["for <unroll> i in range(0, n) { break }"]
        assert self.spans(ast.For, "variable_span") == ["i"]
        assert self.spans(ast.For, "range_span") == ["range(0, n)"]
        assert self.spans(ast.Unroll) == ["<unroll>"]
        assert self.spans(ast.If) == ["if y == (2) { return } else if z {}", "if z {}"]
        assert self.spans(ast.Kernel) == ["@launch(32)..."]
        assert self.spans(ast.Kernel, "name_span") == ["k"]
        assert self.spans(ast.Attribute) == ["@launch(32)"]
        assert self.spans(ast.ShapedType) == ["tensor<f32>[N]"]
        assert self.spans(ast.Block) == ["{...", "{ break }", "{ return }", "{}"]

    def test_every_node_has_its_span(self) -> None:
        for text in SEED_PROGRAMS.values():
            for node in ast.walk(parse(text, "t.ph")):
                assert node.span.file == "t.ph"
                assert node.span.end_column is not None

    def test_anchors_of_expressions_are_distinct_and_lead_to_the_span(self) -> None:
        effective = (ast.Binary, ast.Unary, ast.Subscript, ast.Call, ast.Member)
        for text in (*SEED_PROGRAMS.values(), self.SOURCE):
            sources = SourceMap()
            nodes = [n for n in ast.walk(parse(text, "t.ph", sources)) if isinstance(n, effective)]
            anchors = [ast.anchor(node) for node in nodes]
            assert len(set(anchors)) == len(anchors)
            assert [sources.resolve(place) for place in anchors] == [node.span for node in nodes]

    def test_a_statement_is_underlined_by_its_header(self) -> None:
        sources = SourceMap()
        loop = parse(self.SOURCE, "t.ph", sources).kernels[0].body.statements[2]
        text = render(Diagnostic.error("slow", ast.anchor(loop)), sources)
        assert text.endswith("|   ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~")

    def test_the_source_is_recorded(self) -> None:
        sources = SourceMap()
        parse("\ufeff" + SAXPY, "saxpy.ph", sources)
        assert sources.text("saxpy.ph") == SAXPY


def deep(text: str) -> Callable[[int], str]:
    """A maker of expressions that nest to a given depth: `text` with `@` for the inner one."""

    def make(depth: int) -> str:
        before, after = text.split("@")
        return before * depth + "a" + after * depth

    return make


DEEP = {
    "parentheses": deep("(@)"),
    "calls": deep("f(@)"),
    "subscripts": deep("x[@]"),
    "subscripted": deep("@[0]"),
    "called": deep("@()"),
    "members": deep("@.x"),
    "signs": deep("-@"),
    "sums": deep("@ + b"),
    "right sums": deep("b + (@)"),
    "all levels": deep("a || b && c == d | e ^ f & g << h + i * f(x[0 :+ @])"),
    "generics": deep("sum<over 1>(@)"),
}


class TestDepth:
    @pytest.mark.parametrize("name", DEEP)
    @pytest.mark.parametrize("depth", [200, 20_000])
    def test_too_deep_an_expression_is_an_error(self, name: str, depth: int) -> None:
        with pytest.raises(PhobosError, match="nested too deeply: more than 100 levels"):
            expression(DEEP[name](depth))

    @pytest.mark.parametrize("name", DEEP)
    def test_reasonable_depth_is_fine(self, name: str) -> None:
        tree = expression(DEEP[name](7))
        assert tree == expression(f"({DEEP[name](7)})")

    @pytest.mark.parametrize(
        "text",
        [
            "if a {\n",
            "while a { ",
            "for i in range(a) {",
            "if a {} else {\n",
            "if a {} else if b { ",
        ],
    )
    def test_too_deep_blocks_are_an_error(self, text: str) -> None:
        with pytest.raises(PhobosError, match="blocks are nested too deeply"):
            program(text * 5000)

    def test_too_long_a_chain_is_an_error(self) -> None:
        with pytest.raises(PhobosError, match="blocks are nested too deeply"):
            program("if a {}" + " else if b {}" * 5000)
        node = statement("if a {}" + " else if b {}" * 48)
        assert isinstance(node, ast.If)

    def test_the_limits_leave_most_of_the_stack_to_callers(self) -> None:
        deepest = 0

        def watch(frame: object, event: str, argument: object) -> None:
            nonlocal deepest
            if event == "call":
                deepest = max(deepest, frame_depth() - 1)

        def frame_depth() -> int:
            depth, frame = 0, sys._getframe()
            while frame.f_back is not None:
                depth, frame = depth + 1, frame.f_back
            return depth

        text = "if a {\n" * 48 + "b = " + "(" * 95 + "1" + ")" * 95 + "\n" + "}\n" * 48
        base = frame_depth()
        previous = sys.getprofile()
        sys.setprofile(watch)
        try:
            program(text)
        finally:
            sys.setprofile(previous)
        assert deepest - base < 550


def test_time_is_linear() -> None:
    start = time.perf_counter()
    line = "  out[base :+ BLOCK] = alpha * x[base :+ BLOCK] + y[base :+ BLOCK]\n"
    made = program("if a {\n" * 5 + line * 5000 + "}\n" * 5)
    assert len(list(ast.walk(made))) > 90_000
    assert time.perf_counter() - start < 30
