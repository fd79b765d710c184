"""The emulator as a device: runs the PTX text on the CPU, on NumPy arrays in place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from phobos.diagnostics import PhobosError
from phobos.runtime.abi import entry_arguments
from phobos.runtime.device import BoundTensor, Device, Launch, Program, Timing
from phobos.runtime.dtypes import numpy_dtype

if TYPE_CHECKING:
    from phobos.runtime.arrays import ArrayView

RESIDENT_CTAS = 4
"""CTAs that the emulated device holds at once. Few, so that a grid barrier stays quick."""


class EmulatorDevice(Device):
    """Runs kernels with `phobos.emulate`; `options` are passed on to it (checks, seed, ...)."""

    name: ClassVar[str] = "emulator"
    wants_line_info: ClassVar[bool] = True

    def __init__(self, **options: Any) -> None:
        self.options = options

    def describe(self) -> str:
        """What the device is, for people."""
        return "the emulator, on this computer's CPU"

    def check(self, program: Program, views: Iterable[ArrayView]) -> None:
        """Refuse arrays in a GPU's memory."""
        if any(view.on_gpu for view in views):
            raise PhobosError.at(
                None,
                "the emulator cannot reach arrays in a GPU's memory",
                help='pass NumPy arrays, or launch with device="cuda"',
            )

    def resident_ctas(self, program: Program) -> int:
        """The grid of a persistent kernel: of whole clusters, if it has any."""
        clustered = prod(program.kernel.cluster)
        return -(-RESIDENT_CTAS // clustered) * clustered

    def launch(self, launch: Launch) -> None:
        """Run a kernel; raises EmulatorError on what its checks find."""
        from phobos.emulator import emulate

        kernel = launch.program.kernel
        emulate(
            launch.program.ptx,
            kernel.name,
            launch.grid,
            (kernel.threads, 1, 1),
            emulator_arguments(launch),
            shared=kernel.dynamic_shared_bytes,
            **self.options,
        )

    def time(self, launch: Launch, count: int, progress: Callable[[], None]) -> Timing:
        """Time whole emulations; this says nothing of any GPU."""
        seconds: list[float] = []
        for _ in range(count):
            start = time.perf_counter()
            self.launch(launch)
            seconds.append(time.perf_counter() - start)
            progress()
        return Timing(tuple(seconds), is_emulated=True)


def emulator_arguments(launch: Launch) -> list[Any]:
    """The entry's arguments as the emulator takes them: arrays for pointers, NumPy scalars."""
    import numpy as np

    from phobos.emulator import TensorMapArgument
    from phobos.runtime.abi import descriptor_slots

    index = np.dtype(f"uint{launch.program.index_bits}").type
    values: list[Any] = []
    for argument in launch.arguments:
        if not isinstance(argument, BoundTensor):
            scalar = numpy_dtype(argument.parameter.type).type(argument.value)
            # An 8-bit float is passed as the byte that it is.
            is_byte = argument.parameter.type.startswith("f8")
            values.append(scalar.view(np.uint8) if is_byte else scalar)
            continue
        view = argument.view
        fields = descriptor_slots(0, view.shape)[2:]
        values += [view.host, view.host, *map(index, fields)]
    arrays = {tensor.parameter.name: tensor.view.host for tensor in launch.tensors}
    values += [
        TensorMapArgument(_row_major(arrays[one.tensor]), one.type, one.box, one.swizzle)
        for one in launch.program.kernel.tensor_maps
    ]
    assert len(values) == len(entry_arguments(launch.program.kernel, launch.program.index_bits))
    return values


def _row_major(array: Any) -> Any:
    """A dense array with row-major strides along axes of one element, too, where NumPy has any."""
    import numpy as np

    from phobos.runtime.abi import row_major_strides

    strides = [stride * array.itemsize for stride in row_major_strides(array.shape)]
    # By way of integers, as NumPy does not take types that it does not know itself there.
    units = array.view(f"u{array.itemsize}")
    is_writable = array.flags.writeable
    strided = np.lib.stride_tricks.as_strided(units, strides=strides, writeable=is_writable)
    return strided.view(array.dtype)
