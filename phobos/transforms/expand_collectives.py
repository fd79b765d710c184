"""`ph-expand-collectives`: fold over the CTA as a fold over each warp and an exchange.

    %t = collective.reduce add over thread %x : f32 -> f32
    -->
    %w = collective.reduce add over lane %x : f32 -> f32
    %s = memref.alloca() : memref<8xf32, #tile.shared>
    scf.if (lane = 0) { memref.store %w, %s[%warp] }
    // ph-insert-barriers orders the store and the loads
    %p = vector.load %s[%c0] : memref<8xf32, #tile.shared>, vector<8xf32>
    %t = ...                       // the 8 partial results, folded pairwise by every thread

A fold over warps stores the value of each thread and loads those of its lane. A CTA of one warp
needs no exchange. `any`, `all` and `count` fold 32-bit integers between
warps. Every thread folds the partial results itself, in one order, so that all of them get
the same bits.

Precondition: `ph-infer-uniformity` accepted the kernel. Postcondition: only folds over lanes
are left. Cost: about 10 + 2 * warps ops for each fold over the CTA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    VectorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import collective, tile
from phobos.dialects.collective import ReduceKind, Scope
from phobos.dialects.ctx import LANES_PER_WARP, LaneOp, WarpOp
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.rewrite import index_constant

_FLOAT_COMBINE: dict[ReduceKind, Callable[[SSAValue, SSAValue], Operation]] = {
    ReduceKind.ADD: arith.AddfOp,
    ReduceKind.MUL: arith.MulfOp,
    ReduceKind.MAX: arith.MaxnumfOp,
    ReduceKind.MIN: arith.MinnumfOp,
}
_INTEGER_COMBINE: dict[ReduceKind, Callable[[SSAValue, SSAValue], Operation]] = {
    ReduceKind.ADD: arith.AddiOp,
    ReduceKind.MUL: arith.MuliOp,
    ReduceKind.MAX: arith.MaxSIOp,
    ReduceKind.MIN: arith.MinSIOp,
    ReduceKind.UMAX: arith.MaxUIOp,
    ReduceKind.UMIN: arith.MinUIOp,
    ReduceKind.AND: arith.AndIOp,
    ReduceKind.OR: arith.OrIOp,
    ReduceKind.XOR: arith.XOrIOp,
}
_BETWEEN_WARPS = {
    ReduceKind.ANY: ReduceKind.OR,
    ReduceKind.ALL: ReduceKind.AND,
    ReduceKind.COUNT: ReduceKind.ADD,
}


class ExpandCollectivesPass(ModulePass):
    """Rewrites folds over the CTA into folds over warps and an exchange."""

    name = "ph-expand-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            threads = threads_of(kernel)
            for inner in list(kernel.walk()):
                if isinstance(inner, collective.ReduceOp):
                    _expand(inner, threads)


def combine(kind: ReduceKind, a: SSAValue, b: SSAValue) -> Operation:
    """The op that folds two values of one type."""
    table = _FLOAT_COMBINE if isinstance(a.type, AnyFloat) else _INTEGER_COMBINE
    return table[kind](a, b)


class Writer:
    """Collects the ops that replace one collective, all with its location."""

    def __init__(self, near: Operation):
        self.near = near
        self.ops: list[Operation] = []

    def add(self, op: Operation) -> SSAValue:
        """Appends an op and gives its result."""
        for inner in op.walk():
            inner.location = self.near.location
        self.ops.append(op)
        return op.results[0]

    def constant(self, value: int) -> SSAValue:
        """Appends an index constant."""
        return self.add(index_constant(value, self.near))

    def flush(self) -> None:
        """Puts the ops before the collective."""
        assert self.near.parent is not None
        self.near.parent.insert_ops_before(self.ops, self.near)


def _expand(op: collective.ReduceOp, threads: int) -> None:
    scope, warps = op.scope.data, -(-threads // LANES_PER_WARP)
    if scope is Scope.LANE:
        return
    writer = Writer(op)
    kind = op.kind.data
    if scope is Scope.WARP:
        result = _over_warps(writer, op, threads)
    elif warps == 1:
        result = writer.add(collective.ReduceOp(kind, Scope.LANE, op.value))
    else:
        result = _over_cta(writer, op, warps)
    writer.flush()
    op.result.replace_all_uses_with(result)
    op.detach()
    op.erase()


def _over_warps(writer: Writer, op: collective.ReduceOp, threads: int) -> SSAValue:
    """Folds the values that the warps have in one lane, all through shared memory."""
    kind, value = op.kind.data, op.value
    is_flag = kind in _BETWEEN_WARPS
    if is_flag:
        value = writer.add(arith.ExtUIOp(value, i32))
    between = _BETWEEN_WARPS.get(kind, kind)
    total = value
    if threads > LANES_PER_WARP:
        rows = store_by_lane(writer, value, threads)
        total = _fold(writer, [rows.load(warp) for warp in range(rows.whole)], between)
        if rows.whole < rows.warps:
            # Only the first lanes exist in the last warp; the others load what lane 0 has there.
            exists = rows.exists_in_last()
            lane = writer.add(arith.SelectOp(exists, rows.lane, writer.constant(0)))
            folded = writer.add(combine(between, total, rows.load(rows.whole, lane)))
            total = writer.add(arith.SelectOp(exists, folded, total))
    if not is_flag or kind is ReduceKind.COUNT:
        return total
    zero = writer.add(arith.ConstantOp(IntegerAttr(0, i32)))
    return writer.add(arith.CmpiOp(total, zero, "ne"))


@dataclass
class LaneRows:
    """A shared buffer with a value for each thread, a row a warp."""

    writer: Writer
    buffer: SSAValue
    type_: Attribute
    lane: SSAValue
    threads: int

    @property
    def warps(self) -> int:
        """The number of warps."""
        return -(-self.threads // LANES_PER_WARP)

    @property
    def whole(self) -> int:
        """The number of warps that have all lanes."""
        return self.threads // LANES_PER_WARP

    def load(self, warp: int, lane: SSAValue | None = None) -> SSAValue:
        """The value of a warp in this lane or another one."""
        row = self.writer.constant(warp)
        value = self.writer.add(memref.LoadOp.get(self.buffer, [row, lane or self.lane]))
        return loaded(self.writer, value, self.type_)

    def exists_in_last(self) -> SSAValue:
        """Whether the last warp, which is not whole, has this lane."""
        count = self.writer.constant(self.threads % LANES_PER_WARP)
        return self.writer.add(arith.CmpiOp(self.lane, count, "slt"))


def store_by_lane(writer: Writer, value: SSAValue, threads: int) -> LaneRows:
    """Puts each thread's value into the row of its warp."""
    warps = -(-threads // LANES_PER_WARP)
    stored = storable(writer, value)
    buffer_type = MemRefType(stored.type, [warps, LANES_PER_WARP], NoneAttr(), tile.SHARED)
    buffer = writer.add(
        memref.AllocaOp.build(operands=[[], []], result_types=[buffer_type], properties={})
    )
    lane = writer.add(LaneOp())
    store = memref.StoreOp.get(stored, buffer, [writer.add(WarpOp()), lane])
    store.location = writer.near.location
    writer.ops.append(store)
    return LaneRows(writer, buffer, value.type, lane, threads)


def _over_cta(writer: Writer, op: collective.ReduceOp, warps: int) -> SSAValue:
    kind = op.kind.data
    partial = writer.add(collective.ReduceOp(kind, Scope.LANE, op.value))
    between = _BETWEEN_WARPS.get(kind, kind)
    is_flag = partial.type == i1
    if is_flag:
        partial = writer.add(arith.ExtUIOp(partial, i32))
    total = _exchange(writer, partial, between, warps)
    if not is_flag:
        return total
    zero = writer.add(arith.ConstantOp(IntegerAttr(0, i32)))
    return writer.add(arith.CmpiOp(total, zero, "ne"))


def _exchange(writer: Writer, partial: SSAValue, kind: ReduceKind, warps: int) -> SSAValue:
    """Writes each warp's value to shared memory and folds them all in every thread."""
    stored = storable(writer, partial)
    buffer_type = MemRefType(stored.type, [warps], NoneAttr(), tile.SHARED)
    buffer = writer.add(
        memref.AllocaOp.build(operands=[[], []], result_types=[buffer_type], properties={})
    )
    zero = writer.constant(0)
    first = writer.add(arith.CmpiOp(writer.add(LaneOp()), zero, "eq"))
    warp = writer.add(WarpOp())
    store = memref.StoreOp.get(stored, buffer, [warp])
    writer.ops.append(only_if(writer, first, [store]))
    run = writer.add(vector.LoadOp(buffer, [zero], VectorType(stored.type, [warps])))
    values = [
        writer.add(vector.ExtractOp(run, [position], stored.type)) for position in range(warps)
    ]
    return loaded(writer, _fold(writer, values, kind), partial.type)


def storable(writer: Writer, value: SSAValue) -> SSAValue:
    """What memory holds of a value. Memory holds no `index`: it travels as 64 bits."""
    if isinstance(value.type, IndexType):
        return writer.add(arith.IndexCastOp(value, IntegerType(64)))
    return value


def loaded(writer: Writer, value: SSAValue, type_: Attribute) -> SSAValue:
    """A value as it was before `storable`."""
    if isinstance(type_, IndexType):
        return writer.add(arith.IndexCastOp(value, type_))
    return value


def _fold(writer: Writer, values: Sequence[SSAValue], kind: ReduceKind) -> SSAValue:
    """Folds neighbours until one is left: log2(n) steps deep."""
    while len(values) > 1:
        pairs = zip(values[0::2], values[1::2], strict=False)
        folded = [writer.add(combine(kind, a, b)) for a, b in pairs]
        values = folded + ([values[-1]] if len(values) % 2 else [])
    return values[0]


def only_if(writer: Writer, condition: SSAValue, ops: list[Operation]) -> scf.IfOp:
    """A branch that does some ops."""
    block = Block([*ops, scf.YieldOp()])
    branch = scf.IfOp(condition, [], Region(block))
    for inner in branch.walk():
        inner.location = writer.near.location
    return branch
