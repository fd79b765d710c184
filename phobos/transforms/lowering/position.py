"""The fields of `ctx`: where the thread is, from special registers."""

from __future__ import annotations

from xdsl.ir import Operation

from phobos.dialects import ctx
from phobos.transforms.lowering.state import Handler, Lowering


def _block(low: Lowering, op: Operation) -> None:
    assert isinstance(op, ctx.BlockOp)
    low.set(op.result, low.to_index(low.build.sreg(f"ctaid.{op.axis.data.value}")))


def _blocks(low: Lowering, op: Operation) -> None:
    assert isinstance(op, ctx.BlocksOp)
    low.set(op.result, low.to_index(low.build.sreg(f"nctaid.{op.axis.data.value}")))


def _thread(low: Lowering, op: Operation) -> None:
    low.set(op.results[0], low.to_index(low.thread))


def _warp(low: Lowering, op: Operation) -> None:
    low.set(op.results[0], low.to_index(low.warp))


def _lane(low: Lowering, op: Operation) -> None:
    low.set(op.results[0], low.to_index(low.lane))


HANDLERS: dict[type[Operation], Handler] = {
    ctx.BlockOp: _block,
    ctx.BlocksOp: _blocks,
    ctx.ThreadOp: _thread,
    ctx.WarpOp: _warp,
    ctx.LaneOp: _lane,
}
