"""Running folds of the elements of a tile along an axis; part of the `tile` dialect."""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.collective import ReduceKind, ReduceKindAttr
from phobos.dialects.shaping import AxesAttr

_KINDS = (
    ReduceKind.ADD,
    ReduceKind.MUL,
    ReduceKind.MAX,
    ReduceKind.MIN,
    ReduceKind.UMAX,
    ReduceKind.UMIN,
)


class _Scan(IRDLOperation):
    """Base class of the scans of a tile along one axis."""

    _T: ClassVar = VarConstraint("T", AnyAttr())

    kind = prop_def(ReduceKindAttr)
    axes = prop_def(AxesAttr)
    value = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$kind $value `over` $axes attr-dict `:` type($value)"

    def __init__(self, kind: ReduceKind, value: SSAValue, axis: int):
        super().__init__(
            operands=[value],
            result_types=[value.type],
            properties={"kind": ReduceKindAttr(kind), "axes": AxesAttr((axis,))},
        )

    @property
    def axis(self) -> int:
        """The axis along which elements are added up."""
        return self.axes.data[0]

    def verify_(self) -> None:
        """Refuses what is no tile, more than one axis, and folds that do not run."""
        _check_tile_scan(self.name, self.kind.data, self.axes.data, self.value.type)


def _check_tile_scan(name: str, kind: ReduceKind, axes: tuple[int, ...], type_: Attribute) -> None:
    if not isinstance(type_, TensorType):
        raise VerifyException(f"{name} is of a tile, not of {type_}")
    if len(axes) != 1 or not 0 <= axes[0] < len(type_.get_shape()):
        raise VerifyException(f"{name} goes along one axis of the tile, not {list(axes)}")
    if kind not in _KINDS or type_.element_type == i1:
        raise VerifyException(f"{name} has no `{kind}` of {type_.element_type}")


@irdl_op_definition
class ScanOp(_Scan):
    """Each element folded with all before it along an axis.

    `%s = tile.scan add %t over [1] : tensor<8x64xf32>`
    """

    name = "tile.scan"


@irdl_op_definition
class PartialScanOp(_Scan):
    """A scan of each warp's own piece of the axis; the layout says which that is."""

    name = "tile.partial_scan"


@irdl_op_definition
class MergeScanOp(IRDLOperation):
    """Folds the totals of all earlier warps into the scans of each warp's piece.

    `totals` has the warps' totals along the axis, all of them in each thread.
    `%s = tile.merge_scan add %totals, %pieces over [1] : tensor<8x4xf32>, tensor<8x256xf32>`
    """

    name = "tile.merge_scan"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    kind = prop_def(ReduceKindAttr)
    axes = prop_def(AxesAttr)
    totals = operand_def(TensorType)
    pieces = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = (
        "$kind $totals `,` $pieces `over` $axes attr-dict `:` type($totals) `,` type($pieces)"
    )

    def __init__(self, kind: ReduceKind, totals: SSAValue, pieces: SSAValue, axis: int):
        super().__init__(
            operands=[totals, pieces],
            result_types=[pieces.type],
            properties={"kind": ReduceKindAttr(kind), "axes": AxesAttr((axis,))},
        )

    @property
    def axis(self) -> int:
        """The axis along which elements are added up."""
        return self.axes.data[0]

    def verify_(self) -> None:
        """Refuses wrong axes and totals of other rows."""
        _check_tile_scan(self.name, self.kind.data, self.axes.data, self.pieces.type)
        totals = cast(TensorType, self.totals.type).get_shape()
        pieces = cast(TensorType, self.pieces.type).get_shape()
        rows = [shape[: self.axis] + shape[self.axis + 1 :] for shape in (totals, pieces)]
        if rows[0] != rows[1]:
            raise VerifyException(f"{self.name}: totals of {totals} do not go with {pieces}")


SCANNING = (ScanOp, PartialScanOp, MergeScanOp)
"""The ops of this file, for the dialect."""
