"""Triton, if it is installed: case files take `jit` and `tl` from here.

Triton needs the kernel's function as it stands in a file, with `tl` among its globals, so cases
define their Triton kernels at the top level. Where Triton is missing the functions stay as they
are and are never called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import triton  # pyright: ignore[reportMissingImports]
    import triton.language as tl  # pyright: ignore[reportMissingImports]
except ImportError:
    triton = tl = None


def jit(function: Callable[..., Any]) -> Any:
    """The function as a Triton kernel, or unchanged without Triton."""
    return function if triton is None else triton.jit(function)


def is_installed() -> bool:
    """Whether Triton can be imported."""
    return triton is not None


__all__ = ["is_installed", "jit", "tl"]
