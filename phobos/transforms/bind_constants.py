"""`ph-bind-constants`: put in what is known of the launch at compile time.

    %t = ctx.threads                           %t = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<64xf32>   %n = arith.constant 64 : index

`ctx.threads` and `ctx.warps` follow from the kernel's block size and `ctx.lanes` from the
hardware; an extent that the tensor's type gives needs no run-time read. (`@autotune` names
are already constants here: the front end binds them, since tile shapes depend on them.)

Precondition: none. Postcondition: none of these ops is left. Cost: one walk.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from phobos.dialects import ctx
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.rewrite import index_constant


class BindConstantsPass(ModulePass):
    """Replaces launch facts that are known by constants."""

    name = "ph-bind-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            threads = threads_of(kernel)
            for inner in list(kernel.walk()):
                value = _known(inner, threads)
                if value is not None:
                    _replace(inner, value)


def _known(op: Operation, threads: int) -> int | None:
    match op:
        case ctx.ThreadsOp():
            return threads
        case ctx.WarpsOp():
            return -(-threads // ctx.LANES_PER_WARP)
        case ctx.LanesOp():
            return ctx.LANES_PER_WARP
        case memref.DimOp():
            return _static_extent(op)
        case _:
            return None


def _static_extent(op: memref.DimOp) -> int | None:
    axis = op.index.owner
    if not isinstance(axis, arith.ConstantOp) or not isinstance(axis.value, IntegerAttr):
        return None
    type_ = op.source.type
    if not isinstance(type_, MemRefType):
        return None
    extent = type_.get_shape()[axis.value.value.data]
    return None if extent == DYNAMIC_INDEX else extent


def _replace(op: Operation, value: int) -> None:
    constant = index_constant(value, op)
    assert op.parent is not None
    op.parent.insert_op_before(constant, op)
    constant.result.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(constant.result)
    op.detach()
    op.erase()
