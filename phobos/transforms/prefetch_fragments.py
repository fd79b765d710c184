"""`ph-prefetch-fragments`: have the first operands in registers when an iteration starts.

    scf.for .. {                            %f = (fragments of the first stage's first step)
      tile.async_wait 1                     scf.for .. iter_args(%a0 = %f ..) {
      (barrier, copies)                       %a1 = tile.load %A_stage[.., 16]
      %d = tile.dot %A_stage, %B_stage   -->  (copies of A)
    }                                         %d0 = tile.dot %a0, %b0, ..
                                              %a2 = ..., and so on for each step along K
                                              tile.async_commit
                                              tile.async_wait 1
                                              (barrier)
                                              %n = tile.load %A_next_stage[.., 0]  // or its own
                                              %d = tile.dot %a_last, %b_last, ..
                                              scf.yield %n, ..
                                            }

The contraction of a staged loop is cut into the steps of its instruction, and each step's
fragments are loaded one step ahead, the first step's in the iteration before. So there is work
while a warp waits for the barrier and for shared memory. Multiply-adds are cut too, if the caches
take the code of an iteration and operands lie so that a step's are loaded in whole vectors. The
copies of later stages go behind the loads of the first steps, an operand to a step: ptxas moves no
load of shared memory over a copy into it, and would have the first products done before it loads
for the next. Where threads store to the next stage (`tile.next_stage`), they do so before the last
step; tensor cores that only sum multiply that in the iteration behind, and parts of the stage are
stored between the other steps. Where registers are short for that, the last step is multiplied in
its own iteration, and parts of the stage are stored between the products of the other steps.

Precondition: `ph-pipeline-loops` made the loop. Cost: a few ops a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FixedBitwidthType, MemRefType, ModuleOp, TensorType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.occupancy import MAX_REGISTERS
from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.staging import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    NextStageOp,
    StageOp,
    only_starts_copies,
)
from phobos.ir.kernel import kernels, threads_of
from phobos.ir.rewrite import OpBuilder, carry_more, extend_yield
from phobos.layout import LinearLayout
from phobos.layout.build import REGISTER
from phobos.layout.shared import as_part, shared_vector
from phobos.record import Record, record
from phobos.transforms.assign_layouts import contraction_of, with_layout
from phobos.transforms.loop_stages import is_farther, lone_sum, stores_to_stage, zero_tile
from phobos.transforms.lowering.state import BETWEEN_PRODUCTS

_MATRICES = 4
"""What one `ldmatrix` loads at most, a word of each thread for each."""
MAX_MULTIPLY_ADDS = 2048
"""Of a thread in an iteration, which are 32 KB of code. On an H200, 4096^3 in f32 took 1 % less
time with so many than with half of them, 128 results a thread."""


RESERVE = 24
"""Registers of a thread that such a loop takes for addresses."""


class PrefetchFragmentsPass(ModulePass):
    """Loads the operands of staged contractions one step ahead."""

    name = "ph-prefetch-fragments"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        for kernel in kernels(op):
            for loop in list(kernel.walk()):
                if isinstance(loop, scf.ForOp):
                    found = _staged_product(loop, threads_of(kernel))
                    if found is not None:
                        _prefetch(loop, found)


@record
class _Product(Record):
    """A contraction of two stages, in a loop that waits once an iteration."""

    dot: DotOp
    a: StageOp
    b: StageOp
    wait: AsyncWaitOp | NextStageOp
    depth: int
    """K of one step."""
    steps: int
    a_type: TensorType
    b_type: TensorType
    """The fragments of one step."""


def _staged_product(loop: scf.ForOp, threads: int) -> _Product | None:
    body = loop.body.block
    dots = [op for op in body.ops if isinstance(op, DotOp)]
    waits = [op for op in body.ops if isinstance(op, AsyncWaitOp | NextStageOp)]
    if len(dots) != 1 or len(waits) != 1:
        return None
    dot = dots[0]
    a, b = dot.a.owner, dot.b.owner
    if not isinstance(a, StageOp) or not isinstance(b, StageOp) or a.index is not b.index:
        return None
    if dot.instruction is None or dot.instruction.data.name not in ("mma", "fma"):
        return None
    if _is_stack(dot):
        return None  # the loads of one product wait while another is made
    whole = contraction_of(dot, threads).a.shape[-1]
    if dot.instruction.data.name == "mma":
        depth = _depth(dot, whole, threads)
    elif _loads_steps(dot, threads):
        depth = 1
    else:
        return None
    steps = whole // depth
    if steps < 2:
        return None
    return _Product(dot, a, b, waits[0], depth, steps, *_fragment_types(dot, depth, threads))


def _depth(dot: DotOp, whole: int, threads: int) -> int:
    """K of one step: that of the instruction, or more if `ldmatrix` then delivers four words.

    Fewer would be loaded by more instructions.
    """
    assert dot.instruction is not None
    least = dot.instruction.data.shape[2]
    depth = least

    def fills_a_load() -> bool:
        return min(map(_words, _fragment_types(dot, depth, threads))) >= _MATRICES

    while depth * 2 <= whole // 2 and not fills_a_load():
        depth *= 2
    return depth if fills_a_load() else least


def _loads_steps(dot: DotOp, threads: int) -> bool:
    """Whether multiply-adds fit the caches unrolled, and load no wider than one step along K is."""
    layouts, step = contraction_of(dot, threads), contraction_of(dot, threads, 1)
    if layouts.a.shape[-1] * layouts.c.in_size(REGISTER) > MAX_MULTIPLY_ADDS:
        return False
    operands = ((dot.a, layouts.a, step.a), (dot.b, layouts.b, step.b))
    return all(_vector(mem, whole) == _vector(mem, part) for mem, whole, part in operands)


def _vector(buffer: SSAValue, layout: LinearLayout) -> int:
    """Elements that a thread loads at once from a buffer, of which a tile is a part."""
    assert isinstance(buffer.type, MemRefType)
    element = buffer.type.element_type
    assert isinstance(element, FixedBitwidthType)
    shared = tile.shared_layout_of(buffer)
    return shared_vector(as_part(layout, shared), shared, element.size)


def _words(type_: TensorType) -> int:
    """32-bit words of a thread that hold a tile."""
    element, encoding = type_.element_type, type_.encoding
    assert isinstance(element, FixedBitwidthType)
    assert isinstance(encoding, tile.LayoutAttr)
    return encoding.data.in_size(REGISTER) * element.size // 4


def _is_stack(dot: DotOp) -> bool:
    assert isinstance(dot.c.type, TensorType)
    return any(extent > 1 for extent in dot.c.type.get_shape()[:-2])


def _fragment_types(dot: DotOp, depth: int, threads: int) -> tuple[TensorType, TensorType]:
    c, a, b = dot.c.type, dot.a.type, dot.b.type
    assert isinstance(c, TensorType)
    assert isinstance(a, MemRefType)
    assert isinstance(b, MemRefType)
    *lead, m, n = c.get_shape()
    layouts = contraction_of(dot, threads, depth)
    return (
        with_layout(TensorType(a.element_type, [*lead, m, depth]), layouts.a),
        with_layout(TensorType(b.element_type, [*lead, depth, n]), layouts.b),
    )


def _prefetch(loop: scf.ForOp, product: _Product) -> None:
    outside = loop.parent
    assert outside is not None
    position = lone_sum(loop, product.dot)
    if (
        isinstance(product.wait, NextStageOp)
        and position is not None
        and _by_tensor_cores(product.dot)
    ):
        _multiply_behind_barrier(loop, product, position)
        return
    stages = _carried_initial(loop, product.a.index)
    head = OpBuilder(loop)
    head.put(product.wait.clone())
    exists = head.add(arith.CmpiOp(loop.lb, loop.ub, "slt"))
    first = _first_fragments(head, product, stages, exists)
    outside.insert_ops_before(head.ops, loop)
    loop = carry_more(loop, first)
    body = loop.body.block
    _mark_ordered(body, product)
    fragments = (body.args[-2], body.args[-1])
    steps = OpBuilder(product.dot)
    total = product.dot.c
    copies = _take_copies(body)
    for step in range(1, product.steps):
        following = _load_step(steps, product, (product.a.result, product.b.result), step)
        last = step == product.steps - 1
        for copy in copies if last else copies[:1]:
            steps.put(copy)
        copies = [] if last else copies[1:]
        total = steps.add(_step_product(product, fragments, total))
        fragments = following
    for op in _take_stores(product, body):
        steps.put(op)
    steps.put(product.wait.clone())
    next_stage = _yielded_for(body, product.a.index)
    _move_before(next_stage, product.dot)
    more = is_farther(steps, loop, body.args[0], loop.step)
    if not isinstance(product.wait, NextStageOp):
        # Copies fill no stage for after the last iteration. It loads from its own, for nothing.
        next_stage = steps.add(arith.SelectOp(more, next_stage, product.a.index))
    following = _load_first(steps, product, next_stage)
    total = steps.add(_step_product(product, fragments, total))
    body.insert_ops_before(steps.ops, product.dot)
    product.dot.result.replace_all_uses_with(total)
    for op in (product.dot, product.wait):
        op.detach()
        op.erase()
    extend_yield(body, [], following)


def _mark_ordered(body: Block, product: _Product) -> None:
    """A stage's readers have all passed the barrier of the iteration before what fills it.

    Stages of loops inside have readers of their own, which meet at other barriers.
    """
    buffers = (product.a.buffer, product.b.buffer)
    for op in body.walk():
        if isinstance(op, AsyncCopyOp | tile.StoreOp):
            stage = (op.buffer if isinstance(op, AsyncCopyOp) else op.mem).owner
            if isinstance(stage, StageOp) and stage.buffer in buffers:
                op.properties["ordered"] = UnitAttr()


def _by_tensor_cores(dot: DotOp) -> bool:
    return dot.instruction is not None and dot.instruction.data.name == "mma"


def _multiply_behind_barrier(loop: scf.ForOp, product: _Product, position: int) -> None:
    """Carries the last step's fragments, zeros at first, to behind the next iteration's barrier.

    The loop does nothing but add the product to the carried value at `position`.
    Within an iteration ptxas moves all products in front of the stores, which wait for the loads.
    Where registers are short, the last step is multiplied behind the iteration's own barrier.
    """
    outside = loop.parent
    assert outside is not None
    is_late = _has_registers_for_late_step(loop, product)
    head = OpBuilder(loop)
    head.put(product.wait.clone())
    first = _load_first(head, product, _carried_initial(loop, product.a.index))
    late = _zero_fragments(head, product) if is_late else []
    outside.insert_ops_before(head.ops, loop)
    loop = carry_more(loop, [*first, *late])
    body = loop.body.block
    _mark_ordered(body, product)
    steps = OpBuilder(product.dot)
    total = product.dot.c
    carried = body.args[-len(first) - len(late) :]
    fragments: tuple[SSAValue, SSAValue] = (carried[0], carried[1])
    if is_late:
        total = steps.add(_step_product(product, (carried[2], carried[3]), total))
    moves = _take_moves(product.dot, product.steps - 1)
    for step in range(1, product.steps):
        following = _load_step(steps, product, (product.a.result, product.b.result), step)
        for op in moves[step - 1]:
            if not is_late:
                op.attributes[BETWEEN_PRODUCTS] = UnitAttr()
            steps.put(op)
        total = steps.add(_step_product(product, fragments, total))
        fragments = following
    end = OpBuilder(loop)
    end.put(product.wait.clone())
    first = _load_first(end, product, _yielded_for(body, product.a.index))
    if not is_late:
        total = end.add(_step_product(product, fragments, total))
    body.insert_ops_before(steps.ops, product.dot)
    product.dot.result.replace_all_uses_with(total)
    for op in (product.dot, product.wait):
        op.detach()
        op.erase()
    extend_yield(body, end.ops, [*first, *fragments] if is_late else first)
    if is_late:
        whole = loop.results[position]
        last = _step_product(product, (loop.results[-2], loop.results[-1]), whole)
        last.location = product.dot.location
        outside.insert_op_after(last, loop)
        whole.replace_uses_with_if(last.result, lambda use: use.operation is not last)


def _has_registers_for_late_step(loop: scf.ForOp, product: _Product) -> bool:
    """Whether three steps' fragments fit beside the tiles that a loop carries, not only two."""
    types = [value.type for value in loop.iter_args]
    held = sum(_words(type_) for type_ in types if isinstance(type_, TensorType))
    step = _words(product.a_type) + _words(product.b_type)
    return held + 3 * step + RESERVE <= MAX_REGISTERS


def _take_moves(dot: DotOp, count: int) -> list[list[Operation]]:
    """Takes what is behind a product out of a loop, in so many groups of stores to stages.

    Each store is followed by what is loaded for the next iteration in its place.
    """
    groups: list[list[Operation]] = [[]]
    while not isinstance(dot.next_op, scf.YieldOp):
        op = dot.next_op
        assert op is not None
        op.detach()
        if stores_to_stage(op) and any(map(stores_to_stage, groups[-1])):
            groups.append([])
        groups[-1].append(op)
    moves: list[list[Operation]] = [[] for _ in range(count)]
    for number, group in enumerate(groups):
        moves[number * count // len(groups)] += group
    return moves


def _zero_fragments(build: OpBuilder, product: _Product) -> list[SSAValue]:
    return [zero_tile(build, type_) for type_ in (product.a_type, product.b_type)]


def _take_stores(product: _Product, body: Block) -> list[Operation]:
    """Takes out of a loop the stores to stages behind its product, and what they are of."""
    taken: set[Operation] = set()
    behind: list[Operation] = []
    op = body.last_op
    while op is not None and op is not product.dot:
        users = {use.operation for result in op.results for use in result.uses}
        if stores_to_stage(op) or not users.isdisjoint(taken):
            taken.add(op)
            behind.append(op)
        op = op.prev_op
    for op in behind:
        op.detach()
    return behind[::-1]


def _take_copies(body: Block) -> list[Operation]:
    """Takes the copies and their commit out of a loop: a conditional for each copy, the commit."""
    taken: list[Operation] = []
    for op in list(body.ops):
        if isinstance(op, scf.IfOp) and only_starts_copies(op):
            copies = [copy for copy in op.true_region.block.ops if isinstance(copy, AsyncCopyOp)]
            taken += [_copy_alone(op, copy) for copy in copies]
            op.detach()
            op.erase()
        elif isinstance(op, AsyncCommitOp) and taken:
            op.detach()
            taken.append(op)
    return taken


def _copy_alone(branch: scf.IfOp, copy: Operation) -> scf.IfOp:
    """A conditional that starts one of the copies of `branch`."""
    block = branch.true_region.block
    needed: set[Operation] = {copy}
    for op in reversed(list(block.ops)):
        if op in needed:
            needed |= {value.owner for value in op.operands if isinstance(value.owner, Operation)}
    clones: dict[SSAValue, SSAValue] = {}
    ops = [op.clone(clones) for op in block.ops if op in needed]
    alone = scf.IfOp(branch.cond, [], Region(Block([*ops, scf.YieldOp()])))
    alone.location = branch.location
    return alone


def _carried_initial(loop: scf.ForOp, argument: SSAValue) -> SSAValue:
    """What a carried value is before the loop."""
    position = loop.body.block.args.index(argument)  # pyright: ignore[reportArgumentType]
    return loop.iter_args[position - 1]


def _yielded_for(body: Block, argument: SSAValue) -> SSAValue:
    """What a carried value is in the next iteration."""
    last = body.last_op
    assert last is not None
    position = body.args.index(argument)  # pyright: ignore[reportArgumentType]
    return last.operands[position - 1]


def _move_before(value: SSAValue, place: Operation) -> None:
    """Computes a value, whose ops are pure arithmetic of the loop's end, before `place`."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.parent is not place.parent:
        return
    if _is_before(owner, place):
        return
    for operand in owner.operands:
        _move_before(operand, place)
    owner.detach()
    assert place.parent is not None
    place.parent.insert_op_before(owner, place)


def _is_before(op: Operation, place: Operation) -> bool:
    current = op.next_op
    while current is not None:
        if current is place:
            return True
        current = current.next_op
    return False


def _load_step(
    build: OpBuilder, product: _Product, views: tuple[SSAValue, SSAValue], step: int
) -> tuple[SSAValue, SSAValue]:
    """The fragments of one step along K."""
    zero, along = build.constant(0), build.constant(step * product.depth)
    rank = len(product.a_type.get_shape())
    lead = [zero] * (rank - 2)
    a = build.add(tile.LoadOp(views[0], [*lead, zero, along], product.a_type))
    b = build.add(tile.LoadOp(views[1], [*lead, along, zero], product.b_type))
    return a, b


def _step_product(
    product: _Product, fragments: tuple[SSAValue, SSAValue], total: SSAValue
) -> DotOp:
    dot = DotOp(*fragments, total)
    dot.properties.update(product.dot.properties)
    return dot


def _first_fragments(
    build: OpBuilder, product: _Product, stage: SSAValue, exists: SSAValue
) -> Sequence[SSAValue]:
    """The first step's fragments of a stage; zeros if copies have not filled it.

    Threads fill a stage whether there is an iteration that needs it or not.
    """
    if isinstance(product.wait, NextStageOp):
        return _load_first(build, product, stage)
    there, nothing = OpBuilder(product.dot), OpBuilder(product.dot)
    loaded = _load_first(there, product, stage)
    zeros = _zero_fragments(nothing, product)
    if_exists = scf.IfOp(
        exists,
        [product.a_type, product.b_type],
        Region(Block([*there.ops, scf.YieldOp(*loaded)])),
        Region(Block([*nothing.ops, scf.YieldOp(*zeros)])),
    )
    build.put(if_exists)
    return if_exists.results


def _load_first(build: OpBuilder, product: _Product, stage: SSAValue) -> tuple[SSAValue, SSAValue]:
    views = [
        build.add(StageOp(view.buffer, stage, _view_type(view))) for view in (product.a, product.b)
    ]
    return _load_step(build, product, (views[0], views[1]), 0)


def _view_type(view: StageOp) -> MemRefType:
    type_ = view.result.type
    assert isinstance(type_, MemRefType)
    return type_
