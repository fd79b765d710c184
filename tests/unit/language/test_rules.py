"""Each rule of docs/language.md has a program that keeps it, which runs, and one that breaks it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phobos
from phobos.frontend.attributes import ATTRIBUTE_NAMES
from phobos.frontend.builtins import BUILTIN_FUNCTIONS, PLANNED
from phobos.frontend.types import NAMED
from phobos.runtime.dtypes import numpy_dtype
from phobos.runtime.emulator_device import EmulatorDevice
from tests.unit.language import flow, rule, threads, tiles, values
from tests.unit.language.rule import Rule, program, underlined

RULES = (*values.RULES, *tiles.RULES, *threads.RULES, *flow.RULES)
GIVEN = {"X": rule.X, "I": rule.I, "W": rule.W, "n": rule.N}
PAGE = Path(__file__).parents[3] / "docs/language.md"
WITHOUT_RULES = {"A kernel", "When a program is wrong", "What does not compile yet"}
by_rule = pytest.mark.parametrize("one", RULES, ids=lambda one: f"{one.section}: {one.name}")


@by_rule
def test_a_program_that_keeps_the_rule_runs(one: Rule) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", phobos.PhobosWarning)
        module = phobos.compile(
            program(one.good), name="rule.ph", chip=one.chip, cache=False,
            assertions=one.assertions,
        )  # fmt: skip
    (kernel,) = module.contract.kernels
    arguments: dict[str, Any] = {scalar.name: GIVEN[scalar.name] for scalar in kernel.scalars}
    for tensor in kernel.tensors:
        known = GIVEN.get(tensor.name)
        extents = [dim.extent for dim in tensor.dims if dim.extent is not None]
        arguments[tensor.name] = (
            np.zeros(extents, numpy_dtype(tensor.type)) if known is None else np.array(known)
        )
    grid = None if kernel.grid else (1,)
    module["k"](**arguments, grid=grid, device=EmulatorDevice(checks="all"))
    expected = np.broadcast_to(np.asarray(one.gives, np.float32), 64)
    np.testing.assert_allclose(arguments["Y"], expected, rtol=1e-6)


@by_rule
def test_a_program_that_breaks_the_rule_is_told_so(one: Rule) -> None:
    with pytest.raises(phobos.PhobosError) as caught:
        phobos.compile(program(one.bad), name="rule.ph", cache=False)
    message = str(caught.value)
    assert re.findall(r"^rule\.ph:\d+:\d+: error: (.*)$", message, re.MULTILINE) == [one.says]
    assert underlined(message) == one.at


def test_every_section_of_the_page_has_rules() -> None:
    headings = re.findall(r"^##+ (.*)$", PAGE.read_text(), re.MULTILINE)
    assert {one.section for one in RULES} == set(headings) - WITHOUT_RULES


def test_rules_have_names_of_their_own() -> None:
    assert len({(one.section, one.name) for one in RULES}) == len(RULES)


def test_programs_that_keep_the_rules_use_the_whole_language() -> None:
    text = "\n".join(program(one.good) for one in RULES)
    words = set(re.findall(r"@?\w+", text))
    assert BUILTIN_FUNCTIONS - PLANNED - words == set()
    assert {f"@{name}" for name in ATTRIBUTE_NAMES} - words == set()
    assert set(NAMED) - words == set()


@pytest.mark.parametrize("name", sorted(BUILTIN_FUNCTIONS - PLANNED - {"barrier"}))
def test_a_builtin_without_arguments_says_how_it_is_called(name: str) -> None:
    with pytest.raises(phobos.PhobosError) as caught:
        phobos.compile(program(f"{name}()"), name="rule.ph", cache=False)
    first, *others = str(caught.value).splitlines()
    assert re.match(r"rule\.ph:3:1: error: ", first)
    assert any(line.startswith("help:") and f"{name}" in line for line in others)
