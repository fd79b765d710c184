"""Buffers of multiply-adds that are copied to so that the products read neighbours along M or N.

What a thread loads at once is of one step along K then. Else it holds four steps of each of its
rows to use one, and the registers that this takes are those in which the next step's operands
could be on their way.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, TensorType

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.elements import element_bytes
from phobos.dialects.shaping import TransposeOp
from phobos.ir.rewrite import retype
from phobos.layout.build import LANE, REGISTER, WARP
from phobos.layout.copies import turning_copy
from phobos.layout.shared import MAX_VECTOR_BYTES
from phobos.transforms.assign_layouts import turned, with_layout

MIN_RESULTS = 64
"""Results a thread of the products that it pays for, as each copy of 16 bytes becomes four. On an
H200, 4096^3 in f32 took 1 to 7 % less time with 64 results a thread, 3 to 12 % more with 32."""
_SIZES = (4, 8)
"""Bytes of an element that a copy can move by itself and a load several of."""


def suit_products(load: tile.LoadOp, turn: TransposeOp | None, buffer: memref.AllocaOp) -> None:
    """Retypes a load that becomes a copy, and its buffer, where the products' loads gain by it.

    `turn` is the transposition between the load and the buffer, if there is one.
    """
    type_, layout = load.result.type, tile.layout_of(load.result)
    assert isinstance(type_, TensorType)
    assert layout is not None
    size = element_bytes(type_)
    if size not in _SIZES or layout.shape[-2] * size < MAX_VECTOR_BYTES:
        return
    operand = 0 if turn is None else 1  # whose K is the last axis of what is loaded
    for use in buffer.memref.uses:
        dot = use.operation
        if isinstance(dot, DotOp) and (use.index != operand or not _multiplies_and_adds(dot)):
            return
    copy = turning_copy(layout.shape, size, layout.in_bits(LANE), layout.in_bits(WARP))
    shared = copy.buffer if turn is None else turned(copy.buffer)
    old = buffer.memref.type
    assert isinstance(old, MemRefType)
    attr = tile.SharedLayoutAttr(shared)
    retype(buffer.memref, MemRefType(old.element_type, old.get_shape(), attr, old.memory_space))
    retype(load.result, with_layout(type_, copy.tile))


def _multiplies_and_adds(dot: DotOp) -> bool:
    """Whether a contraction is made of multiply-adds, of enough results a thread."""
    total = tile.layout_of(dot.c)
    is_large = total is not None and total.in_size(REGISTER) >= MIN_RESULTS
    return is_large and dot.instruction is not None and dot.instruction.data.name == "fma"
