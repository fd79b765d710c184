"""The kernels that Phobos ships: matrix products and attention, as programs to launch or to copy.

    import phobos

    gemm = phobos.kernels.load("gemm_fp16tc_fp32acc", constants={"TILE_N": 256})["gemm"]
    gemm(a, b, c, 1.0, 0.0)

What each computes, and in which grid, stands at the top of its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phobos.diagnostics import PhobosError, did_you_mean

if TYPE_CHECKING:
    from phobos.runtime.module import Module

__all__ = ["load", "names", "path"]

_FOLDER = Path(__file__).parent
_SUFFIX = ".ph"


@cache
def names() -> tuple[str, ...]:
    """The names of the programs, sorted: those of their files without `.ph`."""
    return tuple(sorted(file.stem for file in _FOLDER.glob(f"*{_SUFFIX}")))


def path(name: str) -> Path:
    """The file of a program. Raises PhobosError if there is none of that name."""
    if name not in names():
        raise PhobosError.at(
            None,
            f"Phobos ships no kernels called `{name}`",
            help=did_you_mean(name, names()) or f"it ships {', '.join(names())}",
        )
    return _FOLDER / f"{name}{_SUFFIX}"


def load(
    name: str,
    chip: str | None = None,
    constants: Mapping[str, int | float] | None = None,
    **options: Any,
) -> Module:
    """Compile a program; its kernels are in the module by name.

    `constants` are values for its `@autotune` names, and `options` those of `phobos.compile`,
    which says what is raised.
    """
    from phobos.driver.modules import compile

    return compile(path(name), chip, constants, **options)
