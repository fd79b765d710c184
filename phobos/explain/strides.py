"""How far apart the lanes of a warp access memory with single elements and runs.

A subscript is followed back to `ctx.lane` and `ctx.thread`: where it grows by the same number
from lane to lane, so does the address.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from phobos.analysis.uniformity import Uniformity, Variation
from phobos.dialects import ctx, elementwise
from phobos.record import Record, record


@record
class LaneSteps(Record):
    """Answers by how much values grow from a lane to the next."""

    uniformity: Uniformity

    def of(self, value: SSAValue) -> int | None:
        """The step of an integer value; None if there is no one number."""
        if self.uniformity.level(value) < Variation.VARYING:
            return 0
        if isinstance(value, BlockArgument):
            return self._of_argument(value)
        assert isinstance(value.owner, Operation)
        rule = _RULES.get(type(value.owner))
        return None if rule is None else rule(self, value.owner)

    def _of_argument(self, value: BlockArgument) -> int | None:
        """A loop's counter is as far from lane to lane as where it starts."""
        block: Block = value.block
        loop = block.parent_op()
        if not isinstance(loop, scf.ForOp) or self.of(loop.step) != 0:
            return None
        return self.of(loop.lb) if value is block.args[0] else None


def _one(steps: LaneSteps, op: Operation) -> int:
    return 1


def _sum(steps: LaneSteps, op: Operation) -> int | None:
    a, b = (steps.of(operand) for operand in op.operands)
    return None if a is None or b is None else a + b


def _difference(steps: LaneSteps, op: Operation) -> int | None:
    a, b = (steps.of(operand) for operand in op.operands)
    return None if a is None or b is None else a - b


def _product(steps: LaneSteps, op: Operation) -> int | None:
    for value, factor in (op.operands, reversed(op.operands)):
        number, step = _constant(factor), steps.of(value)
        if number is not None and step is not None:
            return number * step
    return None


def _shift(steps: LaneSteps, op: Operation) -> int | None:
    number, step = _constant(op.operands[1]), steps.of(op.operands[0])
    return None if number is None or step is None or number < 0 else step << number


def _same(steps: LaneSteps, op: Operation) -> int | None:
    return steps.of(op.operands[0])


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


_RULES: dict[type[Operation], Callable[[LaneSteps, Operation], int | None]] = {
    ctx.LaneOp: _one,
    ctx.ThreadOp: _one,
    arith.AddiOp: _sum,
    arith.SubiOp: _difference,
    arith.MuliOp: _product,
    arith.ShLIOp: _shift,
    arith.IndexCastOp: _same,
    elementwise.ExtSIOp: _same,
    elementwise.ExtUIOp: _same,
    arith.ExtSIOp: _same,
    arith.ExtUIOp: _same,
}
