"""Launch plans: what a second launch with like arguments need not work out again.

Checking a launch, choosing its variant and its grid costs some 100 microseconds; the answer
depends on the types and shapes of the arrays alone. A plan keeps it, so that launching again
with arrays of the same types and shapes costs little more than the driver's call. Plans exist for
PyTorch's and CuPy's arrays in GPU memory, on their framework's current stream. All else takes
the long way, and so does everything that a plan cannot vouch for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from phobos.runtime.abi import scalar_slot
from phobos.runtime.binding import ALIGNMENT, scalar_value
from phobos.runtime.cuda_device import CudaDevice, PreparedKernel, argument_slots
from phobos.runtime.device import BoundTensor, Device, Launch
from phobos.runtime.expressions import names_in
from phobos.runtime.launcher import GridArgument, stream_handle
from phobos.targets.ptx.contract import KernelContract, ScalarParameter

MAX_PLANS = 256
"""Plans kept for a kernel; beyond that they are all forgotten and made anew."""

_ALIGNMENT_MASK = ALIGNMENT - 1

Reader = Callable[[Any], tuple[Hashable, int]]
"""Gives what of an array a plan depends on, and the array's address."""


def _read_torch(tensor: Any) -> tuple[Hashable, int]:
    facts = (
        tensor.dtype,
        tensor.shape,
        tensor.is_contiguous(),
        tensor.get_device(),
        tensor.requires_grad,
    )
    return facts, tensor.data_ptr()


def _read_cupy(array: Any) -> tuple[Hashable, int]:
    return (array.dtype, array.shape, array.flags.c_contiguous, array.device.id), array.data.ptr


_READERS: dict[tuple[str, str], Reader] = {
    ("torch", "Tensor"): _read_torch,
    ("cupy", "ndarray"): _read_cupy,
}


@cache
def _reader(kind: type) -> Reader | None:
    """The reader for arrays of a type; subclasses may behave otherwise and have none."""
    return _READERS.get((kind.__module__, kind.__qualname__))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A prepared kernel, its slots with gaps for what changes, and where that goes."""

    prepared: PreparedKernel
    slots: tuple[int, ...]
    pointer_slots: tuple[int, ...]
    scalar_slots: tuple[tuple[int, int], ...]


class PlanCache:
    """The plans of one kernel."""

    def __init__(self, kernel: KernelContract) -> None:
        self._parameters = kernel.parameters
        # A scalar that the grid depends on is part of what a plan is made for.
        named = {name for text in kernel.grid or () for name in names_in(text)}
        self._fixed = tuple(parameter.name in named for parameter in kernel.parameters)
        self._plans: dict[Hashable, _Plan] = {}

    def launch(self, args: Sequence[Any], grid: GridArgument, device: str | Device) -> bool:
        """Launch by a plan; False if there is none that fits."""
        if not self._plans:
            return False
        read = self._read(args, grid, device)
        if read is None:
            return False
        key, pointers = read
        plan = self._plans.get(key)
        if plan is None or not plan.prepared.is_current():
            return False
        slots = list(plan.slots)
        for place, pointer in zip(plan.pointer_slots, pointers, strict=True):
            if pointer & _ALIGNMENT_MASK:
                return False
            slots[place] = slots[place + 1] = pointer
        for position, place in plan.scalar_slots:
            parameter = self._parameters[position]
            assert isinstance(parameter, ScalarParameter)
            slots[place] = scalar_slot(parameter.type, scalar_value(parameter, args[position]))
        plan.prepared.enqueue(slots, stream_handle(None, args) or 0)
        return True

    def remember(
        self,
        args: Sequence[Any],
        grid: GridArgument,
        device: str | Device,
        chosen: Device,
        launch: Launch,
    ) -> None:
        """Keep a plan of a launch that succeeded, if its arguments allow one."""
        if not isinstance(chosen, CudaDevice) or not chosen.is_current():
            return
        read = self._read(args, grid, device)
        if read is None:
            return
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[read[0]] = _make_plan(launch, chosen.prepared(launch))

    def _read(
        self, args: Sequence[Any], grid: GridArgument, device: str | Device
    ) -> tuple[Hashable, list[int]] | None:
        """The key of a launch and the addresses of its arrays; None if no plan covers it."""
        if len(args) != len(self._parameters) or isinstance(grid, list):
            return None
        key: list[Hashable] = [grid if isinstance(grid, int | tuple) else None, device]
        pointers: list[int] = []
        framework: Reader | None = None
        for position, value in enumerate(args):
            kind = type(value)
            reader = _reader(kind)
            if reader is None:
                key.append((kind, value) if self._fixed[position] else kind)
                continue
            if framework is not None and reader is not framework:
                return None
            framework = reader
            facts, pointer = reader(value)
            key.append(facts)
            pointers.append(pointer)
        return None if framework is None else (tuple(key), pointers)


def _make_plan(launch: Launch, prepared: PreparedKernel) -> _Plan:
    pointer_slots: list[int] = []
    scalar_slots: list[tuple[int, int]] = []
    place = 0
    for position, argument in enumerate(launch.arguments):
        if isinstance(argument, BoundTensor):
            pointer_slots.append(place)
            place += 3 + 2 * argument.parameter.rank
        else:
            scalar_slots.append((position, place))
            place += 1
    slots = tuple(argument_slots(launch, {}))
    return _Plan(prepared, slots, tuple(pointer_slots), tuple(scalar_slots))
