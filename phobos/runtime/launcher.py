"""Launching a kernel on arrays: bind, choose the variant and the grid, run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from phobos.diagnostics import PhobosError
from phobos.runtime.binding import Binding, bind
from phobos.runtime.device import (
    BoundTensor,
    Device,
    Grid,
    Launch,
    Program,
    check_grid,
    choose_device,
)
from phobos.runtime.expressions import evaluate
from phobos.runtime.extras import require_packages
from phobos.runtime.tensor_maps import map_fault
from phobos.targets.ptx.contract import KernelContract

GridArgument = int | Sequence[int] | None


class ProgramSource(Protocol):
    """Gives the variant of a kernel that fits a launch."""

    def program(
        self,
        kernel: str,
        extents: Mapping[str, int],
        index_bits: int,
        *,
        line_info: bool,
        map_fault: str | None = None,
    ) -> Program:
        """The kernel, compiled so that these extents and this index width are right.

        `extents` has the value of every dim that the launch decides. `line_info` asks for source
        lines in the PTX, as far as they can be had. `map_fault` says why the kernel must take no
        tensor maps. Raises PhobosError if there is no such variant.
        """
        ...


def prepare(
    source: ProgramSource,
    kernel: KernelContract,
    args: Sequence[Any],
    named: Mapping[str, Any],
    *,
    grid: GridArgument = None,
    device: str | Device = "auto",
    stream: Any = None,
) -> tuple[Device, Launch | None]:
    """Check a launch and make it ready; None in place of a launch of no CTA.

    Raises PhobosError if anything about it is wrong. Nothing is written.
    """
    require_packages()
    handle = stream_handle(stream, (*args, *named.values()))
    binding = bind(kernel, args, named, handle)
    chosen = choose_device(device, binding.views)
    program = _program(source, binding, line_info=chosen.wants_line_info)
    chosen.check(program, binding.views)
    size = _grid(program, binding, grid, chosen)
    if 0 in size:
        return chosen, None
    check_grid(size)
    _check_clusters(program.kernel, size)
    return chosen, Launch(program, binding.arguments, size, handle)


def _program(source: ProgramSource, binding: Binding, *, line_info: bool) -> Program:
    """The variant for a launch; it takes tensor maps only if all its arrays can have them."""
    name, bits = binding.kernel.name, binding.index_bits
    program = source.program(name, binding.extents, bits, line_info=line_info)
    tensors = [one for one in binding.arguments if isinstance(one, BoundTensor)]
    fault = map_fault(program.kernel, tensors)
    if fault is None:
        return program
    return source.program(name, binding.extents, bits, line_info=line_info, map_fault=fault)


def _grid(program: Program, binding: Binding, grid: GridArgument, device: Device) -> Grid:
    """The grid of a launch: the one given, else the persistent one, else the contract's."""
    kernel = program.kernel
    if grid is not None:
        size = explicit_grid(grid)
        check_grid(size)
        if kernel.persistent:
            _check_resident(program, size, device)
        return size
    if kernel.persistent:
        return device.resident_ctas(program), 1, 1
    return default_grid(kernel, binding.names)


def default_grid(kernel: KernelContract, names: Mapping[str, int]) -> Grid:
    """The grid that a contract gives, for these values of the names in it.

    Raises PhobosError if it gives none or a negative one; 0 is a launch of nothing.
    """
    if kernel.grid is None:
        raise PhobosError.at(
            None,
            f"the grid of `{kernel.name}` is not known from its outputs",
            help="give one at the launch (grid=, --grid), or in the source: @grid(x = ...)",
        )
    x, y, z = (evaluate(expression, names) for expression in kernel.grid)
    for axis, extent in zip("xyz", (x, y, z), strict=True):
        if extent < 0:
            raise PhobosError.at(
                None, f"the grid of `{kernel.name}` along {axis} comes out negative: {extent}"
            )
    return x, y, z


def _check_clusters(kernel: KernelContract, grid: Grid) -> None:
    """Refuse a grid that does not consist of whole clusters."""
    for axis, extent, clustered in zip("xyz", grid, kernel.cluster, strict=True):
        if extent % clustered:
            ctas = "1 CTA" if extent == 1 else f"{extent} CTAs"
            whole = -(-extent // clustered) * clustered
            raise PhobosError.at(
                None,
                f"`{kernel.name}` runs in clusters of {clustered} CTAs along {axis}, and a grid of "
                f"{ctas} there is no multiple of that",
                help=f"launch {whole} (grid=, --grid), or round up in the source: "
                f"@grid({axis} = ceildiv(..., {clustered}) * {clustered})",
            )


def explicit_grid(grid: int | Sequence[int]) -> Grid:
    """A grid as callers write it, one to three extents, filled up with 1."""
    extents = [grid] if isinstance(grid, int) else list(grid)
    if not 1 <= len(extents) <= 3 or not all(_is_int(extent) for extent in extents):
        raise PhobosError.at(None, f"a grid is one to three integers, and {grid!r} was given")
    x, y, z = (*map(int, extents), 1, 1)[:3]
    return x, y, z


def _is_int(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _check_resident(program: Program, grid: Grid, device: Device) -> None:
    count = grid[0] * grid[1] * grid[2]
    resident = device.resident_ctas(program)
    if count > resident:
        raise PhobosError.at(
            None,
            f"`{program.kernel.name}` is @persistent: all its CTAs must run at once, and "
            f"{count} were asked for where {resident} fit",
            help="leave the grid out to get one that fits",
        )


# Streams -----------------------------------------------------------------------------------------


def stream_handle(stream: Any, values: Iterable[Any]) -> int | None:
    """The CUDA stream of a launch, as its handle; None for the default stream.

    `stream` is a handle, or an object with `__cuda_stream__` (cuda.core), `cuda_stream` (PyTorch),
    `ptr` (CuPy) or `handle`. Without one it is the current stream of the framework that the
    arrays among `values` belong to.
    """
    if stream is None:
        return _current_stream(values)
    if _is_int(stream):
        return int(stream)
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, attribute, None)
        if handle is not None:
            return int(getattr(handle, "value", handle))
    raise PhobosError.at(None, f"a {type(stream).__name__} is no CUDA stream")


def _current_stream(values: Iterable[Any]) -> int | None:
    for value in values:
        current = _stream_getter(type(value))
        if current is not None:
            return current(value)
    return None


@cache
def _stream_getter(kind: type) -> Callable[[Any], int | None] | None:
    """What tells the current stream of the framework that arrays of a type belong to."""
    return _STREAM_GETTERS.get(kind.__module__.partition(".")[0])


def _torch_stream(tensor: Any) -> int | None:
    if not getattr(tensor, "is_cuda", False):
        return None
    torch = sys.modules["torch"]
    # PyTorch's public function makes objects on the way, which takes longer than a launch.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return raw(tensor.get_device())
    return int(torch.cuda.current_stream(tensor.device).cuda_stream)


def _cupy_stream(_: Any) -> int:
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr)


_STREAM_GETTERS: dict[str, Callable[[Any], int | None]] = {
    "torch": _torch_stream,
    "cupy": _cupy_stream,
}
