"""Finding the machine's GPU, with stand-ins for the driver's libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from phobos.runtime import detect


class Library:
    """Answers like NVML or the CUDA driver; a function that is not here fails the test."""

    def __init__(self, capability: int, count: int = 1, *, fails: bool = False) -> None:
        self.capability = capability
        self.count = count
        self.status = 999 if fails else 0

    def nvmlInit_v2(self) -> int:
        return self.status

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = self.count
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, gpu: Any) -> int:
        return 0

    def nvmlDeviceGetCudaComputeCapability(self, gpu: Any, major: Any, minor: Any) -> int:
        major._obj.value, minor._obj.value = divmod(self.capability, 10)
        return 0

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        value._obj.value = divmod(self.capability, 10)[attribute - 75]
        return 0


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Library]]:
    """The libraries of the machine: `nvml` and `cuda`, as far as a test puts them in."""
    found: dict[str, Library] = {}
    monkeypatch.setattr(
        detect, "_library", lambda name: found.get("nvml" if name == detect._NVML else "cuda")
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    detect.gpu_capability.cache_clear()
    yield found
    detect.gpu_capability.cache_clear()


def test_a_machine_without_a_driver(libraries: dict[str, Library]) -> None:
    assert detect.gpu_capability() is None


def test_the_only_gpu_is_asked_of_nvml(libraries: dict[str, Library]) -> None:
    libraries["nvml"] = Library(86)
    assert detect.gpu_capability() == 86


def test_of_several_gpus_it_is_the_one_that_cuda_counts_first(
    libraries: dict[str, Library],
) -> None:
    libraries["nvml"] = Library(75, count=2)
    libraries["cuda"] = Library(120)
    assert detect.gpu_capability() == 120


def test_hidden_gpus_are_asked_of_cuda(
    libraries: dict[str, Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries["nvml"] = Library(90)
    libraries["cuda"] = Library(90, fails=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert detect.gpu_capability() is None


def test_without_nvml_cuda_answers(libraries: dict[str, Library]) -> None:
    libraries["cuda"] = Library(89)
    assert detect.gpu_capability() == 89


@pytest.mark.parametrize("name", ["nvml", "cuda"])
def test_a_library_that_fails_finds_no_gpu(libraries: dict[str, Library], name: str) -> None:
    libraries[name] = Library(90, fails=True)
    assert detect.gpu_capability() is None
