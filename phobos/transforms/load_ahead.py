"""Tiles of the next iteration in registers: how `ph-pipeline-loops` runs ahead without copies.

    scf.for %k .. {                            (the first tile to stage 0, the second in %t)
      %a = tile.load %A[%m, %k]                scf.for %k .. iter_args(%r = 0, %w = 1, %t) {
      tile.store %a, %buffer[..]                 tile.next_stage
      (barrier)                          -->     (barrier)
      %d = tile.dot %buffer, ..                  %d = tile.dot (stage %r), ..
      (barrier)                                  tile.store %t, (stage %w) ordered
    }                                            %a = tile.load %A[%m, (two %k further)]
                                                 scf.yield %w, %r, %a
                                               }

A tile is on its way for a whole iteration before it is stored. What is computed from it on its way
to the buffer is computed then. A tile that goes there as it is moves in parts (`tile_parts.py`),
each loaded again as soon as it is stored: memory is kept busy. One barrier an iteration is enough.
Iterations that have no next one load again what they multiply: that spares a branch, which would
part the loads from the products. Where registers are short, loads go on past the end instead, if
they check bounds: then all addresses of a tile are one, which takes a step an iteration, and rows
from it.

Where there is no room for a second stage, or a tile takes another way than through a buffer of
contractions, the tile is carried to the next iteration, which stores it itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.staging import NextStageOp
from phobos.ir.rewrite import OpBuilder, carry_more, extend_yield
from phobos.record import Record, record
from phobos.transforms.loop_stages import (
    index_ops,
    is_farther,
    multi_buffer,
    ops_from,
    view_of,
    zero_tile,
)
from phobos.transforms.tile_parts import PART, cut_move


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
    loop: scf.ForOp,
    loads: Sequence[tile.LoadOp],
    fronts: Sequence[Front],
    *,
    marked: bool,
    short: bool = False,
) -> scf.ForOp:
    """The rewrite of the module's docstring; not `marked` if the loop waits for copies anyway.

    Where registers are `short`, few are taken for the places of loads.
    """
    outside = loop.parent
    assert outside is not None
    loads, fronts = _in_parts(loads, fronts)
    if short:
        for load in loads:
            load.attributes[PART] = UnitAttr()
    head = OpBuilder(loop)
    singles = list(dict.fromkeys(front.buffer for front in fronts))
    buffers = {single: multi_buffer(head, single, 2) for single in singles}
    exists = head.add(arith.CmpiOp(loop.lb, loop.ub, "slt"))
    first = _loads_or_zeros(loads, loop.lb, exists)
    head.put(first)
    zero, one = head.constant(0), head.constant(1)
    filling = _Filling(head, loop, buffers, zero, loop.lb)
    filling.have(loads, first.results)
    for front in fronts:
        filling.fill(front)
    second = _loads_or_zeros(loads, _place_behind(head, loop, loop.lb, 1), exists)
    head.put(second)
    outside.insert_ops_before(head.ops, loop)

    loop = carry_more(loop, [zero, one, *second.results])
    body = loop.body.block
    count = len(loads)
    variable, carried = body.args[0], body.args[-count:]
    read, write = body.args[-count - 2], body.args[-count - 1]
    start = OpBuilder(loop)
    if marked:
        start.put(NextStageOp())
    views = [start.add(view_of(buffers[single], read, single)) for single in singles]
    assert body.first_op is not None
    body.insert_ops_before(start.ops, body.first_op)
    end = OpBuilder(loop)
    filling = _Filling(end, loop, buffers, write, _place_behind(end, loop, variable, 1))
    filling.have(loads, carried)
    goes_on = short and all(map(_checks_bounds, loads))
    place = _place_further(end, loop) if goes_on else _place_behind(end, loop, variable, 2)
    ahead = _LoadsAhead(end, body, place)
    for number, front in enumerate(fronts):
        # The stage's readers have all passed the barrier before this iteration's first product.
        filling.fill(front).ordered = UnitAttr()
        needed = {load for later in fronts[number + 1 :] for load in _loads_of(later, loads)}
        for load in loads:
            if load not in needed:
                ahead.load(load)
    extend_yield(body, end.ops, [write, read, *map(ahead.load, loads)])
    for front in fronts:
        _erase(front.store)
    for single, view in zip(singles, views, strict=True):
        single.memref.replace_all_uses_with(view)
        _erase(single)
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


def _in_parts(
    loads: Sequence[tile.LoadOp], fronts: Sequence[Front]
) -> tuple[Sequence[tile.LoadOp], Sequence[Front]]:
    """Cuts tiles that go to a buffer as they are: some parts are stored while others are loaded."""
    body = loads[0].parent
    assert isinstance(body, Block)
    parts: dict[tile.LoadOp, list[tile.LoadOp]] = {load: [load] for load in loads}
    cut: list[Front] = []
    for front in fronts:
        load = front.store.value.owner
        if not isinstance(load, tile.LoadOp) or len(list(load.result.uses)) > 1:
            cut.append(front)
            continue
        pairs = cut_move(load, front.store)
        parts[load] = [part for part, _ in pairs]
        for _, store in pairs:
            ops = tuple(index_ops(store.indices, body) or ())
            cut.append(Front(ops, store, front.buffer))
    return [part for load in loads for part in parts[load]], cut


def _loads_of(front: Front, loads: Sequence[tile.LoadOp]) -> list[tile.LoadOp]:
    """The loads that what a front stores is computed from."""
    used = {operand for op in (*front.ops, front.store) for operand in op.operands}
    return [load for load in loads if load.result in used]


@dataclass
class _Filling:
    """Stores what follows from loaded tiles, of where the loop variable is `place`, to a stage."""

    build: OpBuilder
    loop: scf.ForOp
    buffers: Mapping[memref.AllocaOp, SSAValue]
    stage: SSAValue
    place: SSAValue
    _values: dict[SSAValue, SSAValue] = field(default_factory=dict)

    def have(self, loads: Sequence[tile.LoadOp], tiles: Sequence[SSAValue]) -> None:
        """Says what the loads give there."""
        self._values[self.loop.body.block.args[0]] = self.place
        self._values.update(zip((load.result for load in loads), tiles, strict=True))

    def fill(self, front: Front) -> tile.StoreOp:
        """Takes a tile its way to the stage."""
        values, build = self._values, self.build
        for op in front.ops:
            if op.results[0] not in values:
                build.put(op.clone(values))
        view = build.add(view_of(self.buffers[front.buffer], self.stage, front.buffer))
        old = front.store
        indices = [values.get(index, index) for index in old.indices]
        store = tile.StoreOp(values.get(old.value, old.value), view, indices)
        store.location = old.location
        build.put(store)
        return store


class _LoadsAhead:
    """Loads of another iteration, each made when first asked for."""

    def __init__(self, build: OpBuilder, body: Block, place: SSAValue):
        self._build, self._body = build, body
        self._values: dict[SSAValue, SSAValue] = {body.args[0]: place}
        self._loaded: dict[tile.LoadOp, SSAValue] = {}

    def load(self, load: tile.LoadOp) -> SSAValue:
        """The tile that a load gives there."""
        if load not in self._loaded:
            for op in index_ops(load.indices, self._body) or ():
                if op.results[0] not in self._values:
                    self._build.put(op.clone(self._values))
            new = load.clone(dict(self._values))
            self._build.put(new)
            self._loaded[load] = new.results[0]
        return self._loaded[load]


def _place_behind(build: OpBuilder, loop: scf.ForOp, variable: SSAValue, steps: int) -> SSAValue:
    """Where the loop variable is so many iterations later, or `variable` if there is none."""
    ahead = loop.step
    for _ in range(steps - 1):
        ahead = build.add(arith.AddiOp(ahead, loop.step))
    more = is_farther(build, loop, variable, ahead)
    later = build.add(arith.AddiOp(variable, ahead))
    return build.add(arith.SelectOp(more, later, variable))


def _place_further(build: OpBuilder, loop: scf.ForOp) -> SSAValue:
    """Where the loop variable is two iterations later, or would be: addresses take even steps."""
    step = build.add(arith.AddiOp(loop.step, loop.step))
    return build.add(arith.AddiOp(loop.body.block.args[0], step))


def _checks_bounds(load: tile.LoadOp) -> bool:
    """Whether a load, wherever it is, reads inside the tensor, and fills the rest."""
    body = load.parent
    assert isinstance(body, Block)
    variable = body.args[0]
    return all(
        load.in_bounds is None
        or not load.in_bounds.data[axis].value.data
        or not _follows_from(variable, index, body)
        for axis, index in enumerate(load.indices)
    )


def _follows_from(variable: SSAValue, index: SSAValue, body: Block) -> bool:
    ops = index_ops([index], body) or ()
    return index is variable or any(variable in op.operands for op in ops)


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
    more = is_farther(ahead, new_loop, variable, new_loop.step)
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


def _loads_or_zeros(loads: Sequence[tile.LoadOp], place: SSAValue, exists: SSAValue) -> scf.IfOp:
    """The tiles of the iteration whose loop variable is `place`, zeros if there is none."""
    body = loads[0].parent
    assert isinstance(body, Block)
    there, nothing = OpBuilder(loads[0]), OpBuilder(loads[0])
    tiles = [*map(_LoadsAhead(there, body, place).load, loads)]
    types = [cast(TensorType, load.result.type) for load in loads]
    zeros = [zero_tile(nothing, type_) for type_ in types]
    return scf.IfOp(
        exists,
        types,
        Region(Block([*there.ops, scf.YieldOp(*tiles)])),
        Region(Block([*nothing.ops, scf.YieldOp(*zeros)])),
    )
