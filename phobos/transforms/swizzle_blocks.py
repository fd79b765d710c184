"""`ph-swizzle-blocks`: let CTAs that run at the same time work in a block of the grid.

    %x = ctx.block x            // kernel marked @swizzle
    %y = ctx.block y
    -->
    %linear = block.x + block.y * blocks.x       // the order in which the chip starts CTAs
    %band = 8 * blocks.y                         // CTAs in a band of 8 along x
    %first = %linear / %band * 8
    %width = min(blocks.x - %first, 8)           // the last band may be narrower
    %x = %first + %linear % %band % %width
    %y = %linear % %band / %width

The chip starts CTAs along x first. A product whose rows go along x would have all rows in flight
and few columns: every operand that its CTAs read is read for few results. In bands of 8 the CTAs
in flight are nearly a square of the result, so that the second-level cache holds what they share.
The mapping is one to one for every grid; z stays.

Precondition: `ph-mask-slices`, as the proofs about slices follow `ctx.block` itself. Cost: a dozen
ops for a kernel that asks for it and uses both axes.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects.ctx import Axis, BlockOp, BlocksOp
from phobos.ir.kernel import kernels
from phobos.ir.rewrite import OpBuilder

SWIZZLE = "phobos.swizzle"
BAND = 8
"""CTAs of a band along x. With a hundred or two in flight the block that they form is 8 by 16 or
so, and the division by it is a shift."""


class SwizzleBlocksPass(ModulePass):
    """Renumbers the CTAs of kernels that are marked `@swizzle`."""

    name = "ph-swizzle-blocks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            if SWIZZLE in kernel.attributes:
                swizzle_blocks(kernel)


def swizzle_blocks(kernel: gpu.FuncOp) -> None:
    """Renumbers the CTAs of one kernel; nothing to do if it reads one axis alone."""
    along = {
        axis: [op for op in kernel.walk() if isinstance(op, BlockOp) and op.axis.data is axis]
        for axis in (Axis.X, Axis.Y)
    }
    if not all(along.values()):
        return
    entry = kernel.body.blocks[0]
    x, y = _renumbered(entry)
    for axis, value in ((Axis.X, x), (Axis.Y, y)):
        for op in along[axis]:
            op.result.replace_all_uses_with(value)
            op.detach()
            op.erase()


def _renumbered(entry: Block) -> tuple[SSAValue, SSAValue]:
    """The new places along x and y, computed at a kernel's entry."""
    first_op = entry.first_op
    assert first_op is not None
    ops = OpBuilder(first_op)
    x, y = ops.add(BlockOp(Axis.X)), ops.add(BlockOp(Axis.Y))
    columns, rows = ops.add(BlocksOp(Axis.X)), ops.add(BlocksOp(Axis.Y))
    band = ops.constant(BAND)
    linear = ops.add(arith.AddiOp(x, ops.add(arith.MuliOp(y, columns))))
    size = ops.add(arith.MuliOp(rows, band))
    first = ops.add(arith.MuliOp(ops.add(arith.DivUIOp(linear, size)), band))
    inside = ops.add(arith.RemUIOp(linear, size))
    width = ops.add(arith.MinUIOp(ops.add(arith.SubiOp(columns, first)), band))
    new_x = ops.add(arith.AddiOp(first, ops.add(arith.RemUIOp(inside, width))))
    new_y = ops.add(arith.DivUIOp(inside, width))
    entry.insert_ops_before(ops.ops, first_op)
    return new_x, new_y
