"""`ph-unroll-loops`: several iterations of a loop at a time, so that their loads overlap.

    scf.for %k = %thread to %n step %c256 { load x[%k]; ... }
    -->
    %next = scf.for %k = %thread to %n - 768 step %c1024 {
      load x[%k]; ... load x[%k + 256]; ... load x[%k + 512]; ... load x[%k + 768]; ...
    }
    scf.for %k = %next to %n step %c256 { load x[%k]; ... }      // what is left

A loop is unrolled as its `phobos.unroll` says (`for<unroll n>`; -1 is all iterations).
Without one, a loop is unrolled if it reads tensors at places that depend on its counter, by
thread or by tile, and does nothing that others see. Its loads then come before the rest of a
group; the order of all else stays, so that results are the same to the last bit.

Precondition: `ph-analyze-extents`, whose proofs hold for the copies. Postcondition: no
`phobos.unroll` is left. Cost: one range analysis where a loop is unrolled, and the copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    TensorType,
    VectorType,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import MemoryEffectKind, get_effects

from phobos.analysis.ranges import Ranges, analyze
from phobos.diagnostics import Diagnostic, tell
from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.shaping import ReduceOp, ReshapeOp, TransposeOp
from phobos.ir.kernel import extent_multiple_of, index_bits_of, kernels, threads_of
from phobos.ir.locations import error_at, location_of
from phobos.ir.rewrite import insert_before
from phobos.transforms.loop_parts import (
    LoopWriter,
    add_to,
    copy_iteration,
    end_body,
    go_on_after,
    start_of_body,
)

UNROLL = "phobos.unroll"
ALL = -1
"""The factor that stands for all iterations."""
GROUP = "fallback"

NARROW_BYTES = 4
NARROW_FACTOR = 8
WIDE_FACTOR = 4
"""Iterations at a time where the widest load of a thread is up to NARROW_BYTES, or wider:
some 32 to 64 bytes of a stream are then on their way for each thread, which is what a
multiprocessor full of threads needs to keep memory busy."""
TILE_BYTES = 128
"""How many bytes of tiles a thread should have on their way; they stand in its registers."""
_MAX_COPIED_OPS = 512
_MAX_ITERATIONS = 4096


class UnrollLoopsPass(ModulePass):
    """Unrolls the loops that ask for it, and those whose loads gain by it."""

    name = "ph-unroll-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Unrolls loops of every kernel of the module, inner ones first."""
        for kernel in kernels(op):
            loops = [
                loop
                for loop in kernel.walk(reverse=True, region_first=True)
                if isinstance(loop, scf.ForOp)
            ]
            threads = threads_of(kernel)
            chosen = [(loop, factor) for loop in loops if (factor := _factor(loop, threads)) != 1]
            if chosen:
                _unroll_loops(kernel, chosen)


def _factor(loop: scf.ForOp, threads: int) -> int:
    """How many iterations at a time: as asked for, else what the loop's loads suggest."""
    asked = loop.attributes.pop(UNROLL, None)
    if isinstance(asked, IntegerAttr):
        return asked.value.data
    return _suggested_factor(loop, threads)


def _unroll_loops(kernel: gpu.FuncOp, chosen: Sequence[tuple[scf.ForOp, int]]) -> None:
    ranges = analyze(kernel, index_bits_of(kernel), extent_multiple_of(kernel))
    for loop, factor in chosen:
        trips = _constant_trips(loop, ranges)
        if factor == ALL and trips is None:
            tell(
                Diagnostic.warning(
                    "this loop is not unrolled, since the number of its iterations is not a"
                    " constant",
                    location_of(loop),
                    help="say how many iterations are done at a time, as in `for<unroll 4>`",
                    group=GROUP,
                )
            )
        elif trips is not None and (factor == ALL or trips <= factor):
            _unroll_fully(loop, trips)
        else:
            _unroll_by(loop, factor, ranges)


# ---- which loops


def _suggested_factor(loop: scf.ForOp, threads: int) -> int:
    """What fits a loop that only reads; 1 for every other loop."""
    body = list(loop.body.block.walk())
    if not all(map(_only_reads, body)):
        return 1
    loads = _streaming_loads(loop, body)
    if not loads:
        return 1
    widest = max(_load_bytes(load) for load in loads)
    factor = NARROW_FACTOR if widest <= NARROW_BYTES else WIDE_FACTOR
    tiles = [load for load in loads if isinstance(load, tile.LoadOp)]
    if tiles:
        share = sum(map(_load_bytes, tiles)) / threads
        factor = min(WIDE_FACTOR, max(1, int(TILE_BYTES / share)))
    while factor > 1 and factor * len(body) > _MAX_COPIED_OPS:
        factor //= 2
    return factor


def _only_reads(op: Operation) -> bool:
    """Whether an op leaves memory and other threads alone."""
    if isinstance(op, _ONLY_READ):
        return True
    if isinstance(op, _BETWEEN_THREADS) or op.name.startswith("collective.") or op.regions:
        return False
    effects = get_effects(op)
    return effects is not None and all(effect.kind is MemoryEffectKind.READ for effect in effects)


_ONLY_READ = (scf.IfOp, vector.LoadOp, vector.ReductionOp, vector.BitcastOp)
"""Ops whose definitions in xDSL do not say so."""
_BETWEEN_THREADS = (ReduceOp, TransposeOp, ReshapeOp, DotOp)
"""Ops on tiles that may need an exchange between threads, and so barriers."""


def _streaming_loads(loop: scf.ForOp, body: Sequence[Operation]) -> list[_Load]:
    """Reads of tensors at places that depend on the loop's counter."""
    moving: set[SSAValue] = {loop.body.block.args[0]}
    found: list[_Load] = []
    for op in body:
        if not moving.isdisjoint(op.operands):
            moving.update(op.results)
            if isinstance(op, _Load) and not tile.is_shared(op.operands[0]):
                found.append(op)
    return found


_Load = memref.LoadOp | vector.LoadOp | tile.LoadOp


def _load_bytes(op: _Load) -> int:
    """What a load moves: one access of a thread, or a whole tile."""
    mem = op.operands[0].type
    assert isinstance(mem, MemRefType)
    element = mem.element_type
    size = element.size if isinstance(element, FixedBitwidthType) else 1
    read = op.results[0].type
    return size * prod(read.get_shape()) if isinstance(read, VectorType | TensorType) else size


# ---- bounds


def _constant_trips(loop: scf.ForOp, ranges: Ranges) -> int | None:
    """How often the body runs, if that is a constant."""
    low, high, step = (ranges.of(bound).constant for bound in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or step is None or step < 1:
        return None
    return max(0, -(-(high - low) // step))


def _has_rest(loop: scf.ForOp, factor: int, ranges: Ranges) -> bool:
    """Whether iterations may be left when so many are done at a time."""
    trips = _constant_trips(loop, ranges)
    if trips is not None:
        return trips % factor != 0
    step = ranges.of(loop.step).constant
    if step is None:
        return True
    group = step * factor
    return not all(ranges.of(bound).divisible_by(group) for bound in (loop.lb, loop.ub))


def _last_group(writer: LoopWriter, factor: int, ranges: Ranges) -> SSAValue:
    """The bound below which a group of iterations is whole: ub - (factor - 1) * step.

    It saturates at the type's lowest number instead of wrapping around.
    """
    loop = writer.loop
    step = ranges.of(loop.step).constant
    if step is not None:
        back = (factor - 1) * step
        bound = loop.ub
        if ranges.of(bound).low < writer.low + back:
            bound = writer.add(arith.MaxSIOp(bound, writer.constant(writer.low + back)))
        return writer.add(arith.SubiOp(bound, writer.constant(back)))
    back = writer.add(arith.MuliOp(loop.step, writer.constant(factor - 1)))
    lowest = writer.constant(writer.low)
    bound = writer.add(arith.MaxSIOp(loop.ub, writer.add(arith.AddiOp(lowest, back))))
    fits = writer.add(arith.CmpiOp(loop.step, writer.constant(writer.high // factor), "sle"))
    whole = writer.add(arith.SubiOp(bound, back))
    return writer.add(arith.SelectOp(fits, whole, lowest))


def _group_step(writer: LoopWriter, factor: int, ranges: Ranges) -> SSAValue:
    step = ranges.of(writer.loop.step).constant
    if step is not None:
        return writer.constant(step * factor)
    return writer.add(arith.MuliOp(writer.loop.step, writer.constant(factor)))


# ---- copies


def _loads_and_their_places(loop: scf.ForOp) -> list[Operation]:
    """The loads of an iteration that may come before all else, with what they need, in order.

    These are the loads of a loop that only reads, if their places depend on nothing that an
    iteration passes to the next.
    """
    body = loop.body.block
    if not all(map(_only_reads, body.walk())):
        return []
    early: set[SSAValue] = {body.args[0]}
    ready: list[Operation] = []
    for op in body.ops:
        inside = [value for value in op.operands if _is_made_in(value, body)]
        if not op.regions and early.issuperset(inside) and (inside or isinstance(op, _Constant)):
            early.update(op.results)
            ready.append(op)
    needed: set[Operation] = set()
    for op in reversed(ready):
        if isinstance(op, _Load) or any(
            use.operation in needed for r in op.results for use in r.uses
        ):
            needed.add(op)
    return [op for op in ready if op in needed]


_Constant = arith.ConstantOp


def _is_made_in(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return (owner if isinstance(owner, Block) else owner.parent) is block


def _unroll_fully(loop: scf.ForOp, trips: int) -> None:
    """The iterations one after another, in place of the loop."""
    if trips > _MAX_ITERATIONS:
        raise error_at(
            loop,
            f"this loop has {trips} iterations, too many to unroll all of them",
            help="say how many iterations are done at a time, as in `for<unroll 4>`",
        )
    straight = Block()
    counter: SSAValue = loop.lb
    values: list[SSAValue] = list(loop.iter_args)
    for _ in range(trips):
        values = copy_iteration(loop, straight, {loop.body.block.args[0]: counter}, values)
        counter = add_to(straight, arith.AddiOp(counter, loop.step), loop)
    block = loop.parent
    assert block is not None
    for op in list(straight.ops):
        op.detach()
        block.insert_op_before(op, loop)
    _erase(loop, values)


def _erase(loop: scf.ForOp, values: Sequence[SSAValue]) -> None:
    """Removes a loop whose results are these values now."""
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    loop.detach()
    loop.erase()


def _unroll_by(loop: scf.ForOp, factor: int, ranges: Ranges) -> None:
    """Groups of `factor` iterations, then the loop itself for what is left."""
    writer = LoopWriter(loop, ranges)
    if factor * (ranges.of(loop.step).constant or 0) > writer.high:
        return  # no counter could make two such steps
    has_rest = _has_rest(loop, factor, ranges)
    bound = _last_group(writer, factor, ranges) if has_rest else loop.ub
    group_step = _group_step(writer, factor, ranges)
    initial = [*loop.iter_args, loop.lb] if has_rest else list(loop.iter_args)
    groups = scf.ForOp(
        loop.lb, bound, group_step, initial, _group_body(loop, factor, ranges, group_step, has_rest)
    )
    insert_before(loop, [groups])
    if not has_rest:
        _erase(loop, groups.results)
        return
    go_on_after(writer, groups)


def _group_body(
    loop: scf.ForOp, factor: int, ranges: Ranges, group_step: SSAValue, has_rest: bool
) -> Block:
    """`factor` iterations; with `has_rest` the block passes on where the next group starts."""
    given = list(loop.body.block.args)
    body = start_of_body(loop, keeps_place=has_rest)
    values: list[SSAValue] = list(body.args[1 : len(given)])
    early = _loads_and_their_places(loop)
    counters: list[SSAValue] = [body.args[0]]
    copies: list[dict[SSAValue, SSAValue]] = []
    for copy in range(factor):
        if copy:
            counters.append(_counter(body, loop, counters, copy, ranges))
        copies.append({given[0]: counters[copy]})
        body.add_ops(op.clone(copies[copy]) for op in early)
    for known in copies:
        values = copy_iteration(loop, body, known, values, frozenset(early))
    end_body(loop, body, values, group_step if has_rest else None)
    return body


def _counter(
    body: Block, loop: scf.ForOp, counters: Sequence[SSAValue], copy: int, ranges: Ranges
) -> SSAValue:
    """The counter of a later iteration of a group, from the first one where that is possible."""
    step = ranges.of(loop.step).constant
    if step is None:
        return add_to(body, arith.AddiOp(counters[-1], loop.step), loop)
    counter_type = loop.lb.type
    assert isinstance(counter_type, IndexType | IntegerType)
    distance = add_to(body, arith.ConstantOp(IntegerAttr(copy * step, counter_type)), loop)
    return add_to(body, arith.AddiOp(counters[0], distance), loop)
