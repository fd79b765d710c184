"""Tensor maps at a launch: which variant is taken, and what the driver is told."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import phobos
from phobos.cli.run import main as run_tool
from phobos.diagnostics import PhobosError
from phobos.driver import modules
from phobos.runtime import cuda_device, cuda_tensor_maps
from phobos.runtime.cuda_device import ArgumentBuffer
from phobos.runtime.cuda_tensor_maps import MapEncoder, MapEncoders
from phobos.runtime.device import Program
from phobos.runtime.emulator_device import EmulatorDevice
from phobos.runtime.module import Module, Variant
from phobos.targets.ptx.contract import Cluster, TensorMap
from tests.support.fake_cuda import FakeCuda
from tests.support.launching import NotingDevice
from tests.support.map_copies import (
    COPIES,
    RANKS,
    copy_case,
    copy_contract,
    copy_module,
    copy_ptx,
    documented_function,
    ranks_module,
)
from tests.support.programs import SAXPY

# Which variant ------------------------------------------------------------------------------------


def chosen(device: NotingDevice, shape: tuple[int, ...], box: tuple[int, ...]) -> bool:
    """Whether a launch on an array of this shape takes tensor maps."""
    whole = [-(-max(extent, 1) // size) * size for extent, size in zip(shape, box, strict=True)]
    copy_module(box)["copy"](
        np.zeros(shape, np.float32), np.zeros(whole, np.float32), device=device
    )
    return bool(device.launches[-1].program.kernel.tensor_maps)


@pytest.mark.parametrize(
    ("shape", "is_mapped"),
    [
        ((5, 12), True),
        ((1, 4), True),
        ((5, 11), False),
        ((1, 3), False),
        ((5, 0), False),
        ((0, 12), False),
    ],
)
def test_rows_of_16_bytes_are_mapped(
    device: NotingDevice, shape: tuple[int, ...], is_mapped: bool
) -> None:
    assert chosen(device, shape, (8, 16)) is is_mapped


def test_a_row_alone_and_planes_are_mapped(device: NotingDevice) -> None:
    assert chosen(device, (11,), (64,))
    assert chosen(device, (3, 5, 8), (2, 4, 16))
    assert not chosen(device, (3, 5, 7), (2, 4, 16))


class OnGpu:
    """An array in GPU memory of any size; nothing is behind it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.__cuda_array_interface__ = {"data": (0x1000, False), "typestr": "<f4", "shape": shape}


@pytest.mark.parametrize("shape", [(2, 2**32), (2**31, 16), (2, 2**39)])
def test_what_is_too_large_is_not_mapped(device: NotingDevice, shape: tuple[int, ...]) -> None:
    contract = replace(copy_contract((8, 16), "f32", 0, by_map=True), index_bits=64)
    module = Module(copy_ptx(contract), contract)
    with pytest.raises(PhobosError, match="an array passed cannot have one: "):
        module["copy"](OnGpu(shape), OnGpu((8, 16)), device=device)


def test_a_module_of_files_has_no_other_variant(device: NotingDevice) -> None:
    contract = copy_contract((8, 16), "f32", 0, by_map=True)
    kernel = Module(copy_ptx(contract), contract)["copy"]
    target = np.zeros((8, 16), np.float32)
    kernel(np.zeros((5, 12), np.float32), target, device=device)
    with pytest.raises(PhobosError) as caught:
        kernel(np.zeros((5, 11), np.float32), target, device=device)
    text = str(caught.value)
    assert "elements along axis 0 of `A` are 44 bytes apart, which is no multiple of 16" in text
    assert "compile it without --tensor-maps" in text


def variants_of(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[bool, bool]:
    """Whether `.ptx` and a launch of a module may take tensor maps."""
    asked: list[bool] = []
    compile_cached = modules.compile_cached

    def noting(text: str, name: str, options: Any, *, cache: bool) -> Any:
        asked.append(options.tensor_maps)
        return compile_cached(text, name, options, cache=cache)

    monkeypatch.setattr(modules, "compile_cached", noting)
    module = phobos.compile(SAXPY, cache=False, **options)
    arrays = [np.zeros(48, np.float32) for _ in range(3)]
    module["saxpy"](*arrays, 1.0, device=NotingDevice())
    return asked[0], asked[-1]


def test_launches_take_maps_where_the_chip_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PHOBOS_TENSOR_MAPS", raising=False)
    assert variants_of(monkeypatch, chip="sm_90") == (False, True)
    assert variants_of(monkeypatch, chip="sm_80") == (False, False)
    assert variants_of(monkeypatch, chip="sm_90", tensor_maps=True) == (True, True)
    assert variants_of(monkeypatch, chip="sm_90", tensor_maps=False) == (False, False)
    monkeypatch.setenv("PHOBOS_TENSOR_MAPS", "0")
    assert variants_of(monkeypatch, chip="sm_90") == (False, False)
    assert variants_of(monkeypatch, chip="sm_90", tensor_maps=True) == (True, True)


# On the emulator ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("box", "shape", "type_", "swizzle"), COPIES)
def test_copies_on_the_emulator(
    box: tuple[int, ...], shape: tuple[int, ...], type_: str, swizzle: int
) -> None:
    made: list[Variant] = []
    source, target, expected = copy_case(box, shape, type_)
    copy_module(box, type_, swizzle, made)["copy"](source, target, device="emulator")
    assert made[-1].tensor_maps
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("shape", [(5, 11), (1, 1)])
def test_rows_that_no_map_describes_on_the_emulator(shape: tuple[int, ...]) -> None:
    made: list[Variant] = []
    source, target, expected = copy_case((8, 16), shape, "f32")
    copy_module((8, 16), made=made)["copy"](source, target, device="emulator")
    assert not made[-1].tensor_maps
    np.testing.assert_array_equal(target, expected)


def test_strides_of_an_axis_of_one_row_do_not_matter() -> None:
    source = np.arange(12, dtype=np.float32).reshape(1, 12)
    odd = np.lib.stride_tricks.as_strided(source, strides=(4, 4))
    target = np.full((8, 16), np.nan, np.float32)
    copy_module((8, 16))["copy"](odd, target, device="emulator")
    np.testing.assert_array_equal(target[0, :12], source[0])
    assert target.sum() == source.sum()


@pytest.mark.parametrize(("columns", "code"), [(12, 0), (11, 1)])
def test_phobos_run_launches_from_the_contract_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: int, code: int
) -> None:
    source, target, expected = copy_case((8, 16), (5, columns), "f32")
    contract = copy_contract((8, 16), "f32", 64, by_map=True)
    (tmp_path / "copy.json").write_text(contract.dumps())
    (tmp_path / "copy.ptx").write_text(copy_ptx(contract))
    np.save(tmp_path / "A.npy", source)
    dims = [f"--dim=P{axis}={extent}" for axis, extent in enumerate(target.shape)]
    files = [f"--load=A={tmp_path / 'A.npy'}", f"--save=B={tmp_path / 'B.npy'}"]
    options = ["--device=emulator", "--check=all", "--seeds=2"]
    assert run_tool([str(tmp_path / "copy.ptx"), *dims, *files, *options]) == code
    if code:
        assert "compile it without --tensor-maps" in capsys.readouterr().err
    else:
        np.testing.assert_array_equal(np.load(tmp_path / "B.npy"), expected)


# Clusters -----------------------------------------------------------------------------------------


def test_clusters_on_the_emulator() -> None:
    out = np.zeros(6, np.int32)
    ranks_module()["ranks"](out, device="emulator")
    assert out.tolist() == [0, 1, 10, 11, 20, 21]


@pytest.mark.parametrize(("cluster", "count"), [((2, 1, 1), 4), ((3, 1, 1), 6), ((8, 1, 1), 8)])
def test_a_persistent_kernel_has_whole_clusters(cluster: Cluster, count: int) -> None:
    program = Program("", "sm_90", 32, replace(RANKS, cluster=cluster, persistent=True))
    assert EmulatorDevice().resident_ctas(program) == count


def test_a_grid_consists_of_whole_clusters(device: NotingDevice) -> None:
    with pytest.raises(PhobosError, match="clusters of 2 CTAs along x, and a grid of 7 CTAs"):
        ranks_module()["ranks"](np.zeros(7, np.int32), device=device)
    assert RANKS.cluster == (2, 1, 1)
    assert not device.launches


# What the driver is told --------------------------------------------------------------------------


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    fake = FakeCuda()
    monkeypatch.setattr(cuda_device, "_bindings", lambda: fake)
    cuda_device.cuda_fault.cache_clear()
    cuda_device._device.cache_clear()
    yield fake
    cuda_device.cuda_fault.cache_clear()
    cuda_device._device.cache_clear()


def test_the_driver_gets_the_innermost_axis_first(cuda: FakeCuda) -> None:
    one = TensorMap("A", "bf16", (1, 64, 32), 64)
    words = MapEncoder(cuda, cuda_device._call, one, (3, 100, 40)).words(0x7000)
    assert list(words) == [0x7000 + place for place in range(16)]
    (call,) = cuda.named("cuTensorMapEncodeTiled")
    assert call == (
        "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
        3,
        0x7000,
        [40, 100, 3],
        [80, 8000],
        [32, 64, 1],
        [1, 1, 1],
        "CU_TENSOR_MAP_INTERLEAVE_NONE",
        "CU_TENSOR_MAP_SWIZZLE_64B",
        "CU_TENSOR_MAP_L2_PROMOTION_L2_256B",
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
    )


def test_the_driver_gets_some_stride_for_a_single_axis(cuda: FakeCuda) -> None:
    one = TensorMap("A", "u8", (64,), 0)
    MapEncoder(cuda, cuda_device._call, one, (100,)).words(0x7000)
    (call,) = cuda.named("cuTensorMapEncodeTiled")
    assert (call[1], call[3:6]) == (1, ([100], [16], [64]))


@pytest.mark.parametrize(("box", "shape", "type_", "swizzle"), COPIES)
def test_the_function_of_the_documentation_tells_the_driver_the_same(
    cuda: FakeCuda,
    monkeypatch: pytest.MonkeyPatch,
    box: tuple[int, ...],
    shape: tuple[int, ...],
    type_: str,
    swizzle: int,
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=cuda))
    (kernel,) = copy_contract(box, type_, swizzle, by_map=True).to_json()["kernels"]
    function = documented_function()
    encoded = function(kernel["tensor_maps"][0], 0x7000, shape, 4)
    words = MapEncoder(cuda, cuda_device._call, TensorMap("A", type_, box, swizzle), shape).words
    assert list(words(0x7000)) == encoded.opaque
    first, second = cuda.named("cuTensorMapEncodeTiled")
    assert first == second


def test_a_map_is_encoded_once(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_tensor_maps, "MAX_ADDRESSES", 2)
    encoders = MapEncoders(cuda, cuda_device._call)
    one = TensorMap("A", "f32", (8, 16), 0)
    for address in (0x100, 0x200, 0x100, 0x200):
        encoders.of(one, (16, 16)).words(address)
    assert len(cuda.named("cuTensorMapEncodeTiled")) == 2
    assert encoders.of(one, (16, 32)) is not encoders.of(one, (16, 16))
    encoders.of(one, (16, 16)).words(0x300)
    encoders.of(one, (16, 16)).words(0x300)
    assert len(cuda.named("cuTensorMapEncodeTiled")) == 3


def test_an_argument_buffer_has_aligned_maps(cuda: FakeCuda) -> None:
    encoder = MapEncoder(cuda, cuda_device._call, TensorMap("A", "f32", (8, 16), 0), (16, 16))
    for count in range(1, 10):
        buffer = ArgumentBuffer(range(count), maps=2)
        buffer.map(0, encoder, 0x100)
        buffer.map(1, encoder, 0x200)
        pointers = memory(buffer.address, count + 2)
        assert [memory(pointer, 1)[0] for pointer in pointers[:count]] == list(range(count))
        assert all(pointer % 64 == 0 for pointer in pointers[count:])
        assert memory(pointers[-2], 16) == [0x100 + place for place in range(16)]
        assert memory(pointers[-1], 16) == [0x200 + place for place in range(16)]


def memory(address: int, count: int) -> list[int]:
    """Words at an address."""
    return list((ctypes.c_uint64 * count).from_address(address))


def test_numpy_arrays_are_mapped_where_their_copy_is(cuda: FakeCuda) -> None:
    made: list[Variant] = []
    cuda.slot_names, cuda.map_count = tuple("x" * 14), 1
    source, target = np.zeros((5, 12), np.float32), np.zeros((8, 16), np.float32)
    copy_module((8, 16), made=made)["copy"](source, target, device="cuda")
    assert made[-1].tensor_maps
    ((_, _, address, *_),) = cuda.named("cuTensorMapEncodeTiled")
    assert address != source.ctypes.data
    assert cuda.named("cuMemcpyHtoD")[0][0] == address
    assert cuda.maps == [[[address + place for place in range(16)]]]
