"""The groups that `-W` and `--werror` know are those of the warnings."""

from __future__ import annotations

import re
from pathlib import Path

import phobos
from phobos.diagnostics import WARNING_GROUPS


def test_every_warning_is_in_a_group_of_the_list() -> None:
    text = "".join(
        path.read_text(encoding="utf-8") for path in Path(phobos.__file__).parent.rglob("*.py")
    )
    named = re.findall(r'^GROUP = "([\w-]+)"|\bgroup="([\w-]+)"', text, re.MULTILINE)
    assert {one or other for one, other in named} == set(WARNING_GROUPS)
