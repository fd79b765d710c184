"""Splits source text into tokens.

One compiled regular expression does the work, about a microsecond a token. Line ends produce no
tokens: a token knows whether it is the first of its line, and the parser decides where that
matters. What cannot be a token becomes a token of kind ERROR whose error is already reported, so
that the parser skips the statement around it without another message.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import NamedTuple

from phobos.diagnostics import DiagnosticCollector, Location

NAME = "name"
INTEGER = "integer"
FLOAT = "float"
STRING = "string"
ERROR = "error"
END = "end of file"

RESERVED = frozenset(
    {"kernel", "fn", "let", "var", "if", "else", "for", "in", "while"}
    | {"break", "continue", "return", "true", "false"}
)
"""The words that cannot be names. Names of types and built-ins are ordinary names."""

MAX_INTEGER = 2**64 - 1
"""The largest integer that can be written."""

_SHOWN = 40

# Skips the argument handling of Token(...), which would take a fifth of the lexer's time.
_new_tuple = tuple.__new__


class Token(NamedTuple):
    """A token: `kind` is one of the constants above, or the text of a word or sign itself.

    A token lies within one line; line and column count from 1.
    """

    kind: str
    text: str
    line: int
    column: int
    first_on_line: bool


_TOKEN = re.compile(
    r"""[ \t]*(?:
      (?P<name>    [^\W\d]\w* )
    | (?P<number>  0[xX]\w*
                 | [0-9][0-9_]* (?:\.[0-9][0-9_]*)? (?:[eE][+-]?[0-9][0-9_]*)? \w* )
    | (?P<newline> \r\n? | \n )
    | (?P<comment> //[^\r\n]* )
    | (?P<block>   /\*.*?(?:\*/|\Z) )
    | (?P<sign>    <<=? | >>=? | :\+ | -> | && | \|\| | [-+*/%&|^=<>!]=? | [~()\[\]{}:,.;@] )
    | (?P<string>  "(?:[^"\\\r\n]|\\[^\r\n])*" )
    | (?P<open>    "[^\r\n]* )
    | (?P<end>     \Z )
    | (?P<stray>   \#[^\r\n]* | [^\x00-\x7f]+ | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+ | . )
    )""",
    re.VERBOSE | re.DOTALL,
)

_INTEGER = re.compile(r"[0-9][0-9_]*|0[xX][0-9a-fA-F][0-9a-fA-F_]*")
_FLOAT = re.compile(r"[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9][0-9_]*)?")
_LINE_END = re.compile(r"\r\n?|\n")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"'}
_ESCAPE = re.compile(r"\\(.)")

_LOOKALIKES = {
    **dict.fromkeys("“”„«»‘’'`", '"'),
    **dict.fromkeys("−–—‐‑", "-"),
    **dict.fromkeys("×·∙∗", "*"),
    **dict.fromkeys("÷∕⁄", "/"),
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "→": "->",
    "∧": "&&",
    "∨": "||",
    "¬": "!",
    "；": ";",
    "：": ":",
    "，": ",",
    "（": "(",
    "）": ")",
}
_STRAY_HELP = {
    "#": "comments start with `//`",
    "?": "a choice between two values is written `where(condition, a, b)`",
    "\\": "an expression goes on in the next line only inside ( ) or [ ]",
}


def tokenize(text: str, file: str, errors: DiagnosticCollector) -> list[Token]:
    """All tokens of `text`, the last of them of kind END; what is wrong goes to `errors`."""
    return _Lexer(file, errors).tokenize(text)


def integer_value(text: str) -> int:
    """The value of an INTEGER token's text."""
    if text[:2] in ("0x", "0X"):
        return int(text.replace("_", ""), 16)
    # Leading zeros count towards the length above which Python refuses to convert.
    return int(text.replace("_", "").lstrip("0") or "0")


def float_value(text: str) -> float:
    """The value of a FLOAT token's text."""
    return float(text.replace("_", ""))


def string_value(text: str) -> str:
    """The value of a STRING token's text: without quotes, escapes decoded."""
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], text[1:-1])


def shortened(text: str) -> str:
    """A piece of source for a message, cut where it is too long to be read in one."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def describe_character(char: str) -> str:
    """A character for a message: shown if it can be seen, and always with its code and name."""
    name = unicodedata.name(char, "")
    code = f"U+{ord(char):04X}" + (f" {name}" if name else "")
    return f"`{char}` ({code})" if char.isprintable() and not char.isspace() else code


class _Lexer:
    """The state of one run: the errors, and the line of the last stray character."""

    def __init__(self, file: str, errors: DiagnosticCollector) -> None:
        self._file = file
        self._errors = errors
        self._stray_line = 0

    def tokenize(self, text: str) -> list[Token]:
        tokens: list[Token] = []
        append = tokens.append
        line, line_start, first = 1, 0, True
        for match in _TOKEN.finditer(text):
            group = match.lastgroup
            assert group is not None  # every alternative of the expression is a group
            if group == "newline":
                line, line_start, first = line + 1, match.end(), True
                continue
            if group == "comment":
                continue
            word = match[group]
            column = match.end() - len(word) - line_start + 1
            if group == "sign":
                kind = word
            elif group == "name":
                kind = word if word in RESERVED else NAME
                if not word.isascii():
                    self._bad_name(word, line, column)
            elif group == "number":
                kind = self._number_kind(word, line, column)
            elif group == "string":
                kind = self._string_kind(word, line, column)
            elif group == "end":
                append(Token(END, "", line, column, False))
                break
            else:
                kind = ERROR
                self._bad_token(group, word, line, column)
            append(_new_tuple(Token, (kind, word, line, column, first)))
            first = False
            if group == "block":
                for line_end in _LINE_END.finditer(word):
                    line, first = line + 1, True
                    line_start = match.start(group) + line_end.end()
        return tokens

    def _bad_token(self, group: str, word: str, line: int, column: int) -> None:
        if group == "open":
            self._open_string(word, line, column)
        elif group == "block":
            self._block_comment(line, column)
        else:
            self._stray(word, line, column)

    def _error(
        self, line: int, column: int, length: int, message: str, *, help: str | None = None
    ) -> None:
        place = Location(self._file, line, column, line, column + length)
        self._errors.error(place, message, help=help)

    def _bad_name(self, word: str, line: int, column: int) -> None:
        bad = next(char for char in word if not char.isascii())
        self._error(
            line,
            column,
            len(word),
            f"a name cannot contain {describe_character(bad)}",
            help="names consist of the letters a to z and A to Z, digits and `_`",
        )

    def _number_kind(self, word: str, line: int, column: int) -> str:
        if len(word) < 19 and word.isdecimal() and word.isascii():
            return INTEGER
        if _INTEGER.fullmatch(word):
            # 2**64 has 20 digits; longer texts are judged by length, since Python refuses to
            # convert very long ones.
            digits = word.replace("_", "").lstrip("0xX")
            if len(digits) <= 20 and integer_value(word) <= MAX_INTEGER:
                return INTEGER
            message = "this integer does not fit in 64 bits"
            self._error(line, column, len(word), message)
            return ERROR
        if _FLOAT.fullmatch(word):
            if math.isfinite(float_value(word)):
                return FLOAT
            message = "this number is too large for f64"
            self._error(line, column, len(word), message, help="write `inf` for infinity")
            return ERROR
        self._bad_number(word, line, column)
        return ERROR

    def _bad_number(self, word: str, line: int, column: int) -> None:
        if word[:2] in ("0x", "0X"):
            message = f"`{shortened(word)}` is not a hexadecimal number"
            self._error(line, column, len(word), message, help="hexadecimal digits are 0-9 and a-f")
            return
        match = _FLOAT.match(word)
        assert match is not None  # the token expression begins with this one
        suffix = word[match.end() :]
        message = f"a number cannot end in `{shortened(suffix)}`"
        if suffix in ("e", "E"):
            message = "the exponent of this number has no digits"
            help = "write for example `1e-5`"
        elif match[0] == "0" and suffix[0] in "bBoO":
            help = "numbers are decimal, or hexadecimal with `0x`"
        else:
            help = "a literal takes the type of what it meets; `f16(1.5)` gives it one"
        self._error(line, column, len(word), message, help=help)

    def _string_kind(self, word: str, line: int, column: int) -> str:
        for match in _ESCAPE.finditer(word):
            if match[1] not in _ESCAPES:
                message = f"there is no escape `{match[0]}`"
                help = 'the escapes are `\\n`, `\\t`, `\\r`, `\\"` and `\\\\`'
                self._error(line, column + match.start(), 2, message, help=help)
                return ERROR
        return STRING

    def _open_string(self, word: str, line: int, column: int) -> None:
        message = "this string has no closing quote"
        help = 'a string ends on its line; `\\n` stands for a line end and `\\"` for a quote'
        self._error(line, column, len(word), message, help=help)

    def _block_comment(self, line: int, column: int) -> None:
        message = "there are no comments in `/* */`"
        self._error(line, column, 2, message, help="start each line of the comment with `//`")

    def _stray(self, word: str, line: int, column: int) -> None:
        # One stray character on a line is news; the next, such as a closing quote, is not.
        if line == self._stray_line:
            return
        self._stray_line = line
        char = word[0]
        length = 1 if char == "#" else len(word)
        what = "character" if length == 1 else "characters, the first of them"
        help = _STRAY_HELP.get(char)
        if char in _LOOKALIKES:
            help = f"did you mean `{_LOOKALIKES[char]}`?"
        elif unicodedata.category(char) == "Zs":
            help = "use an ordinary space"
        elif unicodedata.category(char) == "Cc":
            help = "a program is a text file in UTF-8"
        self._error(
            line, column, length, f"unexpected {what} {describe_character(char)}", help=help
        )
