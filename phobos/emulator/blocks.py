"""Decoded programs: basic blocks of steps, and what may stand between them.

Threads that diverge are kept in groups, one a block. A block that starts with an instruction of a
whole warp has a gate, which holds threads back until all that the instruction names are there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from phobos.emulator.decode import Operands, Reader, Step
from phobos.emulator.errors import FindingKind
from phobos.emulator.types import Selection
from phobos.emulator.warpgroup import WARPGROUP
from phobos.emulator.wave import WARP, Wave, warp_bits

if TYPE_CHECKING:
    from phobos.emulator.schedule import Scheduler

Onward: TypeAlias = tuple[int, Selection] | None
"""The block where a group goes on and the group, or None if the scheduler was told otherwise."""

Terminator: TypeAlias = "Callable[[Scheduler, Selection], Onward]"


@dataclass(eq=False)
class Block:
    """Steps that run one after the other, then a terminator.

    `instructions` are all of them, at least one, for messages and counts. `is_spin` marks the end
    of a loop that may wait for other threads.
    """

    steps: tuple[Step, ...]
    terminator: Terminator
    instructions: tuple[Operands, ...]
    gate: Gate | None = None
    is_spin: bool = False

    @property
    def operands(self) -> Operands:
        """The first instruction."""
        return self.instructions[0]


class Gate(ABC):
    """Holds threads at an instruction until those it needs have come.

    `members` says in words which threads those are; they lie in one run of `width` threads.
    """

    operands: Operands
    members = "lanes of its warp"
    width = WARP

    @abstractmethod
    def split(self, wave: Wave, sel: Selection) -> tuple[Selection, npt.NDArray[np.intp] | None]:
        """The threads that may go on and those that wait (None if none)."""


class WarpGate(Gate):
    """Waits for the lanes that a member mask names, or for the whole warp if there is no mask.

    Lanes that have exited are not waited for.
    """

    def __init__(self, operands: Operands, mask: Reader | None = None) -> None:
        self.operands = operands
        self._mask = mask

    def split(self, wave: Wave, sel: Selection) -> tuple[Selection, npt.NDArray[np.intp] | None]:
        """See `Gate`. A thread that its own mask leaves out is a finding."""
        mask = np.uint32(0xFFFFFFFF) if self._mask is None else self._mask(wave, sel)
        if sel is None and (mask == 0xFFFFFFFF).all():
            return None, None
        threads = wave.selected(sel)
        warps = threads // WARP
        here = warp_bits(wave.flags(sel))[warps]
        alive = warp_bits(wave.alive)[warps]
        outside = ((mask >> (threads % WARP).astype(np.uint32)) & np.uint32(1)) == 0
        if outside.any():
            self.operands.report(
                FindingKind.DIVERGENCE,
                wave,
                int(threads[int(np.argmax(outside))]),
                "executes a warp instruction whose member mask leaves it out",
            )
        ready = (mask & alive & ~here) == 0
        if ready.all():
            return sel, None
        return threads[ready], threads[~ready]


class WarpgroupGate(Gate):
    """Waits for all threads of the warpgroup that have not exited."""

    members = "threads of its warpgroup"
    width = WARPGROUP

    def __init__(self, operands: Operands) -> None:
        self.operands = operands

    def split(self, wave: Wave, sel: Selection) -> tuple[Selection, npt.NDArray[np.intp] | None]:
        """See `Gate`."""
        if sel is None:
            return None, None
        mine = wave.warpgroup[sel]
        count = int(wave.warpgroup[-1]) + 1
        here = np.bincount(mine, minlength=count)
        needed = np.bincount(wave.warpgroup[wave.alive], minlength=count)
        ready = (here == needed)[mine]
        if ready.all():
            return sel, None
        return sel[ready], sel[~ready]
