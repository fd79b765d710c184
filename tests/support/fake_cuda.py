"""A stand-in for the CUDA driver bindings, so that the CUDA device is tested without a GPU.

Memory is host memory that it hands out itself; "loading" takes any text; a launched kernel is a
Python function that gets the raw argument slots. Every call is noted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any


class CUresult(IntEnum):
    """The results that are used."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_LAUNCH_FAILED = 719


class CUdevice_attribute(IntEnum):
    """Attributes of a device, numbered as they come."""

    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 0
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 1
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 2
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 3


class CUjit_option(IntEnum):
    """Options of the loader."""

    CU_JIT_ERROR_LOG_BUFFER = 5
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6


class CUfunction_attribute(IntEnum):
    """Attributes of a function."""

    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class CUevent_flags(IntEnum):
    """Flags of an event."""

    CU_EVENT_DISABLE_TIMING = 2


class CUpointer_attribute(IntEnum):
    """Attributes of an address."""

    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9


Slots = list[int]


class Names:
    """An enum whose members are their own names."""

    def __getattr__(self, name: str) -> str:
        return name


class FakeCuda:
    """One GPU of compute capability 9.0 with 4 multiprocessors."""

    CUresult = CUresult
    CUdevice_attribute = CUdevice_attribute
    CUjit_option = CUjit_option
    CUfunction_attribute = CUfunction_attribute
    CUevent_flags = CUevent_flags
    CUpointer_attribute = CUpointer_attribute
    CUtensorMapDataType = CUtensorMapSwizzle = CUtensorMapInterleave = Names()
    CUtensorMapL2promotion = CUtensorMapFloatOOBfill = Names()
    cuuint32_t = cuuint64_t = int

    def __init__(self, kernel: Callable[[Slots], None] | None = None) -> None:
        self.kernel = kernel
        self.calls: list[tuple[Any, ...]] = []
        self.memory: dict[int, Any] = {}
        self.contexts: list[int] = []
        self.load_result = CUresult.CUDA_SUCCESS
        self.load_log = b""
        self.wait_result = CUresult.CUDA_SUCCESS
        self.loads = 0
        self.maps: list[list[list[int]]] = []
        """The words of the tensor maps of each launch."""
        attributes = (9, 0, 4, 232448)
        self.attributes: dict[CUdevice_attribute, int] = dict(
            zip(CUdevice_attribute, attributes, strict=True)
        )

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of all calls of a function."""
        return [call[1:] for call in self.calls if call[0] == name]

    def __getattr__(self, name: str) -> Any:
        """The functions that need no more than to succeed."""
        if not name.startswith("cu"):
            raise AttributeError(name)

        def function(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, *arguments))
            handler = getattr(type(self), f"do_{name}", None)
            result = handler(self, *arguments) if handler is not None else ()
            return result if result and isinstance(result[0], CUresult) else (0, *result)

        function.__name__ = name
        return function

    def do_cuDeviceGetCount(self) -> tuple[int]:
        return (1,)

    def do_cuDeviceGet(self, ordinal: int) -> tuple[int]:
        return (100 + ordinal,)

    def do_cuDeviceGetName(self, size: int, _: int) -> tuple[bytes]:
        return (b"Fake GPU".ljust(size, b"\0"),)

    def do_cuDeviceGetAttribute(self, attribute: CUdevice_attribute, _: int) -> tuple[int]:
        return (self.attributes[attribute],)

    def do_cuGetErrorString(self, status: CUresult) -> tuple[bytes]:
        return (f"text of {status.name}".encode(),)

    def do_cuCtxGetCurrent(self) -> tuple[int]:
        return (self.contexts[-1] if self.contexts else 0,)

    def do_cuCtxGetDevice(self) -> tuple[int]:
        return (self.contexts[-1] - 1000,)

    def do_cuCtxGetId(self, context: int) -> tuple[int]:
        return (context,)

    def do_cuDevicePrimaryCtxRetain(self, device: int) -> tuple[int]:
        return (1000 + device - 100,)

    def do_cuCtxPushCurrent(self, context: int) -> tuple[()]:
        self.contexts.append(context)
        return ()

    def do_cuCtxPopCurrent(self) -> tuple[int]:
        return (self.contexts.pop(),)

    def do_cuModuleLoadDataEx(self, image: bytes, count: int, options: Any, values: Any) -> Any:
        assert image.endswith(b"\0")
        assert self.contexts, "loading needs a context"
        self.loads += 1
        values[0][: len(self.load_log)] = self.load_log
        return (self.load_result, self.loads)

    def do_cuModuleGetFunction(self, module: int, name: bytes) -> tuple[tuple[int, bytes]]:
        return ((module, name),)

    def do_cuOccupancyMaxActiveBlocksPerMultiprocessor(self, *_: Any) -> tuple[int]:
        return (3,)

    def do_cuEventCreate(self, _: int) -> tuple[str]:
        return ("event",)

    def do_cuEventElapsedTime(self, *_: Any) -> tuple[float]:
        return (2.5,)

    def do_cuMemAlloc(self, size: int) -> tuple[int]:
        block = (ctypes.c_byte * size)()
        address = ctypes.addressof(block)
        self.memory[address] = block
        return (address,)

    def do_cuMemFree(self, address: int) -> tuple[()]:
        del self.memory[address]
        return ()

    def do_cuMemcpyHtoD(self, target: int, source: int, size: int) -> tuple[()]:
        assert target in self.memory
        ctypes.memmove(target, source, size)
        return ()

    def do_cuMemcpyDtoH(self, target: int, source: int, size: int) -> tuple[()]:
        assert source in self.memory
        ctypes.memmove(target, source, size)
        return ()

    def do_cuStreamSynchronize(self, _: Any) -> tuple[CUresult]:
        return (self.wait_result,)

    def do_cuEventSynchronize(self, _: Any) -> tuple[CUresult]:
        return (self.wait_result,)

    def do_cuPointerGetAttribute(self, _: Any, pointer: int) -> tuple[int]:
        return (pointer >> 40,)

    def do_cuLaunchKernel(self, function: Any, *arguments: Any) -> tuple[()]:
        pointers = arguments[8]
        count = len(self.slot_names)
        addresses = (ctypes.c_uint64 * count).from_address(pointers)
        slots = [ctypes.c_uint64.from_address(address).value for address in addresses]
        maps = (ctypes.c_uint64 * self.map_count).from_address(pointers + 8 * count)
        self.maps.append([list((ctypes.c_uint64 * 16).from_address(address)) for address in maps])
        if self.kernel is not None:
            self.kernel(slots)
        return ()

    def do_cuTensorMapEncodeTiled(self, *arguments: Any) -> tuple[SimpleNamespace]:
        """A map that says the address, and counts up from there."""
        return (SimpleNamespace(opaque=[arguments[2] + place for place in range(16)]),)

    slot_names: tuple[str, ...] = ()
    map_count = 0
    """Tensor maps behind the slots of a launch."""
