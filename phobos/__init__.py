"""Phobos: a tile language for GPU kernels, its compiler to PTX, and an emulator.

    import phobos

    module = phobos.compile(source, constants={"BLOCK": 1024})
    module["saxpy"](x, y, out, 2.0)

Names are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phobos import kernels
    from phobos.diagnostics import PhobosError, PhobosWarning
    from phobos.driver.modules import compile
    from phobos.emulator import emulate
    from phobos.runtime.module import Kernel, Module

__version__ = "0.1.0"

_HOMES = {
    "Kernel": "phobos.runtime.module",
    "Module": "phobos.runtime.module",
    "PhobosError": "phobos.diagnostics",
    "PhobosWarning": "phobos.diagnostics",
    "compile": "phobos.driver.modules",
    "emulate": "phobos.emulator",
}

_ROOMS = ("kernels",)

__all__ = [
    "Kernel",
    "Module",
    "PhobosError",
    "PhobosWarning",
    "__version__",
    "compile",
    "emulate",
    "kernels",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_ROOMS})
