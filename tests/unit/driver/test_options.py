"""Compile options: checks, the choice of the chip, and the cache key."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.driver.fingerprint import compiler_fingerprint
from phobos.driver.listing import chip_table
from phobos.driver.options import CompileOptions, make_options, resolve_chip
from phobos.runtime import detect
from phobos.targets.ptx.chips import CHIPS
from phobos.targets.ptx.contract import ChipSource


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PHOBOS_CHIP", raising=False)
    monkeypatch.setattr(detect, "gpu_capability", lambda: None)


@pytest.mark.usefixtures("no_gpu")
def test_the_chip_is_chosen_by_option_environment_gpu_and_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert resolve_chip(None) == ("sm_80", ChipSource.DEFAULT)
    monkeypatch.setattr(detect, "gpu_capability", lambda: 90)
    assert resolve_chip(None) == ("sm_90a", ChipSource.GPU)
    monkeypatch.setenv("PHOBOS_CHIP", "sm_75")
    assert resolve_chip(None) == ("sm_75", ChipSource.ENVIRONMENT)
    assert resolve_chip("sm_120") == ("sm_120", ChipSource.OPTION)


@pytest.mark.parametrize(
    ("capability", "chip"),
    [(75, "sm_75"), (87, "sm_86"), (90, "sm_90a"), (100, "sm_90"), (121, "sm_120"), (70, "sm_80")],
)
@pytest.mark.usefixtures("no_gpu")
def test_a_gpu_gets_the_newest_chip_that_it_runs(
    monkeypatch: pytest.MonkeyPatch, capability: int, chip: str
) -> None:
    monkeypatch.setattr(detect, "gpu_capability", lambda: capability)
    assert resolve_chip(None)[0] == chip


@pytest.mark.usefixtures("no_gpu")
def test_unknown_chips_name_their_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PhobosError, match="`sm_99` is not a supported chip"):
        resolve_chip("sm_99")
    monkeypatch.setenv("PHOBOS_CHIP", "hopper")
    with pytest.raises(PhobosError, match="the environment variable PHOBOS_CHIP: `hopper`"):
        resolve_chip(None)


@pytest.mark.usefixtures("no_gpu")
def test_options_are_checked() -> None:
    with pytest.raises(PhobosError, match="the extent multiple cannot be 3") as caught:
        make_options(extent_multiple=3)
    assert "one of 1, 2, 4, 8, 16" in str(caught.value)
    with pytest.raises(PhobosError, match="the extent multiple of `N` cannot be 3"):
        make_options(extent_multiples={"N": 3})
    with pytest.raises(PhobosError, match="the index width cannot be 16"):
        make_options(index_bits=16)
    wrong: Any = {"BLOCK": "64"}
    with pytest.raises(PhobosError, match="the constant `BLOCK` must be a number, not a str"):
        make_options(constants=wrong)


@pytest.mark.usefixtures("no_gpu")
def test_constants_are_python_numbers_in_one_order() -> None:
    constants: Any = {"Z": np.int64(4), "A": np.float32(0.5)}
    options = make_options(constants=constants)
    assert options.constants == (("A", 0.5), ("Z", 4))
    assert [type(value) for _, value in options.constants] == [float, int]


def test_the_key_differs_with_every_option() -> None:
    base = CompileOptions()
    changes: dict[str, Any] = {
        "chip": "sm_90",
        "chip_from": ChipSource.OPTION,
        "constants": (("BLOCK", 64),),
        "kernel": "k",
        "index_bits": 64,
        "extent_multiple": 8,
        "extent_multiples": (("N", 8),),
        "check_bounds": True,
        "assertions": True,
        "line_info": True,
        "tensor_maps": True,
    }
    assert changes.keys() == {field.name for field in fields(CompileOptions)}
    keys = {base.key("text", "a.ph"), base.key("other", "a.ph"), base.key("text", "b.ph")}
    keys |= {replace(base, **{name: value}).key("text", "a.ph") for name, value in changes.items()}
    assert len(keys) == 3 + len(changes)
    assert base.key("text", "a.ph") == CompileOptions().key("text", "a.ph")


def test_the_fingerprint_is_a_short_digest() -> None:
    assert len(compiler_fingerprint()) == 16
    assert int(compiler_fingerprint(), 16) >= 0


@pytest.mark.usefixtures("no_gpu")
def test_the_chip_table_lists_all_and_marks_the_default() -> None:
    lines = chip_table().splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(CHIPS)
    assert [line.split()[0] for line in lines if line.endswith("  default")] == ["sm_80"]


def test_the_chip_table_says_who_chose_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOBOS_CHIP", "sm_90")
    marked = [line for line in chip_table().splitlines() if "default" in line]
    assert [line.split()[0] for line in marked] == ["sm_90"]
    assert marked[0].endswith("default, as PHOBOS_CHIP says")


def test_the_chip_table_shows_even_if_the_environment_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PHOBOS_CHIP", "hopper")
    assert len(chip_table().splitlines()) == 1 + len(CHIPS)
    assert "default" not in chip_table()
