"""The tests of the built-ins once more, on a GPU.

What is about the emulator, compile errors or texts is not run again.
"""

# ruff: noqa: F403

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.builtins.test_atomics import *
from tests.unit.builtins.test_bits import *
from tests.unit.builtins.test_contractions import *
from tests.unit.builtins.test_folds import *
from tests.unit.builtins.test_gather import *
from tests.unit.builtins.test_scans import *
from tests.unit.builtins.test_shapes import *
from tests.unit.builtins.test_tile_elements import *
from tests.unit.builtins.test_types import *
from tests.unit.builtins.trying import on_gpu

_ELSEWHERE = ("emulator", "race_check", "uniform", "varies", "before_it_is_written", "part_of_the")


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest) -> Iterator[None]:
    if any(words in request.node.name for words in _ELSEWHERE):
        pytest.skip("not about a GPU")
    with on_gpu():
        yield
