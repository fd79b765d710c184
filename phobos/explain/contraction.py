"""How products of tiles are made, and how their loads run ahead.

Reasons are taken before the passes that decide (`reasons`, `plans`), results behind them
(`contractions`); a product is found again by its place in the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Operation, SSAValue

from phobos.dialects import tile
from phobos.dialects.contraction import OPERAND_FORMS, WGMMA, DotOp, Instruction
from phobos.explain.masks import Limits
from phobos.explain.places import Places, order_of
from phobos.explain.records import Contraction, Pipelining, Place
from phobos.ir.locations import location_of
from phobos.layout.build import REGISTER, WARP, ceil_pow2
from phobos.layout.fragments import WARPGROUP_WARPS
from phobos.record import Record, record
from phobos.targets.ptx.chips import Chip
from phobos.transforms.contraction_forms import element_name as element_name_of
from phobos.transforms.pipeline_loops import Plan, plan_pipeline
from phobos.transforms.select_contraction import choose

_Spot = tuple[int, int]


_PTX_NAMES = {"mma": "mma.sync", "wmma": "wmma.mma", WGMMA: "wgmma.mma_async"}


def _spot(op: Operation) -> _Spot | None:
    place = location_of(op)
    return None if place is None else (place.line, place.column)


@record
class Reason(Record):
    """Why a product gets its instruction, and its extents (M, N, K) as the program has them."""

    words: str
    shape: tuple[int, int, int]


def reasons(kernel: gpu.FuncOp, target: Chip, *, tensor_maps: bool = False) -> dict[_Spot, Reason]:
    """The reason for each product, before instructions are chosen."""
    found: dict[_Spot, Reason] = {}
    for op in kernel.walk():
        spot = _spot(op)
        if isinstance(op, DotOp) and op.instruction is None and spot is not None:
            choice = choose(op, kernel, target, tensor_maps=tensor_maps)
            found[spot] = Reason(choice.reason, _shape(op))
    return found


def _shape(op: DotOp) -> tuple[int, int, int]:
    (m, k), n = _extents(op.a)[-2:], _extents(op.b)[-1]
    return m, n, k


def homes(kernel: gpu.FuncOp) -> dict[_Spot, tuple[str, str]]:
    """Where each product finds its operands, before some are read a step ahead."""
    found: dict[_Spot, tuple[str, str]] = {}
    for op in kernel.walk():
        spot = _spot(op)
        if isinstance(op, DotOp) and spot is not None:
            found[spot] = _home(op.a), _home(op.b)
    return found


def plans(
    kernel: gpu.FuncOp,
    target: Chip,
    places: Places,
    limits: Limits,
    *,
    tensor_maps: bool = False,
) -> dict[_Spot, Pipelining]:
    """How the loads of each product in a loop run ahead, before loops are rewritten."""
    found: dict[_Spot, Pipelining] = {}
    for loop in kernel.walk():
        if not isinstance(loop, scf.ForOp):
            continue
        dots = [op for op in loop.body.block.ops if isinstance(op, DotOp)]
        if not dots:
            continue
        plan = plan_pipeline(loop, kernel, target, tensor_maps)
        staged = {one.buffer.memref for one in plan.staged}
        place, obstacle = places.of(loop), _obstacle_words(plan, limits)
        for dot in dots:
            spot = _spot(dot)
            if spot is None:
                continue
            if plan.staged and not staged & {dot.a, dot.b}:
                found[spot] = _beside_copies(plan, place)
            else:
                found[spot] = Pipelining(
                    str(plan.form), plan.stages, place, plan.reason, plan.overlap, obstacle
                )
    return found


def _obstacle_words(plan: Plan, limits: Limits) -> str | None:
    """What keeps tensor copies away, with what is not proven of a slice."""
    if plan.obstacle is None:
        return None
    narrow = None if plan.obstacle.load is None else limits.narrow(plan.obstacle.load)
    return plan.obstacle.words + (f", since {narrow}" if narrow is not None else "")


def _beside_copies(plan: Plan, place: Place | None) -> Pipelining:
    """How operands run ahead of a product in a loop whose copies feed other products."""
    if plan.ahead:
        stages = 2 if plan.fronts else 1
        return Pipelining(
            "registers", stages, place, "its operands are computed from what is loaded"
        )
    return Pipelining("none", 1, place, "its operands do not change in the loop")


def contractions(
    kernel: gpu.FuncOp,
    why: Mapping[_Spot, Reason],
    ahead: Mapping[_Spot, Pipelining],
    operands: Mapping[_Spot, tuple[str, str]],
    places: Places,
) -> tuple[Contraction, ...]:
    """The products of a kernel in the order of the source, from the IR with layouts."""
    found: dict[_Spot | None, Contraction] = {}
    for op in kernel.walk():
        if isinstance(op, DotOp) and op.instruction is not None:
            spot = _spot(op)
            # Behind `ph-prefetch-fragments` a product is made in steps along K.
            reason = why.get(spot) if spot is not None else None
            reason = reason or Reason("", _shape(op))
            plan = ahead.get(spot) if spot is not None else None
            made = _contraction(op, op.instruction.data, reason, plan, places.of(op))
            if spot is not None and spot in operands:
                made = replace(made, operands=operands[spot])
            found.setdefault(spot, made)
    return tuple(sorted(found.values(), key=lambda one: order_of(one.place)))


def _contraction(
    op: DotOp, made_of: Instruction, reason: Reason, plan: Pipelining | None, place: Place | None
) -> Contraction:
    m, n, k = reason.shape
    warps, copies = _sharing(op.result, made_of, (m, n))
    if made_of.name == "fma":
        name = "multiply-adds"
        layout = tile.layout_of(op.result)
        count = (layout.in_size(REGISTER) if layout is not None else 1) * ceil_pow2(k)
    else:
        step_m, step_n, step_k = made_of.shape
        name = f"{_PTX_NAMES[made_of.name]} m{step_m}n{step_n}k{step_k}"
        of_warp = step_m // (WARPGROUP_WARPS if made_of.name == WGMMA else 1), step_n
        rows, columns = reversed(of_warp) if made_of.turned else of_warp
        along_m = -(-ceil_pow2(m) // (warps[0] * rows))
        along_n = -(-ceil_pow2(n) // (warps[1] * columns))
        count = along_m * along_n * -(-ceil_pow2(k) // step_k) * _stacked(op.result)
        # An operand in parts is multiplied part by part, but for the two small ones.
        count *= sum(OPERAND_FORMS[one].parts for one in (made_of.a, made_of.b)) - 1
    return Contraction(
        place,
        (m, n, k),
        _operands(made_of),
        element_name_of(made_of.accumulator),
        name,
        count,
        warps,
        copies,
        (_home(op.a), _home(op.b)),
        reason.words,
        plan,
    )


def _operands(made_of: Instruction) -> str:
    names = dict.fromkeys((made_of.a, made_of.b))
    return " and ".join(map(element_name_of, names))


def _sharing(
    result: SSAValue, made_of: Instruction, extents: tuple[int, int]
) -> tuple[tuple[int, int], int]:
    """Warps along the last two axes that have parts of a result, and how many have each part."""
    layout = tile.layout_of(result)
    if layout is None:  # fragments of `wmma`
        pieces = (-(-extents[axis] // made_of.shape[axis]) for axis in (0, 1))
        along = tuple(map(min, made_of.warps, pieces))
        return (along[0], along[1]), prod(made_of.warps) // prod(along)
    along_m = along_n = copies = 1
    for base in layout.bases(WARP) if WARP in layout.in_names else ():
        along_m *= 2 if base[-2] else 1
        along_n *= 2 if base[-1] else 1
        copies *= 1 if any(base) else 2
    return (along_m, along_n), copies


def _stacked(result: SSAValue) -> int:
    """The products of a stack that a warp makes one after the other."""
    layout = tile.layout_of(result)
    held = layout.bases(REGISTER) if layout is not None else ()
    return 1 << sum(any(base[:-2]) for base in held)


def _home(value: SSAValue) -> str:
    return "shared memory" if isinstance(value.type, MemRefType) else "registers"


def _extents(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType | MemRefType)
    return value.type.get_shape()
