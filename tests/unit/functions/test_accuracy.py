"""Every function within its bound, and docs/accuracy.md saying what is measured."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import math

from phobos.diagnostics import PhobosError
from phobos.targets.ptx.assembler import assemble
from tests.support.ptxas import needs_ptxas
from tests.unit.functions.accuracy import ulps
from tests.unit.functions.kernels import BINARY, Variant, apply, compiled, instructions
from tests.unit.functions.references import CASES, Case
from tests.unit.functions.table import accuracy_row, fast_form, measured, page_rows

BOUNDS = {"f32": 2.0, "f16": 0.501, "bf16": 0.501, "f64": 1.5}
"""In ulps. A half is an f32 result rounded once more, 2^-12 ulp of a half off at most."""

by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.mark.parametrize(
    ("case", "kind"),
    [(case, kind) for case in CASES for kind in case.kinds],
    ids=lambda part: part.name if isinstance(part, Case) else part,
)
def test_error_is_within_the_bound(case: Case, kind: str) -> None:
    assert measured(case.name, kind) <= BOUNDS[kind]


@by_case
def test_page_states_what_is_measured(case: Case) -> None:
    assert page_rows("By default")[case.name] == accuracy_row(case)


@by_case
def test_page_states_the_fast_form(case: Case) -> None:
    rows = page_rows("With `@fast_math`")
    if case.name == "erf":
        assert case.name not in rows  # it has no other form
        assert instructions(Variant(case.operation, is_fast=True)) == instructions(
            Variant(case.operation)
        )
    else:
        assert rows[case.name].split("|")[2].strip() == fast_form(case)


@by_case
def test_fast_form_computes_the_function(case: Case) -> None:
    """Where the instructions are accurate, the emulator's exact models leave small errors."""
    x = np.linspace(0.3, 3.0, 2001, dtype=np.float32)
    arguments = (x, x[::-1]) if case.operation in BINARY else (x,)
    got = apply(Variant(case.operation, is_fast=True), *arguments)
    np.testing.assert_allclose(got, case.exact(*arguments), rtol=2e-6, atol=2e-7)


def test_exp_takes_eight_instructions() -> None:
    opcodes = instructions(Variant(math.ExpOp))
    assert len(opcodes) == 8
    assert [opcode for opcode in opcodes if "approx" in opcode] == ["ex2.approx.ftz.f32"]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@by_case
def test_halves_are_the_same_on_every_chip(case: Case, kind: str) -> None:
    """sm_75 has no bf16 conversions; they are written in f32 arithmetic there."""
    sample = tuple(part[::7] for part in case.sample(kind))
    old, new = (apply(Variant(case.operation, kind, chip), *sample) for chip in ("sm_75", "sm_90"))
    is_nan = np.isnan(old.astype(np.float32))
    np.testing.assert_array_equal(is_nan, np.isnan(new.astype(np.float32)))
    np.testing.assert_array_equal(old.view(np.uint16)[~is_nan], new.view(np.uint16)[~is_nan])


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.operation not in BINARY], ids=lambda case: case.name
)
def test_points_and_tiles_agree(case: Case) -> None:
    (sample,) = case.sample("f32", seed=2)
    tile = apply(Variant(case.operation), sample)
    points = apply(Variant(case.operation, by_points=True), sample)
    np.testing.assert_array_equal(points.view(np.uint32), tile.view(np.uint32))


@needs_ptxas
@pytest.mark.parametrize("variant", [("sm_75", False), ("sm_90", True)], ids=["sm_75", "fast"])
@by_case
def test_ptxas_takes_it(case: Case, variant: tuple[str, bool]) -> None:
    chip, is_fast = variant
    text = compiled(Variant(case.operation, chip=chip, is_fast=is_fast)).ptx
    assert assemble(text, chip).warnings == ()


@needs_ptxas
@pytest.mark.parametrize("case", [one for one in CASES if "f64" in one.kinds], ids=lambda c: c.name)
def test_ptxas_takes_it_in_f64(case: Case) -> None:
    text = compiled(Variant(case.operation, "f64", chip="sm_75", tile=256)).ptx
    assert assemble(text, "sm_75").warnings == ()


@pytest.mark.parametrize(
    "case", [case for case in CASES if "f64" not in case.kinds], ids=lambda case: case.name
)
def test_f64_is_refused_where_it_is_missing(case: Case) -> None:
    with pytest.raises(PhobosError) as caught:
        compiled(Variant(case.operation, "f64"))
    first = str(caught.value).splitlines()[0]
    assert first.startswith("apply.ph:")
    assert first.endswith(f"error: `{case.operation.name}` of f64 is not supported yet; f32 is")


def test_ulps_counts_what_it_says() -> None:
    exact = np.array([1.0, 1.0, 2.0**-149, np.nan, 1.0, 0.0, 1e39, 2.0**-130])
    got = np.array([1.0, 1 + 2**-23, 0.0, np.nan, np.nan, -0.0, np.inf, 0.0], dtype=np.float32)
    np.testing.assert_array_equal(ulps(got, exact, "f32"), [0, 1, 1, 0, np.inf, np.inf, 0, 2.0**19])
    assert ulps(got, exact, "f32", may_flush=True)[-1] == 0
