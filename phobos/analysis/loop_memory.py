"""What a loop writes, and so which of its loads may go to another iteration.

A tensor is known by the argument that names it: the launch passes different memory for each
argument that a kernel writes.
"""

from __future__ import annotations

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from phobos.dialects import tile
from phobos.dialects.atomics import GridBarrierOp, LoadAcquireOp
from phobos.dialects.contraction import DotOp
from phobos.dialects.gathering import GatherOp
from phobos.dialects.staging import AsyncCopyOp
from phobos.dialects.tensor_copies import TensorCopyOp

READS = (tile.LoadOp, GatherOp, memref.LoadOp, vector.LoadOp, memref.DimOp, DotOp)
"""Ops that only read the memrefs that they name."""
_MEETS_OTHERS = (GridBarrierOp, LoadAcquireOp)
"""What lets a thread see what others wrote. Atomic updates are not among it: they are relaxed."""


def written_memory(block: Block) -> set[SSAValue] | None:
    """The memrefs that ops of a block write; None if other CTAs may write any meanwhile."""
    written: set[SSAValue] = set()
    for op in block.walk():
        if isinstance(op, _MEETS_OTHERS):
            return None
        written.update(_written_by(op))
    return written


def _written_by(op: Operation) -> set[SSAValue]:
    if isinstance(op, READS) or is_side_effect_free(op):
        return set()
    if isinstance(op, AsyncCopyOp | TensorCopyOp):
        return {op.buffer}
    return {operand for operand in op.operands if isinstance(operand.type, MemRefType)}


def is_only_read(mem: SSAValue) -> bool:
    """Whether no op that names a memref writes it."""
    return all(mem not in _written_by(use.operation) for use in mem.uses)
