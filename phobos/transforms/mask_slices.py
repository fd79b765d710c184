"""`ph-mask-slices`: put in what the masks of tile accesses rest on.

    @aligned(N = 64) on a launch extent becomes, at the kernel's entry,

    %n = memref.dim %x, %c0 : memref<?xf32>
    %r = arith.remsi %n, %c64 : index
    %ok = arith.cmpi eq, %r, %c0 : index
    tile.assert %ok, "N is a multiple of 64"

A loop that walks a launch extent in tiles is split: the tiles that are inside go without masks.

    scf.for %k = %c0 to %n step %c64 { tile.load %x[%k] in_bounds [false] ... }
    -->
    %next = scf.for %k = %c0 to min(%n, %n - 63) step %c64 { tile.load %x[%k] in_bounds [true] ... }
    scf.for %k = %next to %n step %c64 { tile.load %x[%k] in_bounds [false] ... }

Precondition: `ph-analyze-extents` has run, which takes the promise as kept.
Cost: a few ops for each promise; a range analysis and a copy of the body for loops that are split.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import BlockArgument, Operation
from xdsl.passes import ModulePass

from phobos.dialects import tile
from phobos.ir.kernel import dim_names, int_dict, kernels
from phobos.ir.rewrite import index_constant
from phobos.transforms.split_loops import split_loops

ALIGNED = "phobos.aligned"


class MaskSlicesPass(ModulePass):
    """Adds the entry checks of `@aligned` and splits loops over tiles."""

    name = "ph-mask-slices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            add_entry_checks(kernel, int_dict(kernel, ALIGNED))
            split_loops(kernel)


def add_entry_checks(kernel: gpu.FuncOp, aligned: dict[str, int]) -> None:
    """Traps at entry unless each launch extent that `@aligned` names is whole tiles."""
    block = kernel.body.blocks[0]
    checks: list[Operation] = []
    for name, multiple in aligned.items():
        found = _first_with_dim(kernel, name)
        if found is None or multiple == 1:
            continue
        argument, axis = found
        zero, number = index_constant(0, kernel), index_constant(multiple, kernel)
        position = index_constant(axis, kernel)
        extent = memref.DimOp(argument, position)
        remainder = arith.RemSIOp(extent, number)
        whole = arith.CmpiOp(remainder, zero, "eq")
        check = tile.AssertOp(whole.result, f"{name} is a multiple of {multiple}")
        checks += [zero, number, position, extent, remainder, whole, check]
    for op in checks:
        op.location = kernel.location
    first = block.first_op
    if checks and first is not None:
        block.insert_ops_before(checks, first)


def _first_with_dim(kernel: gpu.FuncOp, name: str) -> tuple[BlockArgument, int] | None:
    """The tensor parameter and axis that a launch extent is read from."""
    for argument in kernel.body.blocks[0].args:
        if not isinstance(argument.type, MemRefType):
            continue
        for axis, dim in enumerate(dim_names(kernel, argument.index)):
            if dim == name and argument.type.get_shape()[axis] == DYNAMIC_INDEX:
                return argument, axis
    return None
