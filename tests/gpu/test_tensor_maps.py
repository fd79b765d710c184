"""Tensor maps and clusters on a GPU: what the driver encodes is what a kernel copies by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.runtime.cuda_device import CudaDevice, _call
from phobos.runtime.cuda_tensor_maps import MapEncoder
from phobos.runtime.device import Program
from phobos.runtime.module import Variant
from phobos.targets.ptx.contract import TensorMap
from tests.support.map_copies import (
    COPIES,
    RANKS,
    RANKS_PTX,
    copy_case,
    copy_contract,
    copy_module,
    documented_function,
    ranks_module,
)


@pytest.fixture(autouse=True)
def hopper() -> None:
    if CudaDevice.current().capability < 90:
        pytest.skip("the GPU has no tensor maps")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize(("box", "shape", "type_", "swizzle"), COPIES)
def test_numpy_arrays(box: tuple[int, ...], shape: tuple[int, ...], type_: str, swizzle: int):
    made: list[Variant] = []
    source, target, expected = copy_case(box, shape, type_)
    copy_module(box, type_, swizzle, made)["copy"](source, target)
    assert made[-1].tensor_maps
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("shape", [(5, 11), (1, 1)])
def test_rows_that_no_map_describes(shape: tuple[int, ...]) -> None:
    made: list[Variant] = []
    source, target, expected = copy_case((8, 16), shape, "f32")
    copy_module((8, 16), made=made)["copy"](source, target)
    assert not made[-1].tensor_maps
    np.testing.assert_array_equal(target, expected)


def test_torch_tensors_at_changing_addresses(torch: Any) -> None:
    """The second launch of each tensor goes by a plan, whose buffer holds another map then."""
    kernel = copy_module((8, 16), swizzle=64)["copy"]
    sources = [torch.randn(24, 32, device="cuda") for _ in range(3)]
    target = torch.zeros(24, 32, device="cuda")
    for source in sources * 3:
        kernel(source, target)
        assert torch.equal(source, target)


def test_views_of_torch_tensors(torch: Any) -> None:
    kernel = copy_module((8, 16))["copy"]
    whole = torch.randn(40, 32, device="cuda")
    target = torch.zeros(24, 32, device="cuda")
    for start in (0, 1, 16):
        kernel(whole[start : start + 24], target)
        assert torch.equal(whole[start : start + 24], target)
    flat = torch.randn(24 * 32 + 1, device="cuda")
    with pytest.raises(PhobosError, match="`A` must start at a multiple of 16 bytes"):
        kernel(flat[1:].reshape(24, 32), target)


@pytest.mark.parametrize(("box", "shape", "type_", "swizzle"), COPIES)
def test_the_function_of_the_documentation_encodes_alike(
    torch: Any, box: tuple[int, ...], shape: tuple[int, ...], type_: str, swizzle: int
) -> None:
    device = CudaDevice.current()
    address = torch.zeros(shape, device="cuda").data_ptr()
    (kernel,) = copy_contract(box, type_, swizzle, by_map=True).to_json()["kernels"]
    encoded = documented_function()(kernel["tensor_maps"][0], address, shape, 4)
    one = TensorMap("A", type_, box, swizzle)
    words = MapEncoder(device.driver, _call, one, shape).words(address)
    assert [int(word) for word in encoded.opaque] == list(words)


def test_clusters() -> None:
    out = np.zeros(8, np.int32)
    ranks_module()["ranks"](out)
    assert out.tolist() == [0, 1, 10, 11, 20, 21, 30, 31]
    with pytest.raises(PhobosError, match="clusters of 2 CTAs along x"):
        ranks_module()["ranks"](out, grid=7)


def test_as_many_ctas_are_resident_as_there_are_in_clusters() -> None:
    device = CudaDevice.current()
    count = device.resident_ctas(Program(RANKS_PTX, "sm_90", 32, RANKS))
    alone = replace(RANKS, cluster=(1, 1, 1))
    most = device.resident_ctas(Program(RANKS_PTX, "sm_90", 32, alone))
    assert count % 2 == 0
    assert 0 < count <= most
