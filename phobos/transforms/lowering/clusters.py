"""What the CTAs of a cluster do together: barriers, and reads of each other's shared memory."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from phobos.dialects import cluster, ptx, tile
from phobos.ir.locations import error_at
from phobos.layout import LinearLayout
from phobos.layout.shared import as_part
from phobos.transforms.lowering.shared_tiles import SharedAccess, load_parts, offset_at
from phobos.transforms.lowering.state import Handler, Lowering

_RANK = "cluster_ctarank"
"""Clusters lie along x alone, so a CTA's rank is its number in that row."""


def _rank(low: Lowering, op: Operation) -> None:
    low.set(op.results[0], low.to_index(low.build.sreg(_RANK)))


def _arrive(low: Lowering, op: Operation) -> None:
    low.build.emit_multi(ptx.BarrierClusterOp, "arrive.release.aligned", results=())


def _wait(low: Lowering, op: Operation) -> None:
    low.build.emit_multi(ptx.BarrierClusterOp, "wait.acquire.aligned", results=())


def _barrier(low: Lowering, op: Operation) -> None:
    _arrive(low, op)
    _wait(low, op)


def _load(low: Lowering, op: Operation) -> None:
    assert isinstance(op, cluster.LoadOp)
    layout = tile.layout_of(op.result)
    if layout is None:
        raise error_at(op, f"`{op.name}` needs a layout: run ph-assign-layouts first")
    kind = low.kind(op.result.type, op)
    shared = tile.shared_layout_of(op.mem)
    access = SharedAccess(low, op.mem, as_part(layout, shared), kind)
    start, bits = _part_of_rank(low, shared)
    access = access.moved(start, bits)
    ahead = op.ahead.value.data
    if ahead:
        further = low.build.emit(ptx.AddOp, "s32", low.build.sreg(_RANK), ahead)
        access = access.of_cta(low.build.emit(ptx.AndOp, "b32", further, shared.shape[0] - 1))
    low.set_share(op.result, load_parts(low, access))


def _part_of_rank(low: Lowering, shared: LinearLayout) -> tuple[SSAValue, int]:
    """The offset of the part that this CTA sums, and the bits that it may have."""
    build = low.build
    rank = build.sreg(_RANK)
    count = shared.shape[0].bit_length() - 1
    rest = (0,) * (shared.rank - 1)
    steps = [offset_at((1 << bit, *rest), shared) for bit in range(count)]
    bits = 0
    for step in steps:
        bits |= step
    if all(step == steps[0] << bit for bit, step in enumerate(steps)) and steps[0].bit_count() == 1:
        return build.emit(ptx.ShlOp, "b32", rank, steps[0].bit_length() - 1), bits
    start: SSAValue | None = None
    for bit, step in enumerate(steps):
        single = build.emit(ptx.BfeOp, "u32", rank, bit, 1)
        part = build.emit(ptx.MulOp, "lo.u32", single, step)
        start = part if start is None else build.emit(ptx.XorOp, "b32", start, part)
    assert start is not None
    return start, bits


HANDLERS: dict[type[Operation], Handler] = {
    cluster.RankOp: _rank,
    cluster.BarrierOp: _barrier,
    cluster.ArriveOp: _arrive,
    cluster.WaitOp: _wait,
    cluster.LoadOp: _load,
}
