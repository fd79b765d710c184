"""Operands that tensor copies can bring: what is known of them before layouts are.

`ph-select-contraction` asks before it chooses an instruction that is worth its while only with
them, and `ph-pipeline-loops` when it makes the copies.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from phobos.analysis.loop_memory import is_only_read
from phobos.dialects import tile
from phobos.dialects.atomics import LoadAcquireOp
from phobos.dialects.contraction import DotOp
from phobos.dialects.elements import element_bytes
from phobos.dialects.elementwise import RoundTF32Op
from phobos.dialects.shaping import TransposeOp
from phobos.ir.kernel import argument_name
from phobos.layout.build import ceil_pow2
from phobos.layout.warpgroup import ALIGNMENT
from phobos.record import Record, record
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


@record
class Obstacle(Record):
    """What keeps tensor copies from bringing what products read, in words.

    `load` is that of a slice whose rows begin at less than whole 16 bytes, as far as is known.
    """

    words: str
    load: tile.LoadOp | None = None


def obstacle_to_copies(kernel: gpu.FuncOp) -> Obstacle | None:
    """Why tensor copies cannot read what a kernel's threads are told of by other means."""
    if any(isinstance(op, LoadAcquireOp) for op in kernel.walk()):
        return Obstacle("they do not wait for a `load_acquire`, which the kernel has")
    return None


def obstacle_to(load: tile.LoadOp, kernel: gpu.FuncOp) -> Obstacle | None:
    """Why no tensor map describes what a load reads, or a copy would not give what it does."""
    value, mem, name = load.result.type, load.mem.type, called(load, kernel)
    assert isinstance(value, TensorType)
    assert isinstance(mem, MemRefType)
    rank = len(mem.get_shape())
    if not _is_input(load.mem, kernel.body.blocks[0]):
        return Obstacle(f"the kernel writes {name}, which threads and copies see out of order")
    if not MIN_AXES <= rank <= MAX_AXES:
        return Obstacle(f"{name} has {rank} axes, and they take {MIN_AXES} to {MAX_AXES}")
    if load.fill is not None:
        return Obstacle(f"they put zeros past the end of {name}, where `pad` asks for others")
    known = element_bytes(value) * (load.vector.value.data if load.vector is not None else 1)
    if known < ALIGNED_BYTES:
        return Obstacle(
            f"they want rows of whole {ALIGNED_BYTES} bytes, and those of {name} are known to"
            f" begin at multiples of {known}",
            load,
        )
    return None


def called(load: tile.LoadOp, kernel: gpu.FuncOp) -> str:
    """What the program calls the tensor that is loaded from."""
    mem, entry = load.mem, kernel.body.blocks[0]
    if isinstance(mem, BlockArgument) and mem.block is entry:
        return argument_name(kernel, mem.index)
    return "a tensor"


def _is_input(mem: SSAValue, entry: Block) -> bool:
    """Whether a tensor is an argument that the kernel only reads.

    What threads write, a tensor copy sees behind a fence only.
    """
    return isinstance(mem, BlockArgument) and mem.block is entry and is_only_read(mem)


def obstacle_to_operands(op: DotOp, kernel: gpu.FuncOp, target: Chip) -> Obstacle | None:
    """Why tensor copies cannot bring both operands of a product, as they are loaded in a loop.

    Two stages of both have to fit the shared memory; tiles are copied whole if their extents are
    powers of two. Copies bring all that the products of a loop read of what it loads, or nothing.
    """
    if not target.has_bulk_copy:
        return Obstacle(f"{target.name} has none")
    if asked_stages(kernel) == 1:
        return Obstacle("`@pipeline(1)` turns them off")
    if not isinstance(op.parent_op(), scf.ForOp):
        return Obstacle("the product is in no `for` loop")
    stage = 0
    for name, value in (("left", op.a), ("right", op.b)):
        load = _load_of(value)
        if load is None or load.parent is not op.parent:
            return Obstacle(f"the {name} operand is no slice that the loop loads")
        obstacle = obstacle_to(load, kernel)
        if obstacle is not None:
            return obstacle
        if not _goes_to_products(load.result):
            return Obstacle(f"the {name} operand is needed for more than products")
        type_ = load.result.type
        assert isinstance(type_, TensorType)
        shape = type_.get_shape()
        if any(ceil_pow2(extent) != extent for extent in shape):
            return Obstacle(f"the {name} operand has an extent that is no power of two")
        stage += prod(shape) * element_bytes(type_)
    # Barriers are beside the stages, which are aligned.
    if _LEAST_STAGES * stage + ALIGNMENT > shared_limit(kernel, target):
        return Obstacle(f"{_LEAST_STAGES} stages do not fit the shared memory")
    return _obstacle_to_others(op, kernel) or obstacle_to_copies(kernel)


def _obstacle_to_others(op: DotOp, kernel: gpu.FuncOp) -> Obstacle | None:
    """Why tensor copies cannot bring what other products of the loop read."""
    body = op.parent
    assert body is not None
    others = [other for other in body.ops if isinstance(other, DotOp) and other is not op]
    for value in (value for other in others for value in (other.a, other.b)):
        load = _load_of(value)
        if load is None and _is_computed_from_load(value, body):
            return Obstacle("another product of the loop takes what is computed from a slice")
        if load is not None and load.parent is body:
            obstacle = obstacle_to(load, kernel)
            if obstacle is not None:
                return obstacle
    return None


def _is_computed_from_load(value: SSAValue, body: Block) -> bool:
    """Whether a loop computes a value from what it loads, but by what products read themselves."""
    left, seen = [value], set[SSAValue]()
    while left:
        value = left.pop()
        owner = value.owner
        if value in seen or not isinstance(owner, Operation) or owner.parent is not body:
            continue
        seen.add(value)
        if isinstance(owner, tile.LoadOp):
            return True
        left += [owner.c] if isinstance(owner, DotOp) else owner.operands
    return False


def _goes_to_products(value: SSAValue) -> bool:
    """Whether products alone read a tile, as it is, rounded or transposed."""
    users = [use.operation for use in value.uses]
    if len(users) == 1 and isinstance(users[0], TransposeOp):
        return _goes_to_products(users[0].result)
    return all(isinstance(user, DotOp | RoundTF32Op) for user in users)


def _load_of(value: SSAValue) -> tile.LoadOp | None:
    """The load that an operand is, as it is, rounded or transposed."""
    owner = value.owner
    while isinstance(owner, TransposeOp | RoundTF32Op):
        owner = owner.value.owner
    return owner if isinstance(owner, tile.LoadOp) else None
