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
from phobos.runtime.cuda_device import (
    ArgumentBuffer,
    CudaDevice,
    argument_slots,
)
from phobos.runtime.device import BoundTensor, Device, Launch
from phobos.runtime.expressions import names_in
from phobos.runtime.launcher import GridArgument, stream_handle
from phobos.targets.ptx.contract import KernelContract, ScalarParameter, TensorParameter

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
class _Form:
    """The places of the arrays among the arguments, and what reads them."""

    read: Reader
    arrays: tuple[int, ...]


class _Plan:
    """A prepared kernel, and buffers of arguments in which only what changes is written.

    Threads that launch at the same time use a buffer each; taking one from the list and putting
    it back are single steps for the interpreter.
    """

    __slots__ = ("_buffers", "_maps", "_pointer_slots", "_scalar_slots", "_slots", "prepared")

    def __init__(self, launch: Launch, device: CudaDevice) -> None:
        self.prepared = device.prepared(launch)
        self._maps = device.encoders(launch)
        self._slots = tuple(argument_slots(launch, {}))
        self._buffers: list[ArgumentBuffer] = []
        pointer_slots: list[int] = []
        scalar_slots: list[tuple[int, int, ScalarParameter]] = []
        place = 0
        for position, argument in enumerate(launch.arguments):
            if isinstance(argument, BoundTensor):
                pointer_slots.append(place)
                place += 3 + 2 * argument.parameter.rank
            else:
                scalar_slots.append((position, place, argument.parameter))
                place += 1
        self._pointer_slots = tuple(pointer_slots)
        self._scalar_slots = tuple(scalar_slots)

    def launch(self, args: Sequence[Any], pointers: Sequence[int], stream: int) -> None:
        try:
            buffer = self._buffers.pop()
        except IndexError:
            buffer = ArgumentBuffer(self._slots, len(self._maps))
        slots = buffer.slots
        for place, pointer in zip(self._pointer_slots, pointers, strict=True):
            slots[place] = slots[place + 1] = pointer
        for position, place, parameter in self._scalar_slots:
            value = scalar_value(parameter, args[position])
            slots[place] = scalar_slot(parameter.type, value)
        for place, (tensor, encoder) in enumerate(self._maps):
            buffer.map(place, encoder, pointers[tensor])
        self.prepared.enqueue(buffer, stream)
        self._buffers.append(buffer)


class PlanCache:
    """The plans of one kernel."""

    def __init__(self, kernel: KernelContract) -> None:
        self._parameters = kernel.parameters
        self._tensors = tuple(
            i for i, p in enumerate(kernel.parameters) if isinstance(p, TensorParameter)
        )
        # A scalar that the grid depends on is part of what a plan is made for.
        named = {name for text in kernel.grid or () for name in names_in(text)}
        self._fixed = tuple(i for i, p in enumerate(kernel.parameters) if p.name in named)
        self._forms: dict[tuple[type, ...], _Form | None] = {}
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
        for pointer in pointers:
            if pointer & _ALIGNMENT_MASK:
                return False
        plan.launch(args, pointers, stream_handle(None, args) or 0)
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
        self._plans[read[0]] = _Plan(launch, chosen)

    def _read(
        self, args: Sequence[Any], grid: GridArgument, device: str | Device
    ) -> tuple[Hashable, list[int]] | None:
        """The key of a launch and the addresses of its arrays; None if no plan covers it."""
        kinds = tuple(map(type, args))
        try:
            form = self._forms[kinds]
        except KeyError:
            form = self._forms[kinds] = self._form_of(kinds)
        if form is None or isinstance(grid, list):
            return None
        read = form.read
        key: list[Hashable] = [kinds, grid if isinstance(grid, int | tuple) else None, device]
        pointers: list[int] = []
        for position in form.arrays:
            facts, pointer = read(args[position])
            key.append(facts)
            pointers.append(pointer)
        for position in self._fixed:
            key.append(args[position])
        return tuple(key), pointers

    def _form_of(self, kinds: tuple[type, ...]) -> _Form | None:
        """How to read arguments of these types; None if they are not all of one framework.

        A scalar that is passed as a tensor has to be copied from the GPU, which no plan does.
        """
        if len(kinds) != len(self._parameters):
            return None
        readers = {position: _reader(kind) for position, kind in enumerate(kinds)}
        arrays = tuple(position for position, reader in readers.items() if reader is not None)
        if arrays != self._tensors:
            return None
        known = {reader for reader in readers.values() if reader is not None}
        return _Form(known.pop(), arrays) if len(known) == 1 else None
