"""How often accesses of shared memory wait for a bank, as they are lowered."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp, operands_by_descriptor
from phobos.dialects.elements import element_bytes
from phobos.explain.records import Banks
from phobos.layout.contraction import drop_units
from phobos.layout.exchange import best_access
from phobos.layout.linear import LinearLayout
from phobos.layout.matrix_access import plan_matrix_access
from phobos.layout.shared import count_wavefronts
from phobos.record import Record, record
from phobos.transforms.analyze_extents import MAX_VECTOR_BYTES
from phobos.transforms.assign_layouts import contraction_of
from phobos.transforms.lowering.tiles import feeds_products, is_whole_buffer


@record
class BufferCost(Record):
    """What accesses of buffers cost: those by `ldmatrix`, and all others."""

    plain: Banks | None = None
    matrix: Banks | None = None


def worse(one: BufferCost, other: BufferCost) -> BufferCost:
    """Of two accesses of one place the dearer of each kind."""
    return BufferCost(_worse(one.plain, other.plain), _worse(one.matrix, other.matrix))


def _worse(*banks: Banks | None) -> Banks | None:
    known = [one for one in banks if one is not None]
    return max(known, key=lambda one: one.passes / one.ideal, default=None)


def buffer_cost(op: tile.LoadOp | tile.StoreOp) -> BufferCost:
    """What it costs to move a tile between registers and a buffer; nothing known of a part."""
    value = op.result if isinstance(op, tile.LoadOp) else op.value
    layout = tile.layout_of(value)
    assert isinstance(value.type, TensorType)
    if layout is None or not is_whole_buffer(op.mem, op.indices, value.type):
        return BufferCost()
    shared = tile.shared_layout_of(op.mem)
    is_part = layout.shape != shared.shape
    if is_part:
        bases = {name: layout.bases(name) for name in layout.in_names}
        layout = LinearLayout.from_bases(bases, dict(shared.outputs))
    by_matrix = isinstance(op, tile.LoadOp) and (is_part or feeds_products(op.result))
    return _cost(layout, shared, element_bytes(value.type), by_matrix=by_matrix)


def operand_cost(op: DotOp, threads: int) -> BufferCost:
    """What the operands of a product that are in shared memory cost.

    Nothing is known of what `wmma` does, and what `wgmma` reads by itself has no conflict.
    """
    found = BufferCost()
    if op.instruction is None or op.instruction.data.name == "wmma":
        return found
    layouts = contraction_of(op, threads)
    by_matrix = op.instruction.data.name == "mma"
    by_themselves = operands_by_descriptor(op)
    for value, layout in ((op.a, layouts.a), (op.b, layouts.b)):
        if tile.is_shared(value) and value not in by_themselves:
            shared = tile.shared_layout_of(value)
            cost = _cost(layout, shared, element_bytes(value.type), by_matrix=by_matrix)
            found = worse(found, cost)
    return found


def _cost(layout: LinearLayout, shared: LinearLayout, size: int, *, by_matrix: bool) -> BufferCost:
    for turned in (False, True) if by_matrix else ():
        plan = plan_matrix_access(drop_units(layout), drop_units(shared), size, transposed=turned)
        if plan is not None:
            return BufferCost(matrix=Banks(plan.conflicts.wavefronts, plan.conflicts.ideal))
    _, cost = best_access(layout, shared, size)
    return BufferCost(Banks(cost.wavefronts, cost.ideal))


def lane_cost(places: Sequence[int], size: int, width: int) -> BufferCost:
    """What single elements or runs of `width` cost; a run is accessed as wide as may be."""
    own = min(width * size, MAX_VECTOR_BYTES)
    ideal = count_wavefronts([lane * own for lane in range(len(places))], own)
    passes = count_wavefronts([size * place for place in places], own)
    return BufferCost(Banks(passes, ideal))
