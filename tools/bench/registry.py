"""The cases: every module in `tools/bench/cases` that defines CASE."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from phobos.diagnostics import did_you_mean
from tools.bench import cases
from tools.bench.case import Case, Rate
from tools.bench.errors import BenchError

ALL = "all"
GROUPS = {"memory": Rate.BYTES, "arithmetic": Rate.FLOPS}
"""Names for the cases that one thing limits."""


@cache
def all_cases() -> dict[str, Case]:
    """The cases by name, in alphabetical order."""
    modules = sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
    found = [import_module(f"{cases.__name__}.{name}").CASE for name in modules]
    return {case.name: case for case in found}


def find_cases(names: list[str]) -> list[Case]:
    """The cases of these names, in their order. BenchError if one is unknown.

    `all` stands for every case, `memory` and `arithmetic` for those that the one or the other
    limits.
    """
    known = all_cases()
    chosen: dict[str, Case] = {}
    for name in names:
        if name == ALL:
            chosen.update(known)
        elif name in GROUPS:
            limited = {key: case for key, case in known.items() if case.rate is GROUPS[name]}
            chosen.update(limited)
        elif name in known:
            chosen[name] = known[name]
        else:
            hint = did_you_mean(name, known) or f"the cases are {', '.join(known)}"
            raise BenchError(f"there is no case `{name}`; {hint}")
    return list(chosen.values())
