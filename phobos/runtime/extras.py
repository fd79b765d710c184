"""The packages that running kernels needs and compiling them does not."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from phobos.diagnostics import PhobosError

PACKAGES = ("numpy", "ml_dtypes")


@cache
def require_packages() -> None:
    """Raise PhobosError if a package is missing; asks once a process where none is."""
    for name in PACKAGES:
        if find_spec(name) is None:
            raise PhobosError.at(
                None,
                f"running a kernel needs the package {name}, which is not installed",
                help="pip install 'phobos[run]', or '.[run]' in a clone, brings all that it needs",
            )
