"""`ph-hoist-operands`: load operands of contractions once that a loop does not change.

    scf.for %k .. {                            %a = tile.load %A[%m, %c0]
      %a = tile.load %A[%m, %c0]               scf.for %k .. {
      %b = tile.load %B[%k, %n]          -->     %b = tile.load %B[%k, %n]
      %d = tile.dot %a, %b, ..                   %d = tile.dot %a, %b, ..
    }                                          }

A load goes in front of a loop if its place is the same in every iteration, the loop does not
write its tensor, and contractions alone read what it gives, as it is or computed from it without
regard to the iteration. `ph-expand-exchanges` then puts it into shared memory once. Where the
proof that a slice is inside its tensor may rest on the loop's running at all, the load is done
only if the loop runs.

Precondition: `ph-select-contraction`, which narrows operands. Cost: two walks of each loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from phobos.analysis.loop_memory import written_memory
from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.ir.kernel import kernels
from phobos.ir.rewrite import OpBuilder
from phobos.transforms.loop_stages import zero_tile


class HoistOperandsPass(ModulePass):
    """Moves loads of operands in front of the loops that do not change them."""

    name = "ph-hoist-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module, inner loops first."""
        for kernel in kernels(op):
            loops = [inner for inner in kernel.walk() if isinstance(inner, scf.ForOp)]
            for loop in reversed(loops):
                hoist_operands(loop)


def hoist_operands(loop: scf.ForOp) -> None:
    """Moves what one loop need not load again."""
    body = loop.body.block
    if not any(isinstance(op, DotOp) for op in body.walk()):
        return
    fixed = _fixed_ops(body)
    chosen = _from_loads(fixed) & _for_products_only(fixed)
    tiles = [op for op in fixed if op in chosen and isinstance(op.results[0].type, TensorType)]
    if tiles:
        _move(loop, _with_operands(tiles, fixed), tiles)


def _fixed_ops(body: Block) -> dict[Operation, None]:
    """The ops of a loop that give one and the same in every iteration, in order."""
    written = written_memory(body)
    fixed: dict[Operation, None] = {}

    def is_fixed(value: SSAValue) -> bool:
        owner = value.owner
        return (
            owner in fixed
            if isinstance(owner, Operation) and owner.parent is body
            else (owner is not body)
        )

    for op in body.ops:
        is_load = isinstance(op, tile.LoadOp) and not tile.is_shared(op.mem)
        if is_load and (written is None or op.operands[0] in written):
            continue
        is_pure = len(op.results) == 1 and not op.regions and is_side_effect_free(op)
        if (is_load or is_pure) and all(map(is_fixed, op.operands)):
            fixed[op] = None
    return fixed


def _from_loads(fixed: dict[Operation, None]) -> set[Operation]:
    """The loads, and what is computed from them."""
    found: set[Operation] = set()
    for op in fixed:
        if isinstance(op, tile.LoadOp) or any(operand.owner in found for operand in op.operands):
            found.add(op)
    return found


def _for_products_only(fixed: dict[Operation, None]) -> set[Operation]:
    """What contractions alone need, as their factors; so no register is held for it."""
    found: set[Operation] = set()
    for op in reversed(fixed):
        uses = list(op.results[0].uses)
        if uses and all(
            use.index < 2 if isinstance(use.operation, DotOp) else use.operation in found
            for use in uses
        ):
            found.add(op)
    return found


def _with_operands(tiles: Sequence[Operation], fixed: dict[Operation, None]) -> list[Operation]:
    """The ops to move: the tiles and what they are computed from, in order."""
    needed: set[Operation] = set()

    def need(op: Operation) -> None:
        if op in needed:
            return
        needed.add(op)
        for operand in op.operands:
            if isinstance(operand.owner, Operation) and operand.owner in fixed:
                need(operand.owner)

    for op in tiles:
        need(op)
    return [op for op in fixed if op in needed]


def _move(loop: scf.ForOp, ops: Sequence[Operation], tiles: Sequence[Operation]) -> None:
    outside = loop.parent
    assert outside is not None
    for op in ops:
        op.detach()
    if not any(isinstance(op, tile.LoadOp) and _is_proven(op) for op in ops):
        outside.insert_ops_before(list(ops), loop)
        return
    inside = [op for op in ops if isinstance(op.results[0].type, TensorType)]
    outside.insert_ops_before([op for op in ops if op not in inside], loop)
    _load_if_it_runs(loop, inside, tiles)


def _is_proven(load: tile.LoadOp) -> bool:
    return load.in_bounds is not None and any(flag.value.data for flag in load.in_bounds)


def _load_if_it_runs(loop: scf.ForOp, ops: Sequence[Operation], tiles: Sequence[Operation]) -> None:
    """The tiles that the loop's contractions read, zeros if it does not run."""
    given = [
        op.results[0]
        for op in tiles
        if any(isinstance(use.operation, DotOp) for use in op.results[0].uses)
    ]
    head, nothing = OpBuilder(loop), OpBuilder(loop)
    runs = head.add(arith.CmpiOp(loop.lb, loop.ub, "slt"))
    zeros: list[SSAValue] = []
    for value in given:
        assert isinstance(value.type, TensorType)
        zeros.append(zero_tile(nothing, value.type))
    nothing.put(scf.YieldOp(*zeros))
    chosen = scf.IfOp(
        runs,
        [value.type for value in given],
        Region(Block([*ops, scf.YieldOp(*given)])),
        Region(Block(nothing.ops)),
    )
    chosen.location = loop.location
    assert loop.parent is not None
    loop.parent.insert_ops_before([*head.ops, chosen], loop)
    for value, result in zip(given, chosen.results, strict=True):
        value.replace_uses_with_if(result, lambda use: isinstance(use.operation, DotOp))
