"""`ph-select-contraction`: choose the instructions that a contraction is made of.

    %a32 = tile.extsi %a : vector<16xi8> to vector<16xi32>
    %b32 = tile.extsi %b : vector<16xi8> to vector<16xi32>
    %p = arith.muli %a32, %b32 : vector<16xi32>
    %s = vector.reduction <add>, %p : vector<16xi32> into i32
    -->
    %s = tile.run_dot %a, %b, %zero : vector<16xi8>

A thread's own sum of byte products becomes `dp4a`, four bytes an instruction; all chips
have it. Runs that are not a multiple of four bytes stay as they are.

Precondition: tile-level IR. Cost: one walk.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, VectorType, i8, i32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import elementwise, tile
from phobos.ir.kernel import kernels
from phobos.ir.rewrite import insert_before

_ZERO = IntegerAttr(0, i32)


@dataclass(frozen=True)
class SelectContractionPass(ModulePass):
    """Rewrites sums of byte products of runs into `tile.run_dot`."""

    name = "ph-select-contraction"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            for inner in list(kernel.walk()):
                if isinstance(inner, vector.ReductionOp):
                    _to_run_dot(inner)


def _to_run_dot(op: vector.ReductionOp) -> None:
    product = op.vector.owner
    if op.kind.data is not vector.CombiningKindFlag.ADD or not isinstance(product, arith.MuliOp):
        return
    left, right = _bytes(product.lhs), _bytes(product.rhs)
    if left is None or right is None or op.dest.type != i32:
        return
    (a, unsigned_a), (b, unsigned_b) = left, right
    if a.type != b.type:
        return
    start = op.acc
    if start is None:
        zero = arith.ConstantOp(_ZERO)
        insert_before(op, [zero])
        start = zero.result
    dot = tile.RunDotOp(a, b, start, unsigned_a=unsigned_a, unsigned_b=unsigned_b)
    insert_before(op, [dot])
    dot.result.name_hint = op.dest.name_hint
    op.dest.replace_all_uses_with(dot.result)
    for dead in (op, product, product.lhs.owner, product.rhs.owner):
        assert isinstance(dead, Operation)
        if not any(result.uses for result in dead.results) and dead.parent is not None:
            dead.detach()
            dead.erase()


def _bytes(value: SSAValue) -> tuple[SSAValue, bool] | None:
    """The run of bytes that a value widens to 32 bits, and whether without sign."""
    owner = value.owner
    if not isinstance(owner, elementwise.ExtSIOp | elementwise.ExtUIOp):
        return None
    run = owner.input.type
    if not isinstance(run, VectorType) or run.element_type != i8 or run.get_shape()[-1] % 4:
        return None
    return owner.input, isinstance(owner, elementwise.ExtUIOp)
