"""NVIDIA GPUs as a device, through the driver bindings of the package cuda-python.

Kernels run in the context that is current in the calling thread if it belongs to the device, and
in the device's primary context otherwise, which is the one that PyTorch, CuPy and JAX use.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from phobos.diagnostics import Note, PhobosError
from phobos.runtime.abi import descriptor_slots, scalar_slot
from phobos.runtime.cuda_tensor_maps import MAP_WORDS, MapEncoder, MapEncoders
from phobos.runtime.device import BoundTensor, Device, Launch, Program, Timing
from phobos.targets.ptx.chips import chip, newest_chip_for
from phobos.targets.ptx.contract import MAP_ALIGNMENT, MAP_BYTES, NO_CLUSTER, Cluster

if TYPE_CHECKING:
    from phobos.runtime.arrays import ArrayView

_STATIC_SHARED_LIMIT = 48 * 1024
"""Bytes of shared memory above which a kernel's ceiling must be raised before its launch."""
_JIT_LOG_BYTES = 8192


@cache
def _bindings() -> Any:
    """The driver bindings; ImportError without them. They are compiled and carry no types."""
    return import_module("cuda.bindings.driver")


@cache
def cuda_fault() -> str | None:
    """Why CUDA cannot be used here, in one clause; None if it can."""
    try:
        driver = _bindings()
    except ImportError:
        return "the package cuda-python is not installed"
    try:
        (status,) = driver.cuInit(0)
        if status != driver.CUresult.CUDA_SUCCESS:
            return f"the NVIDIA driver says {status.name}"
        _, count = driver.cuDeviceGetCount()
    except Exception:  # the bindings raise several classes where the driver is missing
        return "there is no NVIDIA driver"
    return None if count else "there is no NVIDIA GPU"


class CudaError(PhobosError):
    """A call of the CUDA driver failed; `code` is the name of its result."""

    code = ""


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the driver and return what it gives besides its status; CudaError on a failure."""
    status, *values = function(*arguments)
    if status:
        raise _error(status, function.__name__)
    return values[0] if len(values) == 1 else tuple(values)


def _error(status: Any, name: str) -> CudaError:
    driver = _bindings()

    _, text = driver.cuGetErrorString(status)
    reason = text.decode() if text else "no description"
    error = CudaError.at(None, f"the CUDA driver's {name} failed: {status.name}, {reason}")
    error.code = status.name
    return error


class ArgumentBuffer:
    """The arguments of a launch in memory, and the pointers to them.

    `slots` has one of 8 bytes for each argument, and behind them room for tensor maps. It may be
    changed between launches; `address` is what cuLaunchKernel takes.
    """

    __slots__ = ("_map_start", "_mapped", "_pointers", "address", "slots")

    def __init__(self, slots: Sequence[int], maps: int = 0) -> None:
        count = len(slots)
        self.slots = array("Q", slots)
        if maps:
            self.slots.extend([0] * (MAP_WORDS * maps + MAP_ALIGNMENT // 8 - 1))
        first = self.slots.buffer_info()[0]
        self._map_start = count + -(first // 8 + count) % (MAP_ALIGNMENT // 8)
        self._mapped = [0] * maps
        self._pointers = array("Q", range(first, first + 8 * count, 8))
        start = first + 8 * self._map_start
        self._pointers.extend(range(start, start + MAP_BYTES * maps, MAP_BYTES))
        self.address = self._pointers.buffer_info()[0]

    def map(self, place: int, encoder: MapEncoder, address: int) -> None:
        """Let the tensor map at a place be that of an array; `encoder` is the same each time."""
        if self._mapped[place] != address:
            start = self._map_start + MAP_WORDS * place
            self.slots[start : start + MAP_WORDS] = encoder.words(address)
            self._mapped[place] = address


@dataclass(frozen=True, slots=True)
class PreparedKernel:
    """A loaded kernel with its launch configuration, for launching again at once.

    `configuration` holds grid, block and bytes of dynamic shared memory, in the order of
    cuLaunchKernel; `context` is the address of the context that the kernel was loaded in.
    """

    driver: Any
    context: int
    function: Any
    configuration: tuple[int, ...]

    def is_current(self) -> bool:
        """Whether the calling thread's context is the kernel's."""
        return int(self.driver.cuCtxGetCurrent()[1]) == self.context

    def enqueue(self, arguments: ArgumentBuffer, stream: int) -> None:
        """Queue the kernel; its context must be current. The driver copies the arguments."""
        (status,) = self.driver.cuLaunchKernel(
            self.function, *self.configuration, stream, arguments.address, 0
        )
        if status:
            raise _error(status, "cuLaunchKernel")


class CudaDevice(Device):
    """One GPU."""

    name: ClassVar[str] = "cuda"

    @staticmethod
    def current() -> CudaDevice:
        """The GPU of the calling thread's context, or GPU 0. PhobosError if there is none."""
        fault = cuda_fault()
        if fault is not None:
            raise PhobosError.at(
                None,
                f"kernels cannot run on a GPU here: {fault}",
                help='the emulator runs them on the CPU: device="emulator", or --device emulator',
            )
        driver = _bindings()

        if int(_call(driver.cuCtxGetCurrent)):
            return _device(int(_call(driver.cuCtxGetDevice)))
        return _device(0)

    @staticmethod
    def holding(views: Iterable[ArrayView]) -> CudaDevice:
        """The GPU whose memory holds the arrays; the current one if none is on a GPU.

        Raises PhobosError if they are on several GPUs.
        """
        current = CudaDevice.current()
        ordinals = sorted({_ordinal(view) for view in views if view.on_gpu and view.pointer})
        if len(ordinals) > 1:
            raise PhobosError.at(
                None, f"the arrays are on several GPUs: {', '.join(map(str, ordinals))}"
            )
        return _device(ordinals[0]) if ordinals else current

    def __init__(self, ordinal: int) -> None:
        driver = _bindings()

        self.driver = driver
        self.ordinal = ordinal
        self.handle = _call(driver.cuDeviceGet, ordinal)
        self.capability = 10 * self._attribute("COMPUTE_CAPABILITY_MAJOR")
        self.capability += self._attribute("COMPUTE_CAPABILITY_MINOR")
        self.multiprocessors = self._attribute("MULTIPROCESSOR_COUNT")
        self.max_shared_bytes = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self._primary: Any = None
        self._functions: dict[tuple[int, str, str], Any] = {}
        self._encoders = MapEncoders(driver, _call)

    def describe(self) -> str:
        """The GPU's name and compute capability."""
        raw = _call(self.driver.cuDeviceGetName, 128, self.handle)
        return f"{raw.split(bytes(1), 1)[0].decode()} (compute capability {self.capability / 10})"

    def check(self, program: Program, views: Iterable[ArrayView]) -> None:
        """Refuse a chip that the GPU does not run, and more shared memory than it has."""
        target = chip(program.chip)
        if not target.runs_on(self.capability):
            only = f", which only compute capability {target.number / 10} runs"
            newest = newest_chip_for(self.capability)
            what = f" with `--chip {newest.name}`" if newest is not None else ""
            raise PhobosError.at(
                None,
                f"`{program.kernel.name}` was compiled for {program.chip}"
                f"{only if target.is_exact else ''}, and this GPU has "
                f"compute capability {self.capability / 10}",
                help=f"compile it for the GPU's chip or an older one{what}",
            )
        kernel = program.kernel
        shared = kernel.static_shared_bytes + kernel.dynamic_shared_bytes
        if shared > self.max_shared_bytes:
            raise PhobosError.at(
                None,
                f"`{kernel.name}` needs {shared} bytes of shared memory a CTA, and this GPU has "
                f"{self.max_shared_bytes}",
            )

    def resident_ctas(self, program: Program) -> int:
        """CTAs a multiprocessor holds times multiprocessors; PhobosError if none fits.

        Where CTAs form clusters, as many as there are in the clusters that the GPU holds.
        """
        kernel = program.kernel
        if kernel.cluster != NO_CLUSTER:
            return self._resident_clusters(program) * prod(kernel.cluster)
        with self._activated():
            per_multiprocessor = _call(
                self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor,
                self._function(program),
                kernel.threads,
                kernel.dynamic_shared_bytes,
            )
        if per_multiprocessor < 1:
            raise PhobosError.at(None, f"not one CTA of `{kernel.name}` fits on this GPU")
        return per_multiprocessor * self.multiprocessors

    def _resident_clusters(self, program: Program) -> int:
        kernel = program.kernel
        config = _cluster_configuration(self.driver, kernel.cluster)
        config.blockDimX, config.blockDimY, config.blockDimZ = kernel.threads, 1, 1
        config.sharedMemBytes = kernel.dynamic_shared_bytes
        with self._activated():
            count = _call(self.driver.cuOccupancyMaxActiveClusters, self._function(program), config)
        if count < 1:
            raise PhobosError.at(None, f"not one cluster of `{kernel.name}` fits on this GPU")
        return count

    def launch(self, launch: Launch) -> None:
        """Queue a kernel; with NumPy arrays among its arguments, wait and copy them back."""
        with self._activated():
            prepared = self.prepared(launch)
            with self._staged(launch, copies_back=True) as arguments:
                self._wait_for_producers(launch)
                prepared.enqueue(arguments, launch.stream or 0)

    def time(self, launch: Launch, count: int, progress: Callable[[], None]) -> Timing:
        """Time launches by events on the stream; NumPy arrays are copied in once, and not out."""
        driver = self.driver
        seconds: list[float] = []
        with self._activated():
            prepared = self.prepared(launch)
            begin, end = (_call(driver.cuEventCreate, 0) for _ in range(2))
            try:
                with self._staged(launch, copies_back=False) as arguments:
                    for _ in range(count):
                        _call(driver.cuEventRecord, begin, launch.stream or 0)
                        prepared.enqueue(arguments, launch.stream or 0)
                        _call(driver.cuEventRecord, end, launch.stream or 0)
                        self._finish(launch, driver.cuEventSynchronize, end)
                        seconds.append(_call(driver.cuEventElapsedTime, begin, end) * 1e-3)
                        progress()
            finally:
                _call(driver.cuEventDestroy, begin)
                _call(driver.cuEventDestroy, end)
        return Timing(tuple(seconds), is_emulated=False)

    def prepared(self, launch: Launch) -> PreparedKernel:
        """The kernel of a launch, loaded in the current context."""
        kernel = launch.program.kernel
        return PreparedKernel(
            self.driver,
            int(_call(self.driver.cuCtxGetCurrent)),
            self._function(launch.program),
            (*launch.grid, kernel.threads, 1, 1, kernel.dynamic_shared_bytes),
        )

    def encoders(self, launch: Launch) -> tuple[tuple[int, MapEncoder], ...]:
        """For each tensor map of a launch: the tensor, by its place among all, and the encoder."""
        bound = {tensor.parameter.name: place for place, tensor in enumerate(launch.tensors)}
        return tuple(
            (
                bound[one.tensor],
                self._encoders.of(one, launch.tensors[bound[one.tensor]].view.shape),
            )
            for one in launch.program.kernel.tensor_maps
        )

    def is_current(self) -> bool:
        """Whether the calling thread's context is one of this device."""
        has_context = int(_call(self.driver.cuCtxGetCurrent)) != 0
        return has_context and int(_call(self.driver.cuCtxGetDevice)) == self.ordinal

    # Contexts and modules ------------------------------------------------------------------------

    def _attribute(self, name: str) -> int:
        attribute = getattr(self.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return _call(self.driver.cuDeviceGetAttribute, attribute, self.handle)

    @contextmanager
    def _activated(self) -> Iterator[None]:
        """Make a context of this device current for a while."""
        driver = self.driver
        if self.is_current():
            yield
            return
        if self._primary is None:
            self._primary = _call(driver.cuDevicePrimaryCtxRetain, self.handle)
        _call(driver.cuCtxPushCurrent, self._primary)
        try:
            yield
        finally:
            _call(driver.cuCtxPopCurrent)

    def _function(self, program: Program) -> Any:
        """The loaded kernel, from the cache of the current context."""
        # The id, since the address of a context that is gone may be another one's later.
        context = int(_call(self.driver.cuCtxGetId, _call(self.driver.cuCtxGetCurrent)))
        key = (context, program.ptx, program.kernel.name)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self._load(program)
        return function

    def _load(self, program: Program) -> Any:
        driver, kernel = self.driver, program.kernel
        option = driver.CUjit_option
        log = bytearray(_JIT_LOG_BYTES)
        options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        image = program.ptx.encode() + bytes(1)
        try:
            module = _call(
                driver.cuModuleLoadDataEx, image, len(options), options, [log, _JIT_LOG_BYTES]
            )
            function = _call(driver.cuModuleGetFunction, module, kernel.name.encode())
        except CudaError as error:
            text = log.split(bytes(1), 1)[0].decode("utf-8", "replace").strip()
            raise _load_error(program, error, text) from error
        if kernel.static_shared_bytes + kernel.dynamic_shared_bytes > _STATIC_SHARED_LIMIT:
            attribute = driver.CUfunction_attribute
            _call(
                driver.cuFuncSetAttribute,
                function,
                attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                kernel.dynamic_shared_bytes,
            )
        return function

    # Arguments and launching ---------------------------------------------------------------------

    @contextmanager
    def _staged(self, launch: Launch, *, copies_back: bool) -> Iterator[ArgumentBuffer]:
        """The arguments, with arrays of the CPU copied to the GPU for as long as this lasts.

        Arrays that share their memory share one copy. Leaving waits for the kernel if anything
        was copied, and then copies what it wrote back to where it came from.
        """
        staged = _staged_arrays(launch)
        pointers: dict[int, Any] = {}
        try:
            for address, (host, _) in staged.items():
                pointers[address] = _call(self.driver.cuMemAlloc, host.nbytes)
                _call(self.driver.cuMemcpyHtoD, pointers[address], address, host.nbytes)
            copies = {address: int(pointer) for address, pointer in pointers.items()}
            yield self._arguments(launch, copies)
            if staged:
                self._finish(launch, self.driver.cuStreamSynchronize, launch.stream or 0)
            for address, (host, is_written) in staged.items():
                if is_written and copies_back:
                    _call(self.driver.cuMemcpyDtoH, address, pointers[address], host.nbytes)
        finally:
            for pointer in pointers.values():
                self.driver.cuMemFree(pointer)

    def _arguments(self, launch: Launch, copies: dict[int, int]) -> ArgumentBuffer:
        maps = self.encoders(launch)
        arguments = ArgumentBuffer(argument_slots(launch, copies), len(maps))
        for place, (tensor, encoder) in enumerate(maps):
            pointer = launch.tensors[tensor].view.pointer
            arguments.map(place, encoder, copies.get(pointer, pointer))
        return arguments

    def _wait_for_producers(self, launch: Launch) -> None:
        """Order the stream behind the streams that the arrays were last written on."""
        driver = self.driver
        for stream in {t.view.stream for t in launch.tensors} - {None, 0, launch.stream}:
            event = _call(driver.cuEventCreate, driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
            _call(driver.cuEventRecord, event, stream)
            _call(driver.cuStreamWaitEvent, launch.stream or 0, event, 0)
            _call(driver.cuEventDestroy, event)

    def _finish(self, launch: Launch, wait: Callable[..., Any], subject: Any) -> None:
        """Wait; a failure is the kernel's."""
        try:
            _call(wait, subject)
        except CudaError as error:
            kernel = launch.program.kernel
            raise PhobosError.at(
                None,
                f"the kernel `{kernel.name}` failed on the GPU: {error.code}",
                notes=(Note("the CUDA context cannot be used after this"),),
                help='device="emulator" names the line that is at fault',
            ) from error


@cache
def _device(ordinal: int) -> CudaDevice:
    return CudaDevice(ordinal)


def _ordinal(view: ArrayView) -> int:
    """The GPU that holds an array."""
    if view.device is not None:
        return view.device
    driver = _bindings()

    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(_call(driver.cuPointerGetAttribute, attribute, view.pointer))


def _staged_arrays(launch: Launch) -> dict[int, tuple[Any, bool]]:
    """By address: each distinct array of the CPU, and whether the kernel writes to it."""
    staged: dict[int, tuple[Any, bool]] = {}
    for tensor in launch.tensors:
        view = tensor.view
        if view.host is None or not view.bytes:
            continue
        host, is_written = staged.get(view.pointer, (view.host, False))
        larger = host if host.nbytes >= view.bytes else view.host
        staged[view.pointer] = (larger, is_written or tensor.parameter.access.writes)
    return staged


def argument_slots(launch: Launch, copies: dict[int, int]) -> list[int]:
    """The slots of all arguments; `copies` gives the address of an array's copy on the GPU."""
    slots: list[int] = []
    for argument in launch.arguments:
        if isinstance(argument, BoundTensor):
            view = argument.view
            slots += descriptor_slots(copies.get(view.pointer, view.pointer), view.shape)
        else:
            slots.append(scalar_slot(argument.parameter.type, argument.value))
    return slots


def _cluster_configuration(driver: Any, cluster: Cluster) -> Any:
    """A launch configuration of one cluster."""
    value = driver.CUlaunchAttributeValue()
    shape = value.clusterDim
    shape.x, shape.y, shape.z = cluster
    value.clusterDim = shape
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value = value
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = cluster
    config.attrs, config.numAttrs = [attribute], 1
    return config


def _load_error(program: Program, error: CudaError, log: str) -> PhobosError:
    notes = tuple(Note(line.strip()) for line in log.splitlines()[:8] if line.strip())
    help = None
    if error.code == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION":
        help = "the driver is older than the PTX; update it, or compile for an older chip"
    return PhobosError.at(
        None,
        f"the driver does not load `{program.kernel.name}` (chip {program.chip}): {error.code}",
        notes=notes,
        help=help,
    )
