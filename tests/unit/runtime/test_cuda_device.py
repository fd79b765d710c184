"""The CUDA device against a stand-in for the driver: copies, contexts, caches, errors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.runtime import cuda_device
from phobos.runtime.abi import entry_arguments
from phobos.runtime.cuda_device import CudaDevice
from phobos.runtime.device import choose_device
from phobos.runtime.module import Module
from phobos.targets.ptx.contract import KernelContract
from tests.support.fake_cuda import CUdevice_attribute, CUresult, FakeCuda, Slots
from tests.support.launching import SAXPY, SAXPY_PTX, contract_of


def saxpy(slots: Slots) -> None:
    """The kernel on the memory that the slots point to."""
    n = slots[3]
    x, y, out = (
        np.ctypeslib.as_array((ctypes.c_float * n).from_address(slots[place + 1]))
        for place in (0, 5, 10)
    )
    alpha = np.uint32(slots[15]).view(np.float32)
    out[:] = alpha * x + y


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    fake = FakeCuda(saxpy)
    fake.slot_names = tuple(argument.name for argument in entry_arguments(SAXPY, 32))
    monkeypatch.setattr(cuda_device, "_bindings", lambda: fake)
    cuda_device.cuda_fault.cache_clear()
    cuda_device._device.cache_clear()
    yield fake
    cuda_device.cuda_fault.cache_clear()
    cuda_device._device.cache_clear()


def module(kernel: KernelContract = SAXPY, chip: str = "sm_80") -> Module:
    return Module(SAXPY_PTX, replace(contract_of(kernel, extent_multiple=1), chip=chip))


def arrays(n: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
    return x, y, np.full(n, np.nan, np.float32)


def test_numpy_arrays_are_copied_in_and_out(cuda: FakeCuda) -> None:
    x, y, out = arrays()
    module()["saxpy"](x, y, out, 2.0, device="cuda")
    np.testing.assert_array_equal(out, 2 * x + y)
    assert cuda.memory == {}, "all device memory is freed"
    assert len(cuda.named("cuMemcpyHtoD")) == 3
    assert [call[0] for call in cuda.named("cuMemcpyDtoH")] == [out.ctypes.data]
    assert cuda.contexts == [], "the caller's context is as it was"


def test_the_launch_configuration(cuda: FakeCuda) -> None:
    module()["saxpy"](*arrays(100), 2.0, device="cuda", stream=0x55)
    (call,) = cuda.named("cuLaunchKernel")
    assert call[1:8] == (7, 1, 1, 256, 1, 1, 0)
    assert call[8] == 0x55
    assert cuda.named("cuStreamSynchronize") == [(0x55,)]


def test_auto_takes_the_gpu(cuda: FakeCuda) -> None:
    device = choose_device("auto")
    assert isinstance(device, CudaDevice)
    assert device.describe() == "Fake GPU (compute capability 9.0)"


def test_an_array_passed_twice_is_one_array(cuda: FakeCuda) -> None:
    x, y, _ = arrays()
    expected = 2 * x + y
    module()["saxpy"](x, y, y, 2.0, device="cuda")
    np.testing.assert_array_equal(y, expected)
    assert len(cuda.named("cuMemcpyHtoD")) == 2


def test_a_kernel_is_loaded_once_a_context(cuda: FakeCuda) -> None:
    kernel = module()["saxpy"]
    for _ in range(3):
        kernel(*arrays(), 2.0, device="cuda")
    assert cuda.loads == 1
    cuda.contexts.append(1000)
    kernel(*arrays(), 2.0, device="cuda")
    assert cuda.loads == 1, "the primary context, current this time"
    assert cuda.named("cuCtxPushCurrent") == [(1000,)] * 3


class OnGpu:
    """An array in GPU memory; the top bits of its address say which GPU."""

    def __init__(self, pointer: int, n: int = 16, stream: int | None = None) -> None:
        self.__cuda_array_interface__ = {
            "data": (pointer, False), "typestr": "<f4", "shape": (n,), "stream": stream,
        }  # fmt: skip


def test_arrays_on_the_gpu_are_used_in_place_and_not_waited_for(cuda: FakeCuda) -> None:
    seen: list[Slots] = []
    cuda.kernel = seen.append
    module()["saxpy"](OnGpu(0x100), OnGpu(0x200), OnGpu(0x300), 1.0, device="cuda")
    assert seen[0][:5] == [0x100, 0x100, 0, 16, 1]
    assert seen[0][15] == 0x3F800000
    assert cuda.named("cuMemAlloc") == []
    assert cuda.named("cuStreamSynchronize") == []


def test_the_stream_waits_for_the_producers_of_the_arrays(cuda: FakeCuda) -> None:
    cuda.kernel = None
    x, y, out = OnGpu(0x100, stream=7), OnGpu(0x200, stream=7), OnGpu(0x300, stream=5)
    module()["saxpy"](x, y, out, 1.0, device="cuda", stream=5)
    assert cuda.named("cuEventRecord") == [("event", 7)]
    assert cuda.named("cuStreamWaitEvent") == [(5, "event", 0)]


def test_arrays_on_several_gpus_are_refused(cuda: FakeCuda) -> None:
    with pytest.raises(PhobosError, match="several GPUs: 0, 1"):
        module()["saxpy"](OnGpu(0x100), OnGpu(0x200), OnGpu((1 << 40) + 0x300), 1.0)


def test_the_device_of_the_arrays_is_used(cuda: FakeCuda) -> None:
    cuda.kernel = None
    base = 1 << 40
    module()["saxpy"](OnGpu(base), OnGpu(base + 0x100), OnGpu(base + 0x200), 1.0)
    assert cuda.named("cuCtxPushCurrent") == [(1001,)]


def test_a_failed_kernel_is_reported_and_memory_freed(cuda: FakeCuda) -> None:
    cuda.wait_result = CUresult.CUDA_ERROR_LAUNCH_FAILED
    x, y, out = arrays()
    with pytest.raises(PhobosError) as caught:
        module()["saxpy"](x, y, out, 2.0, device="cuda")
    text = str(caught.value)
    assert "the kernel `saxpy` failed on the GPU: CUDA_ERROR_LAUNCH_FAILED" in text
    assert "cannot be used after this" in text
    assert cuda.memory == {}
    assert np.isnan(out).all()


def test_a_text_that_does_not_load(cuda: FakeCuda) -> None:
    cuda.load_result = CUresult.CUDA_ERROR_INVALID_PTX
    cuda.load_log = b"ptxas fatal: line 3; syntax error\n"
    with pytest.raises(PhobosError) as caught:
        module()["saxpy"](*arrays(), 2.0, device="cuda")
    text = str(caught.value)
    assert "the driver does not load `saxpy` (chip sm_80): CUDA_ERROR_INVALID_PTX" in text
    assert "line 3; syntax error" in text


def test_a_driver_that_is_too_old(cuda: FakeCuda) -> None:
    cuda.load_result = CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    with pytest.raises(PhobosError, match="the driver is older than the PTX"):
        module()["saxpy"](*arrays(), 2.0, device="cuda")


def test_a_chip_newer_than_the_gpu_is_refused(cuda: FakeCuda) -> None:
    with pytest.raises(PhobosError, match=r"compiled for sm_120, and this GPU has .* 9\.0"):
        module(chip="sm_120")["saxpy"](*arrays(), 2.0, device="cuda")
    assert cuda.loads == 0


def test_a_chip_with_a_letter_is_refused_by_newer_gpus(cuda: FakeCuda) -> None:
    cuda.attributes[CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 12
    said = (
        r"compiled for sm_90a, which only compute capability 9\.0 runs, and this GPU has .* 12\.0"
    )
    with pytest.raises(PhobosError, match=said) as caught:
        module(chip="sm_90a")["saxpy"](*arrays(), 2.0, device="cuda")
    assert "with `--chip sm_120`" in str(caught.value)
    assert cuda.loads == 0


def test_a_chip_with_a_letter_runs_on_its_gpu(cuda: FakeCuda) -> None:
    module(chip="sm_90a")["saxpy"](*arrays(), 2.0, device="cuda")
    assert cuda.loads == 1


def test_dynamic_shared_memory_raises_the_ceiling(cuda: FakeCuda) -> None:
    module(replace(SAXPY, dynamic_shared_bytes=100_000))["saxpy"](*arrays(), 2.0, device="cuda")
    assert cuda.named("cuFuncSetAttribute")[0][2] == 100_000
    assert cuda.named("cuLaunchKernel")[0][7] == 100_000
    with pytest.raises(PhobosError, match="needs 300000 bytes of shared memory a CTA"):
        module(replace(SAXPY, dynamic_shared_bytes=300_000))["saxpy"](*arrays(), 2.0, device="cuda")


def test_a_persistent_grid_is_what_the_gpu_holds(cuda: FakeCuda) -> None:
    kernel = module(replace(SAXPY, persistent=True))["saxpy"]
    kernel(*arrays(), 2.0, device="cuda")
    assert cuda.named("cuLaunchKernel")[0][1:4] == (12, 1, 1)


def test_timing_copies_once(cuda: FakeCuda) -> None:
    from phobos.runtime.launcher import prepare

    steps: list[int] = []
    device, launch = prepare(module(), SAXPY, (*arrays(), 2.0), {}, device="cuda")
    assert launch is not None
    timing = device.time(launch, 4, lambda: steps.append(1))
    assert timing.seconds == (0.0025,) * 4
    assert not timing.is_emulated
    assert timing.median == 0.0025
    assert len(steps) == 4
    assert len(cuda.named("cuMemcpyHtoD")) == 3
    assert cuda.named("cuMemcpyDtoH") == []
    assert len(cuda.named("cuEventDestroy")) == 2


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        (ImportError("cuda"), "the package cuda-python is not installed"),
        (RuntimeError("libcuda"), "there is no NVIDIA driver"),
    ],
)
def test_without_cuda(monkeypatch: pytest.MonkeyPatch, fault: Exception, part: str) -> None:
    def fail(*_: Any) -> Any:
        raise fault

    bindings = fail if isinstance(fault, ImportError) else lambda: SimpleNamespace(cuInit=fail)
    monkeypatch.setattr(cuda_device, "_bindings", bindings)
    cuda_device.cuda_fault.cache_clear()
    try:
        assert choose_device("auto").name == "emulator"
        with pytest.raises(PhobosError) as caught:
            module()["saxpy"](*arrays(), 2.0, device="cuda")
        assert part in str(caught.value)
        assert "emulator" in str(caught.value)
    finally:
        cuda_device.cuda_fault.cache_clear()
