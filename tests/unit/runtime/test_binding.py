"""Checking a launch's arguments: each way to be wrong is named before anything is written."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from phobos.diagnostics import PhobosError
from phobos.runtime.binding import bind, scalar_value
from phobos.runtime.device import BoundScalar
from phobos.targets.ptx.contract import (
    Access,
    Dimension,
    KernelContract,
    ScalarParameter,
    TensorParameter,
)
from tests.support.launching import SAXPY


def vector(n: int = 100, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(n, dtype)


def refused(kernel: KernelContract, *args: Any, **named: Any) -> str:
    with pytest.raises(PhobosError) as caught:
        bind(kernel, args, named)
    return str(caught.value)


def test_a_binding_knows_extents_and_names() -> None:
    binding = bind(SAXPY, (vector(), vector(), vector()), {"alpha": 2})
    assert binding.extents == {"N": 100}
    assert binding.names == {"BLOCK": 16, "N": 100}
    assert binding.index_bits == 32
    assert binding.arguments[3] == BoundScalar(ScalarParameter("alpha", "f32"), 2.0)


def test_integer_scalars_have_a_value_in_grid_expressions() -> None:
    kernel = replace(SAXPY, parameters=(ScalarParameter("rows", "i32"),), constants={"T": 0.5})
    assert bind(kernel, (7,), {}).names == {"rows": 7}


def test_wrong_numbers_of_arguments() -> None:
    x = vector()
    assert "takes 4 arguments, and 5 were passed" in refused(SAXPY, x, x, x, 1.0, 2.0)
    assert "was not given `out`, `alpha`" in refused(SAXPY, x, x)
    assert "no parameter `beta`" in refused(SAXPY, x, x, x, beta=1.0)
    assert "did you mean `alpha`" in refused(SAXPY, x, x, x, alfa=1.0)
    assert "`x` was passed twice" in refused(SAXPY, x, x, x, 1.0, x=x)


def test_wrong_arrays() -> None:
    x = vector()
    assert "`y` must hold f32, and the array passed holds f64" in refused(
        SAXPY, x, vector(dtype=np.float64), x, 1.0
    )
    assert "`x` must have 1 axes, and the array passed has 2 (shape [10, 10])" in refused(
        SAXPY, x.reshape(10, 10), x, x, 1.0
    )
    assert "`y` must be dense and row-major" in refused(SAXPY, vector(50), x[::2], vector(50), 1.0)
    assert "`N` is 100 in `x` and 99 in `out` (axis 0, shape [99])" in refused(
        SAXPY, x, x, vector(99), 1.0
    )
    assert "`x` is a tensor, and a float was passed" in refused(SAXPY, 1.0, x, x, 1.0)


def test_a_read_only_array_may_be_read_and_not_written() -> None:
    fixed = vector()
    fixed.flags.writeable = False
    bind(SAXPY, (fixed, fixed, vector(), 1.0), {})
    assert "`out` is written, and the array passed is read-only" in refused(
        SAXPY, vector(), vector(), fixed, 1.0
    )


def on_gpu(pointer: int, n: int = 100) -> Any:
    return SimpleNamespace(
        __cuda_array_interface__={"data": (pointer, False), "typestr": "<f4", "shape": (n,)}
    )


def test_arrays_on_a_gpu_must_be_aligned() -> None:
    bind(SAXPY, (on_gpu(0x100), on_gpu(0x210), on_gpu(0x400), 1.0), {})
    text = refused(SAXPY, on_gpu(0x100), on_gpu(0x214), on_gpu(0x400), 1.0)
    assert "`y` must start at a multiple of 16 bytes" in text
    assert "4 bytes behind one" in text


def test_numpy_arrays_need_no_alignment() -> None:
    shifted = np.zeros(101, np.float32)[1:]
    bind(SAXPY, (shifted, shifted, vector(), 1.0), {})


def test_an_extent_beyond_32_bits_asks_for_a_wide_index() -> None:
    n = 2**31
    arrays = (on_gpu(0x100, n), on_gpu(0x200, n), on_gpu(0x300, n))
    assert bind(SAXPY, (*arrays, 1.0), {}).index_bits == 64
    n -= 1
    arrays = (on_gpu(0x100, n), on_gpu(0x200, n), on_gpu(0x300, n))
    assert bind(SAXPY, (*arrays, 1.0), {}).index_bits == 32


def test_a_stride_beyond_32_bits_asks_for_a_wide_index() -> None:
    dims = tuple(Dimension(name, None) for name in "BMN")
    kernel = KernelContract("k", 32, (TensorParameter("a", "f32", dims, Access.READ),))

    def width(*shape: int) -> int:
        array = SimpleNamespace(
            __cuda_array_interface__={"data": (0x100, False), "typestr": "<f4", "shape": shape}
        )
        return bind(kernel, (array,), {}).index_bits

    assert width(2, 60000, 60000) == 64
    assert width(60000, 2, 60000) == 32


def test_in_place_is_allowed_and_partial_overlap_is_not() -> None:
    buffer = vector(200)
    bind(SAXPY, (buffer[:100], vector(), buffer[:100], 1.0), {})
    bind(SAXPY, (buffer[:100], buffer[50:150], vector(), 1.0), {})
    assert "`x` and `out` overlap in part" in refused(
        SAXPY, buffer[:100], vector(), buffer[4:104], 1.0
    )
    whole, inside = vector(400), 0
    inside = whole[300:400]
    assert "overlap in part" in refused(
        replace(SAXPY, parameters=(
            TensorParameter("a", "f32", (Dimension("A", None),), Access.READ),
            TensorParameter("b", "f32", (Dimension("B", None),), Access.READ),
            TensorParameter("c", "f32", (Dimension("C", None),), Access.WRITE),
        )), whole, whole[10:20], inside,
    )  # fmt: skip


def test_compiled_in_extents() -> None:
    kernel = KernelContract(
        "k",
        32,
        (
            TensorParameter("bar", "i32", (Dimension(None, 2),)),
            TensorParameter("w", "f32", (Dimension("TILE", 8),)),
        ),
        constants={"TILE": 8},
    )
    binding = bind(kernel, (vector(2, np.int32), vector(8)), {})
    assert binding.extents == {}
    assert "axis 0 of `bar` must have extent 2; the array passed has 3" in refused(
        kernel, vector(3, np.int32), vector(8)
    )
    text = refused(kernel, vector(2, np.int32), vector(16))
    assert "`TILE`, compiled in as 8; the array passed has 16" in text
    assert "compile the kernel with TILE=16" in text


def test_aligned_promises_are_kept_or_refused() -> None:
    kernel = replace(SAXPY, aligned={"N": 16})
    bind(kernel, (vector(96), vector(96), vector(96), 1.0), {})
    text = refused(kernel, vector(100), vector(100), vector(100), 1.0)
    assert "`saxpy` is @aligned(N = 16), and N is 100, which is no multiple of 16" in text


@pytest.mark.parametrize(
    ("type_name", "value", "number"),
    [
        ("f32", 2, 2.0),
        ("f32", np.float64(0.5), 0.5),
        ("f32", np.array(0.5), 0.5),
        ("bf16", ml_dtypes.bfloat16(1.5), 1.5),
        ("f64", float("inf"), float("inf")),
        ("i32", 3.0, 3),
        ("i32", np.int64(-5), -5),
        ("u8", 255, 255),
        ("i8", -128, -128),
        ("bool", True, True),
        ("bool", np.bool_(False), False),
        ("bool", 1, True),
        ("i64", -(2**63), -(2**63)),
    ],
)
def test_scalars(type_name: str, value: Any, number: float) -> None:
    got = scalar_value(ScalarParameter("s", type_name), value)
    assert got == number
    assert type(got) is type(number)


@pytest.mark.parametrize(
    ("type_name", "value", "part"),
    [
        ("i32", 0.5, "0.5 is not an integer"),
        ("i32", 2**31, "2147483648 is outside its range of -2147483648 to 2147483647"),
        ("u8", -1, "outside its range of 0 to 255"),
        ("i32", float("nan"), "nan is not an integer"),
        ("i32", float("inf"), "inf is not an integer"),
        ("bool", 2, "outside its range of 0 to 1"),
        ("f32", "2", "a str was passed"),
        ("f32", None, "a NoneType was passed"),
        ("f32", np.zeros(1, np.float32), "an array was passed"),
        ("f32", 1j, "a complex was passed"),
        ("f32", np.complex64(1), "a complex64 was passed"),
    ],
)
def test_wrong_scalars(type_name: str, value: Any, part: str) -> None:
    with pytest.raises(PhobosError) as caught:
        scalar_value(ScalarParameter("s", type_name), value)
    assert part in str(caught.value)
