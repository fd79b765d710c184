"""Products of every type, as the compiler ships them and in other forms: no access of shared
memory waits for a bank, by the emulator's counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import phobos
from phobos.emulator import Profile
from phobos.runtime.emulator_device import EmulatorDevice
from tests.support.kernel_cases import BATCHED, GEMMS, Shipped
from tests.unit.contraction.test_products import ELEMENTS, PATHS, source

TILES: list[Mapping[str, int]] = [
    {},
    {"TILE_M": 64, "TILE_N": 32, "TILE_K": 16},
    {"TILE_M": 32, "TILE_N": 64, "TILE_K": 32, "THREADS": 64},
]
"""The defaults, and others."""
AS_LAUNCHED: dict[str, Any] = {"extent_multiple": 16, "line_info": True, "tensor_maps": True}
"""The variant that launches on these extents take; that of the defaults would not be run."""


def check(profile: Profile) -> None:
    total = profile.total
    assert total.shared_requests
    assert total.passes == total.ideal_passes


@pytest.mark.parametrize("tiles", TILES, ids=["defaults", "64x32x16", "32x64x32"])
@pytest.mark.parametrize("program", [*GEMMS, BATCHED], ids=lambda program: program.file)
def test_shipped_products(program: Shipped, tiles: Mapping[str, int]) -> None:
    module = phobos.kernels.load(program.file, "sm_90", tiles, **AS_LAUNCHED)
    profile = Profile()
    dims = {"Z": 1} if program is BATCHED else {}
    program.run(module, {**dims, "M": 32, "N": 32, "K": 128}, EmulatorDevice(profile=profile))
    check(profile)


@pytest.mark.parametrize("form", ["dot", "dot_t", "t_dot"])
@pytest.mark.parametrize("name", ["tf32", "f64", "i8", "f16", "f8e5m2", "f32"])
def test_turned_operands(name: str, form: str) -> None:
    check(_product(name, form, 128))


@pytest.mark.parametrize("form", ["dot", "dot_t"])
def test_operands_that_copies_turn(form: str) -> None:
    """64 results a thread: copies of single elements, loads of four that are neighbours."""
    check(_product("f32", form, 64))


def _product(name: str, form: str, threads: int) -> Profile:
    """What the accesses of one product of 64 x 64 x 32 ones took."""
    path, tile = PATHS[name], (64, 64, 32)
    module = phobos.compile(source(path, tile, threads, 2, form), chip="sm_90", **AS_LAUNCHED)
    a = np.ones(tile[::2][:: -1 if form == "t_dot" else 1]).astype(ELEMENTS[path.a])
    b = np.ones(tile[1:][:: 1 if form == "dot_t" else -1]).astype(ELEMENTS[path.b])
    c = np.zeros(tile[:2]).astype(ELEMENTS[path.total])
    profile = Profile()
    module["product"](A=a, B=b, C=c, grid=(1, 1, 1), device=EmulatorDevice(profile=profile))
    assert np.all(c.astype(np.float64) == tile[2])
    return profile
