"""The `ctx` dialect: where this thread is in its CTA and its CTA in the grid.

Every op returns an `index` and has no operands. All are pure, so two reads of the same
field are one value to CSE. `ctx.thread = ctx.warp * ctx.lanes + ctx.lane`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Dialect, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

INDEX = IndexType()
LANES_PER_WARP = 32


class Axis(StrEnum):
    """An axis of the grid."""

    X = "x"
    Y = "y"
    Z = "z"


@irdl_attr_definition
class AxisAttr(EnumAttribute[Axis], SpacedOpaqueSyntaxAttribute):
    """An axis of the grid, printed bare: `x`."""

    name = "ctx.axis"


class _GridField(IRDLOperation):
    """A field that exists once for each grid axis."""

    axis = prop_def(AxisAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def __init__(self, axis: Axis | AxisAttr):
        axis = axis if isinstance(axis, AxisAttr) else AxisAttr(axis)
        super().__init__(result_types=[INDEX], properties={"axis": axis})


class _Field(IRDLOperation):
    """A field of the thread or the CTA."""

    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class BlockOp(_GridField):
    """This CTA's index along a grid axis, from 0. Uniform."""

    name = "ctx.block"


@irdl_op_definition
class BlocksOp(_GridField):
    """The grid's extent along an axis, in CTAs. Uniform."""

    name = "ctx.blocks"


@irdl_op_definition
class ThreadOp(_Field):
    """The thread's index in its CTA, 0 to `ctx.threads` - 1. Varying."""

    name = "ctx.thread"


@irdl_op_definition
class ThreadsOp(_Field):
    """Threads in a CTA: the kernel's `gpu.known_block_size`. Uniform."""

    name = "ctx.threads"


@irdl_op_definition
class WarpOp(_Field):
    """The warp's index in its CTA. Warp-uniform."""

    name = "ctx.warp"


@irdl_op_definition
class WarpsOp(_Field):
    """Warps in a CTA: threads over lanes, rounded up. Uniform."""

    name = "ctx.warps"


@irdl_op_definition
class LaneOp(_Field):
    """The thread's index in its warp, 0 to `ctx.lanes` - 1. Varying."""

    name = "ctx.lane"


@irdl_op_definition
class LanesOp(_Field):
    """Lanes in a warp: 32 on every supported chip. Uniform."""

    name = "ctx.lanes"


Ctx = Dialect(
    "ctx",
    [BlockOp, BlocksOp, ThreadOp, ThreadsOp, WarpOp, WarpsOp, LaneOp, LanesOp],
    [AxisAttr],
)
