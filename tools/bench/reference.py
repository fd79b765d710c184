"""What references need and NumPy and PyTorch spell differently."""

from __future__ import annotations

from typing import Any

E = 2.718281828459045
"""`E ** x` is the exponential of an array of either."""


def log(x: Any) -> Any:
    """The natural logarithm of an array of NumPy or PyTorch."""
    if hasattr(x, "log"):
        return x.log()
    import numpy as np

    return np.log(x)


def subscripts(x: Any) -> Any:
    """An array of whole numbers in f64 as one that can index."""
    return x.long() if hasattr(x, "long") else x.astype("int64")
