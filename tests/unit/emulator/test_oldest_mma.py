"""The oldest shape of `mma.sync`, which an H200 only imitates, against plain matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from phobos.emulator.tensor.elements import unpack
from phobos.emulator.tensor.fragments import quad_pair_a, quad_pair_b, quad_pair_c
from tests.unit.emulator.families import run_matrix
from tests.unit.emulator.matrix_forms import MATRIX_FORMS, MatrixForm, fragments_of

OLD = [form for form in MATRIX_FORMS if not form.is_exact]


@pytest.mark.parametrize("form", OLD, ids=lambda form: form.suffix)
def test_oldest_shape_is_a_matrix_product(form: MatrixForm):
    with np.errstate(all="ignore"):
        own, wanted = _matrices(form)
    finite = np.isfinite(wanted)
    np.testing.assert_allclose(own[finite], wanted[finite], rtol=1e-3, atol=1e-2)


def _matrices(form: MatrixForm) -> tuple[np.ndarray, np.ndarray]:
    """D as the emulator computes it, and as a matrix product in float64."""
    _, a_layout, b_layout = form.suffix.split(".")[:3]
    a, b, c = (
        unpack(np.ascontiguousarray(registers.transpose(0, 2, 1)), kind)
        for registers, kind in zip(fragments_of(form), form.types[1:], strict=True)
    )
    left = quad_pair_a(by_row=a_layout == "row").gather(a)
    right = quad_pair_b(by_row=b_layout == "row").gather(b)
    wanted = np.matmul(left, right) + quad_pair_c(single=True).gather(c)
    own = quad_pair_c(single=True).gather(
        unpack(np.ascontiguousarray(run_matrix(form).transpose(0, 2, 1)), "f32")
    )
    return own, wanted
