"""`ph-pipeline-loops`: load the tiles of later iterations while this one computes.

    scf.for %k .. {                                // copies for the first iterations
      %a = tile.load %A[%m, %k]                    scf.for %k .., %stage .. {
      tile.store %a, %buffer[..]             -->     (wait for the copies of this one)
      %d = tile.dot %buffer, ..                      tile.async_copy %A[%m, ..] to a free stage
    }                                                %d = tile.dot (this stage), ..
                                                   }

A load can run ahead if an operand of a contraction of the same loop is what it loads or
computed from that, its place depends on the loop variable and on what is outside the loop, and
the loop does not write the tensor. It is staged if its tile goes straight to a buffer that
contractions alone read, the chip copies asynchronously, and every thread moves at least 4 bytes:
then `stages` copies of the buffers take turns (`copy_ahead.py`), as many as fit the shared memory,
at most 4 (5 where a product runs on beside the next one), or what `@pipeline(n)` says; of more
than two, no more than leave room for the CTAs that `@launch` declares or that a multiprocessor has
registers for in any case. If the launch brings tensor maps (`tensor-maps`) and the chip copies by
them, tensor copies bring what products by `wgmma` read (`tensor_copy_ahead.py`), all that a loop
loads or nothing. Otherwise its tile is carried in registers (`load_ahead.py`): from there
an iteration stores the next one's tile to another stage, if two of its buffer fit, or else its own.

Precondition: `ph-expand-exchanges`. Cost: one walk, and a copy of the index arithmetic for
each stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from phobos.analysis.loop_memory import written_memory
from phobos.diagnostics import Diagnostic, Location, tell
from phobos.dialects import tile
from phobos.dialects.contraction import DotOp
from phobos.dialects.elementwise import RoundTF32Op
from phobos.dialects.shaping import TransposeOp
from phobos.dialects.tensor_copies import BARRIER_BYTES
from phobos.ir.kernel import kernels, launch_bound, threads_of
from phobos.ir.locations import error_at, location_of
from phobos.layout import LinearLayout, contiguous_vector
from phobos.layout.build import OFFSET, REGISTER
from phobos.layout.shared import offsets
from phobos.record import Record, record
from phobos.targets.ptx.chips import Chip, chip
from phobos.targets.ptx.occupancy import least_ctas, shared_for
from phobos.transforms.assign_layouts import turned
from phobos.transforms.copied_operands import PIPELINE, asked_stages
from phobos.transforms.copy_ahead import STAGES_TO_OVERLAP, Staged, can_overlap, copy_ahead
from phobos.transforms.load_ahead import Front, carry_ahead, fronts_of, stage_ahead
from phobos.transforms.loop_stages import MAX_STEP, SharedRoom, index_ops
from phobos.transforms.place_tiles import ALIGNMENT
from phobos.transforms.tensor_copy_ahead import (
    Obstacle,
    obstacle_to_tensor_copies,
    tensor_copy_ahead,
)
from phobos.transforms.tile_parts import PART_BYTES

GROUP = "fallback"
MAX_STAGES = 4
MIN_COPY_BYTES = 4
_WORD_BYTES = 4
MAX_CARRIED_REGISTERS = 48
"""What loads ahead may hold of a thread's registers."""
MAX_WHOLE_REGISTERS = 64
"""And what all of a loop's may hold if that makes two stages of one."""


@dataclass(frozen=True)
class PipelineLoopsPass(ModulePass):
    """Multi-buffers the loads of loops that contract."""

    name = "ph-pipeline-loops"

    chip: str = "sm_80"
    tensor_maps: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every kernel of the module."""
        target = chip(self.chip)
        for kernel in kernels(op):
            told: set[Location | None] = set()
            for loop in list(kernel.walk()):
                if isinstance(loop, scf.ForOp):
                    plan = plan_pipeline(loop, kernel, target, self.tensor_maps)
                    if plan.form is Form.NONE and _wants_pipeline(loop, kernel):
                        _tell_why_not(loop, plan, told)
                    _pipeline(loop, plan)


def _wants_pipeline(loop: scf.ForOp, kernel: gpu.FuncOp) -> bool:
    """Whether the author asked for what a loop with contractions could have."""
    asked = PIPELINE in kernel.attributes and asked_stages(kernel) != 1
    return asked and any(isinstance(op, DotOp) for op in loop.body.block.ops)


def _tell_why_not(loop: scf.ForOp, plan: Plan, told: set[Location | None]) -> None:
    """A warning, one for the parts that a loop of the program was split into."""
    place = location_of(loop)
    if place not in told:
        told.add(place)
        tell(
            Diagnostic.warning(
                f"`@pipeline` is not applied to this loop: {plan.reason}", place, group=GROUP
            )
        )


class Form(StrEnum):
    """How the loads of a loop run ahead."""

    TENSOR_COPIES = "tensor copies"
    COPIES = "copies"
    REGISTERS = "registers"
    NONE = "none"


@record
class Plan(Record):
    """What becomes of a loop's loads, and in words why."""

    form: Form
    stages: int
    staged: tuple[Staged, ...]
    """What is copied by the chip."""
    ahead: tuple[tile.LoadOp, ...]
    """What is loaded to registers an iteration ahead."""
    fronts: tuple[Front, ...]
    """Where `ahead` goes in two stages; without any, each iteration stores its own tile."""
    reason: str
    overlap: int = 0
    """Products of earlier iterations that run on when one starts."""
    obstacle: Obstacle | None = None
    """What keeps tensor copies from it, on a chip that has them."""
    short: bool = False
    """Whether what is `ahead` takes so many registers that few are left for addresses."""


def plan_pipeline(
    loop: scf.ForOp, kernel: gpu.FuncOp, target: Chip, tensor_maps: bool = False
) -> Plan:
    """How the loads of a loop are made to run ahead of its contractions; changes nothing.

    Tensor copies are a choice only if the launch can bring `tensor_maps`.
    """
    asked = asked_stages(kernel)
    if asked == 1:
        return _no_pipeline("`@pipeline(1)` turns it off")
    loads = _loads_of_operands(loop)
    if not loads:
        return _no_pipeline(
            "no operand comes from a slice that moves with the loop, of a tensor that the loop does"
            " not write"
        )
    staged = [one for one in _staged_loads(loop) if one.load in loads]
    if not target.has_bulk_copy:
        return _by_threads(loop, kernel, target, loads, staged, asked)
    obstacle = obstacle_to_tensor_copies(loop, kernel, loads, staged)
    if not tensor_maps:
        obstacle = _without_maps(obstacle)
    elif obstacle is None:
        plan = _by_tensor_copies(loop, kernel, target, staged, asked)
        if plan is not None:
            return plan
        obstacle = Obstacle("the stages and their barriers do not fit the shared memory")
    plan = _by_threads(loop, kernel, target, loads, staged, asked)
    return replace(plan, obstacle=obstacle)


def _without_maps(other: Obstacle | None) -> Obstacle | None:
    """What keeps tensor copies away where maps are missing, if options can help."""
    words = "the launch brings no tensor maps, without `--tensor-maps`"
    if other is None:
        return Obstacle(words)
    if other.load is None:
        return None
    return Obstacle(f"{words}; and {other.words}", other.load)


def _by_threads(
    loop: scf.ForOp,
    kernel: gpu.FuncOp,
    target: Chip,
    loads: list[tile.LoadOp],
    staged: list[Staged],
    asked: int | None,
) -> Plan:
    """The plan where all threads copy, or load to registers."""
    copied = tuple(one for one in staged if target.has_cp_async and _can_copy(one))
    room = SharedRoom(kernel, loop, target)
    if copied:
        by_copies = {one.load for one in copied}
        others = _fitting_registers([load for load in loads if load not in by_copies])
        buffers = [one.buffer for one in copied]
        fronts = fronts_of(loop, others, buffers) if others else ()
        if fronts and not room.fits(dict.fromkeys(buffers, asked or 2) | _two_stages(fronts)):
            fronts = ()
        overlaps = can_overlap(loop, copied)
        if asked is not None:
            stages, reason = asked, f"`@pipeline({asked})`"
        else:
            most = MAX_STAGES + overlaps
            ctas = _most_ctas(kernel, target)
            stages, reason = _fitting_stages(buffers, fronts, room, target, ctas, most)
        if stages < 2:
            return _no_pipeline(reason)
        overlap = int(stages >= STAGES_TO_OVERLAP and overlaps)
        return Plan(Form.COPIES, stages, copied, others, fronts, reason, overlap)
    if not target.has_cp_async:
        why = f"{target.name} has no cp.async"
    elif staged:
        why = "a thread's share is no whole words side by side, which a copy needs"
    else:
        why = "operands are computed from what is loaded"
    ahead = _fitting_registers(loads)
    if 0 < len(ahead) < len(loads) and _can_be_carried_whole(loads):
        fronts = fronts_of(loop, loads, ())
        if fronts and room.fits(_two_stages(fronts)):
            return Plan(Form.REGISTERS, 2, (), tuple(loads), fronts, why, short=True)
    if ahead:
        fronts = fronts_of(loop, ahead, ())
        if fronts and not room.fits(_two_stages(fronts)):
            why += "; two stages do not fit the shared memory"
            fronts = ()
        return Plan(Form.REGISTERS, 2 if fronts else 1, (), ahead, fronts, why)
    least = min(map(_registers, loads))
    return _no_pipeline(f"{why}, and a load would hold {least} registers of a thread")


def _by_tensor_copies(
    loop: scf.ForOp,
    kernel: gpu.FuncOp,
    target: Chip,
    staged: Sequence[Staged],
    asked: int | None,
) -> Plan | None:
    """The plan where tensor copies bring all that is loaded; None if the stages do not fit."""
    overlap = int(can_overlap(loop, staged))
    most = asked or MAX_STAGES + overlap
    room = SharedRoom(kernel, loop, target)
    room.reserved = ALIGNMENT * -(-most * 2 * BARRIER_BYTES // ALIGNMENT)
    buffers = [one.buffer for one in staged]
    if asked is not None:
        stages = asked if room.fits(dict.fromkeys(buffers, asked)) else 1
        reason = f"`@pipeline({asked})`"
    else:
        ctas = _most_ctas(kernel, target)
        stages, reason = _fitting_stages(buffers, (), room, target, ctas, most)
    if stages < 2:
        return None
    return Plan(Form.TENSOR_COPIES, stages, tuple(staged), (), (), reason, overlap)


def _most_ctas(kernel: gpu.FuncOp, target: Chip) -> int:
    """How many CTAs a multiprocessor should have room for."""
    declared = launch_bound(kernel, "min_ctas") or 1
    return max(declared, least_ctas(threads_of(kernel), target))


def _fitting_registers(loads: Sequence[tile.LoadOp]) -> tuple[tile.LoadOp, ...]:
    """The first loads whose tiles fit the registers that loads ahead may hold."""
    chosen: list[tile.LoadOp] = []
    left = MAX_CARRIED_REGISTERS
    for load in loads:
        if _registers(load) <= left:
            left -= _registers(load)
            chosen.append(load)
    return tuple(chosen)


def _can_be_carried_whole(loads: Sequence[tile.LoadOp]) -> bool:
    """Whether all loads together fit, by the widest accesses, which need the fewest addresses."""
    return sum(map(_registers, loads)) <= MAX_WHOLE_REGISTERS and all(map(_is_wide, loads))


def _is_wide(load: tile.LoadOp) -> bool:
    value = load.result.type
    assert isinstance(value, TensorType)
    element = value.element_type
    assert isinstance(element, FixedBitwidthType)
    proven = load.vector.value.data if load.vector is not None else 1
    return proven * element.size >= PART_BYTES


def _no_pipeline(reason: str) -> Plan:
    return Plan(Form.NONE, 1, (), (), (), reason)


def _pipeline(loop: scf.ForOp, plan: Plan) -> None:
    if plan.form is Form.TENSOR_COPIES:
        tensor_copy_ahead(loop, plan.staged, plan.stages, plan.overlap)
        return
    if plan.fronts:
        # A wait for copies is there for both.
        marked = not plan.staged
        loop = stage_ahead(loop, plan.ahead, plan.fronts, marked=marked, short=plan.short)
    elif plan.ahead:
        loop = carry_ahead(loop, plan.ahead)
    if plan.staged:
        copy_ahead(loop, plan.staged, plan.stages, plan.overlap)


def _loads_of_operands(loop: scf.ForOp) -> list[tile.LoadOp]:
    """The loads of a loop's operands that can be done for a later iteration.

    Their places follow from the loop variable, and the loop writes nothing that they read.
    """
    body = loop.body.block
    written = written_memory(body)
    step = loop.step.owner
    if written is None or not isinstance(loop.lb.type, IndexType):
        return []
    known = step.value if isinstance(step, arith.ConstantOp) else None
    if isinstance(known, IntegerAttr) and known.value.data > MAX_STEP:
        return []
    return [
        op
        for op in body.ops
        if isinstance(op, tile.LoadOp)
        and not tile.is_shared(op.mem)
        and op.mem not in written
        and _moves_with(op, body)
        and _reaches_product(op, body)
    ]


def _moves_with(load: tile.LoadOp, body: Block) -> bool:
    """Whether the place differs between iterations, by pure arithmetic on the loop variable."""
    ops = index_ops(load.indices, body)
    return ops is not None and (bool(ops) or body.args[0] in load.indices)


def _reaches_product(load: tile.LoadOp, body: Block) -> bool:
    """Whether an operand of a contraction of the loop is what is loaded or computed from it."""
    left: list[SSAValue] = [load.result]
    seen: set[SSAValue] = set()
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.operation
            if user.parent is not body:
                continue
            if isinstance(user, DotOp):
                return True
            if isinstance(user, tile.StoreOp) and tile.is_shared(user.mem):
                left.append(user.mem)
            elif not user.regions and is_side_effect_free(user):
                left.extend(user.results)
    return False


def _staged_loads(loop: scf.ForOp) -> list[Staged]:
    body = loop.body.block
    result: list[Staged] = []
    for op in body.ops:
        if not isinstance(op, tile.StoreOp) or not tile.is_shared(op.mem):
            continue
        load, rounding, turn, buffer = op.value.owner, None, None, op.mem.owner
        if isinstance(load, RoundTF32Op) and load.result.has_one_use():
            load, rounding = load.value.owner, load
        if isinstance(load, TransposeOp) and load.result.has_one_use():
            load, turn = load.value.owner, load
        if not isinstance(load, tile.LoadOp) or not isinstance(buffer, memref.AllocaOp):
            continue
        readers = [use.operation for use in buffer.memref.uses if use.operation is not op]
        only_dots = readers != [] and all(
            isinstance(r, DotOp) and r.parent is body for r in readers
        )
        single = load.result.has_one_use()
        local = load.parent is body and buffer.parent is body and not tile.is_shared(load.mem)
        if only_dots and single and local:
            result.append(Staged(load, rounding, turn, op, buffer))
    return result


def _can_copy(staged: Staged) -> bool:
    """Whether each thread moves whole words between places that are neighbours on both sides.

    What a copy puts past the tensor's end is 0.
    """
    if staged.load.fill is not None or staged.rounding is not None:
        return False
    value = staged.load.result.type
    assert isinstance(value, TensorType)
    element = value.element_type
    assert isinstance(element, FixedBitwidthType)
    layout = _layout(staged.load)
    proven = staged.load.vector.value.data if staged.load.vector is not None else 1
    in_buffer = layout if staged.turn is None else turned(layout)
    written = offsets(in_buffer, tile.shared_layout_of(staged.buffer.memref))
    read_width = min(proven, contiguous_vector(layout, layout.rank - 1))
    width = min(read_width, contiguous_vector(written, OFFSET))
    return width * element.size >= MIN_COPY_BYTES


def _layout(load: tile.LoadOp) -> LinearLayout:
    layout = tile.layout_of(load.result)
    if layout is None:
        raise error_at(load, "this tile has no layout: run ph-assign-layouts first")
    return layout


def _registers(load: tile.LoadOp) -> int:
    """Registers of a thread that hold a loaded tile: one for each load of less than a word."""
    value = load.result.type
    assert isinstance(value, TensorType)
    element = value.element_type
    assert isinstance(element, FixedBitwidthType)
    layout = _layout(load)
    proven = load.vector.value.data if load.vector is not None else 1
    in_one = min(_WORD_BYTES // element.size, proven) or 1
    return -(-layout.in_size(REGISTER) * max(element.size, _WORD_BYTES) // (_WORD_BYTES * in_one))


def _fitting_stages(
    copied: Sequence[memref.AllocaOp],
    fronts: Sequence[Front],
    room: SharedRoom,
    target: Chip,
    most_ctas: int,
    most: int,
) -> tuple[int, str]:
    """As many stages as fit the shared memory beside what else is there during the loop.

    Warps of another CTA hide more of what a loop waits for than one more stage does.
    """
    numbers = range(most, 1, -1)
    beside = _two_stages(fronts)
    bytes_of = {n: room.bytes_with(dict.fromkeys(copied, n) | beside) for n in numbers}
    if bytes_of[2] > room.limit:
        return 1, "a second stage does not fit the shared memory"
    ctas, share = 1, room.limit
    for ctas in range(most_ctas, 0, -1):
        share = min(room.limit, shared_for(ctas, target))
        if bytes_of[2] <= share:
            break
    stages = next(stages for stages, taken in bytes_of.items() if taken <= share)
    if stages == most:
        return stages, "more are not tried"
    if bytes_of[stages + 1] > room.limit:
        return stages, "more do not fit the shared memory"
    return stages, f"with more, {ctas} CTAs would not fit a multiprocessor"


def _two_stages(fronts: Sequence[Front]) -> dict[memref.AllocaOp, int]:
    return {front.buffer: 2 for front in fronts}
