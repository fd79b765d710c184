"""`ph-check-bounds`: make every point and run access outside its tensor trap.

    %v = memref.load %x[%i] : memref<?xf32>
    -->
    %n = memref.dim %x, %c0 : memref<?xf32>
    %ok = arith.cmpi ult, %i, %n : index
    tile.assert %ok, "index 0 of x is inside its extent"
    %v = memref.load %x[%i] : memref<?xf32>

Tile accesses are masked and need no check. Runs only in `--check-bounds` builds.
Cost: three ops for each axis of each access.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp, VectorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import tile
from phobos.dialects.atomics import (
    AtomicOp,
    CompareExchangeOp,
    LoadAcquireOp,
    StoreReleaseOp,
)
from phobos.ir.kernel import kernels
from phobos.ir.rewrite import index_constant, insert_before


class CheckBoundsPass(ModulePass):
    """Guards every point and run access by an assertion."""

    name = "ph-check-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            for access in list(kernel.walk()):
                match access:
                    case memref.LoadOp() | memref.StoreOp():
                        _guard(access, access.memref, list(access.indices), 1)
                    case AtomicOp() | CompareExchangeOp() | LoadAcquireOp() | StoreReleaseOp():
                        _guard(access, access.mem, list(access.indices), 1)
                    case vector.LoadOp():
                        _guard(access, access.base, list(access.indices), _run(access.result))
                    case vector.StoreOp():
                        _guard(access, access.base, list(access.indices), _run(access.vector))
                    case _:
                        pass


def _run(value: SSAValue) -> int:
    assert isinstance(value.type, VectorType)
    return value.type.get_shape()[-1]


def _guard(access: Operation, mem: SSAValue, indices: list[SSAValue], length: int) -> None:
    """Asserts each index; a run of n elements asserts its first and its last one."""
    name = mem.name_hint or (f"parameter {mem.index}" if isinstance(mem, BlockArgument) else "it")
    for axis, index in enumerate(indices):
        extent = _extent(access, mem, axis)
        _assert_below(access, index, extent, f"index {axis} of {name} is inside its extent")
        if axis == len(indices) - 1 and length > 1:
            offset = index_constant(length - 1, access)
            last = arith.AddiOp(index, offset)
            insert_before(access, [offset, last])
            _assert_below(access, last.result, extent, f"the run ends inside {name}")


def _extent(access: Operation, mem: SSAValue, axis: int) -> SSAValue:
    """The size of an axis: a constant for what the compiler knows, as for a tile's buffer."""
    assert isinstance(mem.type, MemRefType)
    known = mem.type.get_shape()[axis]
    if known != DYNAMIC_INDEX:
        constant = index_constant(known, access)
        insert_before(access, [constant])
        return constant.result
    position = index_constant(axis, access)
    extent = memref.DimOp(mem, position)
    insert_before(access, [position, extent])
    return extent.result


def _assert_below(access: Operation, index: SSAValue, extent: SSAValue, text: str) -> None:
    # An unsigned comparison also refuses a negative index.
    inside = arith.CmpiOp(index, extent, "ult")
    insert_before(access, [inside, tile.AssertOp(inside.result, text)])
