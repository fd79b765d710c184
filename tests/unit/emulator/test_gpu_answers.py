"""Every instruction form against what an H200 answered (see tools/record_gpu_answers.py)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.unit.emulator.families import (
    ABSOLUTE,
    absolute_distance,
    approximations,
    digests,
    run,
    run_matrix,
    run_product,
    ulp_distance,
)
from tests.unit.emulator.form_table import all_forms
from tests.unit.emulator.forms import APPROXIMATE, Form, digest
from tests.unit.emulator.matrix_forms import MATRIX_FORMS, MatrixForm
from tests.unit.emulator.warpgroup_forms import PRODUCT_FORMS

FORMS = all_forms()
EXACT = [form for form in FORMS if form.is_exact]
OPCODES = sorted({form.opcode for form in EXACT})

MOST_ULPS = {"tanh.approx.f32": 128}
"""The largest distance of the model from the hardware, where it is more than 2 ulp."""

MOST_ABSOLUTE = 2e-6


@cache
def recorded() -> dict[str, str]:
    return digests()


def test_every_form_was_recorded():
    names = {form.line for form in EXACT} | {f.suffix for f in MATRIX_FORMS if f.is_exact}
    assert names | PRODUCT_FORMS.keys() == recorded().keys()


@pytest.mark.parametrize("opcode", OPCODES)
def test_exact_forms_agree_bit_for_bit(opcode: str):
    forms = [form for form in EXACT if form.opcode == opcode]
    wrong = [form.line for form in forms if digest(run(form)) != recorded()[form.line]]
    assert wrong == []


@pytest.mark.parametrize(
    "form", [form for form in FORMS if not form.is_exact], ids=lambda form: form.line.split(" ")[0]
)
def test_approximate_forms_are_close(form: Form):
    theirs = approximations()[form.line]
    own = run(form, APPROXIMATE)
    if form.opcode in ABSOLUTE:
        missing = np.isnan(own.view(np.float32))
        assert (missing == np.isnan(theirs.view(np.float32))).all()
        assert absolute_distance(form, own, theirs) <= MOST_ABSOLUTE
    else:
        most = MOST_ULPS.get(form.line.split(" ")[0], 2)
        assert ulp_distance(form, own, theirs) <= most


@pytest.mark.parametrize(
    "form", [form for form in MATRIX_FORMS if form.is_exact], ids=lambda form: form.suffix
)
def test_matrix_products_agree_bit_for_bit(form: MatrixForm):
    assert digest(run_matrix(form)) == recorded()[form.suffix]


@pytest.mark.parametrize("name", PRODUCT_FORMS)
def test_products_of_warpgroups_agree_bit_for_bit(name: str):
    assert digest(run_product(name)) == recorded()[name]
