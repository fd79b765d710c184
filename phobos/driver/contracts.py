"""Reading launch contracts off the IR.

A kernel's signature and attributes are read from the tile IR as the front end made it, since a
producer other than our front end may leave out any of them and passes may drop what they have
used up. What only the last level knows (shared memory) comes from the `ptx` module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from xdsl.dialects import gpu
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BFloat16Type,
    DictionaryAttr,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, get_effects

import phobos
from phobos.analysis.grid import infer_grid
from phobos.diagnostics import PhobosError
from phobos.dialects.ptx import EntryOp, PtxModuleOp, SharedOp, SymbolOp, entries_in
from phobos.driver.fingerprint import compiler_fingerprint
from phobos.driver.options import CompileOptions
from phobos.ir.kernel import (
    argument_attributes,
    argument_name,
    dim_names,
    index_bits_of,
    int_dict,
    kernel_name,
    kernels,
    threads_of,
)
from phobos.ir.locations import location_of
from phobos.ir.views import operations
from phobos.targets.ptx.contract import (
    TYPE_BYTES,
    Access,
    Contract,
    Dimension,
    GridSource,
    KernelContract,
    LaunchBounds,
    Parameter,
    ScalarParameter,
    TensorParameter,
)
from phobos.targets.ptx.tensor_maps import cluster_of, tensor_maps_of

_FLOAT_NAMES: dict[type[Attribute], str] = {
    Float16Type: "f16",
    BFloat16Type: "bf16",
    Float32Type: "f32",
    Float64Type: "f64",
    Float8E4M3FNType: "f8e4m3",
    Float8E5M2Type: "f8e5m2",
}


DYNAMIC_SHARED = "phobos.dynamic_shared_bytes"
"""The integer attribute of a `ptx.entry` that says how much shared memory a launch must give."""


def kernel_contracts(module: ModuleOp) -> tuple[KernelContract, ...]:
    """The contracts of the kernels of a tile-level module, without their shared memory.

    Raises PhobosError if a parameter has a type that no launch can pass.
    """
    return tuple(_kernel_contract(kernel) for kernel in kernels(module))


_VERSION = re.compile(r"^\.version\s+(\d+\.\d+)", re.MULTILINE)
_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)


def complete_contract(
    module: ModuleOp,
    ptx: str,
    kernels: Iterable[KernelContract],
    options: CompileOptions,
    source: str,
) -> Contract:
    """The contract of a compiled module.

    `module` holds the `ptx.module` that was printed as `ptx`, `kernels` are the contracts from
    before the passes. Chip and version are read off the text, which is what the driver reads too.
    """
    compiled = dict(_compiled(module))
    version, target = _VERSION.search(ptx), _TARGET.search(ptx)
    assert version is not None
    assert target is not None
    return Contract(
        source=source,
        chip=target[1],
        chip_from=options.chip_from,
        ptx_version=version[1],
        index_bits=_index_bits(module),
        extent_multiple=options.extent_multiple,
        extent_multiples=dict(options.extent_multiples),
        kernels=tuple(replace(k, **compiled[k.name]) for k in kernels if k.name in compiled),
        compiler_name="phobos",
        compiler_version=phobos.__version__,
        compiler_fingerprint=compiler_fingerprint(),
    )


def _kernel_contract(kernel: gpu.FuncOp) -> KernelContract:
    grid, grid_from = _grid(kernel)
    return KernelContract(
        name=kernel_name(kernel),
        threads=threads_of(kernel),
        parameters=tuple(_parameters(kernel)),
        launch_bounds=_launch_bounds(kernel),
        persistent="phobos.persistent" in kernel.attributes,
        constants=_constants(kernel),
        autotune=_autotune(kernel),
        aligned=int_dict(kernel, "phobos.aligned"),
        grid=grid,
        grid_from=grid_from,
    )


# Parameters --------------------------------------------------------------------------------------


def _parameters(kernel: gpu.FuncOp) -> Iterator[Parameter]:
    arguments = kernel.body.blocks[0].args
    accesses = _accesses(arguments, kernel)
    for position, argument in enumerate(arguments):
        name = argument_name(kernel, position)
        if not isinstance(argument.type, MemRefType):
            yield ScalarParameter(name, _type_name(kernel, position, argument.type))
            continue
        type_name = _type_name(kernel, position, argument.type.element_type)
        dims = tuple(_dimensions(kernel, position, argument.type))
        yield TensorParameter(name, type_name, dims, accesses[position])


def _dimensions(kernel: gpu.FuncOp, position: int, type_: MemRefType) -> Iterator[Dimension]:
    """The axes of a tensor; one without a name gets that of its size argument."""
    names = dim_names(kernel, position)
    for axis, (name, extent) in enumerate(zip(names, type_.get_shape(), strict=True)):
        known = None if extent == DYNAMIC_INDEX else extent
        label = name if isinstance(name, str) else None
        if label is None and known is None:
            label = f"{argument_name(kernel, position)}_size_{axis}"
        yield Dimension(label, known)


def _type_name(kernel: gpu.FuncOp, position: int, type_: Attribute) -> str:
    """The language's name for a type; IR that does not tell signs apart means signed ones."""
    given = argument_attributes(kernel, position).get("phobos.type")
    if isinstance(given, StringAttr) and given.data in TYPE_BYTES:
        return given.data
    name = _FLOAT_NAMES.get(type(type_))
    if name is None and isinstance(type_, IntegerType):
        name = "bool" if type_.width.data == 1 else f"i{type_.width.data}"
    if name not in TYPE_BYTES:
        raise PhobosError.at(
            location_of(kernel),
            f"parameter `{argument_name(kernel, position)}` of kernel `{kernel_name(kernel)}` "
            f"has type {type_}, which cannot be passed at a launch",
        )
    return name


def _accesses(arguments: Iterable[SSAValue], kernel: gpu.FuncOp) -> list[Access]:
    """What the kernel does to each parameter, from the memory effects of the ops that name it."""
    parameter = {argument: index for index, argument in enumerate(arguments)}
    touched_by: dict[MemoryEffectKind, set[int]] = {kind: set() for kind in MemoryEffectKind}
    for op in kernel.walk():
        touched = {
            parameter[value]
            for value in op.operands
            if value in parameter and isinstance(value.type, MemRefType)
        }
        if not touched:
            continue
        for kind in _effects(op):
            touched_by[kind] |= touched
        # A cast or a view stands for the tensor that it was made from.
        views = (result for result in op.results if isinstance(result.type, MemRefType))
        parameter.update(dict.fromkeys(views, min(touched)))
    reads, writes = touched_by[MemoryEffectKind.READ], touched_by[MemoryEffectKind.WRITE]
    count = len(kernel.body.blocks[0].args)
    return [_ACCESS[index in reads, index in writes] for index in range(count)]


_ACCESS = {
    (False, False): Access.NONE,
    (True, False): Access.READ,
    (False, True): Access.WRITE,
    (True, True): Access.READWRITE,
}

_UNDECLARED: dict[str, tuple[MemoryEffectKind, ...]] = {
    "vector.load": (MemoryEffectKind.READ,),
    "vector.store": (MemoryEffectKind.WRITE,),
}
"""Effects of ops whose definitions in xDSL do not declare them."""


def _effects(op: Operation) -> Iterable[MemoryEffectKind]:
    """How an op touches memory; one that does not say may read and write."""
    effects = get_effects(op)
    if effects is not None:
        return [effect.kind for effect in effects]
    return _UNDECLARED.get(op.name, (MemoryEffectKind.READ, MemoryEffectKind.WRITE))


def _index_bits(module: ModuleOp) -> int:
    """The index width, by the third argument of a tensor: its offset."""
    for entry in entries_in(module):
        for before, parameter in pairwise(entry.parameters):
            if before.name.endswith("_aligned") and parameter.name.endswith("_offset"):
                return 64 if parameter.type == "u64" else 32
    return index_bits_of(module)


# What the last level says ------------------------------------------------------------------------


def _compiled(module: ModuleOp) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each entry, and the fields of its contract that only it knows.

    Those are the bytes of shared memory, the tensor maps and the cluster.
    """
    for container in module.body.block.ops:
        if not isinstance(container, PtxModuleOp):
            continue
        variables = {op.sym_name: op for op in container.body.ops if isinstance(op, SharedOp)}
        for entry in container.body.ops:
            if isinstance(entry, EntryOp):
                used = set(_symbols_in(entry))
                dynamic = entry.attributes.get(DYNAMIC_SHARED)
                yield (
                    entry.sym_name,
                    {
                        "static_shared_bytes": _end_of(
                            variables[name] for name in variables if name in used
                        ),
                        "dynamic_shared_bytes": (
                            dynamic.value.data if isinstance(dynamic, IntegerAttr) else 0
                        ),
                        "tensor_maps": tensor_maps_of(entry),
                        "cluster": cluster_of(entry),
                    },
                )


def _symbols_in(entry: EntryOp) -> Iterator[str]:
    """The variables whose addresses a kernel takes."""
    for block in entry.body.blocks:
        for op in operations(block):
            if type(op) is SymbolOp:
                yield op.symbol


def _end_of(variables: Iterable[SharedOp]) -> int:
    """Bytes that variables take one behind the other, each at its alignment."""
    end = 0
    for variable in variables:
        end = -(-end // variable.align) * variable.align + variable.size
    return end


# Attributes --------------------------------------------------------------------------------------


def _launch_bounds(kernel: gpu.FuncOp) -> LaunchBounds | None:
    if "phobos.launch_bounds" not in kernel.attributes:
        return None
    given = int_dict(kernel, "phobos.launch_bounds")
    threads = given.get("threads", threads_of(kernel))
    return LaunchBounds(threads, given.get("min_ctas"), given.get("max_regs"))


def _constants(kernel: gpu.FuncOp) -> dict[str, int | float]:
    values: dict[str, int | float] = {}
    for name, value in _entries(kernel, "phobos.constants"):
        if isinstance(value, IntegerAttr | FloatAttr):
            values[name] = value.value.data
    return values


def _autotune(kernel: gpu.FuncOp) -> dict[str, tuple[int, ...]]:
    lists: dict[str, tuple[int, ...]] = {}
    for name, values in _entries(kernel, "phobos.autotune"):
        if isinstance(values, ArrayAttr):
            lists[name] = tuple(v.value.data for v in values.data if isinstance(v, IntegerAttr))
    return lists


def _entries(kernel: gpu.FuncOp, name: str) -> Iterable[tuple[str, Attribute]]:
    found = kernel.attributes.get(name)
    return found.data.items() if isinstance(found, DictionaryAttr) else ()


def _grid(kernel: gpu.FuncOp) -> tuple[tuple[str, str, str] | None, GridSource]:
    """The default grid: what `@grid` says, else what the outputs imply, else none."""
    given = dict(_entries(kernel, "phobos.grid"))
    if given:
        texts = {axis: text.data for axis, text in given.items() if isinstance(text, StringAttr)}
        x, y, z = (texts.get(axis, "1") for axis in "xyz")
        return (x, y, z), GridSource.ATTRIBUTE
    inferred = infer_grid(kernel)
    return inferred, GridSource.NONE if inferred is None else GridSource.INFERRED
