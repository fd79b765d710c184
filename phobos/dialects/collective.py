"""The `collective` dialect: what the threads of a warp or a CTA do together.

A collective is executed by every thread of its scope; control flow around it must be
uniform over that scope (checked by `ph-infer-uniformity`).
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    i32,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from phobos.dialects.atomics import ATOMICS, AtomicKindAttr

I1 = IntegerType(1)
_FLOATS = (Float16Type, BFloat16Type, Float32Type, Float64Type)


class Scope(StrEnum):
    """Which threads a collective folds together."""

    LANE = "lane"
    """The lanes of one warp."""
    WARP = "warp"
    """The threads of one lane index, over all warps of the CTA."""
    THREAD = "thread"
    """All threads of the CTA."""


class ReduceKind(StrEnum):
    """What a collective reduction computes.

    `max` and `min` compare signed integers or floats (a NaN loses to a number),
    `umax` and `umin` unsigned integers. `any`, `all` and `count` take an i1.
    """

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    UMAX = "umax"
    UMIN = "umin"
    AND = "and"
    OR = "or"
    XOR = "xor"
    ANY = "any"
    ALL = "all"
    COUNT = "count"


class ShuffleMode(StrEnum):
    """How a shuffle names the lane that it reads from."""

    IDX = "idx"
    XOR = "xor"
    UP = "up"
    DOWN = "down"


@irdl_attr_definition
class ScopeAttr(EnumAttribute[Scope], SpacedOpaqueSyntaxAttribute):
    """A collective's scope, printed bare: `lane`."""

    name = "collective.scope"


@irdl_attr_definition
class ReduceKindAttr(EnumAttribute[ReduceKind], SpacedOpaqueSyntaxAttribute):
    """A reduction's operation, printed bare: `add`."""

    name = "collective.kind"


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    """A shuffle's mode, printed bare: `xor`."""

    name = "collective.mode"


_PREDICATE_KINDS = frozenset({ReduceKind.ANY, ReduceKind.ALL, ReduceKind.COUNT})
_INTEGER_KINDS = frozenset(
    {ReduceKind.UMAX, ReduceKind.UMIN, ReduceKind.AND, ReduceKind.OR, ReduceKind.XOR}
)


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Folds one value of each thread in the scope; every thread gets the result.

    `%s = collective.reduce add over lane %x : f32`
    """

    name = "collective.reduce"

    kind = prop_def(ReduceKindAttr)
    scope = prop_def(ScopeAttr)
    value = operand_def()
    result = result_def()
    # Moves no memory, yet must not leave the control flow that makes it legal: LICM and
    # speculation are stopped by not being speculatable; CSE of two equal ones is fine.
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$kind `over` $scope $value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, kind: ReduceKind, scope: Scope, value: SSAValue):
        result = i32 if kind is ReduceKind.COUNT else value.type
        super().__init__(
            operands=[value],
            result_types=[result],
            properties={"kind": ReduceKindAttr(kind), "scope": ScopeAttr(scope)},
        )

    def verify_(self) -> None:
        """Refuses a kind that the operand's type does not have."""
        kind, operand, result = self.kind.data, self.value.type, self.result.type
        wanted = i32 if kind is ReduceKind.COUNT else operand
        if result != wanted:
            raise VerifyException(f"`{kind}` of {operand} gives {wanted}, not {result}")
        if kind in _PREDICATE_KINDS and operand != I1:
            raise VerifyException(f"`{kind}` folds i1, not {operand}")
        if kind in _INTEGER_KINDS and isinstance(operand, _FLOATS):
            raise VerifyException(f"`{kind}` folds integers, not {operand}")
        if not isinstance(operand, (*_FLOATS, IntegerType, IndexType)):
            raise VerifyException(f"a collective folds scalars, not {operand}")


@irdl_op_definition
class ScanOp(IRDLOperation):
    """The sum of the value of this thread and those of all threads before it in the scope.

    `%s = collective.scan over lane %x : f32`
    """

    name = "collective.scan"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    scope = prop_def(ScopeAttr)
    value = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "`over` $scope $value attr-dict `:` type($value)"

    def __init__(self, scope: Scope, value: SSAValue):
        super().__init__(
            operands=[value], result_types=[value.type], properties={"scope": ScopeAttr(scope)}
        )

    def verify_(self) -> None:
        """Refuses what has no sum."""
        operand = self.value.type
        if operand == I1 or not isinstance(operand, (*_FLOATS, IntegerType, IndexType)):
            raise VerifyException(f"a scan adds numbers, not {operand}")


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """Reads `value` as another lane of the warp has it.

    The source lane is `amount` (`idx`), lane ^ amount (`xor`), lane - amount (`up`) or
    lane + amount (`down`). A lane whose source does not exist keeps its own value.
    """

    name = "collective.shuffle"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    mode = prop_def(ShuffleModeAttr)
    value = operand_def(_T)
    amount = operand_def(i32)
    result = result_def(_T)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$mode $value `,` $amount attr-dict `:` type($value)"

    def __init__(self, mode: ShuffleMode, value: SSAValue, amount: SSAValue):
        super().__init__(
            operands=[value, amount],
            result_types=[value.type],
            properties={"mode": ShuffleModeAttr(mode)},
        )


@irdl_op_definition
class BallotOp(IRDLOperation):
    """The bit mask of the warp's lanes whose predicate is true; bit i is lane i."""

    name = "collective.ballot"

    predicate = operand_def(I1)
    result = result_def(i32)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$predicate attr-dict"

    def __init__(self, predicate: SSAValue):
        super().__init__(operands=[predicate], result_types=[i32])


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Waits for all threads of the CTA and orders their memory accesses."""

    name = "collective.barrier"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class ProxyFenceOp(IRDLOperation):
    """Shows what this thread wrote to shared memory to products that read it by themselves.

    They see it behind the next barrier.
    """

    name = "collective.proxy_fence"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


def identity_is_all_ones(kind: ReduceKind) -> bool:
    """Whether the fold's neutral element has every bit set (`and`, `all`, `umin`)."""
    return kind in (ReduceKind.AND, ReduceKind.ALL, ReduceKind.UMIN)


def result_type(kind: ReduceKind, operand: Attribute) -> Attribute:
    """The type that folding values of type `operand` gives."""
    return i32 if kind is ReduceKind.COUNT else operand


Collective = Dialect(
    "collective",
    [ReduceOp, ScanOp, ShuffleOp, BallotOp, BarrierOp, ProxyFenceOp, *ATOMICS],
    [AtomicKindAttr, ScopeAttr, ReduceKindAttr, ShuffleModeAttr],
)
