"""The chip table."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from phobos.diagnostics import PhobosError
from phobos.targets.ptx.chips import CHIPS, REGISTER_FILE, WARP_LANES, chip, newest_chip_for
from phobos.targets.ptx.legality import format_version, version_for
from tests.support.chips import PLAIN_CHIPS


def test_chips_are_listed_oldest_first():
    assert list(CHIPS) == ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120"]
    numbers = [record.number for record in CHIPS.values()]
    assert numbers == sorted(numbers)


def test_a_newer_chip_lacks_nothing_that_an_older_one_has():
    for older, newer in pairwise(PLAIN_CHIPS.values()):
        assert older.capabilities <= newer.capabilities, newer.name


def test_sm_90a_is_sm_90_with_what_needs_the_letter():
    plain, exact = chip("sm_90"), chip("sm_90a")
    more = exact.capabilities - plain.capabilities
    assert more == {"has_wgmma", "has_multicast", "has_setmaxnreg"}
    same = replace(exact, name="sm_90", ptx_floor=plain.ptx_floor, **dict.fromkeys(more, False))
    assert same == plain


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("sm_80", {75: False, 80: True, 90: True, 120: True}),
        ("sm_90", {89: False, 90: True, 100: True}),
        ("sm_90a", {89: False, 90: True, 100: False, 103: False, 120: False}),
    ],
)
def test_code_for_a_chip_with_a_letter_runs_on_that_capability_alone(name, runs):
    assert {capability: chip(name).runs_on(capability) for capability in runs} == runs


@pytest.mark.parametrize("record", CHIPS.values(), ids=CHIPS)
def test_limits_agree_with_each_other(record):
    assert record.ptx_floor <= record.ptx_version
    assert record.max_dynamic_shared + record.reserved_shared <= record.shared_per_sm
    assert record.max_threads_per_sm % WARP_LANES == 0
    assert record.max_threads_per_sm * 32 <= REGISTER_FILE
    assert record.has(None)


def test_bulk_copies_print_no_newer_version_than_the_chip_does_by_default():
    destinations = {record.name: record.bulk_destination for record in CHIPS.values()}
    assert destinations.pop("sm_120") == "shared::cta"
    assert set(destinations.values()) == {"shared::cluster"}


def test_versions_that_drivers_of_the_chips_time_take():
    assert {name: format_version(record.ptx_version) for name, record in CHIPS.items()} == {
        "sm_75": "7.0",
        "sm_80": "7.4",
        "sm_86": "7.4",
        "sm_89": "8.1",
        "sm_90": "8.0",
        "sm_90a": "8.0",
        "sm_120": "8.7",
    }
    assert version_for(chip("sm_75"), (7, 8)) == (7, 8)
    assert version_for(chip("sm_90"), (7, 8)) == (8, 0)


def test_unknown_chips_are_refused_with_a_suggestion():
    with pytest.raises(PhobosError, match="did you mean `sm_89`"):
        chip("sm89")
    with pytest.raises(PhobosError, match="supported are sm_75, sm_80"):
        chip("gfx90a")


def test_the_newest_chip_that_a_gpu_runs():
    names = {c: getattr(newest_chip_for(c), "name", None) for c in (70, 75, 87, 90, 100, 121)}
    assert names == {
        70: None,
        75: "sm_75",
        87: "sm_86",
        90: "sm_90a",
        100: "sm_90",
        121: "sm_120",
    }
