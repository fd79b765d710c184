"""Doing the first iterations of a loop in another way: what passes that split loops share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, Operation, SSAValue

from phobos.analysis.ranges import Ranges
from phobos.ir.rewrite import insert_before


class LoopWriter:
    """Puts integer arithmetic of a loop's counter type before the loop."""

    def __init__(self, loop: scf.ForOp, ranges: Ranges):
        self.loop = loop
        self.type = loop.lb.type
        limits = ranges.limits(self.type)
        self.low, self.high = limits.low, limits.high

    def add(self, op: Operation) -> SSAValue:
        """Puts an op before the loop."""
        insert_before(self.loop, [op])
        return op.results[0]

    def constant(self, value: int) -> SSAValue:
        """A constant of the counter's type."""
        assert isinstance(self.type, IndexType | IntegerType)
        return self.add(arith.ConstantOp(IntegerAttr(value, self.type)))


def start_of_body(loop: scf.ForOp, *, keeps_place: bool) -> Block:
    """An empty block with the arguments that a loop's body has.

    With `keeps_place` there is one more, for where the next iteration starts.
    """
    given = list(loop.body.block.args)
    extra = [loop.lb.type] if keeps_place else []
    body = Block(arg_types=[*(argument.type for argument in given), *extra])
    for new, old in zip(body.args, given, strict=False):
        new.name_hint = old.name_hint
    return body


def end_body(
    loop: scf.ForOp, body: Block, values: Sequence[SSAValue], step: SSAValue | None
) -> None:
    """Ends such a block: it passes values on, and with a step where the next iteration starts."""
    passed = list(values)
    if step is not None:
        passed.append(add_to(body, arith.AddiOp(body.args[0], step), loop))
    add_to(body, scf.YieldOp(*passed), loop)


def add_to(block: Block, op: Operation, loop: scf.ForOp) -> SSAValue:
    """Appends an op with the location of a loop; gives its result, if it has one."""
    op.location = loop.location
    block.add_op(op)
    return op.results[0] if op.results else block.args[0]


def go_on_after(writer: LoopWriter, first: scf.ForOp) -> None:
    """Lets a loop start where another one ended, whose last result says where that is.

    The counter may have gone past what its type holds: then nothing is left.
    """
    loop = writer.loop
    *values, following = first.results
    wrapped = writer.add(arith.CmpiOp(following, loop.lb, "slt"))
    start = writer.add(arith.SelectOp(wrapped, loop.ub, following))
    loop.operands = (start, loop.ub, loop.step, *values)


def copy_iteration(
    loop: scf.ForOp,
    into: Block,
    known: dict[SSAValue, SSAValue],
    carried: Sequence[SSAValue],
    done: frozenset[Operation] = frozenset(),
) -> list[SSAValue]:
    """Appends what is not done of an iteration to a block; gives what it passes on.

    `known` maps the counter, and the results of ops that are done, to those of the copy; it is
    extended by the rest.
    """
    body = loop.body.block
    known.update(zip(body.args[1:], carried, strict=True))
    passed: Sequence[SSAValue] = ()
    for op in body.ops:
        if isinstance(op, scf.YieldOp):
            passed = op.operands
        elif op not in done:
            into.add_op(op.clone(known))
    return [known.get(value, value) for value in passed]
