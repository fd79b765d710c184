"""The kernel ABI: the argument lists that users were promised, and slots."""

from __future__ import annotations

import struct

import pytest

from phobos.runtime.abi import descriptor_slots, entry_arguments, row_major_strides, scalar_slot
from phobos.targets.ptx.contract import (
    Dimension,
    KernelContract,
    ScalarParameter,
    TensorParameter,
)
from tests.support.launching import SAXPY


def matrix(name: str, rows: str, columns: str) -> TensorParameter:
    return TensorParameter(name, "f32", (Dimension(rows, None), Dimension(columns, None)))


GEMM = KernelContract(
    name="gemm",
    threads=256,
    parameters=(
        matrix("A", "M", "K"),
        matrix("B", "K", "N"),
        matrix("C", "M", "N"),
        ScalarParameter("alpha", "f32"),
        ScalarParameter("beta", "f32"),
    ),
)


def test_saxpy_takes_16_arguments_at_32_bits() -> None:
    arguments = entry_arguments(SAXPY, 32)
    tensor = ["u64", "u64", "u32", "u32", "u32"]
    assert [argument.type for argument in arguments] == tensor * 3 + ["f32"]
    assert [argument.name for argument in arguments[:5]] == [
        "x_allocated",
        "x_aligned",
        "x_offset",
        "x_size_0",
        "x_stride_0",
    ]
    assert sum(argument.bytes for argument in arguments) == 3 * 28 + 4


def test_gemm_takes_23_arguments() -> None:
    arguments = entry_arguments(GEMM, 32)
    assert len(arguments) == 23
    assert sum(argument.bytes for argument in arguments[:7]) == 36


def test_at_64_bits_only_the_index_fields_widen() -> None:
    arguments = entry_arguments(GEMM, 64)
    assert [argument.type for argument in arguments[:7]] == ["u64"] * 7
    assert sum(argument.bytes for argument in arguments[:7]) == 56
    assert arguments[-1].type == "f32"


@pytest.mark.parametrize(
    ("type_name", "ptx_type", "size"),
    [("f32", "f32", 4), ("i32", "u32", 4), ("f64", "f64", 8), ("i64", "u64", 8),
     ("f16", "b8[2]", 2), ("bf16", "b8[2]", 2), ("i8", "u8", 1)],
)  # fmt: skip
def test_scalars_keep_their_width(type_name: str, ptx_type: str, size: int) -> None:
    kernel = KernelContract("k", 32, (ScalarParameter("s", type_name),))
    for index_bits in (32, 64):
        (argument,) = entry_arguments(kernel, index_bits)
        assert (argument.type, argument.bytes) == (ptx_type, size)


def test_the_slots_of_a_matrix() -> None:
    assert descriptor_slots(0x1000, (512, 1024)) == [0x1000, 0x1000, 0, 512, 1024, 1024, 1]


def test_row_major_strides() -> None:
    assert row_major_strides(()) == ()
    assert row_major_strides((7,)) == (1,)
    assert row_major_strides((2, 3, 4)) == (12, 4, 1)


@pytest.mark.parametrize(
    ("type_name", "value", "slot"),
    [
        ("i8", -1, 0xFF),
        ("i32", -2, 0xFFFFFFFE),
        ("i64", -1, 2**64 - 1),
        ("u32", 2**32 - 1, 2**32 - 1),
        ("bool", True, 1),
        ("f32", 2.0, 0x40000000),
        ("f64", -0.0, 1 << 63),
        ("f16", 1.5, 0x3E00),
        ("f16", 1e9, 0x7C00),
        ("f32", -1e60, 0xFF800000),
        ("bf16", 1.0, 0x3F80),
        ("bf16", 1.00390625, 0x3F80),
        ("bf16", 1.01171875, 0x3F82),
        ("f8e5m2", 1.0, 0x3C),
        ("f8e4m3", 1.0, 0x38),
    ],
)
def test_scalar_slots_are_zero_extended_bit_patterns(
    type_name: str, value: float, slot: int
) -> None:
    assert scalar_slot(type_name, value) == slot


def test_a_float_rounds_to_nearest() -> None:
    assert scalar_slot("f32", 0.1) == int.from_bytes(struct.pack("<f", 0.1), "little")
