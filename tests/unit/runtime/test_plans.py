"""Launch plans: the second launch with like arguments is one driver call, and no less right."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from phobos.diagnostics import PhobosError
from phobos.runtime import cuda_device
from phobos.runtime.abi import entry_arguments
from phobos.runtime.module import Kernel, Module
from phobos.targets.ptx.contract import KernelContract, ScalarParameter
from tests.support.fake_cuda import FakeCuda, Slots
from tests.support.launching import SAXPY, SAXPY_PTX, contract_of
from tests.support.map_copies import copy_module


class Tensor:
    """What PyTorch's tensor shows of itself; nothing is behind it."""

    def __init__(self, pointer: int, n: int = 32, **changes: Any) -> None:
        self.pointer = pointer
        self.shape = (n,)
        self.dtype = changes.get("dtype", "float32")
        self.stride = changes.get("stride", 1)
        self.requires_grad = changes.get("requires_grad", False)
        self.is_cuda = True
        self.device = 0

    def is_contiguous(self) -> bool:
        return self.stride == 1

    def get_device(self) -> int:
        return 0

    def data_ptr(self) -> int:
        return self.pointer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.requires_grad:
            raise RuntimeError("it requires grad")
        return {
            "data": (self.pointer, False),
            "typestr": {"float32": "<f4", "int32": "<i4"}[self.dtype],
            "shape": self.shape,
            "strides": (4 * self.stride,),
        }


Tensor.__module__ = "torch"


@pytest.fixture
def seen() -> list[Slots]:
    return []


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, seen: list[Slots]) -> Iterator[FakeCuda]:
    fake = FakeCuda(seen.append)
    fake.slot_names = tuple(argument.name for argument in entry_arguments(SAXPY, 32))
    fake.contexts.append(1000)
    torch = ModuleType("torch")
    torch._C = SimpleNamespace(  # pyright: ignore[reportAttributeAccessIssue]
        _cuda_getCurrentRawStream=lambda ordinal: 0x33
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(cuda_device, "_bindings", lambda: fake)
    cuda_device.cuda_fault.cache_clear()
    cuda_device._device.cache_clear()
    yield fake
    cuda_device.cuda_fault.cache_clear()
    cuda_device._device.cache_clear()


def kernel(contract: KernelContract = SAXPY) -> Kernel:
    return Module(SAXPY_PTX, contract_of(contract, extent_multiple=1))["saxpy"]


def tensors(n: int = 32, base: int = 0x1000) -> tuple[Tensor, Tensor, Tensor]:
    x, y, out = (Tensor(base + 0x100 * place, n) for place in range(3))
    return x, y, out


def calls_of(cuda: FakeCuda, launch: Any) -> list[str]:
    cuda.calls.clear()
    launch()
    return [call[0] for call in cuda.calls]


def test_a_second_launch_is_one_driver_call(cuda: FakeCuda, seen: list[Slots]) -> None:
    saxpy = kernel()
    assert len(calls_of(cuda, lambda: saxpy(*tensors(), 2.0))) > 5
    quick = calls_of(cuda, lambda: saxpy(*tensors(base=0x8000), 3.0))
    assert quick == ["cuCtxGetCurrent", "cuLaunchKernel"]
    first, second = seen
    assert second[:5] == [0x8000, 0x8000, 0, 32, 1]
    assert second[10:15] == [0x8200, 0x8200, 0, 32, 1]
    assert (first[15], second[15]) == (0x40000000, 0x40400000)
    assert cuda.named("cuLaunchKernel")[0][1:9] == (2, 1, 1, 256, 1, 1, 0, 0x33)


@pytest.mark.parametrize(
    "second",
    [
        lambda saxpy: saxpy(*tensors(64), 2.0),
        lambda saxpy: saxpy(*tensors(), 2.0, grid=5),
        lambda saxpy: saxpy(*tensors(), 2.0, stream=7),
        lambda saxpy: saxpy(*tensors(), alpha=2.0),
    ],
)
def test_another_shape_grid_stream_or_form_takes_the_long_way(cuda: FakeCuda, second: Any) -> None:
    saxpy = kernel()
    saxpy(*tensors(), 2.0)
    assert len(calls_of(cuda, lambda: second(saxpy))) > 2


@pytest.mark.parametrize(
    ("place", "tensor", "part"),
    [
        (0, Tensor(0x1004), "`x` must start at a multiple of 16 bytes"),
        (1, Tensor(0x1000, dtype="int32"), "`y` must hold f32"),
        (2, Tensor(0x1000, stride=2), "`out` must be dense"),
        (0, Tensor(0x1000, 31), "`N` is 31 in `x` and 32 in `y`"),
        (0, Tensor(0x1000, requires_grad=True), "`x` is a tensor, and a Tensor was passed"),
    ],
)
def test_a_plan_lets_nothing_wrong_through(
    cuda: FakeCuda, seen: list[Slots], place: int, tensor: Tensor, part: str
) -> None:
    saxpy = kernel()
    saxpy(*tensors(), 2.0)
    arguments = list(tensors())
    arguments[place] = tensor
    with pytest.raises(PhobosError) as caught:
        saxpy(*arguments, 2.0)
    assert part in str(caught.value)
    with pytest.raises(PhobosError, match="`alpha` is a scalar of f32, and a str was passed"):
        saxpy(*tensors(), "2")
    with pytest.raises(PhobosError, match="takes 4 arguments, and 5 were passed"):
        saxpy(*tensors(), 2.0, 3.0)
    assert len(seen) == 1


def test_a_plan_passes_the_tensor_maps_of_its_arrays(cuda: FakeCuda) -> None:
    copy = copy_module((64,))["copy"]
    cuda.slot_names, cuda.map_count = tuple("x" * 10), 1
    target = Tensor(0x9000, 128)
    copy(Tensor(0x1000, 128), target)
    for pointer in (0x1000, 0x2000, 0x2000, 0x1000):
        calls = calls_of(cuda, lambda pointer=pointer: copy(Tensor(pointer, 128), target))
        is_new = pointer == 0x2000 and len(cuda.maps) == 3
        encoding = ["cuTensorMapEncodeTiled"] if is_new else []
        assert calls == ["cuCtxGetCurrent", *encoding, "cuLaunchKernel"]
    assert [words[0] for (words,) in cuda.maps] == [0x1000, 0x1000, 0x2000, 0x2000, 0x1000]


def test_another_context_takes_the_long_way(cuda: FakeCuda) -> None:
    saxpy = kernel()
    saxpy(*tensors(), 2.0)
    cuda.contexts[:] = []
    calls = calls_of(cuda, lambda: saxpy(*tensors(), 2.0))
    assert "cuCtxPushCurrent" in calls


def test_a_scalar_in_the_grid_is_part_of_the_plan(cuda: FakeCuda, seen: list[Slots]) -> None:
    contract = replace(
        SAXPY,
        parameters=(*SAXPY.parameters[:3], ScalarParameter("rows", "i32")),
        grid=("rows", "1", "1"),
    )
    saxpy = kernel(contract)
    for rows in (3, 4, 3):
        cuda.calls.clear()
        saxpy(*tensors(), rows)
        assert cuda.named("cuLaunchKernel")[0][1] == rows
    assert [call[0] for call in cuda.calls] == ["cuCtxGetCurrent", "cuLaunchKernel"]


def test_a_scalar_is_checked_each_time(cuda: FakeCuda) -> None:
    contract = replace(SAXPY, parameters=(*SAXPY.parameters[:3], ScalarParameter("n", "u8")))
    saxpy = kernel(contract)
    saxpy(*tensors(), 255)
    saxpy(*tensors(), 254)
    with pytest.raises(PhobosError, match="256 is outside its range of 0 to 255"):
        saxpy(*tensors(), 256)


class Number(Tensor):
    """A tensor without axes, as PyTorch shows it."""

    def __init__(self, value: float) -> None:
        super().__init__(0x5000)
        self.shape = ()
        self.value = value

    def item(self) -> float:
        return self.value


Number.__module__, Number.__qualname__ = "torch", "Tensor"


def test_a_tensor_passed_for_a_scalar_takes_the_long_way(cuda: FakeCuda, seen: list[Slots]) -> None:
    saxpy = kernel()
    for value in (2.0, 3.0):
        saxpy(*tensors(), Number(value))
    assert [slots[15] for slots in seen] == [0x40000000, 0x40400000]


def test_a_plan_keeps_no_array_alive(cuda: FakeCuda) -> None:
    saxpy = kernel()
    arguments = tensors()
    watched = weakref.ref(arguments[0])
    saxpy(*arguments, 2.0)
    del arguments
    gc.collect()
    assert watched() is None


def test_subclasses_of_a_tensor_take_the_long_way(cuda: FakeCuda) -> None:
    class Wrapped(Tensor):
        pass

    saxpy = kernel()
    saxpy(*(Wrapped(0x1000 * i) for i in (1, 2, 3)), 2.0)
    calls = calls_of(cuda, lambda: saxpy(*(Wrapped(0x1000 * i) for i in (1, 2, 3)), 2.0))
    assert len(calls) > 2
