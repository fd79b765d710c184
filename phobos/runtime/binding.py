"""From a caller's values to checked arguments.

Everything that can be wrong with a launch is found here, before anything is copied or written:
the number and kinds of the arguments, their types, ranks and extents, dense storage, alignment,
`@aligned` promises, and ranges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phobos.diagnostics import PhobosError, did_you_mean
from phobos.runtime.abi import row_major_strides
from phobos.runtime.arrays import ArrayView, is_array, type_phrase, view_of
from phobos.runtime.device import BoundArgument, BoundScalar, BoundTensor
from phobos.runtime.dtypes import FLOATS, integer_range
from phobos.targets.ptx.contract import (
    TYPE_BYTES,
    KernelContract,
    Parameter,
    ScalarParameter,
    TensorParameter,
)

ALIGNMENT = 16
"""Bytes that a tensor's address must be a multiple of: the widest vector access."""
_MAX_INDEX32 = 2**31 - 1
_MAX_INDEX64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Binding:
    """The checked arguments of a launch.

    `extents` has the value of every dim that the launch decides.
    """

    kernel: KernelContract
    arguments: tuple[BoundArgument, ...]
    extents: Mapping[str, int]

    @property
    def views(self) -> list[ArrayView]:
        """The arrays, in the order of the parameters."""
        return [a.view for a in self.arguments if isinstance(a, BoundTensor)]

    @property
    def index_bits(self) -> int:
        """The index width that all sizes and strides need: 32 or 64."""
        shapes = [view.shape for view in self.views]
        fields = (field for shape in shapes for field in (*shape, *row_major_strides(shape)))
        return 32 if max(fields, default=0) <= _MAX_INDEX32 else 64

    @property
    def names(self) -> dict[str, int]:
        """What the names in a grid expression stand for: extents, constants, integer scalars."""
        values = {k: v for k, v in self.kernel.constants.items() if isinstance(v, int)}
        values.update(self.extents)
        for argument in self.arguments:
            if isinstance(argument, BoundScalar) and isinstance(argument.value, int):
                values[argument.parameter.name] = argument.value
        return values


def bind(
    kernel: KernelContract,
    args: Sequence[Any],
    named: Mapping[str, Any],
    stream: int | None = None,
) -> Binding:
    """Check the values passed for a kernel's parameters, in order or by name.

    Raises PhobosError that names the parameter, what is expected and what was passed.
    """
    values = _assign(kernel, args, named)
    arguments = tuple(
        _tensor(parameter, value, stream)
        if isinstance(parameter, TensorParameter)
        else BoundScalar(parameter, scalar_value(parameter, value))
        for parameter, value in values
    )
    tensors = [argument for argument in arguments if isinstance(argument, BoundTensor)]
    extents = _extents(tensors)
    _check_overlaps(tensors)
    check_aligned(kernel, extents)
    return Binding(kernel, arguments, extents)


def _assign(
    kernel: KernelContract, args: Sequence[Any], named: Mapping[str, Any]
) -> Iterator[tuple[Parameter, Any]]:
    """Each parameter with the value passed for it."""
    names = [parameter.name for parameter in kernel.parameters]
    if len(args) > len(names):
        raise PhobosError.at(
            None,
            f"`{kernel.name}` takes {len(names)} arguments, and {len(args)} were passed",
            help=f"its signature is {kernel}",
        )
    values = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in names:
            raise PhobosError.at(
                None,
                f"`{kernel.name}` has no parameter `{name}`",
                help=did_you_mean(name, names) or f"its signature is {kernel}",
            )
        if name in values:
            raise PhobosError.at(None, f"`{name}` was passed twice, in order and by name")
        values[name] = value
    missing = [name for name in names if name not in values]
    if missing:
        raise PhobosError.at(
            None,
            f"`{kernel.name}` was not given {', '.join(f'`{name}`' for name in missing)}",
            help=f"its signature is {kernel}",
        )
    return ((parameter, values[parameter.name]) for parameter in kernel.parameters)


# Tensors -----------------------------------------------------------------------------------------


def _tensor(parameter: TensorParameter, value: Any, stream: int | None) -> BoundTensor:
    view = view_of(value, parameter.name, stream)
    name = parameter.name
    if view.type != parameter.type:
        raise PhobosError.at(
            None, f"`{name}` must hold {parameter.type}, and the array passed holds {view.type}"
        )
    if len(view.shape) != parameter.rank:
        raise PhobosError.at(
            None,
            f"`{name}` must have {parameter.rank} axes, and the array passed has "
            f"{len(view.shape)} (shape {_shape(view.shape)})",
            help=f"it is declared {parameter}",
        )
    if not view.is_dense:
        raise PhobosError.at(
            None,
            f"`{name}` must be dense and row-major, and the array passed has other strides",
            help="pass a contiguous copy",
        )
    if view.is_read_only and parameter.access.writes:
        raise PhobosError.at(None, f"`{name}` is written, and the array passed is read-only")
    # An array of the CPU moves to a fresh, aligned address in any case.
    if view.on_gpu and view.pointer % ALIGNMENT:
        raise PhobosError.at(
            None,
            f"`{name}` must start at a multiple of {ALIGNMENT} bytes, and the array passed starts "
            f"{view.pointer % ALIGNMENT} bytes behind one",
            help="pass a copy, or a view that starts at such a place",
        )
    _check_bytes(view, name)
    return BoundTensor(parameter, view)


def _check_bytes(view: ArrayView, name: str) -> None:
    if view.size * TYPE_BYTES[view.type] > _MAX_INDEX64:
        raise PhobosError.at(None, f"`{name}` of shape {_shape(view.shape)} is too large")


def _extents(tensors: Sequence[BoundTensor]) -> dict[str, int]:
    """The extent of every named dim that is read from the launch; all tensors must agree."""
    extents: dict[str, int] = {}
    first: dict[str, str] = {}
    for tensor in tensors:
        parameter = tensor.parameter
        for axis, (dim, extent) in enumerate(zip(parameter.dims, tensor.view.shape, strict=True)):
            if dim.extent is not None:
                if extent != dim.extent:
                    raise _compiled_in(parameter, axis, extent)
                continue
            assert dim.name is not None
            known = extents.setdefault(dim.name, extent)
            if known != extent:
                raise PhobosError.at(
                    None,
                    f"`{dim.name}` is {known} in `{first[dim.name]}` and {extent} in "
                    f"`{parameter.name}` (axis {axis}, shape {_shape(tensor.view.shape)})",
                    help=f"arrays that share `{dim.name}` must have the same extent there",
                )
            first.setdefault(dim.name, parameter.name)
    return extents


def _compiled_in(parameter: TensorParameter, axis: int, extent: int) -> PhobosError:
    dim = parameter.dims[axis]
    what = f"`{dim.name}`, compiled in as {dim.extent}" if dim.name else f"{dim.extent}"
    return PhobosError.at(
        None,
        f"axis {axis} of `{parameter.name}` must have extent {what}; the array passed has {extent}",
        help=f"compile the kernel with {dim.name}={extent}" if dim.name else None,
    )


def _check_overlaps(tensors: Sequence[BoundTensor]) -> None:
    """Refuse a written NumPy array that overlaps another one in part.

    On a GPU each would be a copy of its own, so that the kernel would not see the overlap.
    """
    hosts = [tensor for tensor in tensors if not tensor.view.on_gpu and tensor.view.bytes]
    hosts.sort(key=lambda tensor: tensor.view.pointer)
    for one, other in itertools.combinations(hosts, 2):
        if one.view.pointer == other.view.pointer:
            continue
        overlap = one.view.pointer + one.view.bytes > other.view.pointer
        if overlap and (one.parameter.access.writes or other.parameter.access.writes):
            raise PhobosError.at(
                None,
                f"`{one.parameter.name}` and `{other.parameter.name}` overlap in part, and the "
                "kernel writes to one of them",
                help="pass a copy of one of them",
            )


def check_aligned(kernel: KernelContract, extents: Mapping[str, int]) -> None:
    """Refuse extents that break an `@aligned` promise; the kernel would trap on them."""
    for name, multiple in kernel.aligned.items():
        extent = extents.get(name)
        if extent is not None and extent % multiple:
            raise PhobosError.at(
                None,
                f"`{kernel.name}` is @aligned({name} = {multiple}), and {name} is {extent}, "
                f"which is no multiple of {multiple}",
                help="pad the arrays, or take the attribute away",
            )


def _shape(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


# Scalars -----------------------------------------------------------------------------------------


def scalar_value(parameter: ScalarParameter, value: Any) -> int | float | bool:
    """The Python number to pass for a scalar parameter.

    Takes Python and NumPy numbers and arrays of one element without axes. Raises PhobosError for
    anything else, for a fraction where an integer is expected, and outside the type's range.
    """
    name, type_name = parameter.name, parameter.type
    if type(value) is float and type_name in FLOATS:
        return value
    number = _number(value)
    if number is None:
        shown = "an array" if is_array(value) else type_phrase(value)
        raise PhobosError.at(None, f"`{name}` is a scalar of {type_name}, and {shown} was passed")
    if type_name in FLOATS:
        return float(number)
    if isinstance(number, float) and not number.is_integer():
        raise PhobosError.at(
            None, f"`{name}` is a scalar of {type_name}, and {number} is not an integer"
        )
    integer = int(number)
    least, most = integer_range(type_name)
    if not least <= integer <= most:
        raise PhobosError.at(
            None,
            f"`{name}` is a scalar of {type_name}, and {integer} is outside its range of {least} "
            f"to {most}",
        )
    return bool(integer) if type_name == "bool" else integer


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool | int | float):
        return value
    if getattr(value, "shape", None) != () or not hasattr(value, "item"):
        return None
    item = value.item()
    if isinstance(item, bool | int | float):
        return item
    # Scalars of ml_dtypes are their own items.
    return float(item) if hasattr(item, "__float__") and not isinstance(item, complex) else None
