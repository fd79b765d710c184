"""PTX with words deleted, repeated and exchanged never ends in anything but a PhobosError."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.emulator import emulate
from tests.unit.emulator.faulty_kernels import FAULTY_KERNELS
from tests.unit.emulator.form_table import all_forms
from tests.unit.emulator.forms import kernel_text
from tests.unit.emulator.matrix_forms import MATRIX_FORMS, matrix_kernel

HEADER = ".version 8.7\n.target sm_90\n.address_size 64\n"
WORD = re.compile(r"[%\w$]+|\.\w+|[^\s\w]")
OTHERS = (
    "0 -1 4294967296 0f7fc00000 1.5 %r0 %p0 %l0 %h0 { } [ ] _ ! @ | .f32 .s32 .b8 .pred .v4 .trans"
).split()


def programs() -> list[tuple[str, int]]:
    """Texts to mutate with their numbers of pointers."""
    forms = [(HEADER + kernel_text(f, "k"), len(f.operands) + 1) for f in all_forms()[::7]]
    matrices = [(HEADER + matrix_kernel(form, "k"), 4) for form in MATRIX_FORMS[::5]]
    # Deadlocks and spinning loops may turn into loops without an end.
    kernels = [
        (k.text(faulty=False), 2)
        for k in FAULTY_KERNELS
        if "SPIN" not in k.body and "READ: ld" not in k.body and "LOOP" not in k.body
    ]
    return forms + matrices + kernels


def mutated(text: str, generator: random.Random) -> str:
    """The text with one word behind the header changed."""
    words = list(WORD.finditer(text, text.index(".entry") + 6))
    word = generator.choice(words)
    start, stop = word.span()
    match generator.randrange(4):
        case 0:
            return text[:start] + text[stop:]
        case 1:
            return text[:start] + generator.choice(words).group() + text[stop:]
        case 2:
            return f"{text[:stop]} {text[start:]}"
        case _:
            return text[:start] + generator.choice(OTHERS) + text[stop:]


@pytest.mark.parametrize("seed", range(4))
def test_mutations(seed: int):
    generator = random.Random(seed)
    texts = programs()
    outcomes: list[str] = []
    for _ in range(150):
        text, pointers = generator.choice(texts)
        text = mutated(text, generator)
        arguments = [np.arange(64, dtype=np.uint64) for _ in range(pointers)]
        if "u32 n" in text:
            arguments.append(np.uint32(64))  # type: ignore[arg-type]
        try:
            emulate(text, "k", 1, 32, arguments, checks="all")
            outcomes.append("ran")
        except PhobosError as error:
            outcomes.append(str(error))
    assert all(outcomes)
    assert "ran" in outcomes
