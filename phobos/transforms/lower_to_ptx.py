"""`ph-lower-to-ptx`: write out what each thread does.

    %b = arith.addf %a, %a : tensor<1024xf32, #tile.layout<"register=[[1], [2]] ...">>
    -->
    %b0 = ptx.add f32 %a0, %a0
    %b1 = ptx.add f32 %a1, %a1     // one instruction a register of the thread's share
    ...

Each kernel becomes a `ptx.entry` whose parameters are the memref descriptors of the launch
ABI: allocated and aligned pointer, offset, sizes, strides; behind them those for the tensor maps
that it reads. The tile module is replaced.

Precondition: layouts assigned, buffers placed, collectives expanded. Postcondition: nothing
but `ptx` is left. Cost: one sweep, about 8 us an instruction made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx import B64, InstructionBuilder, Parameter
from phobos.ir.kernel import (
    LAUNCH_BOUNDS,
    argument_name,
    index_bits_of,
    kernel_name,
    launch_bound,
    threads_of,
)
from phobos.ir.locations import error_at
from phobos.record import Record, record
from phobos.targets.ptx.chips import MAX_STATIC_SHARED, Chip, chip
from phobos.targets.ptx.tensor_maps import (
    cluster_of,
    map_parameters,
    set_cluster,
    set_tensor_maps,
)
from phobos.transforms.loop_stages import DYNAMIC
from phobos.transforms.lowering.addresses import shared_symbol
from phobos.transforms.lowering.registers import Kind, kind_of
from phobos.transforms.lowering.state import Handler, Lowering, TensorParameter
from phobos.transforms.lowering.tensor_copies import tensor_maps
from phobos.transforms.place_tiles import ALIGNED, ALIGNMENT, SHARED_BYTES
from phobos.transforms.ptx_limit_registers import THREADS

DYNAMIC_BYTES = "phobos.dynamic_shared_bytes"
"""On the entry of a kernel whose launch sizes the shared memory."""
_HALF_BYTES = 2


@dataclass(frozen=True)
class LowerToPtxPass(ModulePass):
    """Lowers every kernel to PTX instructions for a chip."""

    name = "ph-lower-to-ptx"

    chip: str = "sm_80"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replaces each gpu.module by a ptx.module."""
        target = chip(self.chip)
        for module in list(op.body.block.ops):
            if isinstance(module, gpu.ModuleOp):
                _replace_module(module, target)


def _replace_module(module: gpu.ModuleOp, target: Chip) -> None:
    block = module.parent
    assert block is not None
    names = [kernel for kernel in module.body.block.ops if isinstance(kernel, gpu.FuncOp)]
    entries: list[Operation] = []
    for kernel in names:
        entries += lower_kernel(kernel, target)
    lowered = ptx.PtxModuleOp.make(module.sym_name.data, target.name, entries)
    lowered.location = module.location
    block.insert_op_before(lowered, module)
    module.detach()
    module.erase()


_FAMILIES = (
    "position",
    "tiles",
    "elementwise",
    "accesses",
    "control",
    "conversions",
    "collectives",
    "folds",
    "exchanges",
    "dots",
    "fragments",
    "warpgroups",
    "tensor_copies",
    "math_instructions",
    "functions",
    "runs",
    "clusters",
    "gathers",
    "scans",
    "unwritten",
    "atomics",
    "debugging",
)
"""Modules of phobos.transforms.lowering, those that most kernels need first."""


@cache
def _handler(kind: type[Operation]) -> Handler | None:
    """What lowers the ops of a class; families are imported one by one until one knows it."""
    for family in _FAMILIES:
        module = import_module(f"phobos.transforms.lowering.{family}")
        handler = module.HANDLERS.get(kind)
        if handler is not None:
            return handler
    return None


def lower_kernel(kernel: gpu.FuncOp, target: Chip) -> list[Operation]:
    """The kernel's entry, and its shared memory if it has any."""
    parameters, readers = _parameters(kernel)
    maps = tensor_maps(kernel)
    numbers = {one: len(parameters) + number for number, one in enumerate(maps)}
    entry = _entry(kernel, [*parameters, *map_parameters(maps)])
    set_tensor_maps(entry, maps)
    entry.location = kernel.location
    builder = InstructionBuilder(entry.body, kernel.location)
    low = Lowering(kernel, builder, target, _handler)
    low.tensor_maps = numbers
    for argument, kinds in zip(kernel.body.blocks[0].args, readers, strict=True):
        _read_argument(low, argument, kinds)
    low.block(kernel.body.blocks[0])
    shared = kernel.attributes.get(SHARED_BYTES)
    if not isinstance(shared, IntegerAttr):
        return [entry]
    size = shared.value.data
    dynamic = DYNAMIC in kernel.attributes
    _check_shared(kernel, target, size, dynamic=dynamic)
    if dynamic:
        entry.attributes[DYNAMIC_BYTES] = IntegerAttr(size, i64)
    asked = kernel.attributes.get(ALIGNED)
    alignment = asked.value.data if isinstance(asked, IntegerAttr) else ALIGNMENT
    buffer = ptx.SharedOp.make(
        shared_symbol(kernel), 0 if dynamic else size, alignment, is_extern=dynamic
    )
    buffer.location = kernel.location
    return [buffer, entry]


def _check_shared(kernel: gpu.FuncOp, target: Chip, size: int, *, dynamic: bool) -> None:
    """Refuses a kernel whose buffers do not fit the chip, with what to do."""
    if not dynamic and size > MAX_STATIC_SHARED:
        raise error_at(
            kernel,
            f"`{kernel_name(kernel)}` needs {size} bytes of shared memory; a kernel whose shared "
            f"memory is static has {MAX_STATIC_SHARED}",
            help="mark the kernel @dynshared, use smaller tiles, or fewer stages: @pipeline(2)",
        )
    if size > target.max_dynamic_shared:
        raise error_at(
            kernel,
            f"`{kernel_name(kernel)}` needs {size} bytes of shared memory; a CTA on {target.name} "
            f"has at most {target.max_dynamic_shared}",
            help="use smaller tiles, or fewer stages: @pipeline(2)",
        )


def _entry(kernel: gpu.FuncOp, parameters: list[Parameter]) -> ptx.EntryOp:
    threads = threads_of(kernel)
    entry = ptx.EntryOp.make(
        kernel_name(kernel),
        parameters,
        maxntid=(threads, 1, 1) if LAUNCH_BOUNDS in kernel.attributes else None,
        minnctapersm=launch_bound(kernel, "min_ctas"),
        maxnreg=launch_bound(kernel, "max_regs"),
    )
    set_cluster(entry, cluster_of(kernel))
    entry.attributes[THREADS] = IntegerAttr(threads, i64)
    return entry


@record
class _Reader(Record):
    """Where an argument's PTX parameters start and how to read one of its kind."""

    first: int
    kind: Kind | None
    """The kind of a scalar; None for a tensor."""


def _parameters(kernel: gpu.FuncOp) -> tuple[list[Parameter], list[_Reader]]:
    """The ABI's parameter list, and for each argument where it is in it."""
    bits = index_bits_of(kernel)
    parameters: list[Parameter] = []
    readers: list[_Reader] = []
    for argument in kernel.body.blocks[0].args:
        name = argument_name(kernel, argument.index)
        type_ = argument.type
        if isinstance(type_, MemRefType):
            readers.append(_Reader(len(parameters), None))
            parameters += descriptor(name, len(type_.get_shape()), bits)
            continue
        kind = kind_of(type_, bits)
        if kind is None:
            raise error_at(kernel, f"a parameter of type {type_} is not supported yet")
        readers.append(_Reader(len(parameters), kind))
        parameters.append(scalar_parameter(name, kind))
    return parameters, readers


def descriptor(name: str, rank: int, index_bits: int) -> list[Parameter]:
    """The 3 + 2 * rank parameters of a tensor, in the order of the launch ABI."""
    index = f"u{index_bits}"
    fields = [f"{name}_offset"]
    fields += [f"{name}_size_{axis}" for axis in range(rank)]
    fields += [f"{name}_stride_{axis}" for axis in range(rank)]
    pointers = [Parameter(f"{name}_allocated", "u64"), Parameter(f"{name}_aligned", "u64")]
    return pointers + [Parameter(field, index) for field in fields]


def scalar_parameter(name: str, kind: Kind) -> Parameter:
    """A scalar at its own width; 16-bit floats as two bytes, as the ABI has them."""
    if kind.is_half:
        return Parameter(name, "b8", align=_HALF_BYTES, count=_HALF_BYTES)
    return Parameter(name, parameter_type(kind))


def parameter_type(kind: Kind) -> str:
    """The PTX type that a scalar parameter is declared and read with."""
    if kind.is_half:
        return "b16"
    is_wide_float = kind.is_float and not kind.is_small_float
    return f"f{kind.bits}" if is_wide_float else f"u{max(8, kind.bits)}"


def _read_argument(low: Lowering, argument: SSAValue, reader: _Reader) -> None:
    build = low.build
    if reader.kind is not None:
        kind = reader.kind
        if kind.bits == 1:
            byte = build.param(reader.first, "u8", ptx.B32)
            low.set(argument, build.emit(ptx.SetpOp, "ne.b32", byte, 0))
            return
        low.set(argument, build.param(reader.first, parameter_type(kind), kind.register))
        return
    assert isinstance(argument.type, MemRefType)
    rank = len(argument.type.get_shape())
    index = f"u{low.index_bits}"
    pointer = build.param(reader.first + 1, "u64", B64)
    base = build.emit(ptx.CvtaOp, "to.global.u64", pointer)
    first = reader.first + 3
    sizes = [_size(low, argument.type, axis, first + axis, index) for axis in range(rank)]
    strides = [build.param(first + rank + axis, index) for axis in range(rank)]
    low.tensors[argument] = TensorParameter(base, tuple(sizes), tuple(strides))


def _size(low: Lowering, type_: MemRefType, axis: int, parameter: int, index: str) -> SSAValue:
    extent = type_.get_shape()[axis]
    if extent >= 0:
        return low.build.imm(extent, low.index_kind.register)
    return low.build.param(parameter, index)
