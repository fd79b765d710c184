"""Tensor maps at a launch: which arrays have one.

A map describes an array to the unit of the GPU that copies boxes of it. That unit wants its rows at
multiples of 16 bytes, and something in every axis; arrays that are otherwise get the variant of
the kernel that takes no maps.
"""

from __future__ import annotations

from collections.abc import Sequence

from phobos.runtime.abi import row_major_strides
from phobos.runtime.device import BoundTensor
from phobos.targets.ptx.contract import MAP_TYPE_BYTES, MAP_UNIT, KernelContract, TensorMap

MAX_EXTENT = 2**31 - 1
"""Elements along an axis of a mapped tensor: places of boxes are signed 32-bit integers.

The hardware takes one more; then no place would be behind the end.
"""

MAX_STRIDE = 2**40
"""Bytes from one element to the next along an axis, one more than the most."""


def byte_strides(one: TensorMap, shape: Sequence[int]) -> tuple[int, ...]:
    """Bytes from one element to the next along each axis of a dense row-major array."""
    size = MAP_TYPE_BYTES[one.type]
    return tuple(stride * size for stride in row_major_strides(shape))


def map_fault(kernel: KernelContract, tensors: Sequence[BoundTensor]) -> str | None:
    """Why some array of a launch cannot have its tensor map; None if all can."""
    if not kernel.tensor_maps:
        return None
    bound = {tensor.parameter.name: tensor for tensor in tensors}
    faults = (_fault(one, bound[one.tensor]) for one in kernel.tensor_maps)
    return next((fault for fault in faults if fault is not None), None)


def _fault(one: TensorMap, tensor: BoundTensor) -> str | None:
    view, name = tensor.view, f"`{one.tensor}`"
    # An array of the CPU moves to a fresh, aligned address in any case.
    if view.on_gpu and view.pointer % MAP_UNIT:
        return f"{name} does not start at a multiple of {MAP_UNIT} bytes"
    for axis, extent in enumerate(view.shape):
        if not 1 <= extent <= MAX_EXTENT:
            return f"axis {axis} of {name} has {extent} elements"
    for axis, stride in enumerate(byte_strides(one, view.shape)[:-1]):
        if stride % MAP_UNIT:
            return (
                f"elements along axis {axis} of {name} are {stride} bytes apart, which is no "
                f"multiple of {MAP_UNIT}"
            )
        if stride >= MAX_STRIDE:
            return f"elements along axis {axis} of {name} are {stride} bytes apart"
    return None
