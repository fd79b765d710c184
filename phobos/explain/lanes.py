"""How far apart the lanes of a warp access memory with single elements and runs.

A subscript is followed back to `ctx.lane` and `ctx.thread`. It is the sum of a part that all
lanes of a warp have, of which a divisor is known, and a part of the lane's own, which is a
number for each lane:

    e = ctx.thread           a multiple of 32, and  0 1 2 .. 31
    row = e / 16             a multiple of 2, and   0 0 0 .. 1
    column = e % 16          0, and                 0 1 2 .. 15
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from phobos.analysis.ranges import Ranges
from phobos.analysis.uniformity import Uniformity, Variation
from phobos.dialects import ctx, elementwise
from phobos.record import Value, record
from phobos.targets.ptx.chips import WARP_LANES


@record
class Spread(Value):
    """An integer in the lanes of a warp: a multiple of `divisor` plus each lane's own number.

    A divisor of 0 stands for 0, which everything divides.
    """

    divisor: int
    own: tuple[int, ...]


@dataclass
class Lanes:
    """Answers how integer values differ between the lanes of a warp."""

    uniformity: Uniformity
    ranges: Ranges
    threads: int
    _known: dict[SSAValue, Spread | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def count(self) -> int:
        """Lanes of the first warp."""
        return min(self.threads, WARP_LANES)

    def of(self, value: SSAValue) -> Spread | None:
        """How a value is spread; None if that is not known."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: SSAValue) -> Spread | None:
        if self.uniformity.level(value) < Variation.VARYING:
            return self.same(self.ranges.of(value).divisor)
        if isinstance(value, BlockArgument):
            return self._of_argument(value)
        assert isinstance(value.owner, Operation)
        rule = _RULES.get(type(value.owner))
        return None if rule is None else rule(self, value.owner)

    def same(self, divisor: int) -> Spread:
        """A value that all lanes have."""
        return Spread(divisor, (0,) * self.count)

    def number(self, value: SSAValue) -> int | None:
        """The value of a constant."""
        return self.ranges.of(value).constant

    def _of_argument(self, value: BlockArgument) -> Spread | None:
        """A loop's counter is as far from lane to lane as where it starts."""
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp) or value is not value.block.args[0]:
            return None
        start, step = self.of(loop.lb), self.of(loop.step)
        if start is None or step is None or any(step.own):
            return None
        return Spread(gcd(start.divisor, step.divisor), start.own)


def _lane(lanes: Lanes, op: Operation) -> Spread:
    return Spread(0, tuple(range(lanes.count)))


def _thread(lanes: Lanes, op: Operation) -> Spread:
    return Spread(WARP_LANES, tuple(range(lanes.count)))


def _sum(lanes: Lanes, op: Operation) -> Spread | None:
    return _added(lanes, op, 1)


def _difference(lanes: Lanes, op: Operation) -> Spread | None:
    return _added(lanes, op, -1)


def _added(lanes: Lanes, op: Operation, sign: int) -> Spread | None:
    a, b = (lanes.of(operand) for operand in op.operands)
    if a is None or b is None:
        return None
    own = tuple(x + sign * y for x, y in zip(a.own, b.own, strict=True))
    return Spread(gcd(a.divisor, b.divisor), own)


def _product(lanes: Lanes, op: Operation) -> Spread | None:
    for value, factor in (op.operands, reversed(op.operands)):
        number, spread = lanes.number(factor), lanes.of(value)
        if number is not None and spread is not None:
            return _times(spread, number)
    return None


def _shift(lanes: Lanes, op: Operation) -> Spread | None:
    spread, number = lanes.of(op.operands[0]), lanes.number(op.operands[1])
    if spread is None or number is None or not 0 <= number < 63:
        return None
    return _times(spread, 1 << number)


def _times(spread: Spread, number: int) -> Spread:
    return Spread(spread.divisor * abs(number), tuple(one * number for one in spread.own))


def _quotient(lanes: Lanes, op: Operation) -> Spread | None:
    return _divided(lanes, op, lanes.number(op.operands[1]))


def _shift_right(lanes: Lanes, op: Operation) -> Spread | None:
    number = lanes.number(op.operands[1])
    return None if number is None or not 0 <= number < 63 else _divided(lanes, op, 1 << number)


def _divided(lanes: Lanes, op: Operation, number: int | None) -> Spread | None:
    spread = _divisible(lanes, op, number)
    if spread is None or number is None:
        return None
    return Spread(spread.divisor // number, tuple(one // number for one in spread.own))


def _remainder(lanes: Lanes, op: Operation) -> Spread | None:
    number = lanes.number(op.operands[1])
    spread = _divisible(lanes, op, number)
    if spread is None or number is None:
        return None
    return Spread(0, tuple(one % number for one in spread.own))


def _divisible(lanes: Lanes, op: Operation, number: int | None) -> Spread | None:
    """A dividend whose common part a number divides, so that the lanes' parts decide the rest."""
    spread = lanes.of(op.operands[0])
    if spread is None or number is None or number <= 0 or spread.divisor % number:
        return None
    is_positive = lanes.ranges.of(op.operands[0]).low >= 0 and min(spread.own) >= 0
    return spread if is_positive else None


def _same(lanes: Lanes, op: Operation) -> Spread | None:
    return lanes.of(op.operands[0])


_RULES: dict[type[Operation], Callable[[Lanes, Operation], Spread | None]] = {
    ctx.LaneOp: _lane,
    ctx.ThreadOp: _thread,
    arith.AddiOp: _sum,
    arith.SubiOp: _difference,
    arith.MuliOp: _product,
    arith.ShLIOp: _shift,
    arith.DivSIOp: _quotient,
    arith.DivUIOp: _quotient,
    arith.ShRSIOp: _shift_right,
    arith.ShRUIOp: _shift_right,
    arith.RemSIOp: _remainder,
    arith.RemUIOp: _remainder,
    arith.IndexCastOp: _same,
    elementwise.ExtSIOp: _same,
    elementwise.ExtUIOp: _same,
    arith.ExtSIOp: _same,
    arith.ExtUIOp: _same,
}
