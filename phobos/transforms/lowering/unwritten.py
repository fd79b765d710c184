"""Tiles that nothing wrote yet."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.ir import Operation

from phobos.transforms.lowering.state import Handler, Lowering


def _empty(low: Lowering, op: Operation) -> None:
    """Zeros, so that a kernel gives the same numbers each time."""
    assert isinstance(op, tensor.EmptyOp)
    kind = low.kind(op.tensor.type, op)
    zero = low.build.false() if kind.bits == 1 else low.build.imm(0, kind.register)
    low.set(op.tensor, *(zero,) * low.share_size(op.tensor))


HANDLERS: dict[type[Operation], Handler] = {tensor.EmptyOp: _empty}
