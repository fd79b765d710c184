"""Splitting text into tokens."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.diagnostics import DiagnosticCollector, SourceMap
from phobos.frontend.lexer import (
    END,
    ERROR,
    FLOAT,
    INTEGER,
    NAME,
    RESERVED,
    STRING,
    Token,
    describe_character,
    float_value,
    integer_value,
    string_value,
    tokenize,
)


def lex(text: str) -> tuple[list[Token], DiagnosticCollector]:
    errors = DiagnosticCollector(SourceMap())
    return tokenize(text, "t.ph", errors), errors


def good(text: str) -> list[Token]:
    tokens, errors = lex(text)
    assert not errors.has_errors, errors.diagnostics
    assert tokens[-1].kind == END
    return tokens[:-1]


def kinds(text: str) -> list[str]:
    return [token.kind for token in good(text)]


def fault(text: str) -> tuple[str, int, int, str | None]:
    """Message, line, column and help of the only error."""
    _, errors = lex(text)
    (diagnostic,) = errors.diagnostics
    assert diagnostic.location is not None
    where = diagnostic.location
    return diagnostic.message, where.line, where.column, diagnostic.help


def test_words() -> None:
    assert kinds("kernel kernels _x x1 X") == ["kernel", NAME, NAME, NAME, NAME]
    assert kinds(" ".join(sorted(RESERVED))) == sorted(RESERVED)
    assert kinds("tensor f32 ctx over range inf") == [NAME] * 6


def test_signs_are_as_long_as_possible() -> None:
    text = "<<= >>= :+ -> << >> <= >= == != && || += -= *= /= %= &= |= ^="
    text += " = < > + - * / % & | ^ ! ~ ( ) [ ] { } : , . ; @"
    assert kinds(text) == text.split()
    assert kinds("a<<=b>>c:+d&&&e") == [NAME, "<<=", NAME, ">>", NAME, ":+", NAME, "&&", "&", NAME]
    assert kinds("x--y =-1 a->b") == [NAME, "-", "-", NAME, "=", "-", INTEGER, NAME, "->", NAME]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1_000", 1000),
        ("0xff", 255),
        ("0XFF_ff", 65535),
        ("007", 7),
        ("18446744073709551615", 2**64 - 1),
        ("0xffff_ffff_ffff_ffff", 2**64 - 1),
        ("0" * 5000 + "1", 1),
    ],
)
def test_integers(text: str, value: int) -> None:
    assert [token.kind for token in good(text)] == [INTEGER]
    assert integer_value(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5", 1.5), ("1e-5", 1e-5), ("1E+3", 1000.0), ("1_0.2_5", 10.25), ("1e-400", 0.0)],
)
def test_floats(text: str, value: float) -> None:
    assert [token.kind for token in good(text)] == [FLOAT]
    assert float_value(text) == value


def test_point_without_digits_is_no_part_of_a_number() -> None:
    assert kinds("0..n 1.x") == [INTEGER, ".", ".", NAME, INTEGER, ".", NAME]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('""', ""),
        (r'"a\n\t\r\"\\n"', 'a\n\t\r"\\n'),
        ('"// é 日 /* "', "// é 日 /* "),
    ],
)
def test_strings(text: str, value: str) -> None:
    assert [token.kind for token in good(text)] == [STRING]
    assert string_value(text) == value


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_places(line_end: str) -> None:
    text = line_end.join(["a\tb // c", "", " \t d", "e"])
    assert good(text) == [
        Token(NAME, "a", 1, 1, True),
        Token(NAME, "b", 1, 3, False),
        Token(NAME, "d", 3, 4, True),
        Token(NAME, "e", 4, 1, True),
    ]


@pytest.mark.parametrize("text", ["", " \t", "// only a comment", "\n\n"])
def test_nothing(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize(
    ("text", "message", "column", "help"),
    [
        ("a $", "unexpected character `$` (U+0024 DOLLAR SIGN)", 3, None),
        ("a−b", "unexpected character `−` (U+2212 MINUS SIGN)", 2, "did you mean `-`?"),
        ("x # y $", "unexpected character `#` (U+0023 NUMBER SIGN)", 3, "comments start with `//`"),
        ("“x”", "unexpected character `“` (U+201C LEFT DOUBLE QUOTATION MARK)", 1,
         'did you mean `"`?'),
        ("a\xa0b", "unexpected character U+00A0 NO-BREAK SPACE", 2, "use an ordinary space"),
        ("\x00\x01", "unexpected characters, the first of them U+0000", 1,
         "a program is a text file in UTF-8"),
        ("\udc80", "unexpected character U+DC80", 1, None),
        ("größe", "a name cannot contain `ö` (U+00F6 LATIN SMALL LETTER O WITH DIAERESIS)", 1,
         "names consist of the letters a to z and A to Z, digits and `_`"),
        ("12u", "a number cannot end in `u`", 1,
         "a literal takes the type of what it meets; `f16(1.5)` gives it one"),
        ("0b101", "a number cannot end in `b101`", 1,
         "numbers are decimal, or hexadecimal with `0x`"),
        ("1e+", "the exponent of this number has no digits", 1, "write for example `1e-5`"),
        ("0xfg", "`0xfg` is not a hexadecimal number", 1, "hexadecimal digits are 0-9 and a-f"),
        ("0x", "`0x` is not a hexadecimal number", 1, "hexadecimal digits are 0-9 and a-f"),
        ("18446744073709551616", "this integer does not fit in 64 bits", 1, None),
        ("9" * 100_000, "this integer does not fit in 64 bits", 1, None),
        ("1e400", "this number is too large for f64", 1, "write `inf` for infinity"),
        ('"abc', "this string has no closing quote", 1,
         'a string ends on its line; `\\n` stands for a line end and `\\"` for a quote'),
        ('"abc\\"', "this string has no closing quote", 1,
         'a string ends on its line; `\\n` stands for a line end and `\\"` for a quote'),
        (r'"a\qb"', r"there is no escape `\q`", 3,
         'the escapes are `\\n`, `\\t`, `\\r`, `\\"` and `\\\\`'),
        ("/* a\n b */", "there are no comments in `/* */`", 1,
         "start each line of the comment with `//`"),
    ],
)  # fmt: skip
def test_faults(text: str, message: str, column: int, help: str | None) -> None:
    assert fault(text) == (message, 1, column, help)


def test_faulty_tokens_stay_in_the_stream() -> None:
    tokens, _ = lex("a $ 1q é x")
    assert [token.kind for token in tokens] == [NAME, ERROR, ERROR, NAME, NAME, END]


def test_places_behind_a_block_comment() -> None:
    tokens, _ = lex("/* a\r\n b */ y\n/* never closed\nz")
    assert tokens[1] == Token(NAME, "y", 2, 7, True)
    assert tokens[-1].kind == END
    assert tokens[-1].line == 4


def test_several_lines_report_each() -> None:
    _, errors = lex("$ $\n$\n")
    assert [d.location.line for d in errors.diagnostics if d.location] == [1, 2]


@pytest.mark.parametrize(
    ("char", "expected"),
    [("a", "`a` (U+0061 LATIN SMALL LETTER A)"), ("\n", "U+000A"), (" ", "U+0020 SPACE")],
)
def test_characters_in_messages(char: str, expected: str) -> None:
    assert describe_character(char) == expected


@given(st.text())
def test_any_text(text: str) -> None:
    tokens, errors = lex(text)
    assert [token.kind for token in tokens].count(END) == 1
    assert tokens[-1].kind == END
    if any(token.kind == ERROR for token in tokens):
        assert errors.has_errors
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for token in tokens:
        if "\n" not in token.text and "\r" not in token.text:
            line = lines[token.line - 1]
            assert line[token.column - 1 :].startswith(token.text)


def test_time_is_linear() -> None:
    def seconds(text: str) -> float:
        start = time.process_time()
        lex(text)
        return time.process_time() - start

    for piece in ("x = a[i] + 1.5 // c\n", "\x00", '"', "/*", "9", "é", "\\"):
        assert seconds(piece * 100_000) < 10, piece
