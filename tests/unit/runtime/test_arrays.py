"""Reading arrays: NumPy, DLPack on the CPU, and the GPU protocols by stand-ins."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.runtime.arrays import is_array, view_of


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.bool_, "bool"),
        (np.int8, "i8"),
        (np.uint16, "u16"),
        (np.int64, "i64"),
        (np.float16, "f16"),
        (np.float64, "f64"),
        (ml_dtypes.bfloat16, "bf16"),
        (ml_dtypes.float8_e4m3fn, "f8e4m3"),
        (ml_dtypes.float8_e5m2, "f8e5m2"),
    ],
)
def test_numpy_types(dtype: Any, name: str) -> None:
    array = np.zeros((2, 3), dtype)
    view = view_of(array, "x")
    assert (view.type, view.shape, view.is_dense, view.on_gpu) == (name, (2, 3), True, False)
    assert view.host is array
    assert view.bytes == array.nbytes


def test_numpy_strides_and_flags() -> None:
    array = np.zeros((4, 6), np.float32)
    assert not view_of(array[:, ::2], "x").is_dense
    assert not view_of(array.T, "x").is_dense
    assert view_of(array[1:3], "x").is_dense
    array.flags.writeable = False
    assert view_of(array, "x").is_read_only


@pytest.mark.parametrize("dtype", [np.complex64, ">f4", "U3", "datetime64[s]"])
def test_types_that_kernels_lack(dtype: Any) -> None:
    with pytest.raises(PhobosError, match=r"`x` holds .*, a type that kernels do not have"):
        view_of(np.zeros(3, dtype), "x")


@pytest.mark.parametrize("value", [3, None, [1.0, 2.0], "text"])
def test_what_is_no_array(value: Any) -> None:
    assert not is_array(value)
    with pytest.raises(PhobosError, match=r"`x` is a tensor, and an? .* was passed"):
        view_of(value, "x")


class Exporter:
    """Gives a NumPy array by DLPack alone, as PyTorch does on the CPU."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, np.float16, np.bool_])
def test_dlpack_on_the_cpu_is_the_same_memory(dtype: Any) -> None:
    array = np.arange(12).reshape(3, 4).astype(dtype)
    view = view_of(Exporter(array), "x")
    assert view.host is not None
    assert view.pointer == array.ctypes.data
    np.testing.assert_array_equal(view.host, array)
    view.host[1, 2] = 1
    assert array[1, 2] == 1


def test_dlpack_of_a_strided_view() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = view_of(Exporter(array[:, 1:3]), "x")
    assert not view.is_dense
    assert view.host is not None
    np.testing.assert_array_equal(view.host, array[:, 1:3])


def test_dlpack_of_an_empty_array() -> None:
    view = view_of(Exporter(np.zeros((0, 4), np.float32)), "x")
    assert view.shape == (0, 4)
    assert view.bytes == 0


def test_dlpack_that_refuses() -> None:
    class Refusing(Exporter):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it requires grad")

    with pytest.raises(PhobosError, match="`x` cannot be shared with a kernel: it requires grad"):
        view_of(Refusing(np.zeros(3, np.float32)), "x")


def test_dlpack_of_another_device() -> None:
    class OnAnAccelerator(Exporter):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 10, 0

    with pytest.raises(PhobosError, match="neither in the CPU's memory nor in an NVIDIA GPU's"):
        view_of(OnAnAccelerator(np.zeros(3, np.float32)), "x")


class DLTensor(ctypes.Structure):
    """dlpack.h's DLTensor, as a producer would fill it in."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class OnGpu:
    """A bfloat16 array on GPU 1 that comes by DLPack; its memory is made up."""

    def __init__(self) -> None:
        self.shape = (ctypes.c_int64 * 2)(3, 8)
        self.tensor = DLTensor(
            0x10000, (ctypes.c_int32 * 2)(2, 1), 2, 4, 16, 1, self.shape, None, 64
        )
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


def test_dlpack_on_a_gpu() -> None:
    array = OnGpu()
    view = view_of(array, "x", stream=0x77)
    assert (view.pointer, view.type, view.shape) == (0x10040, "bf16", (3, 8))
    assert (view.on_gpu, view.device, view.is_dense) == (True, 1, True)
    assert array.streams == [0x77]
    view_of(array, "x")
    assert array.streams[-1] == 1, "the legacy default stream"


def interface(**changes: Any) -> Any:
    fields = {"data": (0x2000, False), "typestr": "<f4", "shape": (4, 6), "version": 3, **changes}
    return SimpleNamespace(__cuda_array_interface__=fields)


def test_cuda_array_interface() -> None:
    view = view_of(interface(stream=7), "x")
    assert (view.pointer, view.type, view.shape) == (0x2000, "f32", (4, 6))
    assert (view.on_gpu, view.is_dense, view.is_read_only, view.stream) == (True, True, False, 7)


def test_cuda_array_interface_strides() -> None:
    assert view_of(interface(strides=(24, 4)), "x").is_dense
    assert not view_of(interface(strides=(48, 4)), "x").is_dense
    assert view_of(interface(shape=(1, 6), strides=(999 * 4, 4)), "x").is_dense
    assert view_of(interface(shape=(0, 6), strides=(48, 4)), "x").is_dense


def test_cuda_array_interface_of_a_type_that_numpy_lacks() -> None:
    array = interface(typestr="<V2")
    for dtype in ("bfloat16", "torch.bfloat16"):
        array.dtype = dtype
        assert view_of(array, "x").type == "bf16"
    with pytest.raises(PhobosError, match="a type that kernels do not have"):
        view_of(interface(typestr="<V2"), "x")


def test_small_floats_of_torch_come_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        __module__ = "torch"
        dtype = "torch.float8_e5m2"
        viewed: Any = None

        @property
        def __cuda_array_interface__(self) -> Any:
            raise KeyError(self.dtype)

        def view(self, dtype: str) -> Any:
            assert dtype == "torch.uint8"
            return self.viewed

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(uint8="torch.uint8"))
    tensor = Tensor()
    tensor.viewed = interface(typestr="|u1")
    view = view_of(tensor, "x")
    assert (view.type, view.shape, view.pointer) == ("f8e5m2", (4, 6), 0x2000)
    tensor.viewed = np.array([[0x3C, 0xC0]], np.uint8)
    host = view_of(tensor, "x").host
    assert host is not None
    assert host.astype(np.float32).tolist() == [[1.0, -2.0]]


def test_cuda_array_interface_with_a_mask() -> None:
    with pytest.raises(PhobosError, match="`x` has a mask"):
        view_of(interface(mask=object()), "x")


def test_an_array_whose_interface_fails_comes_by_dlpack() -> None:
    class LikeTorch(OnGpu):
        @property
        def __cuda_array_interface__(self) -> Any:
            raise TypeError("BFloat16 is not supported")

    assert view_of(LikeTorch(), "x").type == "bf16"
