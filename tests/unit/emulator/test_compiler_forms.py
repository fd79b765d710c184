"""The emulator runs what the compiler can print, and both know the same needs of it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import phobos.dialects.ptx as dialect
from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Instruction as DialectInstruction
from phobos.emulator import program  # noqa: F401  registers every decoder
from phobos.emulator.control import is_control
from phobos.emulator.instructions.registry import find_decoder
from phobos.emulator.requirements import Requirements, needs_of
from phobos.targets.ptx.chips import CHIPS
from phobos.targets.ptx.parse.records import Instruction, Position

for _module in pkgutil.iter_modules(dialect.__path__):
    importlib.import_module(f"{dialect.__name__}.{_module.name}")

NOT_INSTRUCTIONS = {"sreg", "clock"}
"""Operations that are printed as a move from a special register."""

ADVISED = "has_multicast"
"""What the compiler leaves to the chips that do it fast, though all run it."""


def _classes(base: type) -> Iterator[type]:
    for child in base.__subclasses__():
        yield child
        yield from _classes(child)


def _forms() -> list[tuple[str, Form]]:
    return [
        (cls.opcode, form)
        for cls in _classes(DialectInstruction)
        if hasattr(cls, "forms") and cls.opcode not in NOT_INSTRUCTIONS
        for form in cls.forms
    ]


FORMS = _forms()


def _spelled(opcode: str, suffix: str) -> tuple[str, tuple[str, ...]]:
    first, *rest = (f"{opcode}.{suffix}" if suffix else opcode).split(".")
    return first, tuple(rest)


@pytest.mark.parametrize("opcode", sorted({opcode for opcode, _ in FORMS}))
def test_every_form_has_a_decoder(opcode: str):
    missing = []
    for _, form in (pair for pair in FORMS if pair[0] == opcode):
        for suffix in form.sample():
            name, parts = _spelled(opcode, suffix)
            record = Instruction(name, parts, (), None, Position(1, 1))
            if not is_control(record) and find_decoder(name, parts) is None:
                missing.append(suffix)
    assert missing == []


def _operand_count(form: Form, suffix: str) -> int:
    signature = form.resolve(suffix)
    return len(signature.operands) + 1


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda chip: chip.name)
def test_compiler_and_emulator_agree_on_needs(chip):
    requirements = Requirements(chip.name, chip.ptx_version)
    number = chip.number
    wrong = []
    for opcode, form in FORMS:
        for suffix in form.suffixes():
            name, parts = _spelled(opcode, suffix)
            needs = needs_of(name, parts, _operand_count(form, suffix))
            has = all(requirements.has_chip(need.chips) for need in needs)
            versions = [need.version_on(number) for need in needs]
            version = max([chip.ptx_version, *versions])
            if has != chip.has(form.needs) and form.needs != ADVISED:
                wrong.append((opcode, suffix, f"on the chip: {has}"))
            elif has and version != max(chip.ptx_version, form.since):
                wrong.append((opcode, suffix, f"{version} or {form.since}"))
    assert wrong == []
