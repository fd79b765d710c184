"""Small helpers for passes that edit IR in place; all keep source locations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
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
