"""The measurements that docs/accuracy.md states, as rows of its tables."""

from __future__ import annotations

from functools import cache
from itertools import dropwhile, takewhile
from pathlib import Path

from tests.unit.functions.accuracy import ulps
from tests.unit.functions.kernels import Variant, apply, instructions
from tests.unit.functions.references import BY_NAME, Case

PAGE = Path(__file__).parents[3] / "docs/accuracy.md"
KINDS = ("f32", "f16", "bf16", "f64")
NOT_THERE = "–"


@cache
def measured(name: str, kind: str) -> float:
    """The largest error of a function over its sample, in ulps, on the emulator."""
    return largest_error(BY_NAME[name], kind, "emulator")


def largest_error(case: Case, kind: str, device: str, seed: int = 1) -> float:
    """The largest error of a function over a sample, in ulps."""
    sample = case.sample(kind, seed)
    got = apply(Variant(case.operation, kind), *sample, device=device)
    return float(ulps(got, case.exact(*sample), kind, may_flush=case.may_flush).max())


def accuracy_row(case: Case) -> str:
    """A function's row in the table of errors and costs."""
    errors = [
        f"{measured(case.name, kind):.2f}" if kind in case.kinds else NOT_THERE for kind in KINDS
    ]
    count = len(instructions(Variant(case.operation)))
    return f"| `{case.name}` | {' | '.join(errors)} | {count} |"


def fast_form(case: Case) -> str:
    """The instructions under fast_math, as the page writes them."""
    opcodes = instructions(Variant(case.operation, is_fast=True))
    names = [opcode.partition(".")[0] for opcode in opcodes]
    approximate = [name for name, opcode in zip(names, opcodes, strict=True) if "approx" in opcode]
    others = [name for name in names if name not in approximate]
    return ", ".join(f"`{name}`" for name in (*others, *approximate))


def page_rows(heading: str) -> dict[str, str]:
    """The rows of the first table below a heading of the page, by the function they begin with."""
    _, found, below = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert found, f"{PAGE} has no heading {heading}"
    lines = dropwhile(lambda line: not line.startswith("|"), below.splitlines())
    table = takewhile(lambda line: line.startswith("|"), lines)
    return {line.split("`")[1]: line for line in table if line.startswith("| `")}
