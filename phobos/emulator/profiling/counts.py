"""The counts of one run, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Location
from phobos.emulator.memory.spaces import GLOBAL, SharedSpace
from phobos.emulator.monitor import Monitor, Rows
from phobos.emulator.profiling.classes import InstructionClass, class_of
from phobos.emulator.profiling.traffic import BANKS, SECTOR, WORD, passes, sectors
from phobos.emulator.types import Selection, Value
from phobos.emulator.wave import WARP, Wave

if TYPE_CHECKING:
    from phobos.emulator.blocks import Block
    from phobos.emulator.memory.access import Access
    from phobos.emulator.memory.spaces import Space
    from phobos.emulator.memory.store import ByteStore
    from phobos.emulator.warpgroup import Product


@dataclass
class LineCounts:
    """What one source line did, summed over all warps.

    `instructions` counts instructions that warps issued, `threads` those of single threads;
    their ratio to 32 is how full the warps were. Sectors have 32 bytes; `ideal_sectors` and
    `ideal_passes` are what the same accesses need at best.
    """

    location: Location
    instructions: int = 0
    threads: int = 0
    classes: Counter[InstructionClass] = field(default_factory=Counter)
    global_requests: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    shared_requests: int = 0
    passes: int = 0
    ideal_passes: int = 0

    @property
    def global_efficiency(self) -> float | None:
        """Share of the moved sectors that would do; None without global accesses."""
        return self.ideal_sectors / self.sectors if self.sectors else None

    @property
    def bank_conflict(self) -> float | None:
        """Passes an access took for each that it needs: 1 is free of conflicts."""
        return self.passes / self.ideal_passes if self.ideal_passes else None

    @property
    def fullness(self) -> float | None:
        """Share of the lanes of issued instructions that took part."""
        return self.threads / (WARP * self.instructions) if self.instructions else None

    def add(self, other: LineCounts) -> None:
        """Add the counts of another line."""
        self.instructions += other.instructions
        self.threads += other.threads
        self.classes.update(other.classes)
        self.global_requests += other.global_requests
        self.sectors += other.sectors
        self.ideal_sectors += other.ideal_sectors
        self.shared_requests += other.shared_requests
        self.passes += other.passes
        self.ideal_passes += other.ideal_passes


class Profile(Monitor):
    """Counts instructions and memory traffic of a run; give it to `emulate(profile=...)`."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], LineCounts] = {}
        self._blocks: dict[int, list[tuple[LineCounts, InstructionClass, int]]] = {}
        self._accesses: dict[int, LineCounts] = {}

    @property
    def lines(self) -> tuple[LineCounts, ...]:
        """Counts of every line that did something, in order of file and line."""
        return tuple(self._lines[key] for key in sorted(self._lines))

    @property
    def total(self) -> LineCounts:
        """The sum of all lines; its location names the first."""
        lines = self.lines
        total = LineCounts(lines[0].location if lines else Location("", 1, 1))
        for line in lines:
            total.add(line)
        return total

    @property
    def moved_bytes(self) -> int:
        """Bytes of global memory that all sectors moved."""
        return self.total.sectors * SECTOR

    def block(self, number: int, block: Block, wave: Wave, sel: Selection) -> None:
        """The selected threads run a block."""
        entries = self._blocks.get(number)
        if entries is None:
            entries = self._blocks[number] = self._entries(block)
        threads = wave.count(sel)
        if sel is None:
            warps = threads // WARP
        else:
            warps = 1 + int(np.count_nonzero(np.diff(sel // WARP))) if threads else 0
        for line, kind, count in entries:
            line.instructions += warps * count
            line.threads += threads * count
            line.classes[kind] += warps * count

    def _entries(self, block: Block) -> list[tuple[LineCounts, InstructionClass, int]]:
        """The lines and classes of a block's instructions, with how many there are of each."""
        found: Counter[tuple[str, int, InstructionClass]] = Counter()
        places: dict[tuple[str, int], Location] = {}
        for operands in block.instructions:
            place = operands.location
            places.setdefault((place.file, place.line), place)
            found[place.file, place.line, class_of(operands.instruction)] += 1
        return [
            (self._line(places[file, line]), kind, count)
            for (file, line, kind), count in found.items()
        ]

    def _line(self, place: Location) -> LineCounts:
        return self._lines.setdefault((place.file, place.line), LineCounts(place))

    def access(
        self,
        wave: Wave,
        sel: Selection,
        space: Space,
        store: ByteStore,
        index: Value,
        access: Access,
        values: Sequence[Value] | None,
    ) -> None:
        """See `Monitor`."""
        line = self._accesses.get(id(access))
        if line is None:
            line = self._accesses[id(access)] = self._line(access.operands.location)
        threads = wave.selected(sel)
        where: npt.NDArray[np.int64] = np.broadcast_to(index, threads.shape)
        requests = len(np.unique(threads // WARP))
        if space is GLOBAL:
            touched, ideal = sectors(threads, where, access.bytes)
            line.global_requests += requests
            line.sectors += touched
            line.ideal_sectors += ideal
        elif isinstance(space, SharedSpace):
            address = where % wave.memories.shared.stride
            taken, ideal = passes(threads, address, access.bytes)
            line.shared_requests += requests
            line.passes += taken
            line.ideal_passes += ideal

    def bulk_copy(
        self, wave: Wave, thread: int, outside: Access, inside: Access, rows: Rows, size: int
    ) -> None:
        """See `Monitor`. One request of each memory, with full sectors and no bank conflicts."""
        moved = len(rows[0]) * rows[1]
        line = self._line(outside.operands.location)
        line.global_requests += bool(moved)
        line.sectors += -(-moved // SECTOR)
        line.ideal_sectors += -(-moved // SECTOR)
        line.shared_requests += 1
        line.passes += -(-size // (BANKS * WORD))
        line.ideal_passes += -(-size // (BANKS * WORD))

    def product_issued(self, wave: Wave, product: Product) -> None:
        """See `Monitor`. Each operand in shared memory is one request of its warpgroup.

        How the tensor cores read it is not known; it counts as free of bank conflicts.
        """
        access = product.site.access
        line = self._line(access.operands.location)
        for pieces in product.pieces:
            if pieces is not None:
                line.shared_requests += len(pieces)
                taken = -(-pieces.shape[1] * access.bytes // (BANKS * WORD)) * len(pieces)
                line.passes += taken
                line.ideal_passes += taken
