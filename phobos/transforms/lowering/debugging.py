"""What debug builds print, and the assertions that they keep."""

from __future__ import annotations

from xdsl.ir import Operation

from phobos.dialects import ptx
from phobos.dialects.debugging import PrintOp, RequireOp
from phobos.ir.locations import location_of
from phobos.transforms.lowering.control import move_behind
from phobos.transforms.lowering.state import Handler, Lowering


def _print(low: Lowering, op: Operation) -> None:
    assert isinstance(op, PrintOp)
    call = ptx.PrintfOp(op.text.data, [low.scalar(value) for value in op.values])
    call.location = op.location
    low.build.insert(call)


def _require(low: Lowering, op: Operation) -> None:
    assert isinstance(op, RequireOp)
    build = low.build
    fails, holds = build.block((), "fails"), build.block((), "holds")
    build.cond_bra(low.scalar(op.condition), holds, fails)
    build.at(fails)
    place = location_of(op)
    file, line = ("", 0) if place is None else (place.file, place.line)
    call = ptx.AssertFailOp(op.text.data, file, line)
    call.location = op.location
    build.insert(call)
    build.bra(holds)
    build.at(holds)
    move_behind(holds, low)


HANDLERS: dict[type[Operation], Handler] = {PrintOp: _print, RequireOp: _require}
