"""`cp.async.bulk`: copies of whole boxes and blocks between global and shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from phobos.emulator.bulk import BulkLoad, BulkStore, Bytes
from phobos.emulator.decode import Operands, Reader, Step
from phobos.emulator.errors import FindingKind
from phobos.emulator.instructions.memory import do_nothing
from phobos.emulator.mbarriers import MBARRIER_BYTES
from phobos.emulator.memory.access import Access
from phobos.emulator.memory.dispatch import address_reader
from phobos.emulator.memory.regions import LOW_32
from phobos.emulator.memory.spaces import CLUSTER, SHARED, SharedSpace
from phobos.emulator.monitor import Rows
from phobos.emulator.tensor_map import (
    MAP_ALIGNMENT,
    MAP_BYTES,
    BoxPlace,
    TensorMap,
    decode_tensor_map,
)
from phobos.emulator.types import S32, U32, U64, Selection, Value
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Address, Symbol

_BULK_ALIGNMENT = 16
_TENSOR_ALIGNMENT = 128
_BARRIER = "mbarrier::complete_tx::bytes"
_HINT = "L2::cache_hint"
_TO_SHARED = frozenset({"shared::cluster", "shared::cta"})


def bulk_copy(ops: Operands) -> Step:
    """The step of an instruction that starts with `cp.async.bulk`."""
    match ops.instruction.suffix[2:]:
        case ("commit_group",):
            ops.expect_count(0)
            return lambda wave, sel: wave.bulk.commit(sel)
        case ("wait_group", *rest) if rest in ([], ["read"]):
            ops.expect_count(1)
            in_flight = ops.immediate(0, "the number of groups")
            return lambda wave, sel: wave.bulk.wait(sel, in_flight, only_read=bool(rest))
        case ("prefetch", *_):
            return do_nothing
        case ("tensor", dimensions, *rest):
            return _tensor_copy(ops, dimensions, [part for part in rest if part != "tile"])
        case rest:
            return _block_copy(ops, list(rest))


@dataclass(frozen=True)
class _Block:
    """One end of a copy in global memory: `size` bytes in shared memory, fewer here if clipped.

    `rows` says where they lie; `read` and `write` move them in the order of shared memory.
    """

    size: int
    rows: Callable[[], Rows]
    read: Callable[[], Bytes]
    write: Callable[[Bytes], None]


@dataclass
class _Copy:
    """A decoded copy: readers of its operands, and what it does when threads issue it."""

    ops: Operands
    is_load: bool
    shared: Reader
    barrier: Reader | None
    alignment: int
    space: SharedSpace
    access: Access = field(init=False)
    outside: Access = field(init=False)
    barrier_access: Access = field(init=False)

    def __post_init__(self) -> None:
        to, of = ("copies to", "copies from") if self.is_load else ("copies from", "copies to")
        self.access = self._access(to, is_write=self.is_load)
        self.outside = self._access(of, is_write=not self.is_load)
        self.barrier_access = Access(
            self.ops, "counts at", MBARRIER_BYTES, is_write=True, is_read=False, is_strong=True
        )

    def _access(self, verb: str, *, is_write: bool) -> Access:
        size = _BULK_ALIGNMENT
        return Access(self.ops, verb, size, is_write=is_write, is_read=not is_write)

    def issue(self, wave: Wave, sel: Selection, blocks: Sequence[Callable[[int], _Block]]) -> None:
        """Start the copy of each selected thread, given what makes its block from its address."""
        threads = wave.selected(sel)
        shared = np.broadcast_to(self.shared(wave, sel), threads.shape)
        barriers = self._barriers(wave, sel)
        for place, thread in enumerate(threads.tolist()):
            address = int(shared[place]) & int(LOW_32)
            self._check_alignment(wave, thread, address)
            block = blocks[place](address)
            self._start(wave, thread, address, block, int(barriers[place]))

    def _check_alignment(self, wave: Wave, thread: int, address: int) -> None:
        if address % self.alignment:
            self.ops.report(
                FindingKind.ALIGNMENT,
                wave,
                thread,
                f"{self.access.verb} shared memory at {address:#x}, which is no multiple of "
                f"{self.alignment}",
                address=address,
            )

    def _barriers(self, wave: Wave, sel: Selection) -> npt.NDArray[np.int64]:
        """The numbers of the mbarriers; zeros for stores, which have none."""
        threads = wave.selected(sel)
        if self.barrier is None:
            return np.zeros(len(threads), dtype=np.int64)
        address = self.barrier(wave, sel)
        store, found = self.space.locate(wave, sel, address, self.barrier_access)
        index = np.array(np.broadcast_to(found, threads.shape), dtype=np.int64)
        if wave.monitor is not None:
            wave.monitor.mbarrier(wave, threads, store, index, self.barrier_access)
        return wave.mbarriers.named(self.ops, threads, index, "counts bytes at")

    def _check_owner(self, wave: Wave, thread: int, start: int, barrier: int) -> None:
        """The mbarrier of a load lies in the CTA whose memory it writes."""
        stride = wave.memories.shared.stride
        if start // stride != int(wave.mbarriers.slots(np.array([barrier]))[0]):
            self.ops.report(
                FindingKind.MBARRIER,
                wave,
                thread,
                "copies to the shared memory of one CTA and counts at an mbarrier of another",
            )

    def _start(self, wave: Wave, thread: int, address: int, block: _Block, barrier: int) -> None:
        start = self.space.start_of(wave, thread, address, self.access, block.size)
        if wave.monitor is not None:
            wave.monitor.bulk_copy(
                wave, thread, self.outside, self.access, block.rows(), block.size
            )
        if self.is_load:
            self._check_owner(wave, thread, start, barrier)
            load = BulkLoad(self.ops, self.access, thread, start, block.size, barrier, block.read)
            wave.bulk.issue_load(load)
            return
        pieces = np.arange(address, address + block.size, _BULK_ALIGNMENT, dtype=np.uint32)
        SHARED.examine(wave, np.full(len(pieces), thread), pieces, self.access)
        group = wave.bulk.group_of(thread)
        wave.bulk.issue_store(
            BulkStore(self.ops, self.access, thread, start, block.size, group, block.write)
        )

    def global_start(self, wave: Wave, thread: int, low: int, high: int) -> int:
        """What to subtract from addresses from `low` to `high` for bytes of the global store."""
        buffers = wave.memories.buffers
        access = self.outside.of_size(high - low)
        index = buffers.locate_span(wave, np.array([thread]), low, high, access)
        return low - index


# Forms -------------------------------------------------------------------------------------------


def _direction(ops: Operands, parts: list[str]) -> bool:
    """Whether a copy loads; refuses forms that are unknown."""
    hints = [part for part in parts if part == _HINT]
    match [part for part in parts if part != _HINT]:
        case [target, "global", mechanism] if target in _TO_SHARED and mechanism == _BARRIER:
            is_load = True
        case ["global", "shared::cta", "bulk_group"]:
            is_load = False
        case _:
            ops.refuse("is not supported in the emulator")
    if len(hints) > 1:
        ops.refuse("has its cache hint twice")
    return is_load


def _block_copy(ops: Operands, parts: list[str]) -> Step:
    """`[target], [source], size{, [mbar]}{, policy}`: consecutive bytes."""
    is_load = _direction(ops, parts)
    ops.expect_count(3 + is_load + (_HINT in parts))
    inner, outer = (0, 1) if is_load else (1, 0)
    barrier = address_reader(ops, 3) if is_load else None
    space = CLUSTER if "shared::cluster" in parts else SHARED
    copy = _Copy(ops, is_load, address_reader(ops, inner), barrier, _BULK_ALIGNMENT, space)
    address, size = address_reader(ops, outer), ops.read(2, U32)

    def step(wave: Wave, sel: Selection) -> None:
        threads = wave.selected(sel)
        starts = np.broadcast_to(address(wave, sel), threads.shape).tolist()
        sizes = np.broadcast_to(size(wave, sel), threads.shape).tolist()
        blocks = [
            _consecutive(copy, wave, thread, int(start), int(count))
            for thread, start, count in zip(threads.tolist(), starts, sizes, strict=True)
        ]
        copy.issue(wave, sel, blocks)

    return step


def _consecutive(
    copy: _Copy, wave: Wave, thread: int, address: int, size: int
) -> Callable[[int], _Block]:
    for what, value in (("address in global memory", address), ("size", size)):
        if value % _BULK_ALIGNMENT or not value:
            copy.ops.report(
                FindingKind.ALIGNMENT,
                wave,
                thread,
                f"copies with the {what} {value:#x}, which is no multiple of {_BULK_ALIGNMENT}"
                if value
                else f"copies with the {what} 0",
                address=address,
            )
    store = wave.memories.buffers.store
    start = address - copy.global_start(wave, thread, address, address + size)
    raw = store.bytes[start : start + size]
    shadow = None if store.shadow is None else store.shadow[start : start + size]
    _check_written(copy, wave, thread, address, shadow)

    def write(content: Bytes) -> None:
        raw[:] = content
        if shadow is not None:
            shadow[:] = 0

    block = _Block(size, lambda: (np.array([start]), size), raw.copy, write)
    return lambda shared: block


def _check_written(
    copy: _Copy, wave: Wave, thread: int, address: int, shadow: npt.NDArray | None
) -> None:
    """Raise if a load reads bytes of an array that nothing wrote."""
    if shadow is None or not copy.is_load or not shadow.any():
        return
    copy.ops.report(
        FindingKind.UNINITIALISED,
        wave,
        thread,
        f"copies from {address:#x} in global memory, part of which nothing wrote before",
        address=address,
    )


# Tensors -----------------------------------------------------------------------------------------


def _tensor_copy(ops: Operands, dimensions: str, parts: list[str]) -> Step:
    """`[target], [map, {coordinates}], [mbar]{, policy}` or `[map, {coordinates}], [source]`."""
    rank = int(dimensions[0]) if dimensions in ("1d", "2d", "3d", "4d", "5d") else 0
    if not rank:
        ops.refuse("takes .1d, .2d, .3d, .4d or .5d")
    is_load = _direction(ops, parts)
    ops.expect_count(2 + is_load + (_HINT in parts))
    inner, outer = (0, 1) if is_load else (1, 0)
    barrier = address_reader(ops, 2) if is_load else None
    space = CLUSTER if "shared::cluster" in parts else SHARED
    copy = _Copy(ops, is_load, address_reader(ops, inner), barrier, _TENSOR_ALIGNMENT, space)
    base, coordinates = _tensor_operand(ops, outer, rank)

    def step(wave: Wave, sel: Selection) -> None:
        threads = wave.selected(sel)
        maps = np.broadcast_to(base(wave, sel), threads.shape).tolist()
        columns = [np.broadcast_to(read(wave, sel), threads.shape) for read in coordinates]
        # PTX gives coordinates innermost first.
        starts = np.stack(columns[::-1], axis=1).tolist()
        blocks: list[Callable[[int], _Block]] = []
        for thread, where, start in zip(threads.tolist(), maps, starts, strict=True):
            found = _map_at(copy, wave, thread, int(where), rank)
            blocks.append(_box(copy, wave, thread, BoxPlace(found, tuple(start))))
        copy.issue(wave, sel, blocks)

    return step


def _tensor_operand(ops: Operands, index: int, rank: int) -> tuple[Reader, list[Reader]]:
    """Readers of the address of the map and of the coordinates."""
    operand = ops.operand(index)
    if not isinstance(operand, Address) or not operand.coordinates:
        ops.refuse("expected a tensor map and coordinates, `[map, {...}]`")
    if len(operand.coordinates) != rank:
        ops.refuse(f"takes {rank} coordinates, got {len(operand.coordinates)}")
    plain = operand.base
    if isinstance(plain, Symbol):
        base = ops.reader(Symbol(plain.name, operand.offset), U64)
    else:
        read, offset = ops.reader(plain, U64), np.uint64(operand.offset & (2**64 - 1))

        def base(wave: Wave, sel: Selection, /) -> Value:
            return read(wave, sel) + offset

    return base, [ops.reader(coordinate, S32) for coordinate in operand.coordinates]


def _map_at(copy: _Copy, wave: Wave, thread: int, address: int, rank: int) -> TensorMap:
    """The tensor map at an address."""
    if address % MAP_ALIGNMENT:
        copy.ops.report(
            FindingKind.ALIGNMENT,
            wave,
            thread,
            f"names a tensor map at {address:#x}, which is no multiple of {MAP_ALIGNMENT}",
            address=address,
        )
    buffers = wave.memories.buffers
    access = Access(copy.ops, "names a tensor map of", MAP_BYTES, is_write=False)
    start = buffers.locate_span(wave, np.array([thread]), address, address + MAP_BYTES, access)
    found = decode_tensor_map(buffers.store.bytes[start : start + MAP_BYTES].tobytes())
    if found is None or found.rank != rank:
        what = "is no tensor map" if found is None else f"maps a tensor of {found.rank} axes"
        copy.ops.report(
            FindingKind.BOUNDS,
            wave,
            thread,
            f"copies a box of {rank} axes, but what lies at {address:#x} {what}",
            address=address,
            help="pass a `TensorMapArgument` for the parameter" if found is None else None,
        )
    return found


def _box(copy: _Copy, wave: Wave, thread: int, place: BoxPlace) -> Callable[[int], _Block]:
    """The block of a box: its part inside the tensor, zeros outside."""
    found, store = place.tensor_map, wave.memories.buffers.store
    shadow, offset = None, 0
    if place.is_empty:
        part = np.zeros([side.stop - side.start for side in place.filled], np.uint8)
    else:
        low, high = place.span
        offset = copy.global_start(wave, thread, low, high)
        part = place.view(store.bytes, offset)
        shadow = None if store.shadow is None else place.view(store.shadow, offset)
        _check_written(copy, wave, thread, low, shadow)

    def block(shared: int) -> _Block:
        order = found.order_of_pieces(shared)

        def read() -> Bytes:
            return _permuted(place.gather(part), order)

        def write(content: Bytes) -> None:
            place.scatter(_permuted(content, order), part)
            if shadow is not None:
                shadow[...] = 0

        return _Block(found.box_bytes, lambda: place.rows(offset), read, write)

    return block


def _permuted(content: Bytes, order: npt.NDArray[np.intp] | None) -> Bytes:
    """Bytes with their pieces of 16 exchanged."""
    if order is None:
        return content
    return content.reshape(-1, _BULK_ALIGNMENT)[order].reshape(-1)
