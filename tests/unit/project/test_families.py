"""The families of the lowering are found by name, so the names are held against the folder."""

from __future__ import annotations

import pkgutil
from collections import Counter
from importlib import import_module

from phobos.transforms import lowering
from phobos.transforms.lower_to_ptx import _FAMILIES, _handler

MODULES = {
    entry.name: import_module(f"{lowering.__name__}.{entry.name}")
    for entry in pkgutil.iter_modules(lowering.__path__)
}


def test_every_family_is_asked() -> None:
    assert set(_FAMILIES) == {name for name, one in MODULES.items() if hasattr(one, "HANDLERS")}


def test_an_op_belongs_to_one_family() -> None:
    owners = Counter(kind for family in _FAMILIES for kind in MODULES[family].HANDLERS)
    assert {kind.name: count for kind, count in owners.items() if count > 1} == {}


def test_handlers_are_found_wherever_they_are() -> None:
    for family in _FAMILIES:
        for kind, handler in MODULES[family].HANDLERS.items():
            assert _handler(kind) is handler
