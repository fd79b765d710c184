"""Launching: variants, grids, streams; nothing runs before everything is checked."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.runtime.device import choose_device
from phobos.runtime.emulator_device import EmulatorDevice, emulator_arguments
from phobos.runtime.launcher import explicit_grid, stream_handle
from phobos.runtime.module import Module, Variant
from phobos.runtime.multiples import Multiples
from phobos.targets.ptx.contract import Contract, ScalarParameter
from tests.support.launching import SAXPY, NotingDevice, contract_of


class Compiler:
    """Makes a different text for each variant and keeps the list of them."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.variants: list[Variant] = []

    def __call__(self, variant: Variant) -> tuple[str, Contract]:
        self.variants.append(variant)
        contract = replace(
            self.contract,
            extent_multiple=variant.multiples.common,
            index_bits=variant.index_bits or 32,
        )
        return f"// {variant}", contract

    def module(self, index_bits: int | None = None) -> Module:
        variant = Variant(Multiples(4), index_bits, line_info=False)
        ptx, contract = self(variant)
        return Module(ptx, contract, variant=variant, compile=self)


@pytest.fixture
def compiler() -> Compiler:
    return Compiler(contract_of(SAXPY))


def arrays(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y, out = (np.zeros(n, np.float32) for _ in range(3))
    return x, y, out


def test_a_launch_takes_the_variant_of_its_extents(
    compiler: Compiler, device: NotingDevice
) -> None:
    module = compiler.module()
    for n in (48, 17, 48, 100, 64, 6):
        module["saxpy"](*arrays(n), 2.0, device=device)
    assert [variant.multiples.common for variant in compiler.variants] == [4, 16, 1, 2]
    texts = [launch.program.ptx for launch in device.launches]
    assert texts[0] == texts[2] == texts[4]
    assert texts[3] == module.ptx
    assert len(set(texts)) == 4


def test_the_grid_comes_from_the_contract(compiler: Compiler, device: NotingDevice) -> None:
    kernel = compiler.module()["saxpy"]
    kernel(*arrays(100), 2.0, device=device)
    kernel(*arrays(100), 2.0, device=device, grid=(3, 2))
    kernel(*arrays(100), 2.0, device=device, grid=5)
    assert [launch.grid for launch in device.launches] == [(7, 1, 1), (3, 2, 1), (5, 1, 1)]


def test_an_empty_launch_does_nothing(compiler: Compiler, device: NotingDevice) -> None:
    compiler.module()["saxpy"](*arrays(0), 2.0, device=device)
    assert device.launches == []


def test_parameters_by_name(compiler: Compiler, device: NotingDevice) -> None:
    x, y, out = arrays(32)
    compiler.module()["saxpy"](x, out=out, y=y, alpha=2.0, device=device)
    (launch,) = device.launches
    assert [tensor.view.host is array for tensor, array in
            zip(launch.tensors, (x, y, out), strict=True)] == [True] * 3  # fmt: skip


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), "ab", (1.5,), (True,)])
def test_what_is_no_grid(grid: Any) -> None:
    with pytest.raises(PhobosError, match="one to three integers"):
        explicit_grid(grid)


def test_grids_that_cuda_does_not_take(compiler: Compiler, device: NotingDevice) -> None:
    kernel = compiler.module()["saxpy"]
    for grid, part in [((0,), "a grid of 0 CTAs along x"), ((1, 65536), "65536 CTAs along y"),
                       ((2**31,), "along x is too large"), ((-1,), "a grid of -1")]:  # fmt: skip
        with pytest.raises(PhobosError) as caught:
            kernel(*arrays(16), 2.0, device=device, grid=grid)
        assert part in str(caught.value)
    assert device.launches == []


def test_a_kernel_without_a_grid_must_be_given_one(device: NotingDevice) -> None:
    compiler = Compiler(contract_of(replace(SAXPY, grid=None)))
    kernel = compiler.module()["saxpy"]
    with pytest.raises(PhobosError, match="the grid of `saxpy` is not known") as caught:
        kernel(*arrays(16), 2.0, device=device)
    assert "grid=" in str(caught.value)
    kernel(*arrays(16), 2.0, device=device, grid=1)
    assert len(device.launches) == 1


def test_a_grid_may_depend_on_an_integer_scalar(device: NotingDevice) -> None:
    kernel = replace(
        SAXPY,
        parameters=(*SAXPY.parameters[:3], ScalarParameter("rows", "i32")),
        grid=("rows", "1", "1"),
    )
    launch = Compiler(contract_of(kernel)).module()["saxpy"]
    launch(*arrays(16), 9, device=device)
    assert device.launches[0].grid == (9, 1, 1)
    with pytest.raises(PhobosError, match="comes out negative: -1"):
        launch(*arrays(16), -1, device=device)


def test_a_persistent_kernel_fills_the_device(device: NotingDevice) -> None:
    kernel = Compiler(contract_of(replace(SAXPY, persistent=True, grid=None))).module()["saxpy"]
    kernel(*arrays(16), 2.0, device=device)
    assert device.launches[0].grid == (8, 1, 1)
    with pytest.raises(PhobosError, match="9 were asked for where 8 fit"):
        kernel(*arrays(16), 2.0, device=device, grid=9)


def test_a_module_from_files_keeps_to_its_one_variant(device: NotingDevice) -> None:
    kernel = Module("ptx", contract_of(SAXPY))["saxpy"]
    kernel(*arrays(100), 2.0, device=device)
    with pytest.raises(PhobosError) as caught:
        kernel(*arrays(17), 2.0, device=device)
    text = str(caught.value)
    assert "compiled for a `N` that is a multiple of 4, and that of the arrays passed is 17" in text
    assert "--extent-multiple N=1" in text
    assert len(device.launches) == 1


class Huge:
    """An array of 2^31 elements on a GPU; nothing is there."""

    __cuda_array_interface__: dict[str, Any] = {  # noqa: RUF012
        "data": (0x100, False), "typestr": "<f4", "shape": (2**31,)
    }  # fmt: skip


def test_a_large_extent_takes_a_wide_index(compiler: Compiler, device: NotingDevice) -> None:
    huge = Huge()
    compiler.module()["saxpy"](huge, huge, huge, 2.0, device=device)
    assert device.launches[0].program.index_bits == 64
    with pytest.raises(PhobosError, match="an index of 32 bits") as caught:
        compiler.module(32)["saxpy"](huge, huge, huge, 2.0, device=device)
    assert "--index-bits 64" in str(caught.value)
    with pytest.raises(PhobosError, match="an index of 32 bits"):
        Module("ptx", contract_of(SAXPY))["saxpy"](huge, huge, huge, 2.0, device=device)


def test_the_emulator_gets_source_lines(compiler: Compiler) -> None:
    class LineDevice(NotingDevice):
        wants_line_info = True

    device = LineDevice()
    compiler.module()["saxpy"](*arrays(100), 2.0, device=device)
    assert compiler.variants[-1] == Variant(Multiples(4), None, line_info=True)
    assert device.launches[0].program.ptx != compiler.module().ptx


@pytest.mark.parametrize("index_bits", [32, 64])
def test_the_emulators_arguments(compiler: Compiler, device: NotingDevice, index_bits: int) -> None:
    x, y, out = arrays(100)
    compiler.module(index_bits)["saxpy"](x, y, out, 2.0, device=device)
    values = emulator_arguments(device.launches[0])
    assert len(values) == 16
    assert values[0] is x
    assert values[1] is x
    assert values[10] is out
    assert [int(value) for value in values[2:5]] == [0, 100, 1]
    assert {value.dtype for value in values[2:5]} == {np.dtype(f"uint{index_bits}")}
    assert values[15] == np.float32(2)
    assert values[15].dtype == np.float32


def test_the_emulator_refuses_arrays_on_a_gpu(compiler: Compiler) -> None:
    huge = Huge()
    with pytest.raises(PhobosError, match="cannot reach arrays in a GPU's memory"):
        compiler.module()["saxpy"](huge, huge, huge, 2.0, device="emulator")


def test_choosing_a_device() -> None:
    assert isinstance(choose_device("emulator"), EmulatorDevice)
    device = NotingDevice()
    assert choose_device(device) is device
    with pytest.raises(PhobosError, match="did you mean `emulator`"):
        choose_device("emulater")
    with pytest.raises(PhobosError, match="devices are auto, cuda, emulator"):
        choose_device("xyz")


def test_kernels_of_a_module(compiler: Compiler) -> None:
    module = compiler.module()
    assert list(module) == ["saxpy"]
    assert len(module) == 1
    assert module.kernels["saxpy"].name == "saxpy"
    assert repr(module["saxpy"]).startswith("<kernel saxpy(x: tensor<f32>[N], ")
    with pytest.raises(PhobosError, match="did you mean `saxpy`"):
        module["saxp"]


# Streams -----------------------------------------------------------------------------------------


def test_the_handles_of_streams() -> None:
    assert stream_handle(None, ()) is None
    assert stream_handle(5, ()) == 5
    assert stream_handle(SimpleNamespace(cuda_stream=6), ()) == 6
    assert stream_handle(SimpleNamespace(ptr=7), ()) == 7
    assert stream_handle(SimpleNamespace(handle=SimpleNamespace(value=8)), ()) == 8

    class CoreStream:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 9

    assert stream_handle(CoreStream(), ()) == 9
    with pytest.raises(PhobosError, match="a str is no CUDA stream"):
        stream_handle("5", ())


def test_the_current_stream_is_that_of_the_arrays_framework(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = ModuleType("torch")
    public = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=device))
    private = SimpleNamespace()
    torch.cuda, torch._C = public, private  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "torch", torch)
    fields = {"__module__": "torch", "is_cuda": True, "device": 3, "get_device": lambda self: 3}
    tensor_type = type("Tensor", (), fields)
    assert stream_handle(None, (1.0, tensor_type())) == 3
    private._cuda_getCurrentRawStream = lambda ordinal: 0x10 + ordinal
    assert stream_handle(None, (1.0, tensor_type())) == 0x13
    tensor_type.is_cuda = False  # pyright: ignore[reportAttributeAccessIssue]
    assert stream_handle(None, (tensor_type(),)) is None
