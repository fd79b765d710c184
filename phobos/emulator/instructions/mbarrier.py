"""`mbarrier`: barriers in shared memory that count arrivals and bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from phobos.emulator.decode import Operands, Step
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.mbarriers import MBARRIER_BYTES, Arrival, IntArray, Threads
from phobos.emulator.memory.access import Access
from phobos.emulator.memory.dispatch import address_reader, in_space
from phobos.emulator.memory.form import SPACES
from phobos.emulator.memory.spaces import SharedSpace, Space
from phobos.emulator.types import PRED, U32, U64, Selection, Value
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Sink

Act: TypeAlias = Callable[[Wave, Selection, Threads, IntArray], None]
"""What an instruction does to the mbarriers at byte indices of shared memory, one a thread."""

_ORDERS = frozenset({"release", "acquire", "relaxed", "cta", "cluster"})
_REMOTE = frozenset({"arrive", "arrive_drop", "expect_tx", "complete_tx"})
"""What can be done to an mbarrier of another CTA."""

_WORDS = frozenset({"parity", "expect_tx", "noComplete"})


@decodes("mbarrier")
def _mbarrier(ops: Operands) -> Step:
    operation, words, space = _form(ops)
    match operation, words:
        case "init", ():
            return _at(ops, space, 0, _init(ops), "initialises", orders=False)
        case "inval", ():
            return _at(ops, space, 0, _inval(ops), "invalidates", orders=False)
        case (("arrive" | "arrive_drop"), (() | ("expect_tx",) | ("noComplete",))):
            return _at(ops, space, 1, _arrive(ops, operation, words, space), "arrives at")
        case (("expect_tx" | "complete_tx"), ()):
            return _at(ops, space, 0, _bytes(ops, operation), "changes the bytes of")
        case (("test_wait" | "try_wait"), (() | ("parity",))):
            return _at(ops, space, 1, _wait(ops, operation, words), "waits at")
        case "pending_count", ():
            return _pending_count(ops)
    ops.refuse("is not supported in the emulator")


def _form(ops: Operands) -> tuple[str, tuple[str, ...], str | None]:
    """The operation, the words that change it, and the state space if one is named."""
    operation, *rest = ops.instruction.suffix or ("",)
    if not rest or rest.pop() != "b64":
        ops.refuse("works on .b64")
    space: str | None = None
    words: list[str] = []
    for part in rest:
        if part in SPACES:
            space = SPACES[part]
        elif part in _WORDS:
            words.append(part)
        elif part not in _ORDERS:
            ops.refuse(f"unknown modifier `.{part}`")
    if space not in (None, "shared", "cluster"):
        ops.refuse("works on shared memory")
    if space == "cluster" and operation not in _REMOTE:
        ops.refuse("works on mbarriers of the own CTA only, in .shared::cta")
    return operation, tuple(words), space


def _at(
    ops: Operands, space: str | None, index: int, act: Act, verb: str, *, orders: bool = True
) -> Step:
    """The step that finds the mbarrier of each thread and then acts on it.

    `orders` says whether threads may do this at once without racing.
    """
    read = address_reader(ops, index)
    access = Access(ops, verb, MBARRIER_BYTES, is_write=True, is_read=False, is_strong=orders)

    def make(state: Space) -> Step:
        if not isinstance(state, SharedSpace):
            return _elsewhere(ops)

        def step(wave: Wave, sel: Selection) -> None:
            store, found = state.locate(wave, sel, read(wave, sel), access)
            threads = wave.selected(sel)
            where = np.array(np.broadcast_to(found, threads.shape), dtype=np.int64)
            if wave.monitor is not None:
                wave.monitor.mbarrier(wave, threads, store, where, access)
            act(wave, sel, threads, where)

        return step

    return in_space(ops, space, index, make)


def _elsewhere(ops: Operands) -> Step:
    from phobos.emulator.errors import FindingKind

    def step(wave: Wave, sel: Selection) -> None:
        thread = int(wave.selected(sel)[0])
        ops.report(FindingKind.BOUNDS, wave, thread, "names an mbarrier outside shared memory")

    return step


def _numbers(value: Value, threads: Threads) -> IntArray:
    return np.array(np.broadcast_to(value, threads.shape)).astype(np.int64)


def _init(ops: Operands) -> Act:
    ops.expect_count(2)
    count = ops.read(1, U32)

    def act(wave: Wave, sel: Selection, threads: Threads, index: IntArray) -> None:
        wave.mbarriers.init(ops, threads, index, _numbers(count(wave, sel), threads))

    return act


def _inval(ops: Operands) -> Act:
    ops.expect_count(1)
    return lambda wave, sel, threads, index: wave.mbarriers.invalidate(ops, threads, index)


def _arrive(ops: Operands, operation: str, words: tuple[str, ...], space: str | None) -> Act:
    expects, may_complete = "expect_tx" in words, "noComplete" not in words
    has_amount = expects or not may_complete
    ops.expect_count(*((3,) if has_amount else (2, 3)))
    if space == "cluster" and not isinstance(ops.operand(0), Sink):
        ops.refuse("gives no state of an mbarrier in .shared::cluster; write `_`")
    write = ops.write(0, U64)
    amount = ops.read(2, U32) if ops.count == 3 else None
    kind = Arrival(drops=operation == "arrive_drop", may_complete=may_complete)
    releases = "relaxed" not in ops.instruction.suffix

    def act(wave: Wave, sel: Selection, threads: Threads, index: IntArray) -> None:
        barriers = wave.mbarriers
        numbers = barriers.named(ops, threads, index, "arrives at")
        counts = np.ones(len(threads), dtype=np.int64)
        if amount is not None:
            given = _numbers(amount(wave, sel), threads)
            if expects:
                barriers.expect(ops, threads, numbers, given)
            else:
                counts = given
        if releases and wave.monitor is not None:
            wave.monitor.mbarrier_arrived(wave, threads, numbers)
        write(wave, sel, barriers.arrive(ops, threads, numbers, counts, kind))

    return act


def _bytes(ops: Operands, operation: str) -> Act:
    ops.expect_count(2)
    size = ops.read(1, U32)

    def act(wave: Wave, sel: Selection, threads: Threads, index: IntArray) -> None:
        barriers = wave.mbarriers
        numbers = barriers.named(ops, threads, index, "changes the bytes of")
        change = barriers.expect if operation == "expect_tx" else barriers.receive
        change(ops, threads, numbers, _numbers(size(wave, sel), threads))

    return act


def _wait(ops: Operands, operation: str, words: tuple[str, ...]) -> Act:
    ops.expect_count(*((3, 4) if operation == "try_wait" else (3,)))
    write = ops.write(0, PRED)
    by_parity = "parity" in words
    read = ops.read(2, U32 if by_parity else U64)
    acquires = "relaxed" not in ops.instruction.suffix

    def act(wave: Wave, sel: Selection, threads: Threads, index: IntArray) -> None:
        barriers = wave.mbarriers
        numbers = barriers.named(ops, threads, index, "waits at")
        value = np.array(np.broadcast_to(read(wave, sel), threads.shape))
        if by_parity:
            ready = barriers.wait_parity(ops, threads, numbers, value.astype(np.int64))
        else:
            ready = barriers.wait_state(ops, threads, numbers, value)
        if acquires and wave.monitor is not None and ready.any():
            wave.monitor.phase_waited(wave, threads[ready], numbers[ready])
        write(wave, sel, ready)

    return act


def _pending_count(ops: Operands) -> Step:
    ops.expect_count(2)
    write, read = ops.write(0, U32), ops.read(1, U64)

    def step(wave: Wave, sel: Selection) -> None:
        write(wave, sel, (read(wave, sel) & np.uint64(0xFFFFF)).astype(np.uint32))

    return step
