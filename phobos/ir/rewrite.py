"""Small helpers for passes that edit IR in place; all keep source locations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

INDEX = IndexType()


@cache
def index_attr(value: int) -> IntegerAttr[IndexType]:
    """The attribute of an index constant, made once."""
    return IntegerAttr(value, INDEX)


def zero_attr(type_: Attribute) -> IntegerAttr | FloatAttr:
    """The attribute of the number 0 of a scalar type."""
    if isinstance(type_, AnyFloat):
        return FloatAttr(0.0, type_)
    assert isinstance(type_, IntegerType | IndexType)
    return IntegerAttr(0, type_)


def index_constant(value: int, near: Operation) -> arith.ConstantOp:
    """An index constant with the location of `near`; the caller inserts it."""
    return arith.ConstantOp.create(
        result_types=[INDEX], properties={"value": index_attr(value)}, location=near.location
    )


def insert_before(op: Operation, new_ops: Sequence[Operation]) -> None:
    """Inserts ops before `op`, giving those that have no location that of `op`."""
    block = op.parent
    assert isinstance(block, Block)
    for new in new_ops:
        new.location = op.location
    block.insert_ops_before(list(new_ops), op)


def retype(value: SSAValue, type_: Attribute) -> SSAValue:
    """Gives a value a new type in place; returns the value that now stands for it."""
    if value.type == type_:
        return value
    hint = value.name_hint
    new = Rewriter.replace_value_with_new_type(value, type_)
    new.name_hint = hint
    return new


class OpBuilder:
    """Collects ops; those that have no location of their own get that of one op."""

    def __init__(self, near: Operation):
        self.near = near
        self.ops: list[Operation] = []

    def put(self, op: Operation) -> None:
        """Appends an op, with what is in its regions."""
        for inner in op.walk():
            if isinstance(inner.location, UnknownLoc):
                inner.location = self.near.location
        self.ops.append(op)

    def add(self, op: Operation) -> SSAValue:
        """Appends an op and gives its first result."""
        self.put(op)
        return op.results[0]

    def constant(self, value: int) -> SSAValue:
        """An index constant."""
        return self.add(index_constant(value, self.near))


def carry_more(loop: scf.ForOp, initial: Sequence[SSAValue]) -> scf.ForOp:
    """The same loop, carrying more values; its yield is still to be extended."""
    body = loop.body.block
    for value in initial:
        body.insert_arg(value.type, len(body.args))
    region = loop.detach_region(loop.body)
    new_loop = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *initial], region)
    new_loop.location = loop.location
    new_loop.attributes.update(loop.attributes)
    outside = loop.parent
    assert outside is not None
    outside.insert_op_before(new_loop, loop)
    for old, new in zip(loop.results, new_loop.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()
    return new_loop


def extend_yield(body: Block, ops: Sequence[Operation], values: Sequence[SSAValue]) -> None:
    """Puts ops at the end of a loop's body and yields more values."""
    last = body.last_op
    assert isinstance(last, scf.YieldOp)
    body.insert_ops_before(list(ops), last)
    last.operands = [*last.operands, *values]
