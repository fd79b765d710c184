"""Launching a kernel from PTX text on the GPU with pointers as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from phobos.runtime.cuda_device import ArgumentBuffer, CudaDevice
from phobos.runtime.device import Launch, Program
from phobos.targets.ptx.contract import KernelContract


def launch_on_gpu(
    text: str, name: str, grid: int, block: int, arrays: list[np.ndarray], shared: int
) -> None:
    """Run a kernel on copies of contiguous arrays, and copy all of them back."""
    device = CudaDevice.current()
    driver = device.driver
    contract = KernelContract(name, block, (), dynamic_shared_bytes=shared)
    chip = text.split(".target", 1)[1].split()[0]
    program = Program(text, chip, 64, contract)
    context = _checked(driver.cuDevicePrimaryCtxRetain(device.handle))
    _checked(driver.cuCtxPushCurrent(context))
    pointers: list[Any] = []
    try:
        prepared = device.prepared(Launch(program, (), (grid, 1, 1)))
        for array in arrays:
            pointers.append(_checked(driver.cuMemAlloc(array.nbytes)))
            _checked(driver.cuMemcpyHtoD(pointers[-1], array.ctypes.data, array.nbytes))
        prepared.enqueue(ArgumentBuffer([int(pointer) for pointer in pointers]), 0)
        _checked(driver.cuStreamSynchronize(0))
        for array, pointer in zip(arrays, pointers, strict=True):
            _checked(driver.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))
    finally:
        for pointer in pointers:
            driver.cuMemFree(pointer)
        driver.cuCtxPopCurrent()
        driver.cuDevicePrimaryCtxRelease(device.handle)


def _checked(outcome: tuple[Any, ...]) -> Any:
    status, *values = outcome
    assert int(status) == 0, status
    return values[0] if values else None
