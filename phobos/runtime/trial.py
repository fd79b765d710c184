"""A trial run of a kernel, told line by line: what `phobos-run` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from phobos.runtime.device import Device, Launch, Timing, choose_device
from phobos.runtime.inputs import Input, Inputs, check_known, make_inputs, save
from phobos.runtime.launcher import GridArgument, prepare
from phobos.runtime.module import Module
from phobos.runtime.schedules import Emulation
from phobos.targets.ptx.contract import KernelContract, TensorParameter

_FIRST_ELEMENTS = 4
_WARM_UPS = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """What to run a kernel with; see `phobos-run --help`."""

    kernel: str | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    loads: Mapping[str, Path] = field(default_factory=dict)
    saves: Mapping[str, Path] = field(default_factory=dict)
    grid: GridArgument = None
    device: str = "auto"
    seed: int = 0
    is_timed: bool = False
    emulation: Emulation | None = None


def run_trial(module: Module, trial: Trial, say: Callable[[str], None]) -> None:
    """Run a kernel once, report what it wrote, save what is asked for, and time it if asked.

    `say` gets the report line by line. Raises PhobosError if the launch is wrong or fails.
    """
    kernel, emulation = module.contract.kernel(trial.kernel), trial.emulation
    tensors = [tensor.name for tensor in kernel.tensors]
    check_known("--save", "tensor", trial.saves, tensors, kernel)
    device = choose_device(trial.device) if emulation is None else emulation.device()
    if emulation is None and device.name == "emulator":
        emulation = Emulation()
    inputs = make_inputs(
        kernel, dims=trial.dims, scalars=trial.scalars, files=trial.loads, seed=trial.seed
    )
    values = {name: given.value for name, given in inputs.values.items()}
    _, launch = prepare(module, kernel, (), values, grid=trial.grid, device=device)
    for line in _setting(module, kernel, inputs, launch, device):
        say(line)
    if launch is None:
        say("Nothing to do: an extent is 0, so that the grid is empty.")
    else:
        with module.located():
            if emulation is None:
                device.launch(launch)
            else:
                written = {name: values[name] for name in _written(kernel)}
                emulation.run(module, launch, written, say)
    for line in _results(kernel, inputs.values, trial.saves):
        say(line)
    if trial.is_timed and launch is not None:
        say(_timing_line(_timed(device, launch), launch))


def _written(kernel: KernelContract) -> Iterator[str]:
    return (tensor.name for tensor in kernel.tensors if tensor.access.writes)


# The report --------------------------------------------------------------------------------------


def _setting(
    module: Module, kernel: KernelContract, inputs: Inputs, launch: Launch | None, device: Device
) -> Iterator[str]:
    contract = module.contract
    chip = launch.program.chip if launch is not None else contract.chip
    yield f"Kernel {kernel.name} of {contract.source}, compiled for {chip}"
    for name, value in kernel.constants.items():
        yield f"  {name} = {value} (compiled in)"
    for name, extent in inputs.extents.items():
        yield f"  {name} = {extent}"
    for parameter in kernel.parameters:
        given = inputs.values[parameter.name]
        if isinstance(parameter, TensorParameter):
            yield f"  {_declared(parameter, given.value)}: {given.origin}"
        else:
            yield f"  {parameter.name} = {given.value} ({given.origin})"
    if launch is not None:
        grid = " x ".join(map(str, launch.grid))
        yield f"Running {grid} CTAs of {kernel.threads} threads on {device.describe()}"


def _declared(tensor: TensorParameter, array: np.ndarray) -> str:
    return f"{tensor.name}: {tensor.type}[{', '.join(map(str, array.shape))}]"


def _results(
    kernel: KernelContract, values: Mapping[str, Input], saves: Mapping[str, Path]
) -> Iterator[str]:
    """A summary of each tensor that is written or saved; saves on the way."""
    for tensor in kernel.tensors:
        path = saves.get(tensor.name)
        if path is None and not tensor.access.writes:
            continue
        array = values[tensor.name].value
        yield f"{_declared(tensor, array)}: {summary(array)}"
        if path is not None:
            save(array, path)
            yield f"  saved to {path}"


def summary(array: np.ndarray) -> str:
    """An array in one line: least, greatest and mean element, and the first ones.

    >>> summary(np.arange(6, dtype=np.float32))
    'min 0, max 5, mean 2.5, first elements 0 1 2 3 ...'
    """
    if not array.size:
        return "no elements"
    numbers = array.astype(np.float64)
    first = " ".join(f"{number:.6g}" for number in numbers.reshape(-1)[:_FIRST_ELEMENTS])
    more = " ..." if array.size > _FIRST_ELEMENTS else ""
    not_finite = int(np.count_nonzero(~np.isfinite(numbers)))
    remark = f", {not_finite:,} not finite" if not_finite else ""
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return f"no finite element{remark}, first elements {first}{more}"
    return (
        f"min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}{remark}, "
        f"first elements {first}{more}"
    )


# Timing ------------------------------------------------------------------------------------------


def _timed(device: Device, launch: Launch) -> Timing:
    """Times a kernel often enough for a steady median, in a second or a few."""
    trial = device.time(launch, _WARM_UPS, lambda: None)
    if trial.is_emulated:
        count = max(3, min(20, int(2 / trial.median)))
    else:
        count = max(10, min(500, int(0.5 / trial.median)))
    with _progress_bar(count) as advance:
        return device.time(launch, count, advance)


@contextmanager
def _progress_bar(count: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr, where that is a terminal and the package rich is there."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda: None
        return
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("timing", total=count)
        yield lambda: progress.advance(task)


def _timing_line(timing: Timing, launch: Launch) -> str:
    median, count = timing.median, len(timing.seconds)
    text = f"Time: median {_duration(median)} of {count} launches, least "
    text += _duration(min(timing.seconds))
    if timing.is_emulated:
        return f"{text}. This is emulated time: what the emulator took, which says nothing of a GPU"
    moved = sum(_traffic(tensor.parameter, tensor.view.bytes) for tensor in launch.tensors)
    return f"{text}; {moved / median / 1e9:.1f} GB/s if each element is moved once"


def _traffic(tensor: TensorParameter, size: int) -> int:
    return size * (tensor.access.reads + tensor.access.writes)


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"
