"""Finding the programs of the CUDA toolkit: on the PATH, in a toolkit, in pip packages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PACKAGE_FOLDERS = ("cu13", "cu14", "cuda_nvcc", "cuda_nvdisasm", "cuda_cuobjdump")
"""Folders of the package `nvidia` that have a folder `bin`, by release of the pip packages."""
_TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH")


@cache
def find_cuda_tool(name: str) -> str | None:
    """The path of a program, or None if there is none.

    Looked at are, in this order: the PATH, the toolkit that CUDA_HOME or CUDA_PATH names, the
    packages nvidia-cuda-nvcc and nvidia-cuda-nvdisasm, and Triton's copies.
    """
    on_path = shutil.which(name)
    if on_path is not None:
        return on_path
    for folder in _folders():
        found = shutil.which(name, path=str(folder))
        if found is not None:
            return found
    return None


def _folders() -> Iterator[Path]:
    for variable in _TOOLKIT_VARIABLES:
        toolkit = os.environ.get(variable)
        if toolkit:
            yield Path(toolkit, "bin")
    for root in _package_roots("nvidia"):
        for folder in _PACKAGE_FOLDERS:
            yield Path(root, folder, "bin")
    for root in _package_roots("triton"):
        yield Path(root, "backends", "nvidia", "bin")


def _package_roots(package: str) -> list[str]:
    """Where a package lies, without importing it."""
    spec = find_spec(package)
    return list(spec.submodule_search_locations or []) if spec is not None else []
