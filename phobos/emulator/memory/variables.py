"""Module variables in global and constant memory: placed, then given their initial values."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from phobos.diagnostics import Location, PhobosError
from phobos.emulator.memory.buffers import Buffer, GlobalMemory
from phobos.emulator.memory.layout import Layout
from phobos.targets.ptx.parse.records import (
    TYPE_BYTES,
    FloatImmediate,
    Initial,
    Module,
    Symbol,
    Variable,
)


def reserve_variables(layout: Layout, buffers: GlobalMemory, module: Module) -> None:
    """Give every `.global` and `.const` variable an address."""
    for variable in module.variables:
        if variable.space not in ("global", "const"):
            continue
        buffer = buffers.reserve(
            f"`{variable.name}`", variable.size, is_writable=variable.space == "global"
        )
        layout.global_addresses[variable.name] = buffer.address
        span = (buffer.address, buffer.address + buffer.size)
        layout.special_ranges.setdefault(variable.space, []).append(span)


def initialise_variables(layout: Layout, buffers: GlobalMemory, module: Module) -> None:
    """Write the initial values, after the buffers were allocated."""
    for variable in module.variables:
        if not variable.initial or variable.space not in ("global", "const"):
            continue
        address = layout.global_addresses[variable.name]
        buffer = buffers.buffer_at(address)
        assert buffer is not None
        _write(layout, buffers, module, buffer, variable)


def _write(
    layout: Layout, buffers: GlobalMemory, module: Module, buffer: Buffer, variable: Variable
) -> None:
    size = TYPE_BYTES[variable.type]
    data = buffers.bytes_of(buffer)
    if len(variable.initial) * size > len(data):
        _fail(module, variable, "has more initial values than elements")
    for index, initial in enumerate(variable.initial):
        bits = _bits(layout, module, variable, initial, size)
        encoded = np.frombuffer(bits.to_bytes(size, "little"), dtype=np.uint8)
        data[index * size : (index + 1) * size] = encoded


def _bits(layout: Layout, module: Module, variable: Variable, initial: Initial, size: int) -> int:
    if isinstance(initial, int):
        return initial & ((1 << (8 * size)) - 1)
    if isinstance(initial, Symbol):
        address = layout.global_addresses.get(initial.name)
        if address is None:
            _fail(
                module,
                variable,
                f"is initialised with the address of `{initial.name}`, which is no global variable",
            )
        return address + initial.offset
    return _float_bits(initial, size)


def _float_bits(initial: FloatImmediate, size: int) -> int:
    if initial.width == 8 * size:
        return initial.bits
    if initial.width == 64:
        return int(np.uint64(initial.bits).view(np.float64).astype(np.float32).view(np.uint32))
    return int(np.uint32(initial.bits).view(np.float32).astype(np.float64).view(np.uint64))


def _fail(module: Module, variable: Variable, reason: str) -> NoReturn:
    place = Location(module.name, variable.position.line, variable.position.column)
    raise PhobosError.at(place, f"variable `{variable.name}` {reason}")
