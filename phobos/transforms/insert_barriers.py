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
the end of one iteration is ordered against the start of the next. Point accesses of tensors
are the author's to order, as in CUDA.

Precondition: `ph-place-tiles`. Postcondition: no conflict without a barrier between.
Cost: two visits of each op a loop level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.uniformity import Uniformity, analyze
from phobos.dialects import collective, tile
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.rewrite import insert_before
from phobos.transforms.place_tiles import OFFSET, buffer_bytes


@dataclass(frozen=True)
class InsertBarriersPass(ModulePass):
    """Inserts the barriers that compiler-made and tile accesses need."""

    name = "ph-insert-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            if threads_of(kernel) > 1 and any(_accesses(inner) for inner in kernel.walk()):
                _Walker(analyze(kernel)).block(kernel.body.blocks[0])


@dataclass(frozen=True)
class _Access:
    """Bytes of shared memory (`root` None), or a tensor as a whole."""

    root: SSAValue | None
    low: int
    high: int
    write: bool
    element: tuple[object, ...] | None = None
    """For a tile of a tensor: its place and layout; equal ones touch thread by thread."""

    def conflicts(self, other: _Access) -> bool:
        if self.root is not other.root or not (self.write or other.write):
            return False
        if self.element is not None and self.element == other.element:
            return False
        return self.low < other.high and other.low < self.high


def _of_memory(mem: SSAValue, write: bool, element: tuple[object, ...] | None) -> _Access:
    if not tile.is_shared(mem):
        return _Access(mem, 0, 1, write, element)
    owner = mem.owner
    assert isinstance(owner, memref.AllocaOp)
    offset = owner.attributes[OFFSET]
    assert isinstance(offset, IntegerAttr)
    low = offset.value.data
    return _Access(None, low, low + buffer_bytes(mem), write)


def _accesses(op: Operation) -> list[_Access]:
    """What an op itself touches that the compiler has to order."""
    match op:
        case tile.LoadOp():
            place = (op.mem, *op.indices, tile.layout_of(op.result))
            return [_of_memory(op.mem, write=False, element=place)]
        case tile.StoreOp():
            place = (op.mem, *op.indices, tile.layout_of(op.value))
            return [_of_memory(op.mem, write=True, element=place)]
        case memref.LoadOp() if tile.is_shared(op.memref):
            return [_of_memory(op.memref, write=False, element=None)]
        case memref.StoreOp() if tile.is_shared(op.memref):
            return [_of_memory(op.memref, write=True, element=None)]
        case vector.LoadOp() if tile.is_shared(op.base):
            return [_of_memory(op.base, write=False, element=None)]
        case vector.StoreOp() if tile.is_shared(op.base):
            return [_of_memory(op.base, write=True, element=None)]
        case _:
            return []


def _all_accesses(op: Operation) -> Iterator[_Access]:
    for inner in op.walk():
        yield from _accesses(inner)


@dataclass
class _Walker:
    """One pass over a kernel; `pending` are the accesses since the last barrier."""

    uniformity: Uniformity
    pending: set[_Access] = field(default_factory=set)

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, collective.BarrierOp):
                self.pending = set()
            elif not op.regions:
                self._touch(op, _accesses(op))
            elif self._divergent(op):
                # A barrier inside would not be reached by all: the op counts as one access.
                self._touch(op, list(_all_accesses(op)))
            elif isinstance(op, scf.IfOp):
                self._branches(op)
            else:
                self._loop(op)

    def _divergent(self, op: Operation) -> bool:
        return op in self.uniformity.control

    def _touch(self, op: Operation, accesses: list[_Access]) -> None:
        if any(new.conflicts(old) for new in accesses for old in self.pending):
            insert_before(op, [collective.BarrierOp()])
            self.pending = set()
        self.pending.update(accesses)

    def _branches(self, op: scf.IfOp) -> None:
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
            self.pending = {_in_next_iteration(access, op) for access in self.pending}
        self.pending |= before


def _in_next_iteration(access: _Access, loop: Operation) -> _Access:
    """A place that the loop computes is another one in its next iteration."""
    if access.element is None:
        return access
    moved = any(isinstance(part, SSAValue) and _is_inside(part, loop) for part in access.element)
    return replace(access, element=None) if moved else access


def _is_inside(value: SSAValue, loop: Operation) -> bool:
    owner = value.owner
    inner = owner if isinstance(owner, Operation) else owner.parent_op()
    return inner is not None and loop.is_ancestor(inner)
