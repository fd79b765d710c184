"""Barriers in shared memory, and the one thread that starts bulk copies.

A barrier counts arrivals and bytes. It begins in the phase of parity 0, and goes on to the next
one when all arrivals and bytes that it expects are there; who waits for a parity waits for the end
of the phase that has it. So a consumer, who waits for what is filled, begins with parity 0; a
producer, who waits for what is emptied, begins with 1, which is true at once; and either changes
to the other one each time it has gone through all stages.

Copies by the hardware (TMA) take their operands from registers that a warp has in common. ptxas
finds these only behind a branch that whole warps take, and without loops over the lanes only if
the lane is elected in the same branch as the copies it starts; `first_warp` and `one_lane` make
that shape::

    first_warp(low):    shfl.sync.idx.b32 %w, ..., 0, 31, -1    once, at the top of the kernel
                        setp.eq.u32 %p, %w, 0;  @!%p bra.uni $L_others
      one_lane(low):    elect.sync _|%e, -1;    @!%e bra $L_rest
                          cp.async.bulk.tensor ...
                        $L_rest:
                      $L_others:
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.ir import SSAValue

from phobos.dialects import ptx
from phobos.dialects.ptx import InstructionBuilder
from phobos.targets.ptx.chips import WARP_LANES
from phobos.transforms.lowering.control import move_behind
from phobos.transforms.lowering.state import Lowering

_ALL_LANES = -1


def initialise(
    build: InstructionBuilder, address: SSAValue, arrivals: int, *, offset: int = 0
) -> None:
    """Makes a barrier whose phases end after so many arrivals; for one thread, then `publish`.

    `address` is one of shared memory, to which `offset` bytes are added.
    """
    build.emit_multi(ptx.MbarrierOp, "init.shared.b64", address, arrivals, offset=offset)


def publish(build: InstructionBuilder) -> None:
    """Lets copies see the barriers that were made, and threads behind a barrier of the block."""
    build.emit_multi(ptx.FenceOp, "mbarrier_init.release.cluster", results=())


def arrive(
    build: InstructionBuilder,
    address: SSAValue,
    *,
    offset: int = 0,
    guard: SSAValue | None = None,
) -> None:
    """Arrives on a barrier; what the thread has read and written is before that.

    Where one lane arrives for its warp, the other lanes must have come as far.
    """
    build.emit_multi(
        ptx.MbarrierOp, "arrive.shared::cta.b64", address, offset=offset, guard=guard, results=()
    )


def expect_bytes(
    build: InstructionBuilder, address: SSAValue, count: SSAValue | int, *, offset: int = 0
) -> None:
    """Arrives on a barrier, whose phase then does not end before so many bytes are copied."""
    build.emit_multi(
        ptx.MbarrierOp,
        "arrive.expect_tx.shared::cta.b64",
        address,
        count,
        offset=offset,
        results=(),
    )


def wait(
    build: InstructionBuilder, address: SSAValue, parity: SSAValue | int, *, offset: int = 0
) -> None:
    """Waits for the end of the phase of a parity, 0 or 1; what comes next is in another block.

    Behind it the thread sees what was written before the arrivals, and what was copied.
    """
    spin, done = build.block((), "wait"), build.block((), "waited")
    build.bra(spin)
    build.at(spin)
    ended = build.emit(ptx.MbarrierOp, "try_wait.parity.shared.b64", address, parity, offset=offset)
    build.cond_bra(ended, done, spin)
    build.at(done)


def copy_box(
    low: Lowering,
    destination: SSAValue,
    tensor_map: SSAValue,
    coordinates: Sequence[SSAValue | int],
    barrier: SSAValue,
    *,
    offsets: tuple[int, int] = (0, 0),
) -> None:
    """Starts the copy of a box of a tensor to shared memory, in one thread.

    `destination` and `barrier` are addresses of shared memory, to which `offsets` are added;
    `tensor_map` is a generic one. The coordinates are where the box starts, innermost first.
    """
    space = low.chip.bulk_destination
    suffix = f"{len(coordinates)}d.{space}.global.tile.mbarrier::complete_tx::bytes"
    operands = (destination, tensor_map, *coordinates, barrier)
    low.build.emit_multi(ptx.CpAsyncBulkTensorOp, suffix, *operands, offsets=offsets)


@contextmanager
def first_warp(low: Lowering) -> Iterator[None]:
    """Code that the first warp of the block runs, all its lanes together."""
    if low.threads <= WARP_LANES:
        yield
        return
    is_first = low.build.emit(ptx.SetpOp, "eq.u32", low.uniform_warp, 0)
    with _only_if(low, is_first, "first_warp", "others", uniform=True):
        yield


@contextmanager
def one_lane(low: Lowering) -> Iterator[None]:
    """Code that one lane of each warp runs that comes here with all its lanes."""
    elected = low.build.emit(ptx.ElectOp, "sync", _ALL_LANES)
    with _only_if(low, elected, "one_lane", "rest", uniform=False):
        yield


@contextmanager
def elected(low: Lowering) -> Iterator[None]:
    """Code that one thread of the block runs, among it bulk copies without a wait before them."""
    with first_warp(low), one_lane(low):
        yield


@contextmanager
def _only_if(
    low: Lowering, condition: SSAValue, name: str, name_behind: str, *, uniform: bool
) -> Iterator[None]:
    build = low.build
    inside, behind = build.block((), name), build.block((), name_behind)
    build.cond_bra(condition, inside, behind, uniform=uniform)
    build.at(inside)
    with low.branch():
        yield
    build.bra(behind)
    build.at(behind)
    move_behind(behind, low)
