"""Which GPU the machine has, asked of the driver library without any package.

The compiler needs this for its default chip, in a process that must start fast: it imports
neither NumPy nor the CUDA bindings and makes no context.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from functools import cache

_COMPUTE_CAPABILITY_MAJOR = 75  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR (cuda.h)
_COMPUTE_CAPABILITY_MINOR = 76
_LIBRARIES = {"win32": "nvcuda.dll"}


@cache
def gpu_capability() -> tuple[int, int] | None:
    """The compute capability of GPU 0, such as (9, 0), or None if there is no usable GPU."""
    try:
        driver = ctypes.CDLL(_LIBRARIES.get(sys.platform, "libcuda.so.1"))
    except OSError:
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    attribute = driver.cuDeviceGetAttribute
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or attribute(ctypes.byref(major), _COMPUTE_CAPABILITY_MAJOR, device)
        or attribute(ctypes.byref(minor), _COMPUTE_CAPABILITY_MINOR, device)
    )
    return None if failed else (major.value, minor.value)


def newest_chip(capability: tuple[int, int], chips: Iterable[str]) -> str | None:
    """The newest of `chips` (`sm_80`, ...) whose PTX a GPU of this capability runs.

    PTX for an older chip runs on a newer GPU. None if the GPU is older than all of them.
    """
    limit = capability[0] * 10 + capability[1]
    numbers = [number for number in map(chip_number, chips) if number <= limit]
    return f"sm_{max(numbers)}" if numbers else None


def chip_number(chip: str) -> int:
    """The number of a chip: 80 for `sm_80`. It orders chips by age; it says no capability."""
    return int(chip.removeprefix("sm_"))
