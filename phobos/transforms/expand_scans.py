"""`ph-expand-scans`: take running folds across warps through shared memory.

    %s = tile.scan add %t over [1] : tensor<8x256xf32, #L>
    -->
    %p = tile.partial_scan add %t over [1]                  // each warp its own piece
    %u = tile.partial_reduce add %t over [1] : ... -> tensor<8x4xf32, #P>
    %b = memref.alloca() : memref<8x4xf32, ..., #tile.shared>
    tile.store %u, %b[%c0, %c0]
    %v = tile.load %b[%c0, %c0] -> tensor<8x4xf32, #Q>      // every thread has all totals
    %s = tile.merge_scan add %v, %p over [1]

A scan that stays within warps is left alone. Where a fold of the same tile has its partial results
in a buffer too, as the sum that a running sum carries on does, the two share one. A scan over
threads adds up each warp's lanes, passes the warps' totals on in the same way, and adds those of
the warps before.

Precondition: `ph-assign-layouts`. Postcondition: no scan crosses warps.
Cost: a few ops for each scan of a tile, about 10 + 3 * warps for one over threads.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    MemRefType,
    ModuleOp,
    NoneAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import collective, tile
from phobos.dialects.collective import Scope
from phobos.dialects.ctx import LANES_PER_WARP, LaneOp, WarpOp
from phobos.dialects.elements import element_bytes
from phobos.dialects.scanning import MergeScanOp, PartialScanOp, ScanOp
from phobos.dialects.shaping import PartialReduceOp
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.locations import error_at
from phobos.ir.rewrite import insert_before, zero_attr
from phobos.layout.scan import plan_scan
from phobos.transforms.assign_layouts import with_layout
from phobos.transforms.expand_collectives import (
    Writer,
    loaded,
    only_if,
    storable,
    store_by_lane,
)
from phobos.transforms.expand_exchanges import (
    exchange_buffer,
    partial_layouts,
    through_shared,
)


class ExpandScansPass(ModulePass):
    """Rewrites scans that cross warps."""

    name = "ph-expand-scans"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            threads = threads_of(kernel)
            for inner in list(kernel.walk()):
                if isinstance(inner, ScanOp):
                    _expand_tile(inner)
                elif isinstance(inner, collective.ScanOp):
                    _expand_threads(inner, threads)
            _share_exchanges(kernel)


def _expand_tile(op: ScanOp) -> None:
    source = tile.layout_of(op.value)
    if source is None:
        raise error_at(op, f"`{op.name}` needs layouts: run ph-assign-layouts first")
    plan = plan_scan(source, op.axis)
    if plan is None:
        raise error_at(op, f"`{op.name}` has a layout that no scan can use")
    if not plan.warps:
        return
    kind, axis, type_ = op.kind.data, op.axis, op.value.type
    assert isinstance(type_, TensorType)
    bits = [mask.bit_length() - 1 for mask in plan.warps]
    partial, gathered = partial_layouts(source, (axis,), axis, bits)
    shape = tuple(1 << len(bits) if i == axis else n for i, n in enumerate(type_.get_shape()))
    totals_type = with_layout(TensorType(type_.element_type, shape), partial)
    pieces = PartialScanOp(kind, op.value, axis)
    totals = PartialReduceOp(kind, op.value, (axis,), totals_type)
    insert_before(op, [pieces, totals])
    # The first operand stands for the totals that are loaded.
    merged = MergeScanOp(kind, totals.result, pieces.result, axis)
    everywhere = with_layout(totals_type, gathered)
    buffer = exchange_buffer(partial, gathered, axis, element_bytes(op.value.type))
    through_shared(op, totals.result, buffer, everywhere, [merged])


# ---- exchanges of the same partial results


def _share_exchanges(kernel: gpu.FuncOp) -> None:
    """Lets exchanges of equal partial results in one block use the buffer of the first."""
    first: dict[tuple[object, ...], memref.AllocaOp] = {}
    for op in list(kernel.walk()):
        if not isinstance(op, PartialReduceOp):
            continue
        store = _only_store(op)
        buffer = store.mem.owner if store is not None else None
        if store is None or not isinstance(buffer, memref.AllocaOp):
            continue
        key = (op.parent, op.kind, op.value, op.axes, op.result.type, buffer.memref.type)
        if key not in first:
            first[key] = buffer
            continue
        for old in (store, op):
            old.detach()
            old.erase()
        buffer.memref.replace_all_uses_with(first[key].memref)
        buffer.detach()
        buffer.erase()


def _only_store(partial: PartialReduceOp) -> tile.StoreOp | None:
    """The store of partial results into a buffer that holds nothing else."""
    users = [use.operation for use in partial.result.uses]
    if len(users) != 1 or not isinstance(users[0], tile.StoreOp):
        return None
    store = users[0]
    others = [use.operation for use in store.mem.uses if use.operation is not store]
    return store if all(isinstance(other, tile.LoadOp) for other in others) else None


# ---- values of threads


def _expand_threads(op: collective.ScanOp, threads: int) -> None:
    scope, warps = op.scope.data, -(-threads // LANES_PER_WARP)
    if scope is Scope.LANE:
        return
    writer = Writer(op)
    if scope is Scope.THREAD:
        result = writer.add(collective.ScanOp(Scope.LANE, op.value))
        if warps > 1:
            result = _plus_earlier(writer, result, _warp_totals(writer, result, warps - 1))
    else:
        result = op.value
        if warps > 1:
            rows = store_by_lane(writer, op.value, threads)
            earlier = [rows.load(warp) for warp in range(warps - 1)]
            result = _plus_earlier(writer, op.value, earlier)
    writer.flush()
    op.result.replace_all_uses_with(result)
    op.detach()
    op.erase()


def _warp_totals(writer: Writer, sums: SSAValue, count: int) -> list[SSAValue]:
    """The sums of the last lanes of the first warps, which are whole, in every thread."""
    stored = storable(writer, sums)
    buffer_type = MemRefType(stored.type, [count], NoneAttr(), tile.SHARED)
    buffer = writer.add(
        memref.AllocaOp.build(operands=[[], []], result_types=[buffer_type], properties={})
    )
    warp, last = writer.add(WarpOp()), writer.constant(LANES_PER_WARP - 1)
    is_last = writer.add(arith.CmpiOp(writer.add(LaneOp()), last, "eq"))
    is_early = writer.add(arith.CmpiOp(warp, writer.constant(count), "slt"))
    both = writer.add(arith.AndIOp(is_last, is_early))
    writer.ops.append(only_if(writer, both, [memref.StoreOp.get(stored, buffer, [warp])]))
    run = writer.add(vector.LoadOp(buffer, [writer.constant(0)], VectorType(stored.type, [count])))
    values = [writer.add(vector.ExtractOp(run, [i], stored.type)) for i in range(count)]
    return [loaded(writer, value, sums.type) for value in values]


def _plus_earlier(writer: Writer, own: SSAValue, values: list[SSAValue]) -> SSAValue:
    """`own` plus the values of the warps before this one."""
    zero = writer.add(arith.ConstantOp(zero_attr(own.type)))
    warp = writer.add(WarpOp())
    total: SSAValue | None = None
    for position, value in enumerate(values):
        is_before = writer.add(arith.CmpiOp(writer.constant(position), warp, "slt"))
        term = writer.add(arith.SelectOp(is_before, value, zero))
        total = term if total is None else writer.add(_add(total, term))
    assert total is not None
    return writer.add(_add(total, own))


def _add(a: SSAValue, b: SSAValue) -> Operation:
    return (arith.AddfOp if isinstance(a.type, AnyFloat) else arith.AddiOp)(a, b)
