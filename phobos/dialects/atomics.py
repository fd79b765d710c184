"""Memory that threads share one element at a time; part of the `collective` dialect.

%old = collective.atomic add %v, %hist[%i] : f32, memref<?xf32>
%old = collective.cas %expected, %desired, %lock[%i] : i32, memref<?xi32>
%v = collective.load_acquire %flag[%i] : memref<?xi32> -> i32
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerType,
    MemRefType,
    i32,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
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
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

_BITWISE = ("and", "or", "xor")
_WIDTHS = (16, 32, 64)


class AtomicKind(StrEnum):
    """What an atomic update does; `max` and `min` are of signed integers and floats.

    A NaN loses to a number in `max` and `min`.
    """

    ADD = "add"
    MAX = "max"
    MIN = "min"
    UMAX = "umax"
    UMIN = "umin"
    AND = "and"
    OR = "or"
    XOR = "xor"
    EXCHANGE = "exchange"


@irdl_attr_definition
class AtomicKindAttr(EnumAttribute[AtomicKind], SpacedOpaqueSyntaxAttribute):
    """An atomic update's operation, printed bare: `add`."""

    name = "collective.atomic_kind"


def _check_element(name: str, mem: Attribute, count: int, value: Attribute) -> None:
    type_ = cast(MemRefType, mem)
    if count != len(type_.get_shape()):
        raise VerifyException(f"{name}: {len(type_.get_shape())} subscripts expected, got {count}")
    if type_.element_type != value:
        raise VerifyException(f"{name}: the tensor holds {type_.element_type}, not {value}")


def _check_width(name: str, element: Attribute) -> None:
    if isinstance(element, IntegerType) and element.width.data in _WIDTHS[1:]:
        return
    if isinstance(element, AnyFloat) and element.bitwidth in _WIDTHS:
        return
    raise VerifyException(f"{name}: no atomic update of {element}")


@irdl_op_definition
class AtomicOp(IRDLOperation):
    """Updates an element and gives what it was before; no other update comes between.

    Relaxed: accesses of other elements may be seen before it or behind it.
    """

    name = "collective.atomic"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    kind = prop_def(AtomicKindAttr)
    value = operand_def(_T)
    mem = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def(_T)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$kind $value `,` $mem `[` $indices `]` attr-dict `:` type($value) `,` type($mem)"
    )

    def __init__(
        self, kind: AtomicKind, value: SSAValue, mem: SSAValue, indices: Sequence[SSAValue]
    ):
        super().__init__(
            operands=[value, mem, indices],
            result_types=[value.type],
            properties={"kind": AtomicKindAttr(kind)},
        )

    def verify_(self) -> None:
        """Refuses subscripts and elements that no update is of."""
        _check_element(self.name, self.mem.type, len(self.indices), self.value.type)
        _check_width(self.name, self.value.type)
        kind = self.kind.data
        is_float = isinstance(self.value.type, AnyFloat)
        if is_float and (kind in _BITWISE or kind.startswith("u")):
            raise VerifyException(f"{self.name}: no `{kind}` of {self.value.type}")


@irdl_op_definition
class CompareExchangeOp(IRDLOperation):
    """Writes `desired` where the element has the bits of `expected`; gives what it was before."""

    name = "collective.cas"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    expected = operand_def(_T)
    desired = operand_def(_T)
    mem = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def(_T)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$expected `,` $desired `,` $mem `[` $indices `]` attr-dict"
        " `:` type($expected) `,` type($mem)"
    )

    def __init__(
        self, expected: SSAValue, desired: SSAValue, mem: SSAValue, indices: Sequence[SSAValue]
    ):
        super().__init__(operands=[expected, desired, mem, indices], result_types=[expected.type])

    def verify_(self) -> None:
        """Refuses subscripts and elements that no update is of."""
        _check_element(self.name, self.mem.type, len(self.indices), self.expected.type)
        _check_width(self.name, self.expected.type)


@irdl_op_definition
class LoadAcquireOp(IRDLOperation):
    """Reads an element and sees all that was written before a `store_release` it reads from."""

    name = "collective.load_acquire"

    mem = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def()
    # The order it makes binds reads and writes on both sides.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$mem `[` $indices `]` attr-dict `:` type($mem) `->` type($result)"

    def __init__(self, mem: SSAValue, indices: Sequence[SSAValue]):
        element = cast(MemRefType, mem.type).element_type
        super().__init__(operands=[mem, indices], result_types=[element])

    def verify_(self) -> None:
        """Refuses subscripts and a result that do not match."""
        _check_element(self.name, self.mem.type, len(self.indices), self.result.type)


@irdl_op_definition
class StoreReleaseOp(IRDLOperation):
    """Writes an element after all that was written before, in the eyes of who acquires it."""

    name = "collective.store_release"

    value = operand_def()
    mem = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$value `,` $mem `[` $indices `]` attr-dict `:` type($value) `,` type($mem)"

    def __init__(self, value: SSAValue, mem: SSAValue, indices: Sequence[SSAValue]):
        super().__init__(operands=[value, mem, indices])

    def verify_(self) -> None:
        """Refuses subscripts and elements that do not match."""
        _check_element(self.name, self.mem.type, len(self.indices), self.value.type)


@irdl_op_definition
class GridBarrierOp(IRDLOperation):
    """Waits for all CTAs of the grid, which must all be running.

    `state` has at least two elements, zero before the first launch. The first counts the CTAs that
    have come; its sign says whether all had, an even or an odd number of times.
    """

    name = "collective.grid_barrier"

    state = operand_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$state attr-dict `:` type($state)"

    def __init__(self, state: SSAValue):
        super().__init__(operands=[state])

    def verify_(self) -> None:
        """Refuses anything but one axis of i32."""
        state = cast(MemRefType, self.state.type)
        if len(state.get_shape()) != 1 or state.element_type != i32:
            raise VerifyException(f"{self.name}: its state is one axis of i32, not {state}")


ATOMICS = (AtomicOp, CompareExchangeOp, LoadAcquireOp, StoreReleaseOp, GridBarrierOp)
"""The ops of this file, for the dialect."""
