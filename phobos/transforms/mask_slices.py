"""`ph-mask-slices`: prove which axes of a tile access stay inside their tensor.

    @aligned(N = 64) ... tile.load %x[%base] : memref<?xf32> -> tensor<64xf32>
    -->
    %n = memref.dim %x, %c0 ... tile.assert %multiple, "N is a multiple of 64"   // at entry
    tile.load %x[%base] in_bounds [true] : memref<?xf32> -> tensor<64xf32>

An axis is in bounds if `@aligned` promises whole tiles of it and the slice starts at a
multiple of its length, or if its extent is a constant and every start that the analysis
allows leaves the slice inside. All other axes keep the run-time mask.

Precondition: tile-level IR. Postcondition: every tile access has `in_bounds`.
Cost: one range analysis (about 3 us an op) and a walk.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp, TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.ranges import Ranges, analyze
from phobos.dialects import tile
from phobos.ir.kernel import (
    dim_name_of,
    dim_names,
    extent_multiple_of,
    index_bits_of,
    int_dict,
    kernels,
)
from phobos.ir.rewrite import index_constant

ALIGNED = "phobos.aligned"


@dataclass(frozen=True)
class MaskSlicesPass(ModulePass):
    """Marks the axes of tile accesses that need no mask; adds the @aligned entry checks."""

    name = "ph-mask-slices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            aligned = int_dict(kernel, ALIGNED)
            if not aligned and not _has_slices(kernel):
                continue
            ranges = analyze(kernel, index_bits_of(kernel), extent_multiple_of(kernel))
            for access in list(kernel.walk()):
                if isinstance(access, tile.LoadOp | tile.StoreOp):
                    _mark(access, ranges, aligned)
            add_entry_checks(kernel, aligned)


def _has_slices(kernel: gpu.FuncOp) -> bool:
    return any(isinstance(op, tile.LoadOp | tile.StoreOp) for op in kernel.walk())


def _mark(access: tile.LoadOp | tile.StoreOp, ranges: Ranges, aligned: dict[str, int]) -> None:
    shape_type = access.result.type if isinstance(access, tile.LoadOp) else access.value.type
    assert isinstance(shape_type, TensorType)
    assert isinstance(access.mem.type, MemRefType)
    flags = [
        _stays_inside(access.mem, axis, start, length, extent, ranges, aligned)
        for axis, (start, length, extent) in enumerate(
            zip(
                access.indices,
                shape_type.get_shape(),
                access.mem.type.get_shape(),
                strict=True,
            )
        )
    ]
    access.in_bounds = tile.bounds_array(flags)


def _stays_inside(
    mem: SSAValue,
    axis: int,
    start: SSAValue,
    length: int,
    extent: int,
    ranges: Ranges,
    aligned: dict[str, int],
) -> bool:
    facts = ranges.of(start)
    if extent != DYNAMIC_INDEX:
        return facts.low >= 0 and facts.high + length <= extent
    promise = aligned.get(dim_name_of(mem, axis) or "")
    # Whole tiles: a slice that starts at a multiple of its length is inside or is nowhere.
    return promise is not None and promise % length == 0 and facts.divisible_by(length)


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
