"""Which GPU the machine has, asked of the driver library without any package.

The compiler needs this for its default chip, in a process that must start fast: it imports
neither NumPy nor the CUDA bindings and makes no context.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_COMPUTE_CAPABILITY_MAJOR = 75  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR (cuda.h)
_COMPUTE_CAPABILITY_MINOR = 76
_LIBRARIES = {"win32": "nvcuda.dll"}


@cache
def gpu_capability() -> int | None:
    """The compute capability of GPU 0, 90 for 9.0, or None if there is no usable GPU."""
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
    return None if failed else major.value * 10 + minor.value
