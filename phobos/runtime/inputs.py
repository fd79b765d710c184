"""Arguments for a trial run of a kernel: arrays from files, seeded random data, given scalars.

`phobos-run` builds its launch here from what stands on the command line and the contract.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phobos.diagnostics import PhobosError, did_you_mean
from phobos.runtime.binding import scalar_value
from phobos.runtime.dtypes import FLOATS, integer_range, is_unsigned, language_type, numpy_dtype
from phobos.targets.ptx.contract import (
    TYPE_BYTES,
    KernelContract,
    ScalarParameter,
    TensorParameter,
)

_INTEGER_REACH = 100
"""Random integers lie between this and its negative, as far as their type has them."""


@dataclass(frozen=True, slots=True)
class Input:
    """The value of one parameter, and a clause that says where it comes from."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a kernel is launched with: values by parameter, extents by dim name."""

    values: Mapping[str, Input]
    extents: Mapping[str, int]


def make_inputs(
    kernel: KernelContract,
    *,
    dims: Mapping[str, int],
    scalars: Mapping[str, int | float],
    files: Mapping[str, Path],
    seed: int,
) -> Inputs:
    """The values of all parameters of a kernel.

    Tensors in `files` are loaded; their shapes and `dims` give the extents. The other tensors get
    random elements: the same for the same seed, name and shape. A floating-point scalar that is
    not given is random too; an integer one must be given, since it may be a subscript.

    Raises PhobosError if an extent or a scalar is missing, extents contradict each other, a
    name is unknown or a file does not hold what the parameter needs.
    """
    _check_names(kernel, dims, scalars, files)
    loaded = {
        tensor.name: _load(tensor, files[tensor.name])
        for tensor in kernel.tensors
        if tensor.name in files
    }
    extents = _extents(kernel, dims, loaded, files)
    values: dict[str, Input] = {}
    for parameter in kernel.parameters:
        name = parameter.name
        if isinstance(parameter, ScalarParameter):
            values[name] = _scalar(parameter, scalars, seed)
        elif name in loaded:
            values[name] = Input(loaded[name], f"loaded from {files[name]}")
        else:
            shape = tuple(_extent(dim.name, dim.extent, extents) for dim in parameter.dims)
            values[name] = Input(_random_tensor(parameter, shape, seed), f"random, seed {seed}")
    return Inputs(values, extents)


def _extent(name: str | None, compiled_in: int | None, extents: Mapping[str, int]) -> int:
    if compiled_in is not None:
        return compiled_in
    assert name is not None
    return extents[name]


def _check_names(
    kernel: KernelContract,
    dims: Mapping[str, int],
    scalars: Iterable[str],
    files: Iterable[str],
) -> None:
    tensor_names = [tensor.name for tensor in kernel.tensors]
    check_known("--load", "tensor", files, tensor_names, kernel)
    check_known("--arg", "scalar", scalars, [scalar.name for scalar in kernel.scalars], kernel)
    for name, extent in dims.items():
        if name in kernel.constants:
            raise PhobosError.at(
                None,
                f"--dim {name}: `{name}` is compiled in as {kernel.constants[name]}",
                help=f"give it as --set {name}={extent}",
            )
        if extent < 0:
            raise PhobosError.at(None, f"--dim {name}: an extent cannot be negative: {extent}")
    check_known("--dim", "extent", dims, kernel.launch_dims, kernel)


def check_known(
    option: str, what: str, names: Iterable[str], known: Iterable[str], kernel: KernelContract
) -> None:
    """Raise PhobosError if one of `names`, given by an option, is none of the kernel's."""
    known = list(known)
    for name in names:
        if name in known:
            continue
        listed = ", ".join(known) or "none"
        raise PhobosError.at(
            None,
            f"{option} {name}: `{kernel.name}` has no {what} of that name",
            help=did_you_mean(name, known) or f"it has {listed}",
        )


# Extents -----------------------------------------------------------------------------------------


def _extents(
    kernel: KernelContract,
    dims: Mapping[str, int],
    loaded: Mapping[str, np.ndarray],
    files: Mapping[str, Path],
) -> dict[str, int]:
    extents = dict(dims)
    origins = dict.fromkeys(dims, "--dim")
    for tensor in kernel.tensors:
        array = loaded.get(tensor.name)
        if array is None:
            continue
        for dim, extent in zip(tensor.dims, array.shape, strict=True):
            if dim.extent is not None or dim.name is None:
                continue
            known = extents.setdefault(dim.name, extent)
            if known != extent:
                raise PhobosError.at(
                    None,
                    f"`{dim.name}` is {known} by {origins[dim.name]} and {extent} in "
                    f"{files[tensor.name]}",
                )
            origins.setdefault(dim.name, str(files[tensor.name]))
    missing = [name for name in kernel.launch_dims if name not in extents]
    if missing:
        flags = " ".join(f"--dim {name}=NUMBER" for name in missing)
        named = ", ".join(f"`{name}`" for name in missing)
        raise PhobosError.at(
            None,
            f"the extent{'s' * (len(missing) > 1)} {named} of `{kernel.name}` cannot be inferred",
            help=f"give {flags}, or load a tensor that has it: its signature is {kernel}",
        )
    return extents


# Values ------------------------------------------------------------------------------------------


def _scalar(parameter: ScalarParameter, scalars: Mapping[str, int | float], seed: int) -> Input:
    name = parameter.name
    if name in scalars:
        return Input(scalar_value(parameter, scalars[name]), "given")
    if parameter.type not in FLOATS:
        raise PhobosError.at(
            None,
            f"the scalar `{name}: {parameter.type}` has no value",
            help=f"give --arg {name}=NUMBER",
        )
    # A few digits only, so that the value can be repeated from what is printed.
    value = round(float(_generator(name, seed).uniform(-2, 2)), 3)
    return Input(value, f"random, seed {seed}; --arg {name}=NUMBER sets it")


def _random_tensor(tensor: TensorParameter, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Random elements: standard normal floats, small integers, fair bools."""
    try:
        return _draw(_generator(tensor.name, seed), tensor.type, shape)
    except (MemoryError, ValueError, OverflowError) as error:
        size = math.prod(shape) * TYPE_BYTES[tensor.type]
        raise PhobosError.at(
            None,
            f"`{tensor.name}` of shape {list(shape)} does not fit in memory: {size:,} bytes",
        ) from error


def _draw(generator: np.random.Generator, type_name: str, shape: tuple[int, ...]) -> np.ndarray:
    dtype = numpy_dtype(type_name)
    if type_name == "f64":
        return generator.standard_normal(shape)
    if type_name in FLOATS:
        return generator.standard_normal(shape, np.float32).astype(dtype, copy=False)
    if type_name == "bool":
        return generator.integers(0, 2, shape).astype(dtype)
    least, most = integer_range(type_name)
    low = 0 if is_unsigned(type_name) else max(least, -_INTEGER_REACH)
    return generator.integers(low, min(most, _INTEGER_REACH), shape, dtype, endpoint=True)


def _generator(name: str, seed: int) -> np.random.Generator:
    """A generator of its own for each parameter, so that adding one leaves the others' data."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


# Files -------------------------------------------------------------------------------------------


def _load(tensor: TensorParameter, path: Path) -> np.ndarray:
    """The array in an `.npy` file, checked against the tensor's type and rank."""
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise PhobosError.at(None, f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise PhobosError.at(
            None,
            f"{path} is no .npy file of numbers",
            help="write one with np.save(path, array)",
        ) from error
    if not isinstance(array, np.ndarray):
        raise PhobosError.at(None, f"{path} holds several arrays", help="save one array by np.save")
    array = _with_type(array, tensor.type)
    held = language_type(array.dtype.name) or str(array.dtype)
    if held != tensor.type:
        raise PhobosError.at(
            None,
            f"{path} holds {held}, and `{tensor.name}` must hold {tensor.type}",
            help=f"convert it: np.save(path, array.astype({numpy_dtype(tensor.type).name!r}))",
        )
    if array.ndim != tensor.rank:
        raise PhobosError.at(
            None,
            f"{path} has shape {list(array.shape)}, and `{tensor.name}` needs {tensor.rank} axes",
            help=f"it is declared {tensor}",
        )
    return np.ascontiguousarray(array)


def _with_type(array: np.ndarray, type_name: str) -> np.ndarray:
    """The array in native byte order; raw bytes become the extension type that they hold.

    A `.npy` file knows no bfloat16 and no 8-bit floats and gives them back as bytes.
    """
    if array.dtype.kind == "V" and array.dtype.names is None:
        dtype = numpy_dtype(type_name)
        return array.view(dtype) if array.dtype.itemsize == dtype.itemsize else array
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def save(array: np.ndarray, path: Path) -> None:
    """Write an array as an `.npy` file. Raises PhobosError if that fails."""
    try:
        with path.open("wb") as stream:
            np.save(stream, array)
    except OSError as error:
        raise PhobosError.at(None, f"cannot write {path}: {error.strerror or error}") from error
