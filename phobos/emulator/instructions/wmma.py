"""`wmma`: loads, stores and products of fragments whose layout PTX leaves open.

The layout here: element i of lane l is element number l * n + i of the matrix in row-major order,
n being the elements of a lane. Factors of f16 have 16 elements a lane in every shape, so that they
hold everything once, twice or four times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.instructions.warps import check_whole_warps, read_warps, write_warps
from phobos.emulator.memory.access import Access
from phobos.emulator.memory.dispatch import address_reader, in_space
from phobos.emulator.memory.form import SPACES
from phobos.emulator.memory.spaces import Space
from phobos.emulator.tensor import products
from phobos.emulator.tensor.elements import (
    ELEMENT_BITS,
    INTEGERS,
    pack,
    per_register,
    unpack,
)
from phobos.emulator.types import B32, B64, U32, UNSIGNED, ScalarType, Selection, Value
from phobos.emulator.wave import WARP, Wave

_HALF_ELEMENTS = 16 * WARP
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_SHAPES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), frozenset({"m16n16k16", "m32n8k16", "m8n32k16"})),
    "tf32": frozenset({"m16n16k8"}),
    "f64": frozenset({"m8n8k4"}),
    **dict.fromkeys(("s4", "u4"), frozenset({"m8n8k32"})),
    "b1": frozenset({"m8n8k128"}),
}


@dataclass(frozen=True)
class _Tile:
    """One fragment: its matrix, and how the lanes hold it."""

    rows: int
    columns: int
    element: str
    copies: int

    @property
    def per_lane(self) -> int:
        """Elements of a lane, copies included; one-bit elements count as words."""
        return self.rows * self.columns * self.copies // WARP

    @property
    def registers(self) -> int:
        """Registers of a lane."""
        return self.per_lane // per_register(self.element)

    @property
    def storage(self) -> ScalarType:
        """Type of the registers."""
        return B64 if self.element == "f64" else B32

    def matrices(self, registers: npt.NDArray) -> npt.NDArray:
        """Matrices of numbers from registers [warp, lane, register]."""
        elements = unpack(registers, self.element).reshape(len(registers), -1)
        return elements[:, : self.rows * self.columns].reshape(-1, self.rows, self.columns)

    def registers_of(self, matrices: npt.NDArray) -> npt.NDArray:
        """Registers [warp, lane, register] of accumulators."""
        return pack(matrices.reshape(-1, WARP, self.per_lane), self.element)


def _tile(ops: Operands, role: str, shape: str, element: str) -> _Tile:
    match = _SHAPE.fullmatch(shape)
    if match is None:
        ops.refuse("needs a shape")
    m, n, k = (int(number) for number in match.groups())
    if element == "b1":
        k //= 32
    rows, columns = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
    is_half_factor = element == "f16" and role in ("a", "b")
    copies = _HALF_ELEMENTS // (rows * columns) if is_half_factor else 1
    return _Tile(rows, columns, element, copies)


def _parts(ops: Operands) -> tuple[str, list[str], list[str]]:
    """Shape, layouts and element types of the suffix."""
    suffix = ops.instruction.suffix
    shape = next((part for part in suffix if _SHAPE.fullmatch(part)), None)
    if shape is None:
        ops.refuse("needs a shape")
    layouts = [part for part in suffix if part in ("row", "col")]
    types = [part for part in suffix if part in ELEMENT_BITS]
    return shape, layouts, types


@decodes("wmma")
def _wmma(ops: Operands) -> Step:
    match ops.instruction.suffix[:2]:
        case ("load", ("a" | "b" | "c") as role):
            return _load(ops, role)
        case ("store", "d"):
            return _store(ops)
        case ("mma", _):
            return _multiply(ops)
    ops.refuse("takes .load, .store or .mma")


# Loads and stores --------------------------------------------------------------------------------


class _Places:
    """Addresses of a tile's elements in memory: a base, a stride and a layout."""

    def __init__(self, ops: Operands, tile: _Tile, layout: str, first: int) -> None:
        self._tile, self._by_row = tile, layout == "row"
        self._address = address_reader(ops, first)
        has_stride = ops.count > first + 1 + (1 if first == 0 else 0)
        place = first + (2 if first == 0 else 1)
        self._stride = ops.read(place, U32) if has_stride else None
        bits = 32 if tile.element == "b1" else ELEMENT_BITS[tile.element]
        self.bits = bits
        number = np.arange(tile.per_lane * WARP) % (tile.rows * tile.columns)
        self._row, self._column = number // tile.columns, number % tile.columns

    def addresses(self, wave: Wave, sel: Selection) -> Value:
        """Byte address of each element of each lane, shaped [thread, element]."""
        count = wave.count(sel)
        base = np.broadcast_to(self._address(wave, sel), (count,))
        major, minor = (self._row, self._column) if self._by_row else (self._column, self._row)
        across = self._tile.columns if self._by_row else self._tile.rows
        unit = 32 if self._tile.element == "b1" else 1
        if self._stride is None:
            stride = np.full(count, across, dtype=np.int64)
        else:
            stride = np.broadcast_to(self._stride(wave, sel), (count,)).astype(np.int64) // unit
        lane = wave.selected(sel) % WARP
        element = lane[:, None] * self._tile.per_lane + np.arange(self._tile.per_lane)
        offset = (major[element] * stride[:, None] + minor[element]) * self.bits // 8
        return base[:, None] + offset.astype(base.dtype)


def _load(ops: Operands, role: str) -> Step:
    ops.expect_count(2, 3)
    shape, layouts, types = _parts(ops)
    if len(layouts) != 1 or len(types) != 1:
        ops.refuse("needs one layout and one type")
    tile = _tile(ops, role, shape, types[0])
    if ELEMENT_BITS[tile.element] < 8 and tile.element != "b1":
        ops.refuse(f"does not load .{tile.element} in the emulator")
    elements = ops.elements(ops.operand(0))
    if len(elements) != tile.registers:
        ops.refuse(f"takes {tile.registers} registers, got {len(elements)}")
    writers = [ops.writer(element, tile.storage) for element in elements]
    places = _Places(ops, tile, layouts[0], 1)
    size = places.bits // 8
    access = Access(ops, "reads", size, is_write=False)

    def make(space: Space) -> Step:
        def step(wave: Wave, sel: Selection) -> None:
            check_whole_warps(ops, wave, sel)
            addresses = places.addresses(wave, sel)
            columns = []
            for element in range(tile.per_lane):
                store, index = space.open(wave, sel, addresses[:, element].copy(), access)
                columns.append(store.load(index, size))
            _write_elements(wave, sel, writers, np.stack(columns, axis=-1), size)

        return step

    return in_space(ops, _space(ops), 1, make)


def _write_elements(
    wave: Wave, sel: Selection, writers: list, elements: npt.NDArray, size: int
) -> None:
    """Pack elements [thread, element] of `size` bytes into registers and write them."""
    width = 8 if size == 8 else 4
    packed = np.ascontiguousarray(elements).view(UNSIGNED[8 * width])
    for place, write in enumerate(writers):
        write(wave, sel, packed[:, place].copy())


def _store(ops: Operands) -> Step:
    ops.expect_count(2, 3)
    shape, layouts, types = _parts(ops)
    if len(layouts) != 1 or len(types) != 1:
        ops.refuse("needs one layout and one type")
    tile = _tile(ops, "d", shape, types[0])
    elements = ops.elements(ops.operand(1))
    if len(elements) != tile.registers:
        ops.refuse(f"takes {tile.registers} registers, got {len(elements)}")
    readers = [ops.reader(element, tile.storage) for element in elements]
    places = _Places(ops, tile, layouts[0], 0)
    size = places.bits // 8
    access = Access(ops, "writes", size, is_write=True, is_read=False)

    def make(space: Space) -> Step:
        def step(wave: Wave, sel: Selection) -> None:
            check_whole_warps(ops, wave, sel)
            count = wave.count(sel)
            registers = np.stack(
                [np.broadcast_to(read(wave, sel), (count,)) for read in readers], axis=-1
            )
            values = registers.view(UNSIGNED[8 * size])
            addresses = places.addresses(wave, sel)
            for element in range(tile.per_lane):
                store, index = space.open(wave, sel, addresses[:, element].copy(), access)
                store.store(index, size, values[:, element])
            wave.memory_version += 1

        return step

    return in_space(ops, _space(ops), 0, make)


def _space(ops: Operands) -> str | None:
    return next((SPACES[part] for part in ops.instruction.suffix if part in SPACES), None)


# Products ----------------------------------------------------------------------------------------


def _multiply(ops: Operands) -> Step:
    ops.expect_count(4)
    shape, layouts, types = _parts(ops)
    if len(types) == 2:
        # `.f32.f32` names D and C only: the factors are f16.
        types = [types[0], "f16", "f16", types[1]]
    if len(types) != 4 or len(layouts) != 2:
        ops.refuse("needs two layouts and the types of D and C, or all four")
    d, a = types[:2]
    if shape not in _SHAPES.get(a, frozenset()):
        ops.refuse(f"there is no shape .{shape} for .{a}")
    tiles = [_tile(ops, role, shape, element) for role, element in zip("dabc", types, strict=True)]
    vectors = []
    for index, tile in enumerate(tiles):
        elements = ops.elements(ops.operand(index))
        if len(elements) != tile.registers:
            ops.refuse(f"operand {index} takes {tile.registers} registers, got {len(elements)}")
        vectors.append(elements)
    writers = [ops.writer(element, tiles[0].storage) for element in vectors[0]]
    readers = [
        [ops.reader(element, tile.storage) for element in vector]
        for vector, tile in zip(vectors[1:], tiles[1:], strict=True)
    ]

    def step(wave: Wave, sel: Selection) -> None:
        check_whole_warps(ops, wave, sel)
        left, right, addend = (
            tile.matrices(read_warps(wave, sel, operand))
            for tile, operand in zip(tiles[1:], readers, strict=True)
        )
        result = _product(ops, a, d, left, right, addend)
        write_warps(wave, sel, writers, tiles[0].registers_of(result))

    return step


def _product(
    ops: Operands, a: str, d: str, left: npt.NDArray, right: npt.NDArray, addend: npt.NDArray
) -> npt.NDArray:
    suffix = ops.instruction.suffix
    if a == "f64":
        return products.multiply_doubles(left, right, addend)
    if a == "b1":
        combine = np.bitwise_and if "and" in suffix else np.bitwise_xor
        return products.multiply_bits(left, right, addend, combine)
    if a in INTEGERS:
        saturate = "satfinite" in suffix
        return products.multiply_integers(left, right, addend, saturate=saturate)
    return products.multiply_floats(left, right, addend, d)
