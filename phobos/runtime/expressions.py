"""Integer expressions over names, as they stand for grids in a launch contract.

    expression = term { ("+" | "-") term }
    term       = factor { ("*" | "/" | "%") factor }
    factor     = "-" factor | integer | name | function "(" expression { "," expression } ")"
               | "(" expression ")"
    function   = "ceildiv" | "min" | "max"

`/` and `%` truncate toward zero as in the language. A text from a file is evaluated here and
never by Python's `eval`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from phobos.diagnostics import PhobosError, did_you_mean

_TOKEN = re.compile(r"\s*(?:(\d{1,20})|([A-Za-z_]\w*)|([-+*/%(),]))")
_END = ""
_MAX_DEPTH = 100


def ceildiv(dividend: int, divisor: int) -> int:
    """The quotient rounded up."""
    return -(-dividend // divisor)


def _truncated_division(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _truncated_remainder(dividend: int, divisor: int) -> int:
    return dividend - divisor * _truncated_division(dividend, divisor)


_Operator = Callable[[int, int], int]
_ADDITIVE: dict[str, _Operator] = {"+": int.__add__, "-": int.__sub__}
_MULTIPLICATIVE: dict[str, _Operator] = {
    "*": int.__mul__,
    "/": _truncated_division,
    "%": _truncated_remainder,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {"ceildiv": ceildiv, "min": min, "max": max}


def evaluate(text: str, names: Mapping[str, int]) -> int:
    """The value of an expression; `names` gives the values of the names in it.

    Raises PhobosError if the text is no expression, a name has no value or a divisor is 0.

    >>> evaluate("ceildiv(N, 16) * 2", {"N": 100})
    14
    """
    return _Evaluator(text, names).result()


def names_in(text: str) -> tuple[str, ...]:
    """The names whose values an expression needs, in order of first appearance."""
    tokens = _tokenize(text)
    return tuple(dict.fromkeys(t for t in tokens if t.isidentifier() and t not in _FUNCTIONS))


def _tokenize(text: str) -> list[str]:
    tokens: list[str] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _error(text, f"`{text[position:].strip()[:1]}` has no meaning in it")
        tokens.append(match.group().strip())
        position = match.end()
    tokens.append(_END)
    return tokens


def _error(text: str, reason: str, help: str | None = None) -> PhobosError:
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return PhobosError.at(None, f"the expression `{shown}` is wrong: {reason}", help=help)


class _Evaluator:
    """Recursive descent that computes as it reads."""

    def __init__(self, text: str, names: Mapping[str, int]) -> None:
        self.text = text
        self.names = names
        self.tokens = _tokenize(text)
        self.position = 0
        self.depth = 0

    def result(self) -> int:
        value = self._sum()
        if self._peek() != _END:
            raise _error(self.text, f"`{self._peek()}` is not expected after a complete value")
        return value

    def _peek(self) -> str:
        return self.tokens[self.position]

    def _take(self) -> str:
        token = self.tokens[self.position]
        self.position += token != _END
        return token

    def _expect(self, token: str) -> None:
        got = self._take()
        if got != token:
            raise _error(self.text, f"`{token}` is expected, not {_shown(got)}")

    def _chain(self, operators: dict[str, _Operator], operand: Callable[[], int]) -> int:
        value = operand()
        while self._peek() in operators:
            operator = self._take()
            right = operand()
            if operator in "/%" and right == 0:
                raise _error(self.text, "it divides by 0")
            value = operators[operator](value, right)
        return value

    def _sum(self) -> int:
        return self._chain(_ADDITIVE, self._term)

    def _term(self) -> int:
        return self._chain(_MULTIPLICATIVE, self._factor)

    def _factor(self) -> int:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _error(self.text, f"it nests deeper than {_MAX_DEPTH} levels")
        value = self._primary()
        self.depth -= 1
        return value

    def _primary(self) -> int:
        token = self._take()
        if token == "-":
            return -self._factor()
        if token == "(":
            value = self._sum()
            self._expect(")")
            return value
        if token[:1].isdigit():
            return int(token)
        if not token.isidentifier():
            raise _error(self.text, f"a value is expected, not {_shown(token)}")
        if self._peek() == "(":
            return self._call(token)
        if token not in self.names:
            known = ", ".join(self.names) or "none"
            help = did_you_mean(token, self.names) or f"names with a value here: {known}"
            raise _error(self.text, f"`{token}` has no value", help)
        return self.names[token]

    def _call(self, function: str) -> int:
        if function not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise _error(self.text, f"there is no function `{function}`", f"it may use {known}")
        self._expect("(")
        arguments = [self._sum()]
        while self._peek() == ",":
            self._take()
            arguments.append(self._sum())
        self._expect(")")
        if function == "ceildiv" and len(arguments) != 2:
            raise _error(self.text, f"ceildiv takes 2 values, not {len(arguments)}")
        if function == "ceildiv" and arguments[1] == 0:
            raise _error(self.text, "it divides by 0")
        return arguments[0] if len(arguments) == 1 else _FUNCTIONS[function](*arguments)


def _shown(token: str) -> str:
    return f"`{token}`" if token else "the end"
