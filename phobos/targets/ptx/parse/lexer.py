"""PTX text to tokens, with one regular expression."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple, NoReturn

from phobos.diagnostics import Location, PhobosError, SourceMap
from phobos.targets.ptx.parse.records import Position

_SUFFIX = r"\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*"
_TOKEN = re.compile(
    rf"""
      (?P<skip>   \s+ | //[^\n]* | /\*.*?\*/ | @@DWARF[^\n]* )
    | (?P<float>  0[fF][0-9a-fA-F]{{8}} | 0[dD][0-9a-fA-F]{{16}}
                | (?:\d+\.\d* | \.\d+)(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ )
    | (?P<int>    0[xX][0-9a-fA-F]+U? | 0[bB][01]+U? | (?:0[0-7]*|[1-9]\d*)U? )
    | (?P<word>   (?:[A-Za-z][\w$]* | [_$%][\w$]+ | _)(?:{_SUFFIX})* )
    | (?P<directive> {_SUFFIX} )
    | (?P<string> "(?:[^"\\\n]|\\.)*" )
    | (?P<punct>  << | >> | /(?!\*) | [{{}}\[\]()<>,;:|!@+\-*%=~&^?] )
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A token: `kind` is float, int, word, directive, string, punct or end."""

    kind: str
    text: str
    offset: int


class Text:
    """The text being parsed: turns offsets into places and raises errors at them."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, offset: int) -> Position:
        """Line and column, from 1, of a character."""
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def fail(self, token: Token, message: str, help: str | None = None) -> NoReturn:
        """Raise a PhobosError whose span is `token`."""
        place = self.position(token.offset)
        length = max(1, len(token.text.split("\n", 1)[0]))
        span = Location(self.name, place.line, place.column, place.line, place.column + length)
        sources = SourceMap()
        sources.add(self.name, self.text)
        raise PhobosError.at(span, message, help=help).with_sources(sources)


def tokenize(source: Text) -> list[Token]:
    """All tokens of a text, with an `end` token behind them; raises at a stray character."""
    tokens: list[Token] = []
    text, offset, size = source.text, 0, len(source.text)
    match_at = _TOKEN.match
    while offset < size:
        match = match_at(text, offset)
        if match is None:
            _fail_at_character(source, offset)
        kind = match.lastgroup
        if kind != "skip":
            assert kind is not None
            tokens.append(Token(kind, match.group(), offset))
        offset = match.end()
    tokens.append(Token("end", "", size))
    return tokens


def _fail_at_character(source: Text, offset: int) -> NoReturn:
    text = source.text
    if text.startswith("/*", offset):
        source.fail(Token("punct", "/*", offset), "this comment is not closed")
    if text[offset] == '"':
        source.fail(Token("punct", '"', offset), "this string is not closed on its line")
    source.fail(Token("punct", text[offset], offset), f"stray character {text[offset]!r} in PTX")
