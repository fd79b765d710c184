"""`ph-widen-accesses`: store what tensor cores summed in whole sectors, 16 bytes a lane.

    %d = tile.dot .. : tensor<64x64xf32, #accumulators>
    %h = arith.truncf %d : ... to tensor<64x64xf16, #accumulators>
    tile.store %h, %C[%i, %j] vector 8
    -->
    %w = tile.convert_layout %h : ... -> tensor<64x64xf16, #rows_of_eight>
    tile.store %w, %C[%i, %j] vector 8

A lane has two neighbours of a row of an accumulator. Of 32-bit elements the lanes of a row fill a
sector of memory together; of halves and bytes they fill a part of one. Where the access is proven
for wider vectors, and lanes of a warp can exchange what they hold so that fewer sectors are
touched, a conversion does that before the store, or behind the load of a tile that is added.

An access that runs as often as the product itself is left alone: there the exchange would cost
more than the sectors.

Precondition: `ph-assign-layouts`. Postcondition: each conversion made stays within warps.
Cost: one walk.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.ir.kernel import kernels, threads_of
from phobos.layout import LinearLayout
from phobos.layout.convert import Movement, plan_conversion
from phobos.layout.widening import for_access
from phobos.transforms.assign_layouts import bridge_operand, bridge_result, contraction_of

MAX_BYTES = 16
"""Of one access of a lane."""


class WidenAccessesPass(ModulePass):
    """Converts tiles between the layout of accumulators and that of their accesses."""

    name = "ph-widen-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            _widen_accesses(kernel)


def _widen_accesses(kernel: gpu.FuncOp) -> None:
    dots = [inner for inner in kernel.walk() if isinstance(inner, DotOp)]
    if not dots:
        return
    threads = threads_of(kernel)
    summed = {contraction_of(dot, threads).c for dot in dots}
    busy = {_loop_of(dot) for dot in dots} - {None}
    for op in list(kernel.walk()):
        if not isinstance(op, tile.LoadOp | tile.StoreOp):
            continue
        if op.vector is None or tile.is_shared(op.mem) or _loop_of(op) in busy:
            continue
        value = op.result if isinstance(op, tile.LoadOp) else op.value
        layout = tile.layout_of(value)
        if layout not in summed:
            continue
        wanted = _wanted(value, layout, op.vector.value.data)
        if isinstance(op, tile.LoadOp):
            bridge_result(op, wanted)
        else:
            bridge_operand(op, wanted)


def _loop_of(op: Operation) -> Operation | None:
    """The innermost loop that an op is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ForOp | scf.WhileOp):
        parent = parent.parent_op()
    return parent


def _wanted(value: SSAValue, layout: LinearLayout, proven: int) -> LinearLayout:
    """The layout to move a tile in: its own where no exchange within warps leads to a better."""
    assert isinstance(value.type, TensorType)
    element = value.type.element_type
    assert isinstance(element, FixedBitwidthType)
    wanted = for_access(layout, element.size, min(proven, MAX_BYTES // element.size))
    for source, target in ((layout, wanted), (wanted, layout)):
        if plan_conversion(source, target).movement is Movement.SHARED:
            return layout
    return wanted
