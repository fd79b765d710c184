"""`ph-insert-barriers`: order what one thread writes and another reads.

    memref.store %v, %s[%w] : memref<8xf32, #tile.shared>
    %u = vector.load %s[%c0] : memref<8xf32, #tile.shared>, vector<8xf32>
    -->
    memref.store %v, %s[%w] : ...
    collective.barrier
    %u = vector.load %s[%c0] : ...

The pass follows the accesses since the last barrier, to shared buffers (which only the
compiler makes) and, by whole tiles, to tensors. A barrier goes before an access that
conflicts with an earlier one: same bytes, at least one a write. It is put where the control
flow is uniform, before the divergent `if` if need be. Loop bodies are visited twice, so that
the end of one iteration is ordered against the start of the next; tiles that a loop moves by
at least their own length are apart. Point accesses of tensors, and of tiles in buffers that
are marked `tile.points`, are the author's to order among each other, as in CUDA.

What threads write for products that read shared memory by themselves (`wgmma`), or where tensor
copies write later, is shown to these by a `collective.proxy_fence` in front of the barrier.

Precondition: `ph-place-tiles`. Postcondition: no conflict without a barrier between.
Cost: two visits of each op a loop level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.ranges import Ranges
from phobos.analysis.ranges import analyze as analyze_ranges
from phobos.analysis.uniformity import Uniformity, analyze
from phobos.dialects import cluster, collective, tile
from phobos.dialects.atomics import AtomicOp, CompareExchangeOp, GridBarrierOp
from phobos.dialects.contraction import DotOp, operands_by_descriptor
from phobos.dialects.fragments import FromFragmentsOp, ToFragmentsOp
from phobos.dialects.gathering import GatherOp, ScatterOp, ViewOp
from phobos.dialects.staging import (
    AsyncCopyOp,
    AsyncWaitOp,
    AwaitProductsOp,
    NextStageOp,
    StageOp,
)
from phobos.dialects.tensor_copies import (
    AwaitStageOp,
    CloseRingOp,
    FillStageOp,
    OpenRingOp,
    ReleaseStageOp,
)
from phobos.ir.kernel import extent_multiple_of, index_bits_of, kernels, threads_of
from phobos.ir.rewrite import insert_before
from phobos.layout import LinearLayout
from phobos.layout.overhang import owner_mask
from phobos.transforms.loop_stages import stores_to_stage
from phobos.transforms.place_tiles import OFFSET, buffer_bytes


class InsertBarriersPass(ModulePass):
    """Inserts the barriers that compiler-made and tile accesses need."""

    name = "ph-insert-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            threads = threads_of(kernel)
            if threads > 1 and any(_accesses(inner, threads) for inner in kernel.walk()):
                ranges = analyze_ranges(kernel, index_bits_of(kernel), extent_multiple_of(kernel))
                walker = _Walker(analyze(kernel), ranges, threads, _touched_by_hardware(kernel))
                walker.block(kernel.body.blocks[0])
                for barrier in walker.published:
                    insert_before(barrier, [collective.ProxyFenceOp()])


@dataclass(frozen=True)
class _Place:
    """Where a tile of a tensor is, and which thread has which element."""

    indices: tuple[SSAValue, ...]
    shape: tuple[int, ...]
    layout: LinearLayout | None
    has_copies: bool
    """Whether several threads have an element: all read it and one of them writes it."""

    def is_apart_by_threads(self, other: _Place, *, both_write: bool) -> bool:
        """Whether each element of both is touched by one thread, the same in both."""
        equal = (self.indices, self.shape, self.layout) == (
            other.indices, other.shape, other.layout,
        )  # fmt: skip
        return equal and (both_write or not (self.has_copies and other.has_copies))


@dataclass(frozen=True)
class _Access:
    """Bytes of shared memory (`root` None), or a tensor as a whole."""

    root: SSAValue | None
    low: int
    high: int
    write: bool
    element: _Place | None = None
    """For a tile of a tensor: where it is and which threads touch it."""
    ordered: bool = False
    """Whether a barrier before the access is known to be there already."""
    points_of: SSAValue | None = None
    """The buffer, for a point access of a tile, which the author orders with other points."""

    def conflicts(self, other: _Access) -> bool:
        if self.points_of is not None and self.points_of is other.points_of:
            return False
        if self.ordered or self.root is not other.root or not (self.write or other.write):
            return False
        if (
            self.element is not None
            and other.element is not None
            and self.element.is_apart_by_threads(
                other.element, both_write=self.write and other.write
            )
        ):
            return False
        return self.low < other.high and other.low < self.high


def _of_memory(mem: SSAValue, write: bool, element: _Place | None) -> _Access:
    if not tile.is_shared(mem):
        return _Access(mem, 0, 1, write, element)
    owner = mem.owner
    if isinstance(owner, ViewOp):
        return _of_memory(owner.buffer, write, element)
    if isinstance(owner, StageOp):
        # Stages are told apart by the protocol of the loop, not by their bytes.
        return _of_memory(owner.buffer, write, element)
    assert isinstance(owner, memref.AllocaOp)
    offset = owner.attributes[OFFSET]
    assert isinstance(offset, IntegerAttr)
    low = offset.value.data
    return _Access(None, low, low + buffer_bytes(mem), write)


def _touched_by_hardware(kernel: gpu.FuncOp) -> list[_Access]:
    """The buffers that products read by themselves, and that tensor copies fill."""
    touched: list[_Access] = []
    for op in kernel.walk():
        if isinstance(op, DotOp):
            buffers = operands_by_descriptor(op)
        elif isinstance(op, FillStageOp):
            buffers = [one.buffer for one in op.copies]
        else:
            continue
        touched += [_of_memory(buffer, write=False, element=None) for buffer in buffers]
    return touched


def _read_by(product: DotOp) -> list[_Access]:
    return [
        _of_memory(operand, write=False, element=None)
        for operand in (product.a, product.b)
        if tile.is_shared(operand)
    ]


def _filled_by(op: FillStageOp) -> list[_Access]:
    """Later fills of a stage wait for its readers by themselves."""
    ordered = op.after is not None
    targets = [_of_memory(copy.buffer, write=True, element=None) for copy in op.copies]
    return [
        _of_memory(op.ring, write=False, element=None),
        *(replace(target, ordered=ordered) for target in targets),
    ]


def _product_awaited(value: SSAValue) -> DotOp:
    """The product in flight that gives a value, itself or as what a loop passes on."""
    owner = value.owner
    while not isinstance(owner, DotOp):
        if isinstance(owner, scf.ForOp):
            last = owner.body.block.last_op
            assert last is not None
            value = last.operands[owner.results.index(value)]  # pyright: ignore[reportArgumentType]
        else:
            assert isinstance(owner, AwaitProductsOp)
            value = owner.value
        owner = value.owner
    return owner


def _of_point(mem: SSAValue, write: bool) -> _Access:
    """One thread's own access to shared memory."""
    access = _of_memory(mem, write, None)
    by_author = isinstance(mem.owner, Operation) and tile.POINTS in mem.owner.attributes
    return replace(access, points_of=mem) if by_author else access


def _accesses(op: Operation, threads: int) -> list[_Access]:
    """What an op itself touches that the compiler has to order."""
    match op:
        case tile.LoadOp():
            return [_of_memory(op.mem, write=False, element=_place(op.indices, op.result, threads))]
        case tile.StoreOp():
            access = _of_memory(op.mem, True, _place(op.indices, op.value, threads))
            return [replace(access, ordered=op.ordered is not None)]
        case AsyncCopyOp():
            return [
                _of_memory(op.mem, write=False, element=None),
                replace(
                    _of_memory(op.buffer, write=True, element=None),
                    ordered=op.ordered is not None,
                ),
            ]
        case OpenRingOp() | CloseRingOp():
            return [_of_memory(op.ring, write=True, element=None)]
        case AwaitStageOp() | ReleaseStageOp():
            return [_of_memory(op.ring, write=False, element=None)]
        case FillStageOp():
            return _filled_by(op)
        case cluster.LoadOp():
            # Of the own CTA's buffer too; when others have read it, the cluster tells itself.
            return [_of_memory(op.mem, write=False, element=None)]
        case GatherOp():
            return [_of_memory(op.mem, write=False, element=None)]
        case ScatterOp():
            return [_of_memory(op.mem, write=True, element=None)]
        case DotOp():
            return _read_by(op)
        case AwaitProductsOp():
            # Until then products read, whatever barriers other warps have passed since.
            return _read_by(_product_awaited(op.value))
        case ToFragmentsOp() | FromFragmentsOp():
            return [] if op.scratch is None else [_of_memory(op.scratch, write=True, element=None)]
        case memref.LoadOp() if tile.is_shared(op.memref):
            return [_of_point(op.memref, write=False)]
        case memref.StoreOp() if tile.is_shared(op.memref):
            return [_of_point(op.memref, write=True)]
        case AtomicOp() | CompareExchangeOp() if tile.is_shared(op.mem):
            return [_of_point(op.mem, write=True)]
        case vector.LoadOp() if tile.is_shared(op.base):
            return [_of_point(op.base, write=False)]
        case vector.StoreOp() if tile.is_shared(op.base):
            return [_of_point(op.base, write=True)]
        case _:
            return []


def _place(indices: Sequence[SSAValue], value: SSAValue, threads: int) -> _Place:
    assert isinstance(value.type, TensorType)
    layout = tile.layout_of(value)
    has_copies = layout is not None and owner_mask(layout, threads) != 0
    return _Place(tuple(indices), value.type.get_shape(), layout, has_copies)


def _all_accesses(op: Operation, threads: int) -> Iterator[_Access]:
    for inner in op.walk():
        yield from _accesses(inner, threads)


@dataclass
class _Walker:
    """One pass over a kernel; `pending` are the accesses since the last barrier."""

    uniformity: Uniformity
    ranges: Ranges
    threads: int
    touched_by_hardware: Sequence[_Access] = ()
    """What products read by themselves and copies fill: threads' writes of it are published."""
    published: dict[Operation, None] = field(default_factory=dict)
    """The barriers that such writes are pending at."""
    pending: set[_Access] = field(default_factory=set)
    landing: set[_Access] = field(default_factory=set)
    """What copies and stores to later stages write, at the next wait or change of stages."""

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, collective.BarrierOp | GridBarrierOp | cluster.BarrierOp):
                self._pass(op)
            elif isinstance(op, cluster.WaitOp):
                self._leave(op.buffer)
            elif isinstance(op, AsyncWaitOp | NextStageOp):
                self.pending.update(self.landing)
            elif isinstance(op, FillStageOp):
                self._fill(op)
            elif not op.regions:
                self._touch(op, _accesses(op, self.threads))
            elif self._divergent(op):
                # A barrier inside would not be reached by all: the op counts as one access.
                self._touch(op, list(_all_accesses(op, self.threads)))
            elif isinstance(op, scf.IfOp):
                self._branches(op)
            else:
                self._loop(op)

    def _divergent(self, op: Operation) -> bool:
        return op in self.uniformity.control

    def _touch(self, op: Operation, accesses: list[_Access]) -> None:
        if any(new.conflicts(old) for new in accesses for old in self.pending):
            self._insert(op)
        if isinstance(op, AsyncCopyOp) or stores_to_stage(op):
            # What it writes lands at the wait; until then only the earlier readers matter.
            self.landing.update(
                replace(access, ordered=False) for access in accesses if access.write
            )
        else:
            self.pending.update(accesses)

    def _fill(self, op: FillStageOp) -> None:
        """What the copies write is there for those that wait for the stage, at no barrier."""
        if any(new.conflicts(old) for new in _filled_by(op) for old in self.pending):
            self._insert(op)

    def _insert(self, op: Operation) -> None:
        barrier = collective.BarrierOp()
        insert_before(op, [barrier])
        self._pass(barrier)

    def _pass(self, barrier: Operation) -> None:
        if any(
            access.write and access.conflicts(read)
            for access in self.pending
            for read in self.touched_by_hardware
        ):
            self.published[barrier] = None
        self.pending = set()

    def _leave(self, buffer: SSAValue) -> None:
        """All threads are through with a buffer, and none of its bytes was another's meanwhile."""
        own = _of_memory(buffer, write=True, element=None)
        self.pending = {access for access in self.pending if not access.conflicts(own)}

    def _branches(self, op: scf.IfOp) -> None:
        if any(
            new.conflicts(old) for new in _all_accesses(op, self.threads) for old in self.pending
        ):
            # Before the branch, so that it is passed on either way.
            self._insert(op)
        before = self.pending
        after: set[_Access] = set() if op.false_region.blocks else set(before)
        for region in op.regions:
            for block in region.blocks:
                self.pending = set(before)
                self.block(block)
                after |= self.pending
        self.pending = after

    def _loop(self, op: Operation) -> None:
        # The loop may not run at all, so what was pending before stays pending behind it.
        before = set(self.pending)
        for _ in range(2):
            for region in op.regions:
                for block in region.blocks:
                    self.block(block)
            self.pending = {self._in_next_iteration(access, op) for access in self.pending}
        self.pending |= before

    def _in_next_iteration(self, access: _Access, loop: Operation) -> _Access:
        """An access as the next iteration sees it: a place that the loop computes has moved.

        If it moved by its length or more it stays apart from what is there then.
        """
        place = access.element
        if place is None or not any(_is_inside(index, loop) for index in place.indices):
            return access
        apart = any(
            self._advance(index, loop) >= length
            for index, length in zip(place.indices, place.shape, strict=True)
        )
        if not apart:
            return replace(access, element=None)
        return replace(access, element=replace(place, has_copies=False))

    def _advance(self, index: SSAValue, loop: Operation) -> int:
        """By how much an index grows at least from one iteration to the next; 0 if unknown."""
        if not isinstance(loop, scf.ForOp) or not _is_inside(index, loop):
            return 0
        if index is loop.body.block.args[0]:
            # A positive step is at least what divides it.
            return self.ranges.of(loop.step).divisor
        match index.owner:
            case arith.AddiOp(lhs=a, rhs=b) if not _is_inside(b, loop):
                return self._advance(a, loop)
            case arith.AddiOp(lhs=a, rhs=b) if not _is_inside(a, loop):
                return self._advance(b, loop)
            case arith.MuliOp(lhs=a, rhs=b):
                return self._advance(a, loop) * max(0, self.ranges.of(b).constant or 0)
            case _:
                return 0


def _is_inside(value: SSAValue, loop: Operation) -> bool:
    owner = value.owner
    inner = owner if isinstance(owner, Operation) else owner.parent_op()
    return inner is not None and loop.is_ancestor(inner)
