"""`ph-expand-collectives`: fold over the CTA as a fold over each warp and an exchange.

    %t = collective.reduce add over thread %x : f32 -> f32
    -->
    %w = collective.reduce add over lane %x : f32 -> f32
    %s = memref.alloca() : memref<8xf32, #tile.shared>
    scf.if (lane = 0) { memref.store %w, %s[%warp] }
    // ph-insert-barriers orders the store and the loads
    %p = vector.load %s[%c0] : memref<8xf32, #tile.shared>, vector<8xf32>
    %t = ...                       // the 8 partial results, folded pairwise by every thread

A CTA of one warp needs no exchange. `any`, `all` and `count` fold 32-bit integers between
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
from phobos.ir.locations import error_at
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


@dataclass(frozen=True)
class ExpandCollectivesPass(ModulePass):
    """Rewrites folds over the CTA into folds over warps and an exchange."""

    name = "ph-expand-collectives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            warps = -(-threads_of(kernel) // LANES_PER_WARP)
            for inner in list(kernel.walk()):
                if isinstance(inner, collective.ReduceOp):
                    _expand(inner, warps)


def combine(kind: ReduceKind, a: SSAValue, b: SSAValue) -> Operation:
    """The op that folds two values of one type."""
    table = _FLOAT_COMBINE if isinstance(a.type, AnyFloat) else _INTEGER_COMBINE
    return table[kind](a, b)


class _Writer:
    """Collects the ops that replace one collective, all with its location."""

    def __init__(self, near: Operation):
        self.near = near
        self.ops: list[Operation] = []

    def add(self, op: Operation) -> SSAValue:
        for inner in op.walk():
            inner.location = self.near.location
        self.ops.append(op)
        return op.results[0]

    def constant(self, value: int) -> SSAValue:
        return self.add(index_constant(value, self.near))

    def flush(self) -> None:
        assert self.near.parent is not None
        self.near.parent.insert_ops_before(self.ops, self.near)


def _expand(op: collective.ReduceOp, warps: int) -> None:
    scope = op.scope.data
    if scope is Scope.LANE:
        return
    if scope is Scope.WARP:
        raise error_at(op, "a collective over `ctx.warp` is not supported yet")
    writer = _Writer(op)
    kind = op.kind.data
    if warps == 1:
        result = writer.add(collective.ReduceOp(kind, Scope.LANE, op.value))
    else:
        result = _over_cta(writer, op, warps)
    writer.flush()
    op.result.replace_all_uses_with(result)
    op.detach()
    op.erase()


def _over_cta(writer: _Writer, op: collective.ReduceOp, warps: int) -> SSAValue:
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


def _exchange(writer: _Writer, partial: SSAValue, kind: ReduceKind, warps: int) -> SSAValue:
    """Writes each warp's value to shared memory and folds them all in every thread."""
    stored = _storable(writer, partial)
    buffer_type = MemRefType(stored.type, [warps], NoneAttr(), tile.SHARED)
    buffer = writer.add(
        memref.AllocaOp.build(operands=[[], []], result_types=[buffer_type], properties={})
    )
    zero = writer.constant(0)
    first = writer.add(arith.CmpiOp(writer.add(LaneOp()), zero, "eq"))
    warp = writer.add(WarpOp())
    store = memref.StoreOp.get(stored, buffer, [warp])
    writer.ops.append(_only_if(writer, first, [store]))
    run = writer.add(vector.LoadOp(buffer, [zero], VectorType(stored.type, [warps])))
    values = [
        writer.add(vector.ExtractOp(run, [position], stored.type)) for position in range(warps)
    ]
    return _loaded(writer, _fold(writer, values, kind, partial.type), partial.type)


def _storable(writer: _Writer, value: SSAValue) -> SSAValue:
    """Memory holds no `index`: it travels as 64 bits."""
    if isinstance(value.type, IndexType):
        return writer.add(arith.IndexCastOp(value, IntegerType(64)))
    return value


def _loaded(writer: _Writer, value: SSAValue, type_: Attribute) -> SSAValue:
    if isinstance(type_, IndexType):
        return writer.add(arith.IndexCastOp(value, type_))
    return value


def _fold(
    writer: _Writer, values: Sequence[SSAValue], kind: ReduceKind, type_: Attribute
) -> SSAValue:
    """Folds neighbours until one is left: log2(n) steps deep."""
    while len(values) > 1:
        pairs = zip(values[0::2], values[1::2], strict=False)
        folded = [writer.add(combine(kind, a, b)) for a, b in pairs]
        values = folded + ([values[-1]] if len(values) % 2 else [])
    return values[0]


def _only_if(writer: _Writer, condition: SSAValue, ops: list[Operation]) -> scf.IfOp:
    block = Block([*ops, scf.YieldOp()])
    branch = scf.IfOp(condition, [], Region(block))
    for inner in branch.walk():
        inner.location = writer.near.location
    return branch
