"""`ph-expand-exchanges`: take what crosses warps through shared memory.

    %m = tile.reduce max %t over [1] : tensor<8x256xf32, #L> -> tensor<8x1xf32, #M>
    -->
    %p = tile.partial_reduce max %t over [1] : ... -> tensor<8x4xf32, #P>   // one an warp
    %s = memref.alloca() : memref<8x4xf32, #tile.shared_layout<..>, #tile.shared>
    tile.store %p, %s[%c0, %c0]
    %q = tile.load %s[%c0, %c0] -> tensor<8x4xf32, #Q>    // every thread has all 4 of its rows
    %m = tile.reduce max %q over [1]                      // in registers; lanes share what is more

A `tile.convert_layout` that moves elements between warps becomes a store and a load of a
buffer whose swizzle suits both sides. One that moves them within a warp or thread stays: it is
registers and shuffles. One that makes an operand of a contraction becomes a buffer that the
contraction reads itself, as do later ones that want the same. The load is put where its result
is first needed, so that several exchanges share one barrier (`ph-insert-barriers` puts it in).

Precondition: `ph-assign-layouts`. Postcondition: what is left of folds and conversions stays
within warps. Cost: a few ops for each exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import tile
from phobos.dialects.collective import ReduceKind
from phobos.dialects.contraction import DotOp, Instruction, by_warpgroups, described_operand
from phobos.dialects.elements import element_bytes
from phobos.dialects.ptx.warpgroup import WARPGROUP_ROWS
from phobos.dialects.shaping import PartialReduceOp, ReduceOp
from phobos.ir.kernel import kernels
from phobos.ir.locations import error_at
from phobos.ir.rewrite import index_constant, insert_before
from phobos.layout import LinearLayout, contiguous_vector, gf2, slice_layout
from phobos.layout.build import LANE, REGISTER, WARP
from phobos.layout.contraction import flat, stack_buffer
from phobos.layout.convert import Movement, plan_conversion
from phobos.layout.exchange import SharedExchange, judge_exchange, plan_exchange
from phobos.layout.operands import operand_buffer
from phobos.layout.reduction import plan_reduction
from phobos.layout.shared import row_major
from phobos.layout.warpgroup import warpgroup_buffer
from phobos.transforms.assign_layouts import with_layout

_HALF_BYTES = 2
_VECTOR_BITS = 2
"""Four words are one access."""


class ExpandExchangesPass(ModulePass):
    """Rewrites folds and conversions that cross warps."""

    name = "ph-expand-exchanges"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            for inner in list(kernel.walk()):
                match inner:
                    case tile.ConvertLayoutOp():
                        _expand_conversion(inner)
                    case ReduceOp():
                        _expand_fold(inner)
                    case _:
                        pass


def _layout(value: SSAValue, op: Operation) -> LinearLayout:
    layout = tile.layout_of(value)
    if layout is None:
        raise error_at(op, f"`{op.name}` needs layouts: run ph-assign-layouts first")
    return layout


# ---- conversions


def _expand_conversion(op: tile.ConvertLayoutOp) -> None:
    source, target = _layout(op.value, op), _layout(op.result, op)
    if _is_read_by_warpgroup(op):
        _stage_operand(op, source, target)
        return
    plan = plan_conversion(source, target)
    if plan.movement is Movement.NONE:
        op.result.replace_all_uses_with(op.value)
        op.detach()
        op.erase()
    elif _feeds_dot(op) and plan.movement in (Movement.SHARED, Movement.SHUFFLE):
        _stage_operand(op, source, target)
    elif plan.movement is Movement.SHARED:
        exchange = plan_exchange(source, target, element_bytes(op.value.type))
        assert isinstance(op.result.type, TensorType)
        through_shared(op, op.value, exchange.shared, op.result.type, [])


def _feeds_dot(op: tile.ConvertLayoutOp) -> bool:
    """Whether a conversion makes an operand, and nothing else, of one contraction."""
    users = [use.operation for use in op.result.uses]
    return len(users) == 1 and isinstance(users[0], DotOp) and users[0].c is not op.result


def _is_read_by_warpgroup(op: tile.ConvertLayoutOp) -> bool:
    """Whether a conversion makes the operand that a product by `wgmma` has to have in a buffer."""
    if not _feeds_dot(op):
        return False
    (use,) = op.result.uses
    dot = use.operation
    assert isinstance(dot, DotOp)
    if dot.instruction is None or not by_warpgroups(dot):
        return False
    return use.index == described_operand(dot.instruction.data)


def _stage_operand(op: tile.ConvertLayoutOp, source: LinearLayout, target: LinearLayout) -> None:
    """Puts an operand into a buffer that the contraction reads itself, step by step."""
    (use,) = op.result.uses
    dot = use.operation
    assert isinstance(dot, DotOp)
    assert dot.instruction is not None
    assert isinstance(op.value.type, TensorType)
    rank, size = op.value.type.get_num_dims(), element_bytes(op.value.type)
    first_axis = contiguous_vector(source, rank - 2) > contiguous_vector(source, rank - 1)
    if by_warpgroups(dot):
        rows, columns = source.shape[-2:]
        buffer = warpgroup_operand(
            dot.instruction.data, use.index, (rows, columns), size, first_axis
        )
        shared = stack_buffer(buffer, source.shape[:-2])
    elif dot.instruction.data.name == "mma":
        buffer = operand_buffer(flat(source), flat(target), size, transposed=first_axis)
        shared = stack_buffer(buffer, source.shape[:-2])
    else:
        shared = plan_exchange(source, target, size).shared
    place = outside_loops(op, op.value)
    buffer_op = _buffer_with(op.value, shared, place)
    if buffer_op is None:
        zero, buffer_op, store = store_to_buffer(op, op.value, shared)
        insert_before(place, [zero, buffer_op, store])
        for new in (zero, buffer_op, store):
            new.location = op.location
    dot.operands[use.index] = buffer_op.memref
    op.detach()
    op.erase()


def warpgroup_operand(
    made_of: Instruction, number: int, shape: tuple[int, int], size: int, first_axis: bool
) -> LinearLayout:
    """The buffer of an operand of `wgmma`: along the axis that the tile's vectors run along.

    Elements of other than two bytes lie along K in any case. B of a product that is turned, which
    threads load, lies along N.
    """
    if made_of.turned and number == 1:
        return warpgroup_buffer(shape, 1, WARPGROUP_ROWS, size)
    k_axis = 1 - number
    along = k_axis if size != _HALF_BYTES else int(not first_axis)
    m, n, _ = made_of.shape
    piece = shape[along] if along == k_axis else (m, n)[number]
    return warpgroup_buffer(shape, along, piece, size)


def _buffer_with(value: SSAValue, shared: LinearLayout, place: Operation) -> memref.AllocaOp | None:
    """A buffer of that layout that holds a tile at `place` already, for another contraction.

    So the tile need not stay in registers until then.
    """
    for use in value.uses:
        store = use.operation
        if not isinstance(store, tile.StoreOp) or store.value is not value:
            continue
        buffer = store.mem.owner
        if (
            isinstance(buffer, memref.AllocaOp)
            and tile.is_shared(store.mem)
            and tile.shared_layout_of(store.mem) == shared
            and _read_by_products(buffer, store)
            and _runs_before(store, place)
        ):
            return buffer
    return None


def _read_by_products(buffer: memref.AllocaOp, store: tile.StoreOp) -> bool:
    """Whether nothing but a store writes a buffer, and contractions alone read it."""
    return all(
        use.operation is store or isinstance(use.operation, DotOp) for use in buffer.memref.uses
    )


def _runs_before(op: Operation, place: Operation) -> bool:
    """Whether `op` has run whenever control gets to `place`."""
    block = op.parent
    assert block is not None
    inside = block.find_ancestor_op_in_block(place)
    return inside is not None and op.is_before_in_block(inside)


def outside_loops(op: Operation, value: SSAValue) -> Operation:
    """The outermost loop around `op` that `value` does not change in, or `op` itself."""
    place = op
    loop = op.parent_op()
    owner = value.owner
    made = owner if isinstance(owner, Operation) else owner.parent_op()
    while isinstance(loop, scf.ForOp) and made is not None and not loop.is_ancestor(made):
        place, loop = loop, loop.parent_op()
    return place


def store_to_buffer(
    op: Operation, value: SSAValue, shared: LinearLayout
) -> tuple[arith.ConstantOp, memref.AllocaOp, tile.StoreOp]:
    """A buffer for a tile and the store into it, which the caller inserts in this order."""
    assert isinstance(value.type, TensorType)
    layout = tile.SharedLayoutAttr(shared)
    buffer_type = MemRefType(value.type.element_type, shared.shape, layout, tile.SHARED)
    buffer = memref.AllocaOp.build(operands=[[], []], result_types=[buffer_type], properties={})
    zero = index_constant(0, op)
    return zero, buffer, tile.StoreOp(value, buffer.memref, [zero.result] * shared.rank)


def through_shared(
    op: Operation,
    value: SSAValue,
    shared: LinearLayout,
    loaded: TensorType,
    behind: list[Operation],
) -> None:
    """Stores `value` to a buffer before `op`, loads it where `op`'s result is first needed.

    `behind` are ops on the loaded tile, the last of which gives what `op` gave; they take the
    load's result as their first operand.
    """
    zero, buffer, store = store_to_buffer(op, value, shared)
    insert_before(op, [zero, buffer, store])
    load = tile.LoadOp(buffer.memref, [zero.result] * shared.rank, loaded)
    result = load.result
    for step in behind:
        step.operands[0] = result
        result = step.results[0]
    for new in (load, *behind):
        new.location = op.location
    _insert_at_first_use(op, [load, *behind])
    op.results[0].replace_all_uses_with(result)
    op.detach()
    op.erase()


def _insert_at_first_use(op: Operation, new: list[Operation]) -> None:
    """Puts ops right before the first op of the block that needs `op`'s result."""
    block = op.parent
    assert block is not None
    users = {_in_block(use.operation, op) for use in op.results[0].uses}
    current = op.next_op
    while current is not None and current not in users:
        current = current.next_op
    block.insert_ops_before(new, current if current is not None else op)


def _in_block(user: Operation, op: Operation) -> Operation:
    while user.parent is not op.parent:
        parent = user.parent_op()
        assert parent is not None
        user = parent
    return user


# ---- folds


def _expand_fold(op: ReduceOp) -> None:
    source = _layout(op.value, op)
    plan = plan_reduction(source, op.axes.data)
    if not plan.warps:
        return
    if any(step.register or step.lane or step.warp & (step.warp - 1) for step in plan.warps):
        raise error_at(op, "a fold across warps that exchange registers is not supported yet")
    axis = op.axes.data[0]
    bits = [step.warp.bit_length() - 1 for step in plan.warps]
    partial, in_registers = partial_layouts(source, op.axes.data, axis, bits)
    gathered = spread_over_lanes(in_registers, axis)
    element = op.value.type
    result = op.result.type
    assert isinstance(element, TensorType)
    assert isinstance(result, TensorType)
    shape = tuple(
        1 << len(plan.warps) if i == axis else extent for i, extent in enumerate(result.get_shape())
    )
    partial_type = with_layout(TensorType(result.element_type, shape), partial)
    first = PartialReduceOp(op.kind.data, op.value, op.axes.data, partial_type)
    insert_before(op, [first])
    kind = ReduceKind.ADD if op.kind.data is ReduceKind.COUNT else op.kind.data
    last = ReduceOp(kind, op.value, (axis,), result)
    loaded = with_layout(partial_type, gathered)
    buffer = exchange_buffer(partial, gathered, axis, element_bytes(first.result.type))
    through_shared(op, first.result, buffer, loaded, [last])


def partial_layouts(
    source: LinearLayout, axes: tuple[int, ...], axis: int, bits: Sequence[int]
) -> tuple[LinearLayout, LinearLayout]:
    """The layouts of the partial results: one a warp, and all of them in each thread.

    The axis has an element for each value of the warp bits that the fold is spread over, the
    first of `bits` lowest.
    """
    sliced = slice_layout(source, axes)
    outputs = {
        name: 1 << len(bits) if i == axis else size for i, (name, size) in enumerate(sliced.outputs)
    }

    def unit(position: int) -> tuple[int, ...]:
        return tuple(1 << position if i == axis else 0 for i in range(sliced.rank))

    bases = {name: list(sliced.bases(name)) for name in sliced.in_names}
    spread = {name: list(vectors) for name, vectors in bases.items()}
    for position, bit in enumerate(bits):
        spread[WARP][bit] = unit(position)
    gathered = {name: list(vectors) for name, vectors in bases.items()}
    gathered[REGISTER] = [unit(position) for position in range(len(bits))] + bases[REGISTER]
    return (
        LinearLayout.from_bases(spread, outputs),
        LinearLayout.from_bases(gathered, outputs),
    )


def spread_over_lanes(gathered: LinearLayout, axis: int) -> LinearLayout:
    """Partial results in lanes that would hold copies, where a thread has more than a vector.

    The lanes then fold them by shuffles: a few steps in place of an operation for each warp.
    """
    bases = {name: list(gathered.bases(name)) for name in gathered.in_names}
    free = [bit for bit, vector in enumerate(bases[LANE]) if not any(vector)]
    along = [vector for vector in bases[REGISTER] if vector[axis]]
    while free and along and sum(map(any, bases[REGISTER])) > _VECTOR_BITS:
        moved = along.pop()
        bases[REGISTER].remove(moved)
        bases[LANE][free.pop(0)] = moved
    return LinearLayout.from_bases(bases, dict(gathered.outputs))


def exchange_buffer(
    partial: LinearLayout, gathered: LinearLayout, axis: int, size: int
) -> LinearLayout:
    """The buffer of partial results of `size` bytes: those of one place are one vector load.

    Where the warps' stores of many places would wait for banks, one warp's results are
    neighbours, or what suits both sides best.
    """
    best: SharedExchange | None = None
    for shared in _partial_buffers(partial, gathered, axis, size):
        plan = judge_exchange(partial, gathered, shared, size)
        if best is None or _passes(plan, partial, gathered) < _passes(best, partial, gathered):
            best = plan
        if best.store.factor == best.load.factor == 1:
            break
    assert best is not None
    return best.shared


def _partial_buffers(
    partial: LinearLayout, gathered: LinearLayout, axis: int, size: int
) -> Iterator[LinearLayout]:
    others = [i for i in reversed(range(gathered.rank)) if i != axis]
    yield row_major(gathered.shape, [axis, *others])
    yield row_major(gathered.shape, [*others, axis])
    yield plan_exchange(partial, gathered, size).shared


def _passes(plan: SharedExchange, partial: LinearLayout, gathered: LinearLayout) -> float:
    """Passes over the banks in which a warp stores its results and loads all warps'."""
    stored, fetched = (1 << gf2.rank(side.packed(REGISTER)) for side in (partial, gathered))
    stores = stored * plan.store.wavefronts / plan.store_vector
    return stores + fetched * plan.load.wavefronts / plan.load_vector
