"""Running a kernel on a device and comparing what it wrote with NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from phobos.runtime.device import Device
from phobos.runtime.dtypes import FLOATS, numpy_dtype
from phobos.runtime.inputs import make_inputs
from phobos.runtime.module import Module
from phobos.targets.ptx.contract import KernelContract

Arrays = Mapping[str, np.ndarray]
Reference = Callable[[Arrays, Mapping[str, float]], Arrays]
"""Takes the tensors before the launch (floats as float64) and the scalars; gives what it writes."""


@dataclass(frozen=True)
class Case:
    """One launch of a kernel, and what it must write.

    `relative` and `absolute` bound the error of each element; integers must be equal. `prepare`
    changes random tensors in place, where not any data will do, such as subscripts. What the
    tensors named in `scratch` hold in the end does not matter.
    """

    reference: Reference
    dims: Mapping[str, int]
    scalars: Mapping[str, float] = field(default_factory=dict)
    grid: tuple[int, ...] | None = None
    relative: float = 1e-6
    absolute: float = 1e-6
    seed: int = 0
    prepare: Callable[[Arrays], None] | None = None
    scratch: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ",".join(f"{name}={extent}" for name, extent in self.dims.items())


def run_case(module: Module, kernel_name: str, case: Case, device: str | Device) -> None:
    """Launch a kernel on seeded random arrays; AssertionError where it wrote anything else.

    Tensors that are only written are poisoned first, so that an element left out is seen, and
    tensors that are only read must be as they were.
    """
    kernel = module.contract.kernel(kernel_name)
    given = make_inputs(kernel, dims=case.dims, scalars=case.scalars, files={}, seed=case.seed)
    values = {name: value.value for name, value in given.values.items()}
    tensors = {tensor.name: values[tensor.name] for tensor in kernel.tensors}
    if case.prepare is not None:
        case.prepare(tensors)
    poison_outputs(kernel, tensors)
    before = {name: array.copy() for name, array in tensors.items()}
    scalars = {scalar.name: values[scalar.name] for scalar in kernel.scalars}
    expected = case.reference({name: widened(array) for name, array in before.items()}, scalars)
    module[kernel_name](**values, grid=case.grid, device=device)
    for tensor in kernel.tensors:
        got = tensors[tensor.name]
        if tensor.name in case.scratch:
            continue
        if tensor.name not in expected:
            np.testing.assert_array_equal(
                got.view(f"u{got.itemsize}"),
                before[tensor.name].view(f"u{got.itemsize}"),
                err_msg=f"{tensor.name} was only read",
            )
            continue
        wanted = expected[tensor.name]
        where = f"{kernel_name}.{tensor.name} at {case}"
        assert got.shape == wanted.shape, where
        if tensor.type in FLOATS:
            np.testing.assert_allclose(
                widened(got), wanted, case.relative, case.absolute, err_msg=where
            )
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=where)


def widened(array: np.ndarray) -> np.ndarray:
    """A copy in float64, or in int64 for integers."""
    is_integer = array.dtype.kind in "iub"
    return array.astype(np.int64 if is_integer else np.float64)


def poison_outputs(kernel: KernelContract, tensors: Arrays) -> None:
    """Fill what the kernel writes without reading it: NaN, or a conspicuous integer."""
    for tensor in kernel.tensors:
        if tensor.access.writes and not tensor.access.reads:
            fill = np.nan if tensor.type in FLOATS else 0x55
            tensors[tensor.name][...] = np.array(fill).astype(numpy_dtype(tensor.type))
