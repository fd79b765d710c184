"""Kernel arguments: arrays become buffers, scalars and tensor maps bytes of the parameter block."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import PhobosError
from phobos.emulator.memory.buffers import Buffer, GlobalMemory
from phobos.emulator.memory.layout import Layout
from phobos.emulator.tensor_map import (
    MAP_ALIGNMENT,
    MAP_BYTES,
    TensorMapArgument,
    encode_tensor_map,
)
from phobos.targets.ptx.parse.records import Function, Variable

_POINTER_TYPES = frozenset({"u64", "b64", "s64"})


@dataclass
class _Span:
    """Host memory from `low` to `high` that some arrays share, and the buffer that holds it.

    `mapped` are the numbers of the arguments that only map it.
    """

    low: int
    high: int
    arrays: list[tuple[int, np.ndarray]]
    mapped: frozenset[int]
    buffer: Buffer | None = None

    @property
    def owners(self) -> list[int]:
        """The numbers of the arguments that are the memory itself; the maps if there are none."""
        numbers = sorted(index for index, _ in self.arrays)
        return [index for index in numbers if index not in self.mapped] or numbers


class PlacedArguments:
    """The arrays of a launch and their buffers."""

    def __init__(self, spans: list[_Span]) -> None:
        self._spans = spans

    def write_back(self, buffers: GlobalMemory) -> None:
        """Copy what the kernel wrote into the arrays."""
        for span in self._spans:
            buffer = span.buffer
            if buffer is None or not buffer.is_written:
                continue
            data = buffers.bytes_of(buffer)
            for _, array in span.arrays:
                if array.flags.writeable:
                    _array_view(data, span.low, array, copy_to=array)


def place_arguments(
    function: Function,
    layout: Layout,
    buffers: GlobalMemory,
    args: Sequence[Any],
    uninitialised: frozenset[int],
) -> PlacedArguments:
    """Check the arguments, reserve and allocate all buffers, and fill the parameter block.

    Arrays that share memory on the host share it in the kernel, too.

    Raises:
        PhobosError: The number, a type or a size does not fit the kernel's parameters.
    """
    parameters = function.parameters
    if len(args) != len(parameters):
        names = ", ".join(parameter.name for parameter in parameters)
        _fail(
            f"kernel `{function.name}` takes {len(parameters)} arguments ({names}), got {len(args)}"
        )
    arrays = {
        i: arg
        for i, arg in enumerate(args)
        if isinstance(arg, np.ndarray) and _is_pointer(parameters[i], arg)
    }
    mapped = {i: arg.array for i, arg in enumerate(args) if isinstance(arg, TensorMapArgument)}
    arrays |= mapped
    for index in sorted(uninitialised - arrays.keys() | uninitialised & mapped.keys()):
        _fail(f"argument {index} counts as uninitialised but is no array")
    spans = _spans(arrays, frozenset(mapped))
    _reserve(spans, buffers, parameters)
    block_size = layout.lay_out_parameters(function)
    block = buffers.reserve("the parameters", block_size, is_writable=False)
    layout.parameter_block = block.address
    layout.special_ranges.setdefault("param", []).append(
        (block.address, block.address + block.size)
    )
    encoded = _encode_all(function, args, arrays, spans)
    buffers.allocate()
    _fill(spans, buffers, uninitialised)
    data = buffers.bytes_of(block)
    for parameter, content in zip(parameters, encoded, strict=True):
        start = layout.parameters[parameter.name]
        data[start : start + len(content)] = np.frombuffer(content, dtype=np.uint8)
    return PlacedArguments(spans)


def _is_pointer(parameter: Variable, array: np.ndarray) -> bool:
    return (
        not parameter.is_array
        and parameter.type in _POINTER_TYPES
        and (array.ndim > 0 or array.dtype.itemsize != 8 or array.base is None)
    )


def _fail(message: str) -> NoReturn:
    raise PhobosError.at(None, message)


# Arrays ------------------------------------------------------------------------------------------


def _extent(array: np.ndarray) -> tuple[int, int]:
    """The addresses of the first byte of an array and one past its last."""
    start = array.__array_interface__["data"][0]
    low = high = 0
    if array.size == 0:
        return start, start
    for extent, stride in zip(array.shape, array.strides, strict=True):
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return start + low, start + high + array.itemsize


def _spans(arrays: dict[int, np.ndarray], mapped: frozenset[int]) -> list[_Span]:
    spans: list[_Span] = []
    extents = {index: _extent(array) for index, array in arrays.items()}
    for index in sorted(arrays, key=lambda i: extents[i]):
        low, high = extents[index]
        last = spans[-1] if spans else None
        if last is not None and low < last.high and low < high:
            last.high = max(last.high, high)
            last.arrays.append((index, arrays[index]))
        else:
            spans.append(_Span(low, high, [(index, arrays[index])], mapped))
    return spans


def _reserve(spans: list[_Span], buffers: GlobalMemory, parameters: Sequence[Variable]) -> None:
    for span in sorted(spans, key=lambda s: min(index for index, _ in s.arrays)):
        names = " and ".join(f"`{parameters[index].name}`" for index in span.owners)
        writable = any(array.flags.writeable for _, array in span.arrays)
        span.buffer = buffers.reserve(names, span.high - span.low, is_writable=writable)


def _fill(spans: list[_Span], buffers: GlobalMemory, uninitialised: frozenset[int]) -> None:
    for span in spans:
        assert span.buffer is not None
        data = buffers.bytes_of(span.buffer)
        for _, array in span.arrays:
            _array_view(data, span.low, array, copy_to=None)
        if uninitialised.issuperset(span.owners):
            buffers.poison(span.buffer)


def _array_view(
    data: npt.NDArray[np.uint8], low: int, array: np.ndarray, copy_to: np.ndarray | None
) -> None:
    """Copy an array into the bytes of its span, or back (`copy_to`), bit for bit."""
    if array.size == 0:
        return
    offset = array.__array_interface__["data"][0] - low
    raw = np.dtype((np.void, array.itemsize))
    inside = np.ndarray(array.shape, dtype=raw, buffer=data, offset=offset, strides=array.strides)
    outside = np.ndarray(
        array.shape,
        dtype=raw,
        buffer=_memory(array),
        strides=array.strides,
        offset=_start_in_memory(array),
    )
    if copy_to is None:
        inside[...] = outside
    else:
        outside[...] = inside


def _memory(array: np.ndarray) -> npt.NDArray[np.uint8]:
    """The bytes from the lowest to the highest address of an array, as a view."""
    low, high = _extent(array)
    interface = {
        "shape": (high - low,),
        "typestr": "|u1",
        "data": (low, not array.flags.writeable),
        "version": 3,
    }
    holder = type("_Holder", (), {"__array_interface__": interface, "base": array})()
    return np.asarray(holder)


def _start_in_memory(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0] - _extent(array)[0]


# Encoding ----------------------------------------------------------------------------------------


def _encode_all(
    function: Function, args: Sequence[Any], arrays: dict[int, np.ndarray], spans: list[_Span]
) -> list[bytes]:
    pointers: dict[int, int] = {}
    for span in spans:
        assert span.buffer is not None
        for index, array in span.arrays:
            start = array.__array_interface__["data"][0]
            pointers[index] = span.buffer.address + start - span.low
    encoded: list[bytes] = []
    for index, parameter in enumerate(function.parameters):
        value = args[index]
        if isinstance(value, TensorMapArgument):
            encoded.append(_encode_map(function, index, parameter, value, pointers[index]))
        elif index in pointers:
            encoded.append(struct.pack("<Q", pointers[index]))
        else:
            encoded.append(_encode(function, index, parameter, value))
    return encoded


def _encode_map(
    function: Function, index: int, parameter: Variable, value: TensorMapArgument, address: int
) -> bytes:
    what = _what(function, index)
    if parameter.size != MAP_BYTES or parameter.align % MAP_ALIGNMENT:
        _fail(
            f"{what} takes a tensor map, which has {MAP_BYTES} bytes and an alignment of "
            f"{MAP_ALIGNMENT}; the parameter has {parameter.size} and {parameter.align}"
        )
    try:
        return encode_tensor_map(value.at(address))
    except PhobosError as error:
        _fail(f"{what}: {error.diagnostics[0].message}")


def _what(function: Function, index: int) -> str:
    return f"argument {index} (`{function.parameters[index].name}`) of kernel `{function.name}`"


def _encode(function: Function, index: int, parameter: Variable, value: Any) -> bytes:
    """A scalar or byte string as the bytes of its parameter."""
    what = _what(function, index)
    if isinstance(value, bytes | bytearray | memoryview):
        content = bytes(value)
    elif isinstance(value, np.ndarray):
        if value.ndim and not parameter.is_array:
            _fail(f"{what} is a scalar of type .{parameter.type}, got an array")
        content = value.tobytes()
    elif isinstance(value, np.generic):
        _check_scalar(what, parameter, value)
        content = value.tobytes()
    elif isinstance(value, bool | int | float):
        content = _encode_python(what, parameter, value)
    else:
        wanted = "a NumPy array, a tensor map, a scalar or bytes"
        _fail(f"{what} must be {wanted}, got {type(value).__name__}")
    if len(content) != parameter.size:
        _fail(f"{what} has {parameter.size} bytes, got {len(content)}")
    return content


def _check_scalar(what: str, parameter: Variable, value: np.generic) -> None:
    kind = parameter.type[0]
    if parameter.is_array or kind == "b" or parameter.type == "pred":
        return
    is_float = value.dtype.kind not in "iub?"
    if is_float != (kind == "f"):
        wanted = "a float" if kind == "f" else "an integer"
        _fail(f"{what} is .{parameter.type} and takes {wanted}, got {value.dtype}")


def _encode_python(what: str, parameter: Variable, value: float) -> bytes:
    """A Python number as a parameter of its declared type."""
    if parameter.is_array:
        _fail(f"{what} is an array of bytes; pass bytes or a NumPy scalar")
    size, kind = parameter.size, parameter.type[0]
    if kind == "f":
        codes = {2: "<e", 4: "<f", 8: "<d"}
        try:
            return struct.pack(codes[size], value)
        except OverflowError:
            _fail(f"{what} is .{parameter.type}, which cannot hold {value}")
    if isinstance(value, float):
        _fail(f"{what} is .{parameter.type} and takes an integer, got {value}")
    if not -(1 << (8 * size - 1)) <= value < (1 << (8 * size)):
        _fail(f"{what} is .{parameter.type}, which cannot hold {value}")
    return (int(value) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
