"""Operands that tensor copies can bring: what is known of them before layouts are.

`ph-select-contraction` asks before it chooses an instruction that is worth its while only with
them, and `ph-pipeline-loops` when it makes the copies.
"""

from __future__ import annotations

from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import FixedBitwidthType, IntegerAttr, MemRefType, TensorType
from xdsl.ir import Block, BlockArgument, SSAValue

from phobos.analysis.loop_memory import READS
from phobos.dialects import tile
from phobos.dialects.atomics import LoadAcquireOp
from phobos.dialects.contraction import DotOp
from phobos.dialects.shaping import TransposeOp
from phobos.layout.build import ceil_pow2
from phobos.layout.warpgroup import ALIGNMENT
from phobos.targets.ptx.chips import Chip
from phobos.transforms.loop_stages import shared_limit

PIPELINE = "phobos.pipeline"
MIN_AXES, MAX_AXES = 2, 5
"""Of a tensor that tensor copies are made of here."""
ALIGNED_BYTES = 16
"""What the hardware wants of the distance of rows."""
_LEAST_STAGES = 2


def asked_stages(kernel: gpu.FuncOp) -> int | None:
    """The number in `@pipeline(n)`; None for the attribute without one, and without it."""
    found = kernel.attributes.get(PIPELINE)
    number = found.value.data if isinstance(found, IntegerAttr) else -1
    return number if number >= 1 else None


def can_have_copies(kernel: gpu.FuncOp) -> bool:
    """Whether tensor copies may read what a kernel's threads are not told of by other means."""
    return not any(isinstance(op, LoadAcquireOp) for op in kernel.walk())


def can_be_described(load: tile.LoadOp) -> bool:
    """Whether a tensor map can describe what a load reads, and a copy gives what the load does."""
    value, mem = load.result.type, load.mem.type
    assert isinstance(value, TensorType)
    assert isinstance(mem, MemRefType)
    proven = load.vector.value.data if load.vector is not None else 1
    return (
        MIN_AXES <= len(mem.get_shape()) <= MAX_AXES
        and load.fill is None
        and proven * _element_bytes(value) >= ALIGNED_BYTES
    )


def is_input(mem: SSAValue, entry: Block) -> bool:
    """Whether a tensor is an argument that the kernel only reads.

    What threads write, a tensor copy sees behind a fence only.
    """
    return (
        isinstance(mem, BlockArgument)
        and mem.block is entry
        and all(isinstance(use.operation, READS) for use in mem.uses)
    )


def operands_can_come(op: DotOp, kernel: gpu.FuncOp, target: Chip) -> bool:
    """Whether tensor copies can bring both operands of a product in a loop, as they are loaded.

    Two stages of both have to fit the shared memory; tiles are copied whole if their extents are
    powers of two.
    """
    loads = [_load_of(value) for value in (op.a, op.b)]
    if not target.has_bulk_copy or asked_stages(kernel) == 1 or not can_have_copies(kernel):
        return False
    if not isinstance(op.parent_op(), scf.ForOp):
        return False
    stage = 0
    for load in loads:
        if load is None or load.parent is not op.parent or not can_be_described(load):
            return False
        if not is_input(load.mem, kernel.body.blocks[0]):
            return False
        value = load.result.type
        assert isinstance(value, TensorType)
        size = _element_bytes(value)
        for extent in value.get_shape():
            if ceil_pow2(extent) != extent:
                return False
            size *= extent
        stage += size
    # Barriers are beside the stages, which are aligned.
    return _LEAST_STAGES * stage + ALIGNMENT <= shared_limit(kernel, target)


def _load_of(value: SSAValue) -> tile.LoadOp | None:
    """The load that an operand is, as it is or transposed."""
    owner = value.owner
    while isinstance(owner, TransposeOp):
        owner = owner.value.owner
    return owner if isinstance(owner, tile.LoadOp) else None


def _element_bytes(type_: TensorType) -> int:
    element = type_.element_type
    assert isinstance(element, FixedBitwidthType)
    return element.size
