"""Which GPU the machine has, asked of the driver's libraries without any package.

The compiler needs this for its default chip, in a process that must start fast: it imports
neither NumPy nor the CUDA bindings and makes no context.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

_COMPUTE_CAPABILITY_MAJOR = 75  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR (cuda.h)
_COMPUTE_CAPABILITY_MINOR = 76
_ON_WINDOWS = sys.platform == "win32"
_CUDA = "nvcuda.dll" if _ON_WINDOWS else "libcuda.so.1"
_NVML = "nvml.dll" if _ON_WINDOWS else "libnvidia-ml.so.1"


@cache
def gpu_capability() -> int | None:
    """The compute capability of GPU 0, 90 for 9.0, or None if there is no usable GPU."""
    # The management library answers in a fifth of the time that CUDA needs to start, but knows
    # nothing of CUDA's order of the GPUs and of those that are hidden from it.
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        found = _capability_of_the_only_gpu()
        if found is not None:
            return found
    return _capability_of_cuda_device_0()


def _library(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _capability_of_the_only_gpu() -> int | None:
    """By NVML; None if there is not exactly one GPU."""
    nvml = _library(_NVML)
    if nvml is None:
        return None
    count, gpu = ctypes.c_uint(), ctypes.c_void_p()
    major, minor = ctypes.c_int(), ctypes.c_int()
    failed = nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    if failed or count.value != 1:
        return None
    failed = nvml.nvmlDeviceGetHandleByIndex_v2(
        0, ctypes.byref(gpu)
    ) or nvml.nvmlDeviceGetCudaComputeCapability(gpu, ctypes.byref(major), ctypes.byref(minor))
    return None if failed else major.value * 10 + minor.value


def _capability_of_cuda_device_0() -> int | None:
    cuda = _library(_CUDA)
    if cuda is None:
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    attribute = cuda.cuDeviceGetAttribute
    failed = (
        cuda.cuInit(0)
        or cuda.cuDeviceGet(ctypes.byref(device), 0)
        or attribute(ctypes.byref(major), _COMPUTE_CAPABILITY_MAJOR, device)
        or attribute(ctypes.byref(minor), _COMPUTE_CAPABILITY_MINOR, device)
    )
    return None if failed else major.value * 10 + minor.value
