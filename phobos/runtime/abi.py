"""The kernel ABI: how the parameters of a kernel become the arguments of its PTX entry.

Parameters lower in order. A scalar is one argument of its own type. A tensor of rank r is a memref
descriptor flattened into 3 + 2r arguments:

    allocated pointer, aligned pointer, offset, r sizes, r strides

Behind them comes one argument of 128 bytes, aligned to 64, for each tensor map of the contract.

Pointers take 8 bytes; the offset, sizes and strides take the index width of the module, 4 or 8.
A launcher gives every argument a slot of 8 bytes that holds the value zero-extended: the driver
copies as many bytes as the parameter declares, so on a little-endian host one list of slots
serves both index widths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phobos.runtime.dtypes import FLOATS, float_bits
from phobos.targets.ptx.contract import (
    MAP_BYTES,
    TYPE_BYTES,
    KernelContract,
    TensorParameter,
    map_parameter_name,
)

POINTER_BYTES = 8

_SCALAR_PTX_TYPES: dict[str, str] = {
    "bool": "u8",
    "i8": "u8",
    "u8": "u8",
    "f8e4m3": "u8",
    "f8e5m2": "u8",
    "i16": "u16",
    "u16": "u16",
    "f16": "b8[2]",
    "bf16": "b8[2]",
    "i32": "u32",
    "u32": "u32",
    "i64": "u64",
    "u64": "u64",
    "f32": "f32",
    "f64": "f64",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an entry.

    `type` is the PTX type without its dot; `b8[2]` is an array of two bytes aligned to 2, and
    `b8[128]` one that is aligned to 64.
    """

    name: str
    type: str
    bytes: int


def entry_arguments(kernel: KernelContract, index_bits: int) -> tuple[Argument, ...]:
    """The arguments of a kernel's entry, in order.

    saxpy(x: tensor<f32>[N], y: ..., out: ..., alpha: f32) has 3 * 5 + 1 = 16 of them.
    """
    arguments: list[Argument] = []
    for parameter in kernel.parameters:
        if isinstance(parameter, TensorParameter):
            arguments.extend(_descriptor(parameter, index_bits))
            continue
        ptx_type = _SCALAR_PTX_TYPES[parameter.type]
        arguments.append(Argument(parameter.name, ptx_type, TYPE_BYTES[parameter.type]))
    for position, one in enumerate(kernel.tensor_maps):
        name = map_parameter_name(one.tensor, position)
        arguments.append(Argument(name, f"b8[{MAP_BYTES}]", MAP_BYTES))
    return tuple(arguments)


def _descriptor(tensor: TensorParameter, index_bits: int) -> Iterator[Argument]:
    name = tensor.name
    for field in ("allocated", "aligned"):
        yield Argument(f"{name}_{field}", "u64", POINTER_BYTES)
    fields = ["offset"]
    fields += [f"size_{axis}" for axis in range(tensor.rank)]
    fields += [f"stride_{axis}" for axis in range(tensor.rank)]
    for field in fields:
        yield Argument(f"{name}_{field}", f"u{index_bits}", index_bits // 8)


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a dense row-major array; the last is 1.

    >>> row_major_strides((512, 1024))
    (1024, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


def descriptor_slots(pointer: int, shape: Sequence[int]) -> list[int]:
    """The slots of a tensor: pointer twice, offset 0, sizes, row-major strides."""
    return [pointer, pointer, 0, *shape, *row_major_strides(shape)]


def scalar_slot(type_name: str, value: int | float | bool) -> int:
    """The slot of a scalar: its bit pattern at its own width, zero-extended to 8 bytes.

    The value must be in range; the launcher has checked that.
    """
    if type_name in FLOATS:
        return float_bits(type_name, float(value))
    return int(value) & ((1 << 8 * TYPE_BYTES[type_name]) - 1)
