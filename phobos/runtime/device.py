"""What the launcher asks of a device, and the choice of one.

A device runs a `Launch`: one kernel of one PTX text with its arguments bound and checked. There
are two, the emulator and CUDA; `choose_device` picks one.
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from phobos.diagnostics import PhobosError, did_you_mean
from phobos.targets.ptx.contract import KernelContract, ScalarParameter, TensorParameter

if TYPE_CHECKING:
    from phobos.runtime.arrays import ArrayView

Grid = tuple[int, int, int]

_MAX_GRID: Grid = (2**31 - 1, 65535, 65535)


@dataclass(frozen=True, slots=True)
class BoundTensor:
    """A tensor parameter and the array passed for it."""

    parameter: TensorParameter
    view: ArrayView


@dataclass(frozen=True, slots=True)
class BoundScalar:
    """A scalar parameter and its value, which fits its type."""

    parameter: ScalarParameter
    value: int | float | bool


BoundArgument = BoundTensor | BoundScalar


@dataclass(frozen=True, slots=True)
class Program:
    """One kernel of a PTX text: what a device loads."""

    ptx: str
    chip: str
    index_bits: int
    kernel: KernelContract


@dataclass(frozen=True, slots=True)
class Launch:
    """A checked launch; the block is `program.kernel.threads` along x."""

    program: Program
    arguments: tuple[BoundArgument, ...]
    grid: Grid
    stream: int | None = None

    @property
    def tensors(self) -> tuple[BoundTensor, ...]:
        """The bound tensors, in order."""
        return tuple(a for a in self.arguments if isinstance(a, BoundTensor))


@dataclass(frozen=True, slots=True)
class Timing:
    """How long each of several launches took, in seconds."""

    seconds: tuple[float, ...]
    is_emulated: bool

    @property
    def median(self) -> float:
        """The median time of a launch, in seconds."""
        return statistics.median(self.seconds)


class Device(ABC):
    """Something that runs kernels."""

    name: ClassVar[str]
    """The word that chooses the device: `cuda` or `emulator`."""

    wants_line_info: ClassVar[bool] = False
    """Whether PTX with source lines serves this device better."""

    @abstractmethod
    def describe(self) -> str:
        """What the device is, for people: `NVIDIA H200 (sm_90)`."""

    @abstractmethod
    def check(self, program: Program, views: Iterable[ArrayView]) -> None:
        """Raise PhobosError if the device cannot run the program on these arrays."""

    @abstractmethod
    def resident_ctas(self, program: Program) -> int:
        """How many CTAs of a kernel are on the device at once: the grid of a persistent one."""

    @abstractmethod
    def launch(self, launch: Launch) -> None:
        """Run a kernel.

        What it wrote is in NumPy arrays when this returns; for arrays on a GPU the kernel is
        queued on its stream. Raises PhobosError if the kernel cannot be loaded or fails.
        """

    @abstractmethod
    def time(self, launch: Launch, count: int, progress: Callable[[], None]) -> Timing:
        """Time a kernel `count` times; `progress` is called after each.

        The arrays hold whatever the last launch left.
        """


def check_grid(grid: Grid) -> None:
    """Raise PhobosError if CUDA does not take a grid of this size."""
    for axis, extent, most in zip("xyz", grid, _MAX_GRID, strict=True):
        if extent < 1:
            raise PhobosError.at(None, f"a grid of {extent} CTAs along {axis} cannot be launched")
        if extent > most:
            raise PhobosError.at(
                None, f"a grid of {extent} CTAs along {axis} is too large: at most {most}"
            )


def choose_device(choice: str | Device, views: Sequence[ArrayView] = ()) -> Device:
    """The device of a name: `cuda`, `emulator`, or `auto`; a Device stands for itself.

    `auto` is the GPU if there is one, and the emulator otherwise. `views` are the arrays of the
    launch, which say which GPU. Raises PhobosError if there is no such device.
    """
    if isinstance(choice, Device):
        return choice
    if choice not in _DEVICES:
        raise PhobosError.at(
            None,
            f"there is no device `{choice}`",
            help=did_you_mean(str(choice), _DEVICES) or f"devices are {', '.join(_DEVICES)}",
        )
    return _DEVICES[choice](views)


def _auto(views: Sequence[ArrayView]) -> Device:
    from phobos.runtime.cuda_device import cuda_fault

    if cuda_fault() is None or any(view.on_gpu for view in views):
        return _cuda(views)
    return _emulator(views)


def _cuda(views: Sequence[ArrayView]) -> Device:
    from phobos.runtime.cuda_device import CudaDevice

    return CudaDevice.holding(views)


def _emulator(_: Sequence[ArrayView]) -> Device:
    from phobos.runtime.emulator_device import EmulatorDevice

    return EmulatorDevice()


_DEVICES: dict[str, Callable[[Sequence[ArrayView]], Device]] = {
    "auto": _auto,
    "cuda": _cuda,
    "emulator": _emulator,
}

DEVICE_NAMES = tuple(_DEVICES)
"""The words that `choose_device` takes."""
