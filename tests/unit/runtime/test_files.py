"""PTX from a file, and the launch contract beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phobos import PhobosError
from phobos.runtime.module import Module
from tests.support.map_copies import copy_case, copy_contract, copy_ptx

BOX, SHAPE = (8, 16), (24, 32)


def write(folder: Path, change: Callable[[dict[str, Any]], object] = lambda kernel: None) -> Path:
    """The files of a kernel that copies by a tensor map, whose contract is changed."""
    contract = copy_contract(BOX, "f32", 64, by_map=True)
    ptx, described = folder / "copy.ptx", contract.to_json()
    change(described["kernels"][0])
    ptx.write_text(copy_ptx(contract))
    ptx.with_suffix(".json").write_text(json.dumps(described))
    return ptx


def test_files_of_one_compilation_are_launched(tmp_path: Path) -> None:
    source, target, expected = copy_case(BOX, SHAPE, "f32")
    Module.from_files(write(tmp_path))["copy"](source, target, device="emulator")
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda kernel: kernel["tensor_maps"].clear(), "argument 15 of `copy` is `A_map_0` in one"),
        (
            lambda kernel: kernel["tensor_maps"][0].update(tensor="B"),
            "argument 15 of `copy` is `A_map_0` in one and `B_map_0` in the other",
        ),
        (
            lambda kernel: kernel["parameters"].reverse(),
            "argument 1 of `copy` is `A_allocated` in one and `B_allocated` in the other",
        ),
        (
            lambda kernel: kernel["parameters"].append(
                {"kind": "scalar", "name": "x", "type": "f32"}
            ),
            "argument 15 of `copy` is `A_map_0` in one and `x` in the other",
        ),
    ],
)
def test_files_that_do_not_belong_together(
    change: Callable[[dict[str, Any]], object], words: str, tmp_path: Path
) -> None:
    """Arguments are passed by their order: one would be taken for another."""
    with pytest.raises(PhobosError, match="do not belong together") as caught:
        Module.from_files(write(tmp_path, change))
    assert words in str(caught.value)
    assert "help: compile the program again, which writes both" in str(caught.value)
