"""A thread's own runs: making them, taking them apart, folding them."""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.ir import Operation

from phobos.dialects import ptx, tile
from phobos.ir.locations import error_at
from phobos.transforms.lowering.collectives import combine
from phobos.transforms.lowering.registers import Share
from phobos.transforms.lowering.state import Handler, Lowering

_KINDS = {
    "add": "add",
    "mul": "mul",
    "maxsi": "max",
    "minsi": "min",
    "maxui": "umax",
    "minui": "umin",
    "maxnumf": "max",
    "minnumf": "min",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
"""vector.kind -> how `combine` names it."""


def _broadcast(low: Lowering, op: Operation) -> None:
    assert isinstance(op, vector.BroadcastOp)
    low.set(op.vector, *(low.scalar(op.source),) * low.share_size(op.vector))


def _extract(low: Lowering, op: Operation) -> None:
    assert isinstance(op, vector.ExtractOp)
    positions = op.static_position.get_values()
    if len(positions) != 1 or op.dynamic_position:
        raise error_at(op, "an element of a run is taken at one constant position")
    low.set(op.result, low.elements(op.vector)[positions[0]])


def _reduction(low: Lowering, op: Operation) -> None:
    """Folds a run from its first element to its last, so that the rounding is as written."""
    assert isinstance(op, vector.ReductionOp)
    name = _KINDS.get(op.kind.data)
    if name is None:
        raise error_at(op, f"a run is not folded by `{op.kind.data}` yet")
    kind = low.kind(op.dest.type, op)
    elements = list(low.elements(op.vector))
    if op.acc is not None:
        elements.insert(0, low.scalar(op.acc))
    total = elements[0]
    for element in elements[1:]:
        total = combine(low, op, name, kind, total, element)
    low.set(op.dest, total)


def _bitcast(low: Lowering, op: Operation) -> None:
    """Between a run of small elements and its words."""
    assert isinstance(op, vector.BitcastOp)
    source, target = low.kind(op.source.type, op), low.kind(op.result.type, op)
    if source.bits < 32 and target.bits == 32:
        low.set(op.result, *low.words(op.source))
    elif source.bits == 32 and target.bits < 32:
        low.set_share(op.result, Share(words=low.elements(op.source)))
    elif source.register == target.register:
        low.set(op.result, *low.elements(op.source))
    else:
        raise error_at(op, f"a run of {source.bits} bits is not seen as {target.bits} bits yet")


def _dot(low: Lowering, op: Operation) -> None:
    assert isinstance(op, tile.RunDotOp)
    total = low.scalar(op.c)
    suffix = _dp4a_suffix(op.unsigned_a is not None, op.unsigned_b is not None)
    for a, b in zip(low.words(op.a), low.words(op.b), strict=True):
        total = low.build.emit(ptx.Dp4aOp, suffix, a, b, total)
    low.set(op.result, total)


def _dp4a(low: Lowering, op: Operation) -> None:
    assert isinstance(op, tile.Dp4aOp)
    suffix = _dp4a_suffix(op.unsigned_a is not None, op.unsigned_b is not None)
    operands = [low.scalar(value) for value in (op.a, op.b, op.c)]
    low.set(op.result, low.build.emit(ptx.Dp4aOp, suffix, *operands))


def _dp4a_suffix(unsigned_a: bool, unsigned_b: bool) -> str:
    return f"{'u32' if unsigned_a else 's32'}.{'u32' if unsigned_b else 's32'}"


HANDLERS: dict[type[Operation], Handler] = {
    vector.BroadcastOp: _broadcast,
    vector.ExtractOp: _extract,
    vector.ReductionOp: _reduction,
    vector.BitcastOp: _bitcast,
    tile.RunDotOp: _dot,
    tile.Dp4aOp: _dp4a,
}
