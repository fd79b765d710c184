"""What it takes to turn a tile from one register layout into another.

The answer is the cheapest of: nothing; renaming registers; moves within warps by shuffles with
selects around them; or an exchange through shared memory (see `phobos.layout.exchange`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from phobos.layout import gf2
from phobos.layout.build import LANE, REGISTER, WARP
from phobos.layout.linear import LinearLayout
from phobos.layout.text import LayoutError


class Movement(Enum):
    """How far elements must move."""

    NONE = auto()
    """The registers are already right."""
    REGISTERS = auto()
    """Each register is a copy of a register of the same thread."""
    SHUFFLE = auto()
    """Elements move between registers and lanes of a warp."""
    SHARED = auto()
    """Elements move between warps, or in a way shuffles cannot do with one a register."""


class ShuffleRound(NamedTuple):
    """One shuffle: registers and source lane as seen by lane 0 of warp 0.

    The source register is counted after the send stages, the target before the receive stages.
    """

    send: int
    source_lane: int
    receive: int


class ShufflePlan(NamedTuple):
    """Shuffles with selects before and after them.

    1. Send stages: for every bit i of the lane with mask `send_by_lane[i]` != 0 (likewise warp),
       `v[r] = v[r ^ mask] if bit i else v[r]` for all registers.
    2. A shuffle a round: `w[receive] = v[send]` of the lane `source_lane` XOR the masks
       `source_by_lane` and `source_by_warp` of the bits set in the own lane and warp.
    3. Receive stages: like the send stages, on w, with `receive_by_lane`.

    Target register r is then `w[registers[r]]`.
    """

    rounds: tuple[ShuffleRound, ...]
    send_by_lane: tuple[int, ...]
    send_by_warp: tuple[int, ...]
    source_by_lane: tuple[int, ...]
    source_by_warp: tuple[int, ...]
    receive_by_lane: tuple[int, ...]
    registers: tuple[int, ...]

    @property
    def is_xor(self) -> bool:
        """True if every source lane is the own lane XOR a constant, as in `shfl.bfly`."""
        identity = tuple(1 << bit for bit in range(len(self.source_by_lane)))
        return self.source_by_lane == identity and not any(self.source_by_warp)

    @property
    def shuffles(self) -> int:
        """The number of shuffles that move anything between lanes."""
        if not self.is_xor:
            return len(self.rounds)
        return sum(1 for r in self.rounds if r.source_lane)

    @property
    def select_stages(self) -> int:
        """The number of select stages; each costs up to one select a register."""
        masks = (*self.send_by_lane, *self.send_by_warp, *self.receive_by_lane)
        return sum(1 for mask in masks if mask)


class Conversion(NamedTuple):
    """The result of `plan_conversion`.

    `registers` is set for NONE and REGISTERS: target register r is source register
    `registers[r]`.  `shuffle` is set for SHUFFLE.
    """

    movement: Movement
    registers: tuple[int, ...] = ()
    shuffle: ShufflePlan | None = None


@lru_cache(maxsize=1024)
def plan_conversion(source: LinearLayout, target: LinearLayout) -> Conversion:
    """How to get a tile from layout `source` into layout `target`.

    Raises LayoutError if the tiles differ in shape or `source` lacks an element.

    >>> rows = LinearLayout.parse("register=[[0, 1]] lane=[[1, 0]] -> [2, 2]")
    >>> columns = LinearLayout.parse("register=[[1, 0]] lane=[[0, 1]] -> [2, 2]")
    >>> plan_conversion(rows, rows).movement, plan_conversion(rows, columns).movement
    (<Movement.NONE: 1>, <Movement.SHUFFLE: 3>)
    >>> plan_conversion(rows, columns).shuffle.shuffles
    1
    """
    if source.outputs != target.outputs:
        raise LayoutError(f"cannot convert between tiles of other shapes: {source} and {target}")
    if not source.is_surjective:
        raise LayoutError(f"cannot convert from a layout that lacks elements: {source}")
    registers = _within_threads(source, target)
    if registers is not None:
        same = registers == tuple(range(source.in_size(REGISTER)))
        return Conversion(Movement.NONE if same else Movement.REGISTERS, registers)
    shuffle = _within_warps(source, target)
    if shuffle is not None:
        return Conversion(Movement.SHUFFLE, shuffle=shuffle)
    return Conversion(Movement.SHARED)


def _all_values(columns: Sequence[int]) -> tuple[int, ...]:
    """The product of a matrix with 0, 1, 2, ...."""
    values = [0]
    for column in columns:
        values += [value ^ column for value in values]
    return tuple(values)


def _bits(layouts: Sequence[LinearLayout], name: str) -> int:
    return max(layout.in_bits(name) for layout in layouts)


def _padded(layout: LinearLayout, name: str, bits: int) -> tuple[int, ...]:
    """Basis vectors of an input; threads that a layout does not mention hold copies."""
    vectors = layout.packed(name)
    return (*vectors, *[0] * (bits - len(vectors)))


def _within_threads(source: LinearLayout, target: LinearLayout) -> tuple[int, ...] | None:
    """For each target register the source register of the same thread, if that works."""
    for name in (LANE, WARP):
        bits = _bits((source, target), name)
        if _padded(source, name, bits) != _padded(target, name, bits):
            return None
    held = gf2.Span(source.packed(REGISTER))
    columns: list[int] = []
    for bit, vector in enumerate(target.packed(REGISTER)):
        same = source.packed(REGISTER)[bit : bit + 1] == (vector,)
        column = 1 << bit if same else held.solve(vector)
        if column is None:
            return None
        columns.append(column)
    return _all_values(columns)


@dataclass(slots=True)
class _Sources:
    """Where target bits come from: (register, lane) of the same warp for each input bit."""

    registers: list[tuple[int, int]]
    lanes: list[tuple[int, int]]
    warps: list[tuple[int, int]]


def _within_warps(source: LinearLayout, target: LinearLayout) -> ShufflePlan | None:
    register_bits = source.in_bits(REGISTER)
    lane_bits = _bits((source, target), LANE)
    lanes = _padded(source, LANE, lane_bits)
    pool = (*source.packed(REGISTER), *lanes)
    found = _find_sources(source, target, lanes)
    if found is None:
        return None
    low = (1 << register_bits) - 1
    copies = [(z & low, z >> register_bits) for z in gf2.kernel(pool)]
    receive = _separate_lanes(found, copies, gf2.free_columns(target.packed(REGISTER)))
    return None if receive is None else _assemble(found, receive, target.packed(REGISTER))


def _find_sources(
    source: LinearLayout, target: LinearLayout, lanes: Sequence[int]
) -> _Sources | None:
    """For each bit of the target an element of the source that moves as it does.

    Staying in the lane is preferred, and a register of one's own over one of another lane.
    """
    register_bits = source.in_bits(REGISTER)
    own = gf2.Span(source.packed(REGISTER))
    anywhere = gf2.Span((*source.packed(REGISTER), *lanes))
    low = (1 << register_bits) - 1

    def find(vector: int) -> tuple[int, int] | None:
        flat = own.solve(vector)
        flat = anywhere.solve(vector) if flat is None else flat
        return None if flat is None else (flat & low, flat >> register_bits)

    registers = [find(vector) for vector in target.packed(REGISTER)]
    at_home: list[tuple[int, int] | None] = []
    for bit, vector in enumerate(_padded(target, LANE, len(lanes))):
        stay = own.solve(vector ^ lanes[bit])
        at_home.append(find(vector) if stay is None else (stay, 1 << bit))
    warp_bits = _bits((source, target), WARP)
    pairs = zip(_padded(source, WARP, warp_bits), _padded(target, WARP, warp_bits), strict=True)
    warps = [find(have ^ want) for have, want in pairs]
    if None in registers or None in at_home or None in warps:
        return None
    return _Sources([f for f in registers if f], [f for f in at_home if f], [f for f in warps if f])


def _separate_lanes(
    found: _Sources, copies: Sequence[tuple[int, int]], free_registers: int
) -> list[int] | None:
    """Make lanes that read different registers read different lanes.

    A lane can send one register a shuffle.  Where two lanes would want different registers of
    one lane at a time, one of them is made to read a copy in another lane, or to receive another
    of its target registers first; the latter is returned, a register mask for each lane bit.
    Changes `found.lanes`.  None if neither is possible.
    """
    from_lanes = [lane for _, lane in found.lanes]
    from_registers = [register for register, _ in found.lanes]
    readers = gf2.kernel(from_lanes)  # lane differences that read the same lane ...
    wanted = gf2.Span()  # ... and of those the ones that want different registers
    clashing = [k for k in readers if not wanted.add(gf2.multiply(from_registers, k))]
    agreeing = gf2.kernel([gf2.multiply(from_registers, k) for k in readers])
    harmless = [gf2.multiply(readers, combination) for combination in agreeing]
    receive = [0] * len(found.lanes)
    reached = gf2.Span(from_lanes)
    changes: list[tuple[int, int, int]] = []  # source register, source lane, target register
    for own in clashing:
        change = _other_lane(found, copies, free_registers, reached, own)
        if change is None:
            return None
        changes.append(change)
    if not clashing:
        return receive
    units = [1 << bit for bit in range(len(found.lanes))]
    others = gf2.independent((*harmless, *units), beyond=clashing)
    basis = gf2.Span((*clashing, *others))
    for bit, unit in enumerate(units):
        parts = basis.solve(unit) or 0
        register, lane = found.lanes[bit]
        for index, (change_register, change_lane, change_target) in enumerate(changes):
            if parts >> index & 1:
                register ^= change_register
                lane ^= change_lane
                receive[bit] ^= change_target
        found.lanes[bit] = (register, lane)
    return receive


def _other_lane(
    found: _Sources,
    copies: Sequence[tuple[int, int]],
    free_registers: int,
    reached: gf2.Span,
    own: int,
) -> tuple[int, int, int] | None:
    """A change of source that leads to a lane not reached yet; it is then marked as reached.

    At best lanes that differ by `own` then read at such a distance: a butterfly.
    """
    options = [(lane, (register, lane, 0)) for register, lane in copies if lane]
    options += [
        (lane, (0, 0, 1 << bit))
        for bit, (_, lane) in enumerate(found.registers)
        if lane and not free_registers >> bit & 1
    ]
    for lane, change in sorted(options, key=lambda option: option[0] != own):
        if not reached.add(lane):
            return change
    return None


def _assemble(
    found: _Sources, receive: Sequence[int], target_registers: Sequence[int]
) -> ShufflePlan:
    """Turn "who reads where" into "who sends what"."""
    register_columns = [register for register, _ in found.registers]
    lane_columns = [lane for _, lane in found.registers]
    # Lane bit i reads at lane `reads[i]` register `wants[i]`, counting its shifted target.
    reads = [
        lane ^ gf2.multiply(lane_columns, shift)
        for (_, lane), shift in zip(found.lanes, receive, strict=True)
    ]
    wants = [
        register ^ gf2.multiply(register_columns, shift)
        for (register, _), shift in zip(found.lanes, receive, strict=True)
    ]
    send_by_lane = _send_masks(reads, wants)

    def sends(register: int, lane: int) -> int:
        return register ^ gf2.multiply(send_by_lane, lane)

    free = gf2.free_columns(target_registers)
    held = gf2.Span(target_registers)
    rounds = [ShuffleRound(0, 0, 0)]
    for bit, (register, lane) in enumerate(found.registers):
        if free >> bit & 1:
            continue
        rounds += [
            ShuffleRound(r.send ^ sends(register, lane), r.source_lane ^ lane, r.receive | 1 << bit)
            for r in rounds
        ]
    return ShufflePlan(
        rounds=tuple(rounds),
        send_by_lane=send_by_lane,
        send_by_warp=tuple(sends(register, lane) for register, lane in found.warps),
        source_by_lane=tuple(reads),
        source_by_warp=tuple(lane for _, lane in found.warps),
        receive_by_lane=tuple(receive),
        registers=_all_values([held.solve(vector) or 0 for vector in target_registers]),
    )


def _send_masks(reads: Sequence[int], wants: Sequence[int]) -> tuple[int, ...]:
    """For each bit of the sending lane the register mask that serves the lane's readers.

    Reading lane bit i reads at lane `reads[i]` and wants register `wants[i]`.  Lanes that nobody
    reads may send anything.
    """
    units = [1 << bit for bit in range(len(reads))]
    basis = gf2.Span((*reads, *gf2.independent(units, beyond=reads)))
    readers = (1 << len(reads)) - 1
    return tuple(gf2.multiply(wants, (basis.solve(unit) or 0) & readers) for unit in units)
