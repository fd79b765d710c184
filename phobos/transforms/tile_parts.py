"""Tiles in parts: what each thread moves in one instruction, on its way from memory to a buffer.

    %a = tile.load %A[%m, %k] -> 64x32            %a0 = tile.load %A[%m, %k] -> 32x32
    tile.store %a, %buffer[%z, %z]          -->   %a1 = tile.load %A[%m + 32, %k] -> 32x32
                                                  tile.store %a0, %buffer[%z, %z]
                                                  tile.store %a1, %buffer[%z + 32, %z]

A part is a half along an axis, or a half of that, where the tile's layout has the halves in
different registers of every thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FixedBitwidthType, TensorType
from xdsl.ir import SSAValue

from phobos.dialects import tile
from phobos.ir.rewrite import OpBuilder, insert_before
from phobos.layout import LinearLayout
from phobos.layout.build import REGISTER
from phobos.transforms.assign_layouts import with_layout

PART_BYTES = 16
"""Of a thread: the widest access of memory."""
PART = "phobos.part"
"""On a load whose place is that of others plus constants: all have one address."""


def cut_move(load: tile.LoadOp, store: tile.StoreOp) -> list[tuple[tile.LoadOp, tile.StoreOp]]:
    """Replaces a load, and the store of its tile to a whole buffer, by those of parts, in order."""
    proven = 1 if load.vector is None else load.vector.value.data
    type_, starts = part_of(load.result, proven)
    if len(starts) == 1:
        return [(load, store)]
    pairs: list[tuple[tile.LoadOp, tile.StoreOp]] = []
    for start in starts:
        before, behind = OpBuilder(load), OpBuilder(store)
        part = tile.LoadOp(load.mem, _moved(before, load.indices, start), type_)
        part.properties.update(load.properties)
        before.put(part)
        insert_before(load, before.ops)
        piece = tile.StoreOp(part.result, store.mem, list(map(behind.constant, start)))
        piece.properties.update(store.properties)
        behind.put(piece)
        insert_before(store, behind.ops)
        pairs.append((part, piece))
    for op in (store, load):
        op.detach()
        op.erase()
    return pairs


def _moved(build: OpBuilder, indices: Sequence[SSAValue], start: Sequence[int]) -> list[SSAValue]:
    return [
        build.add(arith.AddiOp(index, build.constant(by))) if by else index
        for index, by in zip(indices, start, strict=True)
    ]


def part_of(value: SSAValue, vector: int) -> tuple[TensorType, list[tuple[int, ...]]]:
    """The type of the parts of a tile, and where in the tile each starts; one if it has none.

    Of the last axis, `vector` elements side by side stay together.
    """
    type_, layout = value.type, tile.layout_of(value)
    assert isinstance(type_, TensorType)
    assert layout is not None
    element = type_.element_type
    assert isinstance(element, FixedBitwidthType)
    bases = {name: list(layout.bases(name)) for name in layout.in_names}
    shape = list(type_.get_shape())
    starts: list[tuple[int, ...]] = [(0,) * len(shape)]
    if tuple(shape) != layout.shape:
        return type_, starts  # with an overhang
    while (element.size << len(bases[REGISTER])) > PART_BYTES:
        *rest, half = bases[REGISTER]
        axis = next((axis for axis, by in enumerate(half) if by), 0)
        others = [base for name in bases for base in (rest if name == REGISTER else bases[name])]
        is_half = sum(half) == half[axis] and 2 * half[axis] == shape[axis]
        if axis == len(shape) - 1 and half[axis] < vector:
            break
        if not is_half or any(base[axis] & half[axis] for base in others):
            break
        bases[REGISTER] = rest
        shape[axis] //= 2
        starts += [tuple(a + b for a, b in zip(start, half, strict=True)) for start in starts]
    part = TensorType(element, shape)
    return with_layout(part, LinearLayout.from_bases(bases, shape)), sorted(starts)
