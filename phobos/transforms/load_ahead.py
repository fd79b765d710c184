"""Tiles of the next iteration in registers: how `ph-pipeline-loops` runs ahead without copies.

    scf.for %k .. {                            (the first tile to stage 0)
      %a = tile.load %A[%m, %k]                scf.for %k .. iter_args(%r = 0, %w = 1) {
      tile.store %a, %buffer[..]                 tile.next_stage
      (barrier)                          -->     %a = tile.load %A[%m, (the next %k)]
      %d = tile.dot %buffer, ..                  (barrier)
      (barrier)                                  %d = tile.dot (stage %r), ..
    }                                            tile.store %a, (stage %w) ordered
                                                 scf.yield %w, %r
                                               }

The products of an iteration are made while its load is on the way. What is computed from the tile
on its way to the buffer is computed behind them too. One barrier an iteration is enough, and it
may be passed while products are still made. The last iteration loads again what it multiplies:
that spares a branch, which would part the loads from the products.

Where there is no room for a second stage, or a tile takes another way than through a buffer of
contractions, the tile is carried to the next iteration, which stores it itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.staging import NextStageOp
from phobos.ir.rewrite import OpBuilder, carry_more, extend_yield, zero_attr
from phobos.record import Record, record
from phobos.transforms.loop_stages import index_ops, multi_buffer, ops_from, view_of


@record
class Front(Record):
    """The way of loaded tiles to a buffer that contractions alone read."""

    ops: tuple[Operation, ...]
    """What computes the stored tile from what is loaded, in order."""
    store: tile.StoreOp
    buffer: memref.AllocaOp


def fronts_of(
    loop: scf.ForOp, loads: Sequence[tile.LoadOp], copied: Collection[memref.AllocaOp]
) -> tuple[Front, ...]:
    """The ways of loads to all buffers of a loop's contractions but those that are `copied`.

    None at all if a buffer holds something else, or a tile is needed elsewhere too.
    """
    body = loop.body.block
    found: dict[memref.AllocaOp, Front] = {}
    for dot in body.ops:
        for operand in (dot.a, dot.b) if isinstance(dot, DotOp) else ():
            buffer = operand.owner
            if not isinstance(buffer, memref.AllocaOp) or buffer.parent is not body:
                continue
            if buffer not in copied and buffer not in found:
                front = _front(buffer, loads, body)
                if front is None:
                    return ()
                found[buffer] = front
    fronts = tuple(found.values())
    return fronts if _have_no_other_use(loads, fronts, body) else ()


def _front(buffer: memref.AllocaOp, loads: Sequence[tile.LoadOp], body: Block) -> Front | None:
    users = [use.operation for use in buffer.memref.uses]
    stores = [user for user in users if isinstance(user, tile.StoreOp)]
    dots = [user for user in users if isinstance(user, DotOp)]
    if len(stores) != 1 or len(stores) + len(dots) != len(users):
        return None
    if any(user.parent is not body for user in users):
        return None
    (store,) = stores
    ops = ops_from([store.value, *store.indices], body, [load.result for load in loads])
    return None if ops is None else Front(tuple(ops), store, buffer)


def _have_no_other_use(loads: Sequence[tile.LoadOp], fronts: Sequence[Front], body: Block) -> bool:
    """Whether what follows from the loads is on its way to a buffer and nothing else."""
    on_the_way = {op for front in fronts for op in front.ops}
    ends = {front.store for front in fronts}
    loaded: set[SSAValue] = {load.result for load in loads}
    for op in body.ops:
        if any(operand in loaded for inner in op.walk() for operand in inner.operands):
            if op in on_the_way:
                loaded.update(op.results)
            elif op not in ends:
                return False
    return True


# ---- two stages


def stage_ahead(
    loop: scf.ForOp, loads: Sequence[tile.LoadOp], fronts: Sequence[Front], *, marked: bool
) -> scf.ForOp:
    """The rewrite of the module's docstring; not `marked` if the loop waits for copies anyway."""
    outside = loop.parent
    assert outside is not None
    head = OpBuilder(loop)
    buffers = [multi_buffer(head, front.buffer, 2) for front in fronts]
    exists = head.add(arith.CmpiOp(loop.lb, loop.ub, "slt"))
    first = _loads_or_zeros(loads, loop.lb, exists)
    head.put(first)
    zero, one = head.constant(0), head.constant(1)
    loaded = [load.result for load in loads]
    tiles: dict[SSAValue, SSAValue] = dict(zip(loaded, first.results, strict=True))
    _fill(head, fronts, buffers, zero, loop, tiles, loop.lb)
    outside.insert_ops_before(head.ops, loop)

    loop = carry_more(loop, [zero, one])
    body = loop.body.block
    variable, read, write = body.args[0], body.args[-2], body.args[-1]
    start = OpBuilder(loop)
    if marked:
        start.put(NextStageOp())
    views = [
        start.add(view_of(buffer, read, front.buffer))
        for buffer, front in zip(buffers, fronts, strict=True)
    ]
    left = start.add(arith.SubiOp(loop.ub, variable))
    more = start.add(arith.CmpiOp(left, loop.step, "sgt"))
    later = start.add(arith.AddiOp(variable, loop.step))
    place = start.add(arith.SelectOp(more, later, variable))
    ops, tiles_ahead = _loads_at(loads, place)
    for op in ops:
        start.put(op)
    assert body.first_op is not None
    body.insert_ops_before(start.ops, body.first_op)
    end = OpBuilder(loop)
    tiles = dict(zip(loaded, tiles_ahead, strict=True))
    for store in _fill(end, fronts, buffers, write, loop, tiles, place):
        # The stage's readers have all passed the barrier before this iteration's first product.
        store.ordered = UnitAttr()
    extend_yield(body, end.ops, [write, read])
    for front, view in zip(fronts, views, strict=True):
        _erase(front.store)
        front.buffer.memref.replace_all_uses_with(view)
        _erase(front.buffer)
    for op in reversed([op for front in fronts for op in front.ops]):
        if op.parent is not None and not any(result.uses for result in op.results):
            _erase(op)
    for load in loads:
        _erase(load)
    if marked:
        drain = NextStageOp()
        drain.location = loop.location
        outside.insert_op_after(drain, loop)
    return loop


def _fill(
    build: OpBuilder,
    fronts: Sequence[Front],
    buffers: Sequence[SSAValue],
    stage: SSAValue,
    loop: scf.ForOp,
    tiles: Mapping[SSAValue, SSAValue],
    place: SSAValue,
) -> list[tile.StoreOp]:
    """Stores what follows from `tiles`, loaded where the loop variable is `place`, to a stage."""
    stores: list[tile.StoreOp] = []
    mapping: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: place, **tiles}
    for front, buffer in zip(fronts, buffers, strict=True):
        for op in front.ops:
            if op.results[0] not in mapping:
                build.put(op.clone(mapping))
        view = build.add(view_of(buffer, stage, front.buffer))
        store = front.store
        value = mapping.get(store.value, store.value)
        new = tile.StoreOp(value, view, [mapping.get(index, index) for index in store.indices])
        new.location = store.location
        build.put(new)
        stores.append(new)
    return stores


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


# ---- one stage


def carry_ahead(loop: scf.ForOp, loads: Sequence[tile.LoadOp]) -> scf.ForOp:
    """Carries each loaded tile to the next iteration and loads there for the one behind it."""
    body = loop.body.block
    outside = loop.parent
    assert outside is not None
    head = OpBuilder(loop)
    exists = head.add(arith.CmpiOp(loop.lb, loop.ub, "slt"))
    first = _loads_or_zeros(loads, loop.lb, exists)
    head.put(first)
    outside.insert_ops_before(head.ops, loop)
    new_loop = carry_more(loop, first.results)
    body = new_loop.body.block
    carried = body.args[-len(loads) :]
    ahead = OpBuilder(new_loop)
    variable = body.args[0]
    left = ahead.add(arith.SubiOp(new_loop.ub, variable))
    more = ahead.add(arith.CmpiOp(left, new_loop.step, "sgt"))
    later = ahead.add(arith.AddiOp(variable, new_loop.step))
    following = _loads_or_zeros(loads, later, more)
    ahead.put(following)
    for load, tile_now in zip(loads, carried, strict=True):
        load.result.replace_all_uses_with(tile_now)
    dot = next(op for op in body.ops if isinstance(op, DotOp))
    body.insert_ops_before(ahead.ops, dot)
    for load in loads:
        _erase(load)
    extend_yield(body, [], following.results)
    return new_loop


def _loads_at(
    loads: Sequence[tile.LoadOp], place: SSAValue
) -> tuple[list[Operation], list[SSAValue]]:
    """Ops that load the tiles of the iteration whose loop variable is `place`, and the tiles."""
    body = loads[0].parent
    assert isinstance(body, Block)
    mapping: dict[SSAValue, SSAValue] = {body.args[0]: place}
    ops: list[Operation] = []
    tiles: list[SSAValue] = []
    for load in loads:
        for op in index_ops(load.indices, body) or ():
            if op.results[0] not in mapping:
                ops.append(op.clone(value_mapper=mapping))
        ops.append(load.clone(value_mapper=dict(mapping)))
        tiles.append(ops[-1].results[0])
    return ops, tiles


def _loads_or_zeros(loads: Sequence[tile.LoadOp], place: SSAValue, exists: SSAValue) -> scf.IfOp:
    """The tiles of the iteration whose loop variable is `place`, zeros if there is none."""
    there, tiles = _loads_at(loads, place)
    nothing: list[Operation] = []
    zeros: list[SSAValue] = []
    for load in loads:
        constant, splat = _zero_tile(load)
        nothing += [constant, splat]
        zeros.append(splat.results[0])
    return scf.IfOp(
        exists,
        [load.result.type for load in loads],
        Region(Block([*there, scf.YieldOp(*tiles)])),
        Region(Block([*nothing, scf.YieldOp(*zeros)])),
    )


def _zero_tile(load: tile.LoadOp) -> tuple[arith.ConstantOp, tile.SplatOp]:
    type_ = load.result.type
    assert isinstance(type_, TensorType)
    constant = arith.ConstantOp(zero_attr(type_.element_type))
    return constant, tile.SplatOp(constant.result, type_)
