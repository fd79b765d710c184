"""Random programs do on a GPU what their syntax tree means."""

from __future__ import annotations

import pytest

from tools.fuzz.__main__ import run_chunk
from tools.fuzz.generator import generate

PROGRAMS = 400
CHUNK = 50


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_programs_agree(first: int) -> None:
    """`python -m tools.fuzz --device cuda --seed <seed> --count 1` shows a failure whole."""
    outcomes = run_chunk((range(first, first + CHUNK), None, "cuda", False))
    found = [
        f"seed {seed}: {outcome.verdict}\n{generate(seed).source}\n{outcome.detail}"
        for seed, outcome in outcomes
        if not outcome.verdict.is_good
    ]
    assert not found, "\n".join(found)
