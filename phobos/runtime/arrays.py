"""Reading the arrays that callers pass: NumPy, `__cuda_array_interface__`, DLPack.

`view_of` turns any of them into an `ArrayView`: where the elements are, their type and shape. It
copies nothing and imports no framework. An array on the CPU becomes a NumPy view of the same
memory, so that PyTorch tensors on the CPU work like NumPy arrays.
"""

from __future__ import annotations

import ctypes
import math
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from phobos.diagnostics import PhobosError
from phobos.runtime.abi import row_major_strides
from phobos.runtime.dtypes import EXTENSION_TYPES, dlpack_type, language_type, numpy_dtype
from phobos.targets.ptx.contract import TYPE_BYTES

if TYPE_CHECKING:
    import numpy as np

_DLPACK_CPU_DEVICES = frozenset({1, 3})  # kDLCPU, kDLCUDAHost (dlpack.h)
_DLPACK_CUDA_DEVICES = frozenset({2, 13})  # kDLCUDA, kDLCUDAManaged
_DLPACK_LEGACY_STREAM = 1


@dataclass(frozen=True, slots=True)
class ArrayView:
    """An array that a caller passed.

    `type` is the language's scalar type. `host` is a NumPy array over the memory, or None for
    one on a GPU. `device` is the GPU's ordinal where the array says it. `stream` is the CUDA
    stream whose work must be waited for, if any. `owner` keeps the memory alive.
    """

    pointer: int
    type: str
    shape: tuple[int, ...]
    is_dense: bool
    is_read_only: bool
    host: np.ndarray | None
    device: int | None = None
    stream: int | None = None
    owner: Any = None

    @property
    def on_gpu(self) -> bool:
        """Whether the elements are in a GPU's memory."""
        return self.host is None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The number of bytes of its elements."""
        return self.size * TYPE_BYTES[self.type]


def view_of(value: Any, name: str, stream: int | None = None) -> ArrayView:
    """A view of the array `value`, passed for the parameter `name`.

    `stream` is the CUDA stream that the kernel will run on; an array that comes by DLPack makes
    its pending work visible to it. Raises PhobosError if `value` is no array or holds a type that
    the language lacks.
    """
    import numpy as np

    if isinstance(value, np.ndarray):
        return _view_of_numpy(value, name)
    exported = _small_floats_of_torch(value)
    if exported is not None:
        bytes_, type_name = exported
        return _as_type(view_of(bytes_, name, stream), type_name)
    interface = _cuda_array_interface(value)
    if interface is not None:
        return _view_of_interface(value, interface, name)
    if hasattr(value, "__dlpack__"):
        return _view_of_dlpack(value, name, stream)
    raise PhobosError.at(
        None,
        f"`{name}` is a tensor, and {type_phrase(value)} was passed for it",
        help="pass a NumPy array, or one with `__cuda_array_interface__` or DLPack",
    )


def _small_floats_of_torch(value: Any) -> tuple[Any, str] | None:
    """A PyTorch tensor of 8-bit floats as one of bytes, and the type; None for anything else.

    PyTorch exports these types by neither protocol: both raise.
    """
    if type(value).__module__.partition(".")[0] != "torch":
        return None
    type_name = language_type(str(getattr(value, "dtype", "")).rpartition(".")[2])
    if type_name not in EXTENSION_TYPES or TYPE_BYTES[type_name] != 1:
        return None
    return value.view(sys.modules["torch"].uint8), type_name


def _as_type(view: ArrayView, type_name: str) -> ArrayView:
    """The same bytes as elements of another type of that size."""
    host = None if view.host is None else view.host.view(numpy_dtype(type_name))
    return replace(view, type=type_name, host=host)


def type_phrase(value: Any) -> str:
    """The type of a value with its article: `an int`."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def is_array(value: Any) -> bool:
    """Whether `value` is something that `view_of` reads; scalars of NumPy are not."""
    return hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")


def _view_of_numpy(array: np.ndarray, name: str, owner: Any = None) -> ArrayView:
    type_name = language_type(array.dtype.name) if array.dtype.isnative else None
    if type_name is None:
        raise _wrong_type(name, str(array.dtype))
    return ArrayView(
        pointer=array.ctypes.data,
        type=type_name,
        shape=array.shape,
        is_dense=array.flags.c_contiguous,
        is_read_only=not array.flags.writeable,
        host=array,
        owner=array if owner is None else owner,
    )


def _wrong_type(name: str, shown: str) -> PhobosError:
    return PhobosError.at(None, f"`{name}` holds {shown}, a type that kernels do not have")


# __cuda_array_interface__ ------------------------------------------------------------------------


def _cuda_array_interface(value: Any) -> dict[str, Any] | None:
    """The array's interface; None without one (PyTorch has none for bfloat16, but DLPack)."""
    try:
        return getattr(value, "__cuda_array_interface__", None)
    except (TypeError, RuntimeError):
        return None


def _view_of_interface(value: Any, interface: dict[str, Any], name: str) -> ArrayView:
    if interface.get("mask") is not None:
        raise PhobosError.at(None, f"`{name}` has a mask; kernels take arrays without one")
    type_name = _type_of_string(interface["typestr"])
    if type_name is None:
        # Extension types such as bfloat16 have the type string of raw bytes here; the name of
        # the array's own dtype tells, be it `bfloat16` or `torch.bfloat16`.
        shown = str(getattr(value, "dtype", interface["typestr"]))
        type_name = language_type(shown.rpartition(".")[2])
        if type_name is None or type_name not in EXTENSION_TYPES:
            raise _wrong_type(name, shown)
    pointer, is_read_only = interface["data"]
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is not None:
        strides = tuple(stride // TYPE_BYTES[type_name] for stride in strides)
    return ArrayView(
        pointer=pointer or 0,
        type=type_name,
        shape=shape,
        is_dense=_is_dense(shape, strides),
        is_read_only=bool(is_read_only),
        host=None,
        stream=interface.get("stream"),
        owner=value,
    )


@cache
def _type_of_string(text: str) -> str | None:
    """The language's type for a type string such as `<f4`, or None if it has none."""
    import numpy as np

    dtype = np.dtype(text)
    return language_type(dtype.name) if dtype.isnative else None


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    """Whether strides (in elements) are the row-major ones; an axis of extent 1 may have any."""
    if strides is None or 0 in shape:
        return True
    expected = row_major_strides(shape)
    axes = zip(shape, strides, expected, strict=True)
    return all(extent == 1 or stride == dense for extent, stride, dense in axes)


# DLPack ------------------------------------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    """DLTensor of dlpack.h, which is also the head of a DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _view_of_dlpack(value: Any, name: str, stream: int | None) -> ArrayView:
    capsule, device_type = _dlpack_capsule(value, name, stream)
    # The capsule is not consumed: it owns the tensor, and frees it when the view goes.
    address = _capsule_pointer(capsule, b"dltensor")
    assert address is not None
    tensor = _DLTensor.from_address(address)
    type_name = dlpack_type(tensor.type_code, tensor.type_bits, tensor.type_lanes)
    if type_name is None:
        raise _wrong_type(name, str(getattr(value, "dtype", "elements")))
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim))
    pointer = (tensor.data or 0) + tensor.byte_offset
    owner = (value, capsule)
    is_dense = _is_dense(shape, strides)
    if device_type in _DLPACK_CPU_DEVICES:
        host = _host_array(pointer, type_name, shape, strides)
        return ArrayView(pointer, type_name, shape, is_dense, False, host, owner=owner)
    return ArrayView(
        pointer, type_name, shape, is_dense, False, None, device=tensor.device_id, owner=owner
    )


def _dlpack_capsule(value: Any, name: str, stream: int | None) -> tuple[Any, int]:
    """The DLPack capsule of an array and the kind of device it is on."""
    try:
        device_type = int(value.__dlpack_device__()[0])
        if device_type in _DLPACK_CPU_DEVICES:
            return value.__dlpack__(), device_type
        if device_type in _DLPACK_CUDA_DEVICES:
            return value.__dlpack__(stream=stream or _DLPACK_LEGACY_STREAM), device_type
    except (TypeError, RuntimeError, BufferError, AttributeError, ValueError) as error:
        raise PhobosError.at(
            None, f"`{name}` cannot be shared with a kernel: {_first_line(error)}"
        ) from error
    raise PhobosError.at(None, f"`{name}` is neither in the CPU's memory nor in an NVIDIA GPU's")


def _host_array(
    pointer: int, type_name: str, shape: tuple[int, ...], strides: tuple[int, ...] | None
) -> np.ndarray:
    """A NumPy array over memory that something else owns."""
    import numpy as np

    dtype = numpy_dtype(type_name)
    if 0 in shape or not pointer:
        return np.empty(shape, dtype)
    strides = strides or row_major_strides(shape)
    axes = zip(shape, strides, strict=True)
    span = 1 + sum((extent - 1) * stride for extent, stride in axes)
    memory = (ctypes.c_byte * (span * dtype.itemsize)).from_address(pointer)
    byte_strides = tuple(stride * dtype.itemsize for stride in strides)
    return np.ndarray(shape, dtype, buffer=memoryview(memory), strides=byte_strides)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
