"""The tables of docs/emulator.md say what the comparison with the GPU gives today."""

from __future__ import annotations

from pathlib import Path

from tests.unit.emulator.families import FAMILIES, filled, members
from tests.unit.emulator.form_table import all_forms

PAGE = Path(__file__).parents[3] / "docs" / "emulator.md"


def test_every_exact_form_is_in_one_family():
    exact = [form for form in all_forms() if form.is_exact]
    listed = [form.line for family in FAMILIES for form in members(family, exact)]
    assert sorted(listed) == sorted(form.line for form in exact)


def test_the_tables_are_up_to_date():
    text = PAGE.read_text()
    assert filled(text) == text, "run tools/update_emulator_page.py"
