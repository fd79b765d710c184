"""How diagnostics are gathered and drawn."""

from __future__ import annotations

import json
import pickle
from textwrap import dedent

import pytest

from phobos.diagnostics import (
    Diagnostic,
    DiagnosticCollector,
    Location,
    Note,
    PhobosError,
    Severity,
    SourceMap,
    did_you_mean,
    render,
    suggest,
    to_json,
)


def sources(text: str) -> SourceMap:
    result = SourceMap()
    result.add("t.ph", text)
    return result


def at(line: int, column: int, end_line: int | None = None, end: int | None = None) -> Location:
    return Location("t.ph", line, column, end_line, end)


def drawn(text: str, location: Location, **more: object) -> str:
    diagnostic = Diagnostic(Severity.ERROR, "it is wrong", location, **more)  # pyright: ignore
    return render(diagnostic, sources(text))


def block(text: str) -> str:
    return dedent(text).strip("\n")


class TestLocations:
    def test_text_is_what_editors_link(self) -> None:
        assert str(at(3, 7, 3, 9)) == "t.ph:3:7"

    def test_to_spans_both(self) -> None:
        assert at(1, 2, 1, 4).to(at(2, 5, 3, 1)) == at(1, 2, 3, 1)
        assert at(1, 2).to(at(2, 5)) == at(1, 2, 2, 5)

    def test_start_has_no_end(self) -> None:
        assert at(1, 2, 1, 4).start == at(1, 2)


class TestExcerpts:
    def test_span_with_note_and_help(self) -> None:
        text = "let x = BLOK\nlet y = x"
        notes = (Note("used here", at(2, 9, 2, 10)), Note("without a place"))
        assert drawn(text, at(1, 9, 1, 13), notes=notes, help="did you mean `BLOCK`?") == block(
            """
            t.ph:1:9: error: it is wrong
             1 | let x = BLOK
               |         ^~~~
            t.ph:2:9: note: used here
             2 | let y = x
               |         ^
            note: without a place
            help: did you mean `BLOCK`?
            """
        )

    def test_without_place_or_source(self) -> None:
        assert render(Diagnostic.error("no file")) == "error: no file"
        assert render(Diagnostic.warning("slow", at(1, 1))) == "t.ph:1:1: warning: slow"

    def test_line_beyond_the_text_has_no_excerpt(self) -> None:
        assert drawn("x", at(9, 1)) == "t.ph:9:1: error: it is wrong"

    @pytest.mark.parametrize("column", [4, 99])
    def test_place_behind_the_line_marks_its_end(self, column: int) -> None:
        assert drawn("abc", at(1, column)).splitlines()[1:] == [" 1 | abc", "   |    ^"]

    def test_gutters_of_all_parts_line_up(self) -> None:
        text = "\n" * 8 + "nine\nten"
        notes = (Note("there", at(10, 1, 10, 4)),)
        assert drawn(text, at(9, 1, 9, 5), notes=notes) == block(
            """
            t.ph:9:1: error: it is wrong
              9 | nine
                | ^~~~
            t.ph:10:1: note: there
             10 | ten
                | ^~~
            """
        )

    def test_tabs_are_expanded(self) -> None:
        assert drawn("\ta\tb", at(1, 4, 1, 5)).splitlines()[1:] == [
            " 1 |     a   b",
            "   |         ^",
        ]

    def test_wide_and_combining_characters_keep_the_mark_in_place(self) -> None:
        assert drawn("日本 x", at(1, 4, 1, 5)).splitlines()[2] == "   |      ^"
        assert drawn("e\u0301 x", at(1, 4, 1, 5)).splitlines()[2] == "   |   ^"

    def test_what_cannot_be_seen_is_spelt_out(self) -> None:
        lines = drawn("a\u202eb\x00c", at(1, 4, 1, 5)).splitlines()
        assert lines[1:] == [" 1 | a<U+202E>b<U+0000>c", "   |           ^~~~~~~~"]

    def test_messages_cannot_steer_a_terminal(self) -> None:
        assert render(Diagnostic.error("bad `\x1b[2J`")) == "error: bad `<U+001B>[2J`"

    def test_two_lines_are_both_marked(self) -> None:
        assert drawn("f(a,\n  b)", at(1, 2, 2, 5)).splitlines()[1:] == [
            " 1 | f(a,",
            "   |  ^~~",
            " 2 |   b)",
            "   |   ~~",
        ]

    def test_the_middle_of_many_lines_is_left_out(self) -> None:
        text = "if x {\n" + "  y\n" * 10 + "}"
        assert drawn(text, at(1, 1, 12, 2)).splitlines()[1:] == [
            "  1 | if x {",
            "    | ^~~~~~",
            "  2 |   y",
            "    |   ~",
            " .. |",
            " 12 | }",
            "    | ~",
        ]

    def test_long_line_is_cut_around_the_span(self) -> None:
        _, line, mark = drawn("a" * 300 + "BAD" + "b" * 300, at(1, 301, 1, 304)).splitlines()
        assert len(line) < 120
        assert line[mark.index("^") :].startswith("BAD")
        assert mark.endswith("^~~")
        assert line.startswith(" 1 | ...a")
        assert line.endswith("b...")

    def test_long_span_is_cut_too(self) -> None:
        _, line, mark = drawn("x" * 500, at(1, 1, 1, 501)).splitlines()
        assert len(line) < 120
        assert len(mark) < 120

    @pytest.mark.parametrize("text", ["a\r\nb", "a\rb", "\ufeffa\nb"])
    def test_line_ends_and_byte_order_mark_are_not_shown(self, text: str) -> None:
        assert drawn(text, at(1, 1)).splitlines()[1] == " 1 | a"
        assert drawn(text, at(2, 1)).splitlines()[1] == " 2 | b"

    def test_colour_only_on_request(self) -> None:
        diagnostic = Diagnostic.error("bad", at(1, 1, 1, 2), help="no")
        plain = render(diagnostic, sources("x"))
        coloured = render(diagnostic, sources("x"), color=True)
        assert "\x1b" not in plain
        assert "\x1b[1;31merror:\x1b[0m bad" in coloured
        assert "\x1b[1;31m^\x1b[0m" in coloured


class TestSourceMap:
    def test_bare_places_get_their_remembered_span(self) -> None:
        known = sources("a + b")
        known.remember(1, 3, at(1, 1, 1, 6))
        assert known.resolve(at(1, 3)) == at(1, 1, 1, 6)
        assert known.resolve(at(1, 3, 1, 4)) == at(1, 3, 1, 4)
        assert known.resolve(at(1, 5)) == at(1, 5)
        assert render(Diagnostic.error("bad", at(1, 3)), known) == block(
            """
            t.ph:1:1: error: bad
             1 | a + b
               | ^~~~~
            """
        )

    def test_new_text_forgets_the_old(self) -> None:
        known = sources("old")
        assert known.line("t.ph", 1) == "old"
        known.remember(1, 1, at(1, 1, 1, 4))
        known.add("t.ph", "new")
        assert known.line("t.ph", 1) == "new"
        assert known.resolve(at(1, 1)) == at(1, 1)

    def test_unknown_names(self) -> None:
        assert SourceMap().text("x") is None
        assert SourceMap().line("x", 1) is None
        assert sources("x").names() == ("t.ph",)


class TestErrors:
    def test_text_of_several(self) -> None:
        error = PhobosError([Diagnostic.error("one"), Diagnostic.error("two")])
        assert str(error) == "error: one\n\nerror: two"

    def test_sources_can_come_later(self) -> None:
        error = PhobosError.at(at(1, 1, 1, 2), "bad", notes=[Note("so")], help="do")
        assert "|" not in str(error)
        assert error.with_sources(sources("x")) is error
        assert " 1 | x" in str(error)

    def test_survives_pickling(self) -> None:
        error = pickle.loads(pickle.dumps(PhobosError.at(at(1, 1), "bad")))
        assert str(error) == "t.ph:1:1: error: bad"

    def test_json(self) -> None:
        diagnostic = Diagnostic.error("bad", at(1, 1), notes=[Note("n")], help="h")
        known = sources("xy")
        known.remember(1, 1, at(1, 1, 1, 3))
        place = {"file": "t.ph", "line": 1, "column": 1, "end_line": 1, "end_column": 3}
        expected = {
            "severity": "error",
            "message": "bad",
            "location": place,
            "notes": [{"message": "n", "location": None}],
            "help": "h",
            "group": None,
        }
        assert json.loads(json.dumps(to_json([diagnostic], known))) == [expected]


class TestCollector:
    def test_is_in_source_order(self) -> None:
        errors = DiagnosticCollector()
        errors.error(at(2, 1), "second")
        errors.warning(at(1, 5), "first")
        errors.error(None, "whole")
        assert [d.message for d in errors.diagnostics] == ["whole", "first", "second"]

    def test_second_error_at_a_place_is_dropped(self) -> None:
        errors = DiagnosticCollector()
        errors.error(at(1, 1, 1, 2), "cause")
        errors.error(at(1, 1, 1, 9), "consequence")
        assert [d.message for d in errors.diagnostics] == ["cause"]

    def test_limit_counts_errors_only(self) -> None:
        errors = DiagnosticCollector(limit=2)
        errors.warning(at(1, 1), "w")
        for line in range(2, 9):
            assert errors.is_full == (line > 3)
            errors.error(at(line, 1), "e")
        assert len(errors.diagnostics) == 3

    def test_raises_for_errors_only(self) -> None:
        errors = DiagnosticCollector()
        errors.warning(None, "w")
        errors.raise_if_errors()
        errors.error(None, "e")
        with pytest.raises(PhobosError, match="warning: w\n\nerror: e"):
            errors.raise_if_errors()


class TestSuggestions:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("BLOK", "BLOCK"),
            ("block", "BLOCK"),
            ("aplha", "alpha"),
            ("zzz", None),
            ("", None),
            ("q" * 10_000, None),
        ],
    )
    def test_nearest(self, name: str, expected: str | None) -> None:
        assert suggest(name, ["alpha", "beta", "BLOCK"]) == expected

    def test_as_help(self) -> None:
        assert did_you_mean("ctx.lain", ["ctx.lane", "ctx.warp"]) == "did you mean `ctx.lane`?"
        assert did_you_mean("x", []) is None
