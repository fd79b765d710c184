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
from phobos.emulator.memory.regions import IN_CTA, LOW_32, RANK_SHIFT
from phobos.emulator.memory.spaces import CLUSTER, SHARED, SharedSpace
from phobos.emulator.monitor import Rows
from phobos.emulator.tensor_map import (
    MAP_ALIGNMENT,
    MAP_BYTES,
    BoxPlace,
    TensorMap,
    decode_tensor_map,
)
from phobos.emulator.types import S32, U16, U32, U64, Selection, Value
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Address, Symbol

_BULK_ALIGNMENT = 16
_TENSOR_ALIGNMENT = 128
_HINT = "L2::cache_hint"
_MANY = "multicast::cluster"
_MASK_BITS = 16
_NOBODY = -1
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


def _no_rows() -> Rows:
    return np.zeros(0, dtype=np.int64), 0


def _numbers(read: Reader, wave: Wave, sel: Selection) -> npt.NDArray[np.int64]:
    """An operand of each selected thread, its low 32 bits."""
    value = read(wave, sel)
    value = value & LOW_32 if value.dtype == np.uint64 else value
    return np.array(np.broadcast_to(value, (wave.count(sel),))).astype(np.int64)


@dataclass
class _Copy:
    """A decoded copy: readers of its operands, and what it does when threads issue it."""

    ops: Operands
    is_load: bool
    shared: Reader
    barrier: Reader | None
    alignment: int
    space: SharedSpace
    mask: Reader | None = None
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
        shared = _numbers(self.shared, wave, sel)
        if self.barrier is None:
            for thread, address, make in zip(
                threads.tolist(), shared.tolist(), blocks, strict=True
            ):
                self._check_alignment(wave, thread, address)
                self._start_store(wave, thread, address, make(address))
            return
        barriers = _numbers(self.barrier, wave, sel)
        places = np.arange(len(threads))
        if self.mask is not None:
            places, ranks = self._destinations(wave, sel, self.mask)
            owner = (ranks + 1) << RANK_SHIFT
            shared, barriers = ((x[places] & IN_CTA) | owner for x in (shared, barriers))
        numbers = self._mbarriers(wave, threads[places], barriers)
        before = _NOBODY
        for place, address, number in zip(
            places.tolist(), shared.tolist(), numbers.tolist(), strict=True
        ):
            thread = int(threads[place])
            self._check_alignment(wave, thread, address)
            block = blocks[place](address)
            # What several CTAs get is read from global memory once.
            rows = _no_rows if place == before else block.rows
            self._start_load(wave, thread, address, block, number, rows)
            before = place

    def _destinations(
        self, wave: Wave, sel: Selection, mask: Reader
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
        """The places of the selected threads, once for each CTA they copy to, and its rank."""
        bits = (_numbers(mask, wave, sel)[:, None] >> np.arange(_MASK_BITS)) & 1
        beyond = bits[:, wave.geometry.cluster_size :].any(axis=1) | ~bits.any(axis=1)
        if beyond.any():
            place = int(np.argmax(beyond))
            value = int((bits[place] << np.arange(_MASK_BITS)).sum())
            self.ops.report(
                FindingKind.BOUNDS,
                wave,
                int(wave.selected(sel)[place]),
                f"copies to the CTAs of mask {value:#x}, but its cluster has "
                f"{wave.geometry.cluster_size}",
            )
        places, ranks = np.nonzero(bits)
        return places, ranks.astype(np.int64)

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

    def _mbarriers(
        self, wave: Wave, threads: npt.NDArray[np.intp], address: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """The numbers of the mbarriers at addresses."""
        store, index = self.space.locate(wave, threads, address, self.barrier_access)
        if wave.monitor is not None:
            wave.monitor.mbarrier(wave, threads, store, index, self.barrier_access)
        return wave.mbarriers.named(self.ops, threads, index, "counts bytes at")

    def _start_load(
        self,
        wave: Wave,
        thread: int,
        address: int,
        block: _Block,
        barrier: int,
        rows: Callable[[], Rows],
    ) -> None:
        start = self.space.start_of(wave, thread, address, self.access, block.size)
        if start // wave.memories.shared.stride != wave.mbarriers.slot(barrier):
            self.ops.report(
                FindingKind.MBARRIER,
                wave,
                thread,
                "copies to the shared memory of one CTA and counts at an mbarrier of another",
            )
        if wave.monitor is not None:
            wave.monitor.bulk_copy(wave, thread, self.outside, self.access, rows(), block.size)
        wave.bulk.issue_load(
            BulkLoad(self.ops, self.access, thread, start, block.size, barrier, block.read)
        )

    def _start_store(self, wave: Wave, thread: int, address: int, block: _Block) -> None:
        start = SHARED.start_of(wave, thread, address, self.access, block.size)
        pieces = np.arange(address, address + block.size, _BULK_ALIGNMENT)
        SHARED.examine(wave, np.full(len(pieces), thread), pieces, self.access)
        if wave.monitor is not None:
            wave.monitor.bulk_copy(
                wave, thread, self.outside, self.access, block.rows(), block.size
            )
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


def _copy(ops: Operands, parts: list[str], operands: int, alignment: int) -> _Copy:
    """The copy of a form whose first `operands` operands are its two ends and what they need.

    Behind them come the mbarrier of a load, the mask of a multicast, and a cache policy.
    """
    has_hint, is_many = _HINT in parts, _MANY in parts
    match [part for part in parts if part != _HINT]:
        case [target, "global", "mbarrier::complete_tx::bytes"] if target in _TO_SHARED:
            is_load = True
        case ["shared::cluster", "global", "mbarrier::complete_tx::bytes", _] if is_many:
            is_load = True
        case ["global", "shared::cta", "bulk_group"]:
            is_load = False
        case _:
            ops.refuse("is not supported in the emulator")
    ops.expect_count(operands + is_load + is_many + has_hint)
    return _Copy(
        ops,
        is_load,
        address_reader(ops, 0 if is_load else 1),
        address_reader(ops, operands) if is_load else None,
        alignment,
        CLUSTER if "shared::cluster" in parts else SHARED,
        ops.read(operands + 1, U16) if is_many else None,
    )


def _block_copy(ops: Operands, parts: list[str]) -> Step:
    """`[target], [source], size{, [mbar]}{, mask}{, policy}`: consecutive bytes."""
    copy = _copy(ops, parts, 3, _BULK_ALIGNMENT)
    address, size = address_reader(ops, 1 if copy.is_load else 0), ops.read(2, U32)

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
    """`[target], [map, {...}], [mbar]{, mask}{, policy}` or `[map, {...}], [source]{, policy}`."""
    rank = int(dimensions[0]) if dimensions in ("1d", "2d", "3d", "4d", "5d") else 0
    if not rank:
        ops.refuse("takes .1d, .2d, .3d, .4d or .5d")
    copy = _copy(ops, parts, 2, _TENSOR_ALIGNMENT)
    base, coordinates = _tensor_operand(ops, 1 if copy.is_load else 0, rank)

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


def _check_column(copy: _Copy, wave: Wave, thread: int, column: int, item: int) -> None:
    """An H200 refuses boxes that do not start at whole 16 bytes of a row."""
    if column * item % _BULK_ALIGNMENT:
        copy.ops.report(
            FindingKind.ALIGNMENT,
            wave,
            thread,
            f"copies a box whose rows start at element {column}, byte {column * item} of those of "
            f"the tensor, which is no multiple of {_BULK_ALIGNMENT}",
            help="let the innermost coordinate be a multiple of 16 bytes",
        )


def _check_not_in_front(copy: _Copy, wave: Wave, thread: int, start: Sequence[int]) -> None:
    """An H200 reads boxes that start in front of a tensor, but does not write them."""
    if min(start) < 0:
        copy.ops.report(
            FindingKind.BOUNDS,
            wave,
            thread,
            f"stores a box that starts in front of the tensor, at {tuple(start)}",
            help="store from the first element of the tensor on; past its end nothing is written",
        )


def _box(copy: _Copy, wave: Wave, thread: int, place: BoxPlace) -> Callable[[int], _Block]:
    """The block of a box: its part inside the tensor, zeros outside."""
    found, store = place.tensor_map, wave.memories.buffers.store
    _check_column(copy, wave, thread, place.start[-1], found.element_bytes)
    if not copy.is_load:
        _check_not_in_front(copy, wave, thread, place.start)
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
