"""Where variables lie: shared, local, global and constant variables, and the parameter block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.emulator.types import Value
from phobos.targets.ptx.parse.records import Function, Module, Symbol, Variable

if TYPE_CHECKING:
    from phobos.emulator.decode import Operands

_GUARD = 128
"""Unused bytes kept between two shared or local variables, so that an overrun is seen."""
_LOCAL_START = 16


class Region:
    """Variables laid out one behind the other with guard gaps; knows which bytes belong to whom.

    `owner` maps each byte to the number of its variable from 1, or 0 in a gap.
    """

    def __init__(self, start: int) -> None:
        self.size = start
        self.offsets: dict[str, int] = {}
        self.names: list[str] = []
        self._spans: list[tuple[int, int]] = []

    def add(self, key: str, name: str, size: int, align: int) -> int:
        """Lay a variable out and return its offset."""
        gap = _GUARD if self._spans else 0
        offset = -(-(self.size + gap) // align) * align
        self.offsets[key] = offset
        self.names.append(name)
        self._spans.append((offset, offset + size))
        self.size = offset + size
        return offset

    def owners(self) -> npt.NDArray[np.uint16]:
        """The owner of every byte."""
        table = np.zeros(self.size, dtype=np.uint16)
        for number, (start, stop) in enumerate(self._spans, 1):
            table[start:stop] = number
        return table

    def describe(self, address: int) -> str:
        """What lies at or nearest before an address, for messages."""
        nearest = None
        for name, (start, stop) in zip(self.names, self._spans, strict=True):
            if address >= start:
                nearest = f"`{name}` of {stop - start} bytes"
        return nearest or "no variable"


class Layout:
    """Offsets of all variables that a kernel and the functions it calls may name."""

    def __init__(self, module: Module, functions: Iterable[Function], dynamic_shared: int) -> None:
        self.module = module
        self.dynamic_shared = dynamic_shared
        self.shared = Region(0)
        self.local = Region(_LOCAL_START)
        self.global_addresses: dict[str, int] = {}
        self.parameters: dict[str, int] = {}
        self.parameter_block = 0
        self.special_ranges: dict[str, list[tuple[int, int]]] = {}
        functions = list(functions)
        static = [(_key(None, v), v) for v in module.variables if v.space == "shared"]
        for function in functions:
            for variable in function.variables:
                key = _key(function, variable)
                if variable.space == "shared":
                    static.append((key, variable))
                elif variable.space in ("local", "param"):
                    self.local.add(key, variable.name, variable.size, variable.align)
            if not function.is_entry:
                self._lay_out_call(function)
        self._lay_out_shared(static)
        self.static_shared = sum(v.size for _, v in static)

    def _lay_out_call(self, function: Function) -> None:
        """Parameters and results of a device function, which live in local memory."""
        for variable in (*function.parameters, *function.results):
            if variable.space == "param":
                key = _key(function, variable)
                self.local.add(key, variable.name, variable.size, variable.align)

    def _lay_out_shared(self, variables: list[tuple[str, Variable]]) -> None:
        dynamic = [(key, v) for key, v in variables if v.count is None]
        for key, variable in variables:
            if variable.count is not None:
                self.shared.add(key, variable.name, variable.size, variable.align)
        if not dynamic and not self.dynamic_shared:
            return
        # All dynamic arrays start at the same place, at the strictest of their alignments.
        align = max((v.align for _, v in dynamic), default=16)
        name = dynamic[0][1].name if dynamic else "dynamic shared memory"
        offset = self.shared.add("", name, self.dynamic_shared, align)
        for key, _ in dynamic:
            self.shared.offsets[key] = offset

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a CTA as a launch counts it, without guard gaps."""
        return self.static_shared + self.dynamic_shared

    def key(self) -> object:
        """All addresses of a kernel that differ from launch to launch, for comparison."""
        ranges = ((space, *spans) for space, spans in sorted(self.special_ranges.items()))
        return (
            self.dynamic_shared,
            self.parameter_block,
            *sorted(self.global_addresses.items()),
            *ranges,
        )

    def lay_out_parameters(self, entry: Function) -> int:
        """Offsets of the entry's parameters in its parameter block; returns the block's size."""
        offset = 0
        for variable in entry.parameters:
            offset = -(-offset // variable.align) * variable.align
            self.parameters[variable.name] = offset
            offset += variable.size
        return offset

    def address_of(self, operands: Operands, symbol: Symbol) -> int:
        """The address that a symbol stands for in its own state space."""
        function = operands.function
        scoped = f"{function.name}:{symbol.name}"
        for key in (scoped, symbol.name):
            if key in self.shared.offsets:
                return self.shared.offsets[key] + symbol.offset
            if key in self.local.offsets:
                return self.local.offsets[key] + symbol.offset
        if function.is_entry and symbol.name in self.parameters:
            return self.parameter_block + self.parameters[symbol.name] + symbol.offset
        if symbol.name in self.global_addresses:
            return self.global_addresses[symbol.name] + symbol.offset
        operands.refuse(f"`{symbol.name}` is not defined")

    def is_in_space(self, address: Value, space: str) -> npt.NDArray[np.bool_]:
        """Whether addresses of the global region lie in one of global, const and param memory."""
        inside = np.zeros(np.atleast_1d(address).shape, dtype=np.bool_)
        for low, high in self.special_ranges.get(space, ()):
            inside |= (address >= np.uint64(low)) & (address < np.uint64(high))
        if space != "global":
            return inside
        others = [r for key in ("const", "param") for r in self.special_ranges.get(key, ())]
        for low, high in others:
            inside |= (address >= np.uint64(low)) & (address < np.uint64(high))
        return ~inside

    def space_of(self, operands: Operands, name: str) -> str | None:
        """The state space of a variable by name, or None if there is no such variable."""
        scoped = f"{operands.function.name}:{name}"
        if scoped in self.shared.offsets or name in self.shared.offsets:
            return "shared"
        if scoped in self.local.offsets:
            return "local"
        if operands.function.is_entry and name in self.parameters:
            return "param"
        return "global" if name in self.global_addresses else None


def _key(function: Function | None, variable: Variable) -> str:
    return variable.name if function is None else f"{function.name}:{variable.name}"
