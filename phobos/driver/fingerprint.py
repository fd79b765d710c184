"""The compiler's fingerprint: what tells two builds of it apart.

It stands in every launch contract and in the keys of the kernel cache. Every process that
compiles needs it, so it is read with as few system calls as it takes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent

_ROOMS = (
    "analysis",
    "dialects",
    "driver",
    "frontend",
    "ir",
    "layout",
    "pipeline.py",
    "record.py",
    "targets",
    "transforms",
)
"""The parts of the package that decide what PTX comes out."""


@cache
def compiler_fingerprint() -> str:
    """A digest of the compiler's own sources and of xDSL's version: 16 hexadecimal digits."""
    digest = hashlib.sha256(_xdsl_version().encode())
    package = os.path.join(_PACKAGE, "")
    for room in _ROOMS:
        for path in _sources(package + room):
            digest.update(path[len(package) :].encode())
            with open(path, "rb", buffering=0) as stream:
                digest.update(stream.readall())
    return digest.hexdigest()[:16]


def _sources(path: str) -> Iterator[str]:
    """The Python files in a folder and below, in one order everywhere; a file is itself."""
    if not os.path.isdir(path):
        yield path
        return
    with os.scandir(path) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.path


def _xdsl_version() -> str:
    """xDSL's version, off the name of its metadata folder: importlib.metadata is slow to load."""
    import xdsl

    home = Path(xdsl.__file__).parent.parent
    for name in os.listdir(home):
        if name.startswith("xdsl-") and name.endswith(".dist-info"):
            return name.removeprefix("xdsl-").removesuffix(".dist-info")
    return str(xdsl.__version__)
