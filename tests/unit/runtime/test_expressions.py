"""Grid expressions: values, rules of division, and errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.diagnostics import PhobosError
from phobos.runtime.expressions import ceildiv, evaluate, names_in

NAMES = {"N": 100, "BLOCK": 16, "M": 7}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("N", 100),
        ("ceildiv(N, BLOCK)", 7),
        ("ceildiv(N, 16) * ceildiv(M, 2)", 28),
        ("min(N, M, 9)", 7),
        ("max(1, N - 98, M)", 7),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("20 - 5 - 3", 12),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("- -3", 3),
        ("max(M)", 7),
        ("  N  ", 100),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "a value is expected, not the end"),
        ("N +", "a value is expected, not the end"),
        ("K", "`K` has no value"),
        ("N M", "`M` is not expected"),
        ("ceildiv(N)", "takes 2 values, not 1"),
        ("ceildiv(N, 0)", "divides by 0"),
        ("N / (M - 7)", "divides by 0"),
        ("N % 0", "divides by 0"),
        ("pow(N, 2)", "no function `pow`"),
        ("min(N, 2", "`)` is expected, not the end"),
        ("N.real", "`.` has no meaning"),
        ("__import__('os')", "`'` has no meaning"),
        ("N ** 2", "a value is expected, not `*`"),
        ("(" * 500 + "1" + ")" * 500, "nests deeper"),
        ("-" * 500 + "1", "nests deeper"),
    ],
)
def test_errors(text: str, part: str) -> None:
    with pytest.raises(PhobosError) as caught:
        evaluate(text, NAMES)
    assert part in str(caught.value)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(PhobosError, match="did you mean `BLOCK`"):
        evaluate("ceildiv(N, BLOK)", NAMES)


def test_names_in_an_expression() -> None:
    assert names_in("ceildiv(N, BLOCK) * min(M, N)") == ("N", "BLOCK", "M")


@given(st.integers(-1000, 1000), st.integers(1, 50))
def test_ceildiv_is_the_least_number_of_tiles(extent: int, tile: int) -> None:
    tiles = ceildiv(extent, tile)
    assert (tiles - 1) * tile < extent <= tiles * tile


@given(st.integers(-100, 100), st.integers(-20, 20).filter(bool))
def test_division_truncates_toward_zero_as_in_the_language(a: int, b: int) -> None:
    names = {"a": a, "b": b}
    assert evaluate("a / b", names) == int(a / b)
    assert evaluate("a / b * b + a % b", names) == a
