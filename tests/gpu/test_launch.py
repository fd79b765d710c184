"""Launching on a GPU: arrays of several frameworks, streams, faults, and the run tool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phobos
from phobos.cli.run import main as run_tool
from phobos.driver.options import resolve_chip
from phobos.runtime.cuda_device import CudaDevice
from phobos.runtime.detect import gpu_capability
from tests.support.example_cases import EXAMPLES
from tests.support.programs import SAXPY


@pytest.fixture(scope="module")
def saxpy() -> phobos.Kernel:
    return phobos.compile(SAXPY, constants={"BLOCK": 1024})["saxpy"]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def test_the_chip_is_that_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PHOBOS_CHIP", raising=False)
    device = CudaDevice.current()
    assert gpu_capability() == device.capability
    assert resolve_chip(None)[1].value == "gpu"


@pytest.mark.parametrize("n", [1, 17, 1000, 4096, 100_003])
def test_numpy_arrays(saxpy: phobos.Kernel, n: int) -> None:
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    out = np.full(n, np.nan, np.float32)
    saxpy(x, y, out, 2.0)
    np.testing.assert_array_equal(out, 2 * x + y)


@pytest.mark.parametrize("n", [1, 17, 1000, 4096, 100_003])
def test_torch_tensors_are_written_in_place(torch: Any, saxpy: phobos.Kernel, n: int) -> None:
    x, y = (torch.randn(n, device="cuda") for _ in range(2))
    out = torch.full((n,), float("nan"), device="cuda")
    saxpy(x, y, out, 2.0)
    torch.testing.assert_close(out, 2.0 * x + y)


def test_torch_tensors_on_the_cpu(torch: Any, saxpy: phobos.Kernel) -> None:
    x, y, out = torch.randn(100), torch.randn(100), torch.zeros(100)
    saxpy(x, y, out, 2.0)
    torch.testing.assert_close(out, 2.0 * x + y)


def test_the_current_stream_of_torch_is_used(torch: Any, saxpy: phobos.Kernel) -> None:
    n = 1 << 20
    stream = torch.cuda.Stream()
    x, y, out = (torch.zeros(n, device="cuda") for _ in range(3))
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.fill_(3.0)
        y.fill_(1.0)
        saxpy(x, y, out, 2.0)
        result = out.clone()
    stream.synchronize()
    assert bool((result == 7.0).all())


def test_bfloat16_and_rows_of_torch(torch: Any) -> None:
    module = phobos.compile((EXAMPLES / "axpby_bf16.ph").read_text())
    x, y = (torch.randn(50, 70, device="cuda").to(torch.bfloat16) for _ in range(2))
    bias = torch.randn(1, 70, device="cuda").to(torch.float16)
    out = torch.empty(50, 70, device="cuda")
    module["axpby"](x, y, bias, out, 2.0, -1.0)
    torch.testing.assert_close(out, 2.0 * x.float() - y.float() + bias.float())


def test_cupy_arrays(saxpy: phobos.Kernel) -> None:
    cupy = pytest.importorskip("cupy")
    x, y = cupy.arange(1000, dtype=cupy.float32), cupy.ones(1000, cupy.float32)
    out = cupy.zeros(1000, cupy.float32)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        saxpy(x, y, out, 2.0)
        stream.synchronize()
    cupy.testing.assert_array_equal(out, 2 * x + y)


def test_tensors_that_a_kernel_cannot_take(torch: Any, saxpy: phobos.Kernel) -> None:
    x = torch.zeros(101, device="cuda")
    y = torch.zeros(100, device="cuda")
    with pytest.raises(phobos.PhobosError, match="`x` must start at a multiple of 16 bytes"):
        saxpy(x[1:], y, y, 2.0)
    with pytest.raises(phobos.PhobosError, match="`x` must be dense"):
        saxpy(torch.zeros(200, device="cuda")[::2], y, y, 2.0)
    with pytest.raises(phobos.PhobosError, match="`x` must hold f32"):
        saxpy(y.double(), y, y, 2.0)
    with pytest.raises(phobos.PhobosError, match="cannot be shared with a kernel"):
        saxpy(y.to(torch.bfloat16).requires_grad_(), y, y, 2.0)


def test_a_persistent_kernel_fills_the_gpu() -> None:
    source = "@persistent\n" + (EXAMPLES / "scale.ph").read_text()
    x = np.arange(1_000_003, dtype=np.float32)
    out = np.zeros_like(x)
    phobos.compile(source)["scale"](x, out, 3.0)
    np.testing.assert_array_equal(out, 3 * x)


_TRAP = """
import numpy as np, phobos
source = '''
kernel k(x: tensor<f32>[N]) {
  x[ctx.thread] = 1.0
}
'''
x = np.zeros(64, np.float32)
try:
    phobos.compile(source, check_bounds=True)["k"](x, grid=1, device="cuda")
except phobos.PhobosError as error:
    print(error)
print(x.any())
"""


def test_a_trap_is_reported_and_nothing_is_written() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", _TRAP], capture_output=True, text=True, check=True
    )
    assert "the kernel `k` failed on the GPU: CUDA_ERROR" in finished.stdout
    assert finished.stdout.endswith("False\n")


def test_the_run_tool_times_a_kernel(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "saxpy.ph"
    path.write_text(SAXPY)
    arguments = [str(path), "--set", "BLOCK=1024", "--dim", "N=1000000", "--device", "cuda"]
    assert run_tool([*arguments, "--time"]) == 0
    out = capsys.readouterr().out
    assert "compute capability" in out
    assert "GB/s" in out
    assert "emulated" not in out
