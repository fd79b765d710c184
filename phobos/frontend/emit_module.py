"""The IR of a program: a `gpu.module` with a `gpu.func` for each kernel.

What the attributes of a kernel say becomes attributes of its function; the names that the
source gives to arguments and extents are in `arg_attrs`, one dictionary for each argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

from xdsl.dialects import gpu
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Region

from phobos.diagnostics import Location
from phobos.frontend.emit_expressions import emit_expression
from phobos.frontend.emit_statements import emit_statement
from phobos.frontend.emit_types import memref_attr, scalar_attr
from phobos.frontend.emitter import Emitter, location, set_argument
from phobos.frontend.typed import (
    Kernel,
    KernelSettings,
    Launch,
    Parameter,
    Program,
    TensorParameter,
)
from phobos.frontend.types import Dim, ScalarType
from phobos.ir.kernel import CLUSTER

_INDEX = IndexType()
_UNIT = UnitAttr()


def emit_module(
    program: Program, name: str, index_bits: int | None, *, assertions: bool = False
) -> ModuleOp:
    """The module of a checked program that was read from the source called `name`.

    Without `assertions` what only debug builds do is left out.
    """
    place = Location(name, 1, 1)
    kernels = [_kernel(kernel, index_bits, assertions) for kernel in program.kernels]
    attributes: dict[str, Attribute] = {}
    if index_bits is not None:
        attributes["phobos.index_bits"] = IntegerAttr(index_bits, i32)
    inner = gpu.ModuleOp.create(
        properties={"sym_name": StringAttr(module_name(name))},
        attributes=attributes,
        regions=[Region(Block(kernels))],
        location=location(place),
    )
    return ModuleOp.create(regions=[Region(Block([inner]))], location=location(place))


def module_name(name: str) -> str:
    """An identifier made of the stem of a file's name."""
    stem = re.sub(r"\W", "_", PurePath(name).stem, flags=re.ASCII).strip("_")
    if not stem:
        return "kernels"
    return f"_{stem}" if stem[0].isdigit() else stem


def _kernel(kernel: Kernel, index_bits: int | None, assertions: bool) -> gpu.FuncOp:
    emitter = Emitter(index_bits, emit_expression, emit_statement, assertions=assertions)
    types = [_parameter_attr(parameter) for parameter in kernel.parameters]
    entry = Block(arg_types=types)
    for parameter, argument in zip(kernel.parameters, entry.args, strict=True):
        set_argument(argument, parameter.name, parameter.declared)
        if isinstance(parameter, TensorParameter):
            emitter.tensors[parameter] = argument
        else:
            emitter.values[parameter] = argument
    emitter.statements(kernel.body)
    emitter.add(gpu.ReturnOp, (), (), kernel.place)
    entry.add_ops([*emitter.constants, *emitter.ops])
    return gpu.FuncOp.create(
        properties={
            "function_type": FunctionType.from_lists(types, []),
            "kernel": _UNIT,
        },
        attributes={
            "sym_name": StringAttr(kernel.name),
            "gpu.known_block_size": DenseArrayBase.from_list(i32, [kernel.settings.threads, 1, 1]),
            "arg_attrs": ArrayAttr([_argument_attr(parameter) for parameter in kernel.parameters]),
            **_settings(kernel.settings),
        },
        regions=[Region(entry)],
        location=location(kernel.place),
    )


def _parameter_attr(parameter: Parameter) -> Attribute:
    if isinstance(parameter, TensorParameter):
        return memref_attr(parameter.type)
    assert isinstance(parameter.type, ScalarType)
    return scalar_attr(parameter.type)


def _argument_attr(parameter: Parameter) -> DictionaryAttr:
    """What the IR type of an argument does not say: names, and the sign of integers."""
    entries: dict[str, Attribute] = {"phobos.name": StringAttr(parameter.name)}
    element = parameter.type
    if isinstance(parameter, TensorParameter):
        element = parameter.type.element
        entries["phobos.dims"] = ArrayAttr([_dim_attr(dim) for dim in parameter.type.dims])
    assert isinstance(element, ScalarType)
    entries["phobos.type"] = StringAttr(element.name)
    if element.is_unsigned:
        entries["phobos.unsigned"] = _UNIT
    return DictionaryAttr(entries)


def _dim_attr(dim: Dim) -> Attribute:
    if dim.name is not None:
        return StringAttr(dim.name)
    assert dim.extent is not None
    return IntegerAttr(dim.extent, _INDEX)


def _settings(settings: KernelSettings) -> dict[str, Attribute]:
    out: dict[str, Attribute] = {f"phobos.{flag}": _UNIT for flag in settings.flags}
    if settings.launch is not None:
        out["phobos.launch_bounds"] = _launch_attr(settings.launch)
    if settings.constants:
        out["phobos.constants"] = _index_dict(settings.constants)
        out["phobos.autotune"] = DictionaryAttr(
            {
                name: ArrayAttr([IntegerAttr(value, _INDEX) for value in values])
                for name, values in settings.autotune.items()
            }
        )
    if settings.aligned:
        out["phobos.aligned"] = _index_dict(settings.aligned)
    if settings.requirements:
        out["phobos.require"] = ArrayAttr([StringAttr(text) for text in settings.requirements])
    if settings.grid:
        out["phobos.grid"] = DictionaryAttr(
            {axis: StringAttr(text) for axis, text in settings.grid.items()}
        )
    if settings.pipeline is not None:
        out["phobos.pipeline"] = IntegerAttr(settings.pipeline, i32)
    if (settings.cluster or 1) > 1:
        out[CLUSTER] = DenseArrayBase.from_list(i64, [settings.cluster or 1, 1, 1])
    if settings.tensorcore is not None:
        out["phobos.tensorcore"] = StringAttr(settings.tensorcore)
    return out


def _launch_attr(launch: Launch) -> DictionaryAttr:
    parts = {
        "threads": launch.threads,
        "min_ctas": launch.min_ctas,
        "max_regs": launch.max_regs,
    }
    return DictionaryAttr(
        {name: IntegerAttr(value, i32) for name, value in parts.items() if value is not None}
    )


def _index_dict(values: Mapping[str, int]) -> DictionaryAttr:
    return DictionaryAttr({name: IntegerAttr(value, _INDEX) for name, value in values.items()})
