"""Generic addressing: steps that look at an address to find its state space."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from phobos.emulator.decode import Operands, Reader, Step
from phobos.emulator.errors import FindingKind
from phobos.emulator.memory.regions import (
    GLOBAL_REGION,
    LOCAL_REGION,
    REGION_SHIFT,
    SHARED_REGION,
)
from phobos.emulator.memory.spaces import CLUSTER, CONSTANT, GLOBAL, LOCAL, SHARED, Space
from phobos.emulator.types import U64, Selection, Value
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Address, Immediate, Operand, Register, Symbol

_BY_NAME: dict[str, Space] = {
    "global": GLOBAL,
    "const": CONSTANT,
    "param": CONSTANT,
    "shared": SHARED,
    "cluster": CLUSTER,
    "local": LOCAL,
}
_REGIONS: dict[int, Space] = {
    GLOBAL_REGION: GLOBAL,
    SHARED_REGION: CLUSTER,
    LOCAL_REGION: LOCAL,
}


def address_reader(ops: Operands, index: int) -> Reader:
    """A reader of the address operand at `index`, its offset added."""
    operand = ops.operand(index)
    if not isinstance(operand, Address):
        ops.refuse("expected an address in brackets")
    if operand.coordinates:
        ops.refuse("tensor addresses are not supported")
    base = operand.base
    if isinstance(base, Immediate):
        return ops.reader(base, U64)
    if isinstance(base, Symbol):
        return ops.reader(Symbol(base.name, operand.offset), U64)
    assert isinstance(base, Register)
    kind = ops.register_type(base)
    if kind.bits not in (32, 64):
        ops.refuse(f"`{base.name}` has {kind.bits} bits and cannot be an address")
    read = ops.reader(base, kind)
    if operand.offset == 0:
        return read
    offset = kind.storage.type(operand.offset & ((1 << kind.bits) - 1))
    return lambda wave, sel: read(wave, sel) + offset


def in_space(ops: Operands, space: str | None, index: int, make: Callable[[Space], Step]) -> Step:
    """The step for a named space, or one that finds the space of each generic address."""
    operand = ops.operand(index)
    if space not in ("shared", "cluster", "local"):
        _check_width(ops, operand)
    is_named = isinstance(operand, Address) and isinstance(operand.base, Symbol)
    if space is not None and not (space == "param" and is_named):
        return make(_BY_NAME[space])
    if isinstance(operand, Address) and isinstance(operand.base, Symbol):
        found = ops.environment.layout.space_of(ops, operand.base.name)
        return make(_BY_NAME[found or "global"])
    steps = {number: make(state) for number, state in _REGIONS.items()}
    read = address_reader(ops, index)

    def step(wave: Wave, sel: Selection) -> None:
        address = read(wave, sel)
        regions = address >> np.uint64(REGION_SHIFT)
        first = int(regions if regions.ndim == 0 else regions[0])
        if regions.ndim == 0 or bool((regions == first).all()):
            if first not in steps:
                _no_region(ops, wave, sel, address, 0)
            steps[first](wave, sel)
            return
        for number in np.unique(regions):
            mask = np.asarray(regions == number)
            if int(number) not in steps:
                _no_region(ops, wave, sel, address, int(np.argmax(mask)))
            steps[int(number)](wave, wave.narrow(sel, mask))

    return step


def _check_width(ops: Operands, operand: Operand) -> None:
    """Refuse a 32-bit register as an address that may lie in global memory."""
    if isinstance(operand, Address) and isinstance(operand.base, Register):
        base = operand.base
        if ops.register_type(base).bits != 64:
            ops.refuse(f"`{base.name}` must have 64 bits to be an address")


def _no_region(ops: Operands, wave: Wave, sel: Selection, address: Value, place: int) -> NoReturn:
    where = int(address if address.ndim == 0 else address[place])
    ops.report(
        FindingKind.BOUNDS,
        wave,
        int(wave.selected(sel)[place]),
        f"accesses {where:#x}, which belongs to no buffer",
        address=where,
    )
