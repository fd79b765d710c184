"""Control flow: branches, exits, traps, calls and barriers as block terminators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.emulator.barriers import BarrierSite
from phobos.emulator.blocks import Gate, Onward, Terminator, WarpGate, WarpgroupGate
from phobos.emulator.checks.registers import is_product
from phobos.emulator.decode import Operands, Reader
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import PRED, U32, Selection, Value, scalar
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Guard, Instruction, Negated, Operand, Symbol

if TYPE_CHECKING:
    from phobos.emulator.schedule import Scheduler

_CONTROL = frozenset({"bra", "brx", "ret", "exit", "trap", "brkpt", "call"})
_MASK_OPERANDS: Mapping[str, int] = {"shfl": 4, "vote": 2, "match": 2, "redux": 2, "elect": 1}
_WHOLE_WARP = frozenset({"mma", "wmma", "ldmatrix", "stmatrix", "movmatrix", "wgmma", "setmaxnreg"})


@dataclass(frozen=True)
class Places:
    """Block numbers that a terminator may go to."""

    following: int
    labels: Mapping[str, int]
    functions: Mapping[str, int]


def is_barrier(instruction: Instruction) -> bool:
    """Whether an instruction is a CTA barrier."""
    return instruction.opcode in ("bar", "barrier") and not is_warp_barrier(instruction)


def is_warp_barrier(instruction: Instruction) -> bool:
    """Whether an instruction is `bar.warp.sync`."""
    return instruction.opcode == "bar" and instruction.suffix[:1] == ("warp",)


def is_control(instruction: Instruction) -> bool:
    """Whether an instruction ends its block."""
    return instruction.opcode in _CONTROL or is_barrier(instruction)


def is_gated(instruction: Instruction) -> bool:
    """Whether threads may have to wait at an instruction for others of their warp."""
    return (
        instruction.opcode in _MASK_OPERANDS
        or instruction.opcode in _WHOLE_WARP
        or is_warp_barrier(instruction)
        or is_barrier(instruction)
    )


def gate_of(ops: Operands) -> Gate | None:
    """The gate that an instruction needs, or None."""
    instruction = ops.instruction
    if is_warp_barrier(instruction):
        return WarpGate(ops, ops.read(0, U32))
    if is_barrier(instruction):
        return WarpGate(ops) if _is_aligned(instruction) else None
    if is_product(instruction):
        return WarpgroupGate(ops)
    if instruction.opcode in _WHOLE_WARP:
        return WarpGate(ops)
    index = _MASK_OPERANDS.get(instruction.opcode)
    if index is None:
        return None
    if "sync" not in instruction.suffix:
        ops.refuse("has no form without `.sync` on the supported chips")
    return WarpGate(ops, ops.read(index, U32))


def _is_aligned(instruction: Instruction) -> bool:
    return instruction.opcode == "bar" or "aligned" in instruction.suffix


# Branches ----------------------------------------------------------------------------------------


def guard_reader(ops: Operands, guard: Guard) -> Reader:
    """A reader of the condition that an instruction runs under."""
    operand: Operand = Negated(guard.register) if guard.negated else guard.register
    return ops.reader(operand, PRED)


def jump(target: int) -> Terminator:
    """Go on at one block."""
    return lambda scheduler, sel: (target, sel)


def branch(condition: Reader, target: int, following: int) -> Terminator:
    """Go on at `target` where the condition holds, else at `following`."""

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        wave = scheduler.wave
        taken = condition(wave, sel)
        if taken.ndim == 0:
            return (target if taken else following), sel
        count = int(np.count_nonzero(taken))
        if count == len(taken):
            return target, sel
        if count == 0:
            return following, sel
        scheduler.add(target, wave.narrow(sel, taken))
        scheduler.add(following, wave.narrow(sel, ~taken))
        return None

    return terminate


def control_terminator(ops: Operands, places: Places) -> Terminator:
    """The terminator of a control instruction, its guard left out."""
    instruction = ops.instruction
    if instruction.suffix[:1] == ("cluster",):
        return _cluster_barrier(ops, places)
    if is_barrier(instruction):
        return _barrier(ops, places)
    match instruction.opcode:
        case "bra":
            return jump(_label(ops, places, ops.operand(0)))
        case "brx":
            return _indexed(ops, places)
        case "ret":
            return _return(ops)
        case "exit":
            return _exit
        case "call":
            return _call(ops, places)
        case _:
            return _trap(ops)


def branch_target(ops: Operands, places: Places) -> int:
    """The block that a `bra` names."""
    return _label(ops, places, ops.operand(0))


def _label(ops: Operands, places: Places, operand: Operand) -> int:
    if not isinstance(operand, Symbol) or operand.name not in places.labels:
        ops.refuse("expected a label")
    return places.labels[operand.name]


def _indexed(ops: Operands, places: Places) -> Terminator:
    ops.expect_count(2)
    read, table = ops.read(0, U32), ops.operand(1)
    names = ops.function.tables.get(table.name) if isinstance(table, Symbol) else None
    if names is None:
        ops.refuse("needs the name of a `.branchtargets` table")
    targets = [places.labels[name] for name in names]

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        wave = scheduler.wave
        index = np.broadcast_to(read(wave, sel), (wave.count(sel),))
        beyond = index >= len(targets)
        if beyond.any():
            thread = int(wave.selected(sel)[int(np.argmax(beyond))])
            place = int(index[int(np.argmax(beyond))])
            ops.report(
                FindingKind.BOUNDS,
                wave,
                thread,
                f"branches to entry {place} of a table of {len(targets)}",
            )
        for number in np.unique(index).tolist():
            mask = index == number
            if mask.all():
                return targets[number], sel
            scheduler.add(targets[number], wave.narrow(sel, mask))
        return None

    return terminate


def _exit(scheduler: Scheduler, sel: Selection) -> Onward:
    scheduler.exit(sel)
    return None


def _trap(ops: Operands) -> Terminator:
    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        wave = scheduler.wave
        thread = int(wave.selected(sel)[0])
        ops.report(FindingKind.TRAP, wave, thread, f"executes `{ops.instruction.opcode}`")

    return terminate


# Calls -------------------------------------------------------------------------------------------


def _return(ops: Operands) -> Terminator:
    if ops.function.is_entry:
        return _exit
    name = ops.function.name

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        return scheduler.calls.leave(scheduler, name, sel)

    return terminate


def _call(ops: Operands, places: Places) -> Terminator:
    from phobos.emulator.calls import call_terminator

    return call_terminator(ops, places)


# Barriers ----------------------------------------------------------------------------------------

_REDUCTIONS: Mapping[str, Callable[[npt.NDArray[np.bool_]], Value]] = {
    "popc": lambda flags: scalar(np.uint32(np.count_nonzero(flags))),
    "and": lambda flags: scalar(np.bool_(flags.all())),
    "or": lambda flags: scalar(np.bool_(flags.any())),
}


def _barrier(ops: Operands, places: Places) -> Terminator:
    parts = [part for part in ops.instruction.suffix if part not in ("cta", "aligned")]
    match parts:
        case ["sync"]:
            return _sync(ops, places, 0)
        case ["arrive"]:
            return _arrive(ops, places)
        case ["red", "popc", "u32"]:
            return _reduce(ops, places, "popc")
        case ["red", ("and" | "or") as operation, "pred"]:
            return _reduce(ops, places, operation)
    ops.refuse("unknown form of barrier")


def _barrier_operands(
    ops: Operands, first: int, operands: Sequence[Operand]
) -> tuple[Reader, Reader | None]:
    barrier = ops.reader(operands[first], U32)
    has_count = len(operands) > first + 1
    return barrier, ops.reader(operands[first + 1], U32) if has_count else None


def _sync(ops: Operands, places: Places, first: int) -> Terminator:
    ops.expect_count(1, 2)
    barrier, count = _barrier_operands(ops, first, ops.instruction.operands)
    site = BarrierSite(ops, places.following)

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        wave, barriers = scheduler.wave, scheduler.barriers
        number = barrier(wave, sel)
        if sel is None and count is None and not barriers.waiting and number.ndim == 0:
            barriers.pass_all(site, number)
            return site.resume, None
        wanted = None if count is None else count(wave, sel)
        scheduler.resume(barriers.wait(site, wave.selected(sel), number, wanted))
        return None

    return terminate


def _arrive(ops: Operands, places: Places) -> Terminator:
    ops.expect_count(2)
    barrier, count = _barrier_operands(ops, 0, ops.instruction.operands)
    assert count is not None
    site = BarrierSite(ops, places.following)

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        wave = scheduler.wave
        released = scheduler.barriers.arrive(
            site, wave.selected(sel), barrier(wave, sel), count(wave, sel)
        )
        scheduler.resume(released)
        return places.following, sel

    return terminate


def _reduce(ops: Operands, places: Places, operation: str) -> Terminator:
    """`bar.red`: like a barrier, and every thread gets the reduction of all predicates."""
    ops.expect_count(3, 4)
    kind = U32 if operation == "popc" else PRED
    write, predicate = ops.write(0, kind), ops.reader(ops.instruction.operands[-1], PRED)
    barrier, count = _barrier_operands(ops, 1, ops.instruction.operands[:-1])
    reduce = _REDUCTIONS[operation]

    def finish(wave: Wave, threads: npt.NDArray[np.intp], flags: npt.NDArray[np.bool_]) -> None:
        write(wave, threads, reduce(flags))

    site = BarrierSite(ops, places.following, finish)

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        wave = scheduler.wave
        wanted = None if count is None else count(wave, sel)
        flags = np.broadcast_to(predicate(wave, sel), (wave.count(sel),))
        threads = wave.selected(sel)
        scheduler.resume(scheduler.barriers.wait(site, threads, barrier(wave, sel), wanted, flags))
        return None

    return terminate


# Barriers of clusters ----------------------------------------------------------------------------


def _cluster_barrier(ops: Operands, places: Places) -> Terminator:
    ops.expect_count(0)
    match [part for part in ops.instruction.suffix[1:] if part != "aligned"]:
        case ["arrive"] | ["arrive", "release"]:
            return _cluster_arrive(ops, places, releases=True)
        case ["arrive", "relaxed"]:
            return _cluster_arrive(ops, places, releases=False)
        case ["wait"] | ["wait", "acquire"]:
            return _cluster_wait(ops, places)
    ops.refuse("unknown form of barrier")


def _cluster_arrive(ops: Operands, places: Places, *, releases: bool) -> Terminator:
    site = BarrierSite(ops, places.following)

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        threads = scheduler.wave.selected(sel)
        scheduler.resume(scheduler.cluster_barriers.arrive(site, threads, releases=releases))
        return places.following, sel

    return terminate


def _cluster_wait(ops: Operands, places: Places) -> Terminator:
    site = BarrierSite(ops, places.following)

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        threads = scheduler.wave.selected(sel)
        scheduler.resume(scheduler.cluster_barriers.wait(site, threads))
        return None

    return terminate
