"""Every instruction form against what an H200 answered (see tools/record_gpu_answers.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phobos.emulator import emulate
from tests.unit.emulator.form_table import all_forms
from tests.unit.emulator.forms import (
    APPROXIMATE,
    COUNT,
    Form,
    bits_of,
    digest,
    kernel_text,
    operands_of,
)

DATA = Path(__file__).parent / "data"
FORMS = all_forms()
OPCODES = sorted({form.opcode for form in FORMS})

# The largest distance of the model (exact, then rounded) from the hardware: in units of the last
# place, or for functions with an absolute error bound in the manual, absolute on |x| <= 8.
ULPS = {
    "ex2.approx.f32": 2,
    "rcp.approx.f32": 1,
    "rsqrt.approx.f32": 1,
    "sqrt.approx.f32": 1,
    "div.approx.f32": 2,
    "div.full.f32": 2,
    "ex2.approx.f16": 1,
    "tanh.approx.f16": 1,
    "ex2.approx.bf16": 1,
    "tanh.approx.bf16": 1,
    "rsqrt.approx.f64": 2,
}
ABSOLUTE = {
    "sin.approx.f32": 2e-6,
    "cos.approx.f32": 2e-6,
    "lg2.approx.f32": 2e-6,
    "tanh.approx.f32": 3e-4,
}


def run(form: Form, count: int = COUNT) -> np.ndarray:
    """The emulator's results of a form."""
    text = f".version 8.1\n.target sm_90\n.address_size 64\n{kernel_text(form, 'k')}"
    result = np.zeros(count, dtype=f"u{bits_of(form.result) // 8}")
    operands = [values[:count] for values in operands_of(form)]
    emulate(text, "k", -(-count // 256), 256, [*operands, result, np.uint32(count)])
    return result


@pytest.mark.parametrize("opcode", OPCODES)
def test_exact_forms_agree_bit_for_bit(opcode: str):
    digests = json.loads((DATA / "gpu_answers.json").read_text())["digests"]
    forms = [form for form in FORMS if form.opcode == opcode and form.is_exact]
    wrong = [form.line for form in forms if digest(run(form)) != digests[form.line]]
    assert wrong == []


def _key(bits: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats with these patterns."""
    signed = bits.view(f"i{bits.itemsize}").astype(np.int64)
    return np.where(signed < 0, -(signed & np.iinfo(f"i{bits.itemsize}").max), signed)


def _elements(bits: np.ndarray, kind: str) -> np.ndarray:
    return bits.view(np.uint16) if kind.endswith("x2") else bits


def _name(form: Form) -> str:
    words = form.line.split(" ")[0].split(".")
    if form.result == "f64":
        return ".".join(words)
    return ".".join(word for word in words if word != "ftz").removesuffix("x2")


@pytest.mark.parametrize(
    "form", [form for form in FORMS if not form.is_exact], ids=lambda form: form.line.split(" ")[0]
)
def test_approximate_forms_are_close(form: Form):
    answers = np.load(DATA / "gpu_approximations.npz")[form.line]
    own, theirs = _elements(run(form, APPROXIMATE), form.result), _elements(answers, form.result)
    name = _name(form)
    if name in ULPS:
        assert int(np.abs(_key(own) - _key(theirs)).max()) <= ULPS[name]
    elif name in ABSOLUTE:
        x = operands_of(form)[0][:APPROXIMATE].view(np.float32)
        near = (np.abs(x) <= 8) & (np.abs(x) >= 2.0**-20)
        ours, other = own.view(np.float32)[near], theirs.view(np.float32)[near]
        assert (np.isnan(ours) == np.isnan(other)).all()
        assert np.nanmax(np.abs(ours - other)) <= ABSOLUTE[name]
    else:
        # The coarse f64 forms count in the upper half of the pattern.
        upper = _key((own >> np.uint64(32)).astype(np.uint32))
        assert int(np.abs(upper - _key((theirs >> np.uint64(32)).astype(np.uint32))).max()) <= 1
