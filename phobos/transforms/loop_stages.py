"""Buffers of several stages in a loop: what the ways to fill them share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, NoneAttr, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.staging import StageOp
from phobos.ir.rewrite import OpBuilder, zero_attr
from phobos.targets.ptx.chips import MAX_STATIC_SHARED, Chip
from phobos.transforms.place_tiles import last_inside, lives, op_numbers, place

DYNAMIC = "phobos.dynshared"
MAX_STEP = 1 << 24
"""Of a loop whose places are computed some steps ahead, if the step is known."""


def index_ops(values: Sequence[SSAValue], body: Block) -> list[Operation] | None:
    """The ops of the loop that compute values, in order; None if there is another kind.

    They follow from the loop variable and from what is outside the loop, by pure arithmetic.
    """
    return ops_from(values, body, ())


def ops_from(
    values: Sequence[SSAValue], body: Block, given: Sequence[SSAValue]
) -> list[Operation] | None:
    """As `index_ops`, where some values of the loop are given too."""
    found: dict[Operation, None] = {}

    def visit(value: SSAValue) -> bool:
        owner = value.owner
        if value in given:
            return True
        if isinstance(owner, Block):
            return owner is not body or value is body.args[0]
        if owner.parent is not body or owner in found:
            return True
        if owner.regions or not is_side_effect_free(owner):
            return False
        if not all(visit(operand) for operand in owner.operands):
            return False
        found[owner] = None
        return True

    return list(found) if all(visit(value) for value in values) else None


def multi_buffer(head: OpBuilder, buffer: memref.AllocaOp, stages: int) -> SSAValue:
    """A buffer of so many stages for one of a loop."""
    single = buffer.memref.type
    assert isinstance(single, MemRefType)
    type_ = MemRefType(single.element_type, [stages, *single.get_shape()], NoneAttr(), tile.SHARED)
    return head.add(memref.AllocaOp.build(operands=[[], []], result_types=[type_], properties={}))


def view_of(buffer: SSAValue, stage: SSAValue, single: memref.AllocaOp) -> StageOp:
    """A stage, with the layout that the buffer of one stage had."""
    type_ = single.memref.type
    assert isinstance(type_, MemRefType)
    return StageOp(buffer, stage, type_)


def first_iterations(
    head: OpBuilder, loop: scf.ForOp, count: int
) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The places of the first iterations of a loop, and whether they exist.

    Each is built when the one before has been used. No place that wraps counts as one.
    """
    place, exists = loop.lb, head.add(arith.CmpiOp(loop.lb, loop.ub, "slt"))
    yield place, exists
    in_range = all(_is_small(value) for value in (loop.lb, loop.step))
    for _ in range(1, count):
        later = head.add(arith.AddiOp(place, loop.step))
        if in_range:
            exists = head.add(arith.CmpiOp(later, loop.ub, "slt"))
        else:
            more = is_farther(head, loop, place, loop.step)
            exists = head.add(arith.AndIOp(exists, more))
        place = later
        yield place, exists


def distance_of(head: OpBuilder, loop: scf.ForOp, count: int) -> SSAValue:
    """How far the iteration is that comes so many later; more than any loop goes if that wraps."""
    if _is_small(loop.step):
        return head.add(arith.MuliOp(loop.step, head.constant(count)))
    distance, most = loop.step, head.constant(-1)
    for _ in range(1, count):
        following = head.add(arith.AddiOp(distance, loop.step))
        wraps = head.add(arith.CmpiOp(following, distance, "ult"))
        distance = head.add(arith.SelectOp(wraps, most, following))
    return distance


def is_farther(build: OpBuilder, loop: scf.ForOp, place: SSAValue, distance: SSAValue) -> SSAValue:
    """Whether the end of a loop is more than an (unsigned) distance behind one of its places.

    What is left of a loop may be more than the largest signed index.
    """
    left = build.add(arith.SubiOp(loop.ub, place))
    return build.add(arith.CmpiOp(left, distance, "ugt"))


def _is_small(value: SSAValue) -> bool:
    """Whether a value is a constant of which some may be added up without a thought of wrapping."""
    constant = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(constant, IntegerAttr) and abs(constant.value.data) <= MAX_STEP


def stores_to_stage(op: Operation) -> bool:
    """Whether an op stores to a stage that others read when the stages have changed."""
    return isinstance(op, tile.StoreOp) and isinstance(op.mem.owner, StageOp)


def lone_sum(loop: scf.ForOp, product: DotOp) -> int | None:
    """Which carried value a loop adds a product to, if it does nothing else with the sum."""
    body, total = loop.body.block, product.c
    last = body.last_op
    assert last is not None
    if not isinstance(total, BlockArgument) or total.block is not body:
        return None
    position = total.index - 1
    readers = [use.operation for use in (*total.uses, *product.result.uses)]
    is_alone = readers == [product, last] and last.operands[position] is product.result
    return position if is_alone else None


def zero_tile(build: OpBuilder, type_: TensorType) -> SSAValue:
    """A tile of zeros."""
    zero = build.add(arith.ConstantOp(zero_attr(type_.element_type)))
    return build.add(tile.SplatOp(zero, type_))


def shared_limit(kernel: gpu.FuncOp, target: Chip) -> int:
    """The most bytes of shared memory that a kernel can have."""
    return target.max_dynamic_shared if DYNAMIC in kernel.attributes else MAX_STATIC_SHARED


class SharedRoom:
    """The shared memory beside what else is there during a loop."""

    def __init__(self, kernel: gpu.FuncOp, loop: scf.ForOp, target: Chip):
        self.limit = shared_limit(kernel, target)
        """The most bytes that the kernel can have."""
        number = op_numbers(kernel)
        self._buffers = lives(kernel, number)
        self._single = [(one.size, one.start, one.end) for one in self._buffers]
        self._loop = number[loop], last_inside(loop, number)
        self.reserved = 0
        """Bytes that the loop will need beside its buffers."""

    def bytes_with(self, stages: Mapping[memref.AllocaOp, int]) -> int:
        """What the kernel takes if buffers have so many stages, which live as long as the loop."""
        for one, (size, start, end) in zip(self._buffers, self._single, strict=True):
            one.size, one.start, one.end = size, start, end
            if one.op in stages:
                one.size = stages[one.op] * size
                one.start, one.end = self._loop
        return place(self._buffers) + self.reserved

    def fits(self, stages: Mapping[memref.AllocaOp, int]) -> bool:
        """Whether buffers of the loop can have so many stages."""
        return self.bytes_with(stages) <= self.limit
