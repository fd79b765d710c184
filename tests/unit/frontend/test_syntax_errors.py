"""What wrong programs are told, word for word, and that nothing else can happen to them.

The programs and messages are in `syntax_errors.txt`. After a message was changed on purpose,
`PYTHONPATH=. python tests/unit/frontend/test_syntax_errors.py` writes the new ones there.
"""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.diagnostics import MAX_ERRORS, PhobosError, Severity, to_json
from phobos.frontend import ast
from phobos.frontend.parser import parse
from phobos.frontend.printer import print_program
from tests.support.seed_programs import SEED_PROGRAMS

GOLDEN = Path(__file__).with_name("syntax_errors.txt")
CASE = re.compile(r"^=== (?P<name>.*)\n(?P<source>(?s:.*?))\n---\n", re.MULTILINE)

WORDS = (
    *("kernel", "fn", "let", "var", "if", "else", "for", "in", "while", "break", "continue"),
    *("return", "true", "false", "x", "y", "over", "ctx", "lane", "tensor", "tile", "f32"),
    *("range", "unroll", "==", "&&", "||", "<<", ">>", "<=", ">=", "!=", "+=", "<<=", ":+", "->"),
    *"<>()[]{}=+-*/%&|^!~:.,;@",
    *("1", "0x2", "1.5", '"s"', '"', "//", "/*", "*/", "\n", "\n", "\n", "\\", "#", "$", "é", "\0"),
)
OPENINGS = ("", "kernel k(x: f32) { ", "kernel k() {\n  if x {\n    for i in range(3) {\n")


def read_cases() -> dict[str, tuple[str, str]]:
    """The source and the message of every case, by name."""
    text = GOLDEN.read_text(encoding="utf-8")
    found = list(CASE.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {
        match["name"]: (match["source"], text[match.end() : end].rstrip("\n"))
        for match, end in zip(found, ends, strict=True)
    }


def message_of(source: str) -> str:
    """The text of the error that a program gives."""
    with pytest.raises(PhobosError) as caught:
        parse(source, "t.ph")
    return str(caught.value)


CASES = read_cases()


def test_unprintable_characters_are_spelt_out() -> None:
    expected = """\
t.ph:1:1: error: unexpected characters, the first of them U+0000
 1 | <U+0000><U+0001>ELF
   | ^~~~~~~~~~~~~~~~
help: a program is a text file in UTF-8"""
    assert message_of("\0\1ELF") == expected
    assert "there is no escape `\\<U+001B>`" in message_of('kernel k() { print("\\\x1b[2J") }')


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    source, expected = CASES[name]
    assert message_of(source) == expected


def outcome(text: str) -> ast.Program | PhobosError:
    """The tree of a program, or the error it gives; anything else is raised."""
    try:
        return parse(text, "t.ph")
    except PhobosError as error:
        return error


def check_outcome(text: str) -> None:
    """A program parses, and prints to one that parses to the same; or it is refused properly."""
    result = outcome(text)
    if isinstance(result, ast.Program):
        assert outcome(print_program(result)) == result
        return
    assert 1 <= len(result.diagnostics) <= MAX_ERRORS
    assert all(entry.severity is Severity.ERROR for entry in result.diagnostics)
    places = [entry.location for entry in result.diagnostics]
    assert all(place is not None and place.end_column is not None for place in places)
    assert str(result).startswith("t.ph:")
    assert len(to_json(result.diagnostics, result.sources)) == len(result.diagnostics)


@given(st.text())
def test_any_text(text: str) -> None:
    check_outcome(text)


@given(st.sampled_from(OPENINGS), st.lists(st.sampled_from(WORDS), max_size=60))
def test_any_words(opening: str, words: list[str]) -> None:
    check_outcome(opening + " ".join(words))


def test_many_seeded_words() -> None:
    start = time.perf_counter()
    for seed in range(1500):
        source = random.Random(seed)
        words = " ".join(source.choices(WORDS, k=source.choice((10, 100))))
        check_outcome(source.choice(OPENINGS) + words + source.choice(("", "\n}", "}}}")))
    assert time.perf_counter() - start < 60


@pytest.mark.parametrize("name", SEED_PROGRAMS)
def test_programs_with_a_token_less_or_more(name: str) -> None:
    pieces = re.findall(r"\w+|\s+|[^\w\s]", SEED_PROGRAMS[name])
    source = random.Random(name)
    for index in range(len(pieces)):
        check_outcome("".join(pieces[:index] + pieces[index + 1 :]))
        check_outcome("".join([*pieces[:index], source.choice(WORDS), *pieces[index:]]))
        check_outcome("".join(pieces[:index]))


def test_one_missing_sign_gives_few_errors() -> None:
    """A fault is reported once or twice and does not set off a cascade."""
    for text in SEED_PROGRAMS.values():
        for match in re.finditer(r"[()\[\]{}=,:]", text):
            result = outcome(text[: match.start()] + text[match.end() :])
            if isinstance(result, PhobosError):
                assert len(result.diagnostics) <= 2, str(result)


def test_at_most_twenty_errors() -> None:
    body = "  a = )\n" * 100
    with pytest.raises(PhobosError) as caught:
        parse(f"kernel k() {{\n{body}}}", "t.ph")
    lines = [entry.location.line for entry in caught.value.diagnostics if entry.location]
    assert lines == list(range(2, 2 + MAX_ERRORS))


def test_time_is_bounded_for_programs_full_of_errors() -> None:
    start = time.perf_counter()
    for piece in (
        "{",
        "}",
        "( ",
        ") ",
        "if x {\n",
        "kernel ",
        "@",
        "fn f( {",
        "a b\n",
        "[{",
        "x = (\n",
    ):
        for opening in OPENINGS:
            check_outcome(opening + piece * 3000)
    assert time.perf_counter() - start < 60


def rewrite() -> None:
    """Write the present messages into the golden file."""
    parts = [
        f"=== {name}\n{source}\n---\n{message_of(source)}\n" for name, (source, _) in CASES.items()
    ]
    GOLDEN.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
