"""Layouts in words."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from phobos.explain import words
from phobos.explain.words import layout_words
from phobos.layout.linear import LinearLayout
from phobos.targets.ptx import occupancy

MMA = "register=[[0, 1], [8, 0], [0, 16]] lane=[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]] "


@pytest.mark.parametrize("module", [words, occupancy], ids=lambda module: module.__name__)
def test_the_examples_of_docstrings(module: ModuleType) -> None:
    outcome = doctest.testmod(module)
    assert outcome.attempted
    assert outcome.failed == 0


@pytest.mark.parametrize(
    ("layout", "shape", "expected"),
    [
        (
            MMA + "warp=[[0, 8], [16, 0]] -> [32, 32]",
            (32, 32),
            (
                "each thread holds 8 elements: 2 consecutive columns, 2 times 8 rows apart, 2 times"
                " 16 columns apart",
                "a warp's lanes side by side cover 8 rows x 8 columns",
                "2 warps along the rows (16 apart) and 2 warps along the columns (8 apart)",
            ),
        ),
        (
            "register=[[0, 0, 1], [0, 1, 0]] lane=[[0, 0, 2], [0, 0, 0]] warp=[[0, 2, 0]]"
            " -> [1, 4, 4]",
            (1, 3, 4),
            (
                "each thread holds 4 elements: 2 rows x 2 columns",
                "a warp's lanes side by side cover 2 rows x 4 columns",
                "2 warps along the rows (2 apart)",
                "2 lanes of a warp hold the same",
                "laid out as 4 x 4; what lies past the tile is not used",
            ),
        ),
        (
            "register=[[1, 0, 0]] lane=[[0, 1, 0], [0, 0, 1]] warp=[] -> [2, 2, 2]",
            (2, 2, 2),
            (
                "each thread holds 2 elements: 2 consecutive elements of axis 0",
                "a warp's lanes side by side cover a block of 2 x 2 x 2",
            ),
        ),
        (
            "register=[[0]] lane=[[0], [0]] warp=[[0]] -> [1]",
            (1,),
            ("each thread holds 1 element", "every thread has the same"),
        ),
        (
            "register=[[1, 1]] lane=[[1, 0]] warp=[] -> [2, 2]",
            (2, 2),
            ("2x2 tile: 2 registers span 2 at XOR [1, 1]; 2 lanes span 2 of axis 0",),
        ),
    ],
)
def test_layout_words(layout: str, shape: tuple[int, ...], expected: tuple[str, ...]) -> None:
    assert layout_words(LinearLayout.parse(layout), shape) == expected
