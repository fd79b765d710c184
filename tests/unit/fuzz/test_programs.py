"""Random programs do on the emulator what their syntax tree means."""

from __future__ import annotations

from typing import Any

import pytest

from phobos.driver import compilation
from tools.fuzz.__main__ import run_chunk
from tools.fuzz.generator import generate
from tools.fuzz.runner import Verdict

PROGRAMS = 2000
CHUNK = 200


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_programs_agree(first: int) -> None:
    """Of all chips in turn. A failure is shown whole by `python -m tools.fuzz --seed <seed>`."""
    outcomes = run_chunk((range(first, first + CHUNK), None, "emulator", False))
    found = [
        f"seed {seed}: {outcome.verdict}\n{generate(seed).source}\n{outcome.detail}"
        for seed, outcome in outcomes
        if not outcome.verdict.is_good
    ]
    assert not found, "\n".join(found)
    undecided = sum(outcome.verdict is Verdict.UNDECIDED for _, outcome in outcomes)
    assert undecided < CHUNK // 20, "too few of the programs say anything"


def test_a_seed_gives_one_program() -> None:
    assert generate(5).source == generate(5).source
    assert len({generate(seed).source for seed in range(40)}) == 40


def test_products_agree_and_many_take_tensor_copies() -> None:
    outcomes = run_chunk((range(16), None, "emulator", False), is_product=True)
    assert {outcome.verdict for _, outcome in outcomes} <= {Verdict.AGREED, Verdict.UNDECIDED}
    assert sum(outcome.by_tensor_copies for _, outcome in outcomes) >= 6


def test_a_program_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the extents of its launch, which would ask for another variant otherwise."""
    compiled: list[str] = []
    compile_text = compilation.compile_text

    def counting(text: str, *args: Any, **named: Any) -> compilation.Compilation:
        compiled.append(text)
        return compile_text(text, *args, **named)

    monkeypatch.setattr(compilation, "compile_text", counting)
    outcomes = run_chunk((range(20), None, "emulator", False))
    assert len(compiled) == len(outcomes) == 20
