"""`cp.async`: asynchronous copies from global to shared memory, and waiting for them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from phobos.emulator.asynchronous import Copy
from phobos.emulator.decode import Operands, Reader, Step
from phobos.emulator.instructions.bulk_copy import bulk_copy
from phobos.emulator.instructions.registry import decodes
from phobos.emulator.memory.access import Access
from phobos.emulator.memory.dispatch import address_reader
from phobos.emulator.memory.spaces import GLOBAL, SHARED
from phobos.emulator.types import PRED, U32, Selection
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Immediate, Register

_SIZES = {"ca": (4, 8, 16), "cg": (16,)}


@decodes("cp")
def _cp(ops: Operands) -> Step:
    match ops.instruction.suffix:
        case ("async", "commit_group"):
            return lambda wave, sel: wave.copies.commit(sel)
        case ("async", "wait_group"):
            in_flight = ops.immediate(0, "the number of groups")
            return lambda wave, sel: wave.copies.wait(sel, in_flight)
        case ("async", "wait_all"):
            return lambda wave, sel: wave.copies.wait_all(sel)
        case ("async", ("ca" | "cg") as level, "shared" | "shared::cta", "global", *hints):
            return _copy(ops, level, hints)
        case ("async", "bulk", *_):
            return bulk_copy(ops)
    ops.refuse("is not supported in the emulator")


def _copy(ops: Operands, level: str, hints: list[str]) -> Step:
    has_policy = "L2::cache_hint" in hints
    ops.expect_count(*((4, 5) if has_policy else (3, 4)))
    size = ops.immediate(2, "the size")
    if size not in _SIZES[level]:
        allowed = ", ".join(str(number) for number in _SIZES[level])
        ops.refuse(f"copies {allowed} bytes, got {size}")
    target, source = address_reader(ops, 0), address_reader(ops, 1)
    length = _length(ops, size, ops.count - has_policy)
    write = Access(ops, "copies to", size, is_write=True, is_read=False)
    read = Access(ops, "copies from", size, is_write=False)

    def step(wave: Wave, sel: Selection) -> None:
        count = wave.count(sel)
        lengths = np.broadcast_to(length(wave, sel).astype(np.int64), (count,))
        goal = np.array(np.broadcast_to(target(wave, sel), (count,)))
        origin = np.array(np.broadcast_to(source(wave, sel), (count,)))
        store, index = SHARED.open(wave, sel, goal, write)
        from_index = _source_index(wave, sel, origin, lengths, read)
        threads = wave.selected(sel)
        wave.copies.issue(
            Copy(
                operands=ops,
                access=write,
                threads=threads,
                group=wave.copies.group_of(threads),
                source=wave.memories.buffers.store,
                source_index=from_index,
                target=store,
                target_index=np.array(np.broadcast_to(index, (count,))),
                length=lengths,
                size=size,
            )
        )

    return step


def _length(ops: Operands, size: int, count: int) -> Reader:
    """How many bytes each thread really reads: a third size operand, or a predicate for none."""
    if count == 3:
        return ops.reader(Immediate(size), U32)
    operand = ops.operand(3)
    if isinstance(operand, Register) and operand.type == "pred":
        ignore = ops.reader(operand, PRED)
        return lambda wave, sel: np.where(ignore(wave, sel), 0, size)
    read = ops.reader(operand, U32)
    return lambda wave, sel: np.minimum(read(wave, sel), np.uint32(size))


def _source_index(
    wave: Wave,
    sel: Selection,
    address: npt.NDArray[np.uint64],
    lengths: npt.NDArray[np.int64],
    access: Access,
) -> npt.NDArray[np.int64]:
    """Byte indices of the sources, checked for the bytes that are really read."""
    access.check_alignment(wave, sel, np.where(lengths == 0, np.uint64(0), address))
    index = np.zeros(len(address), dtype=np.int64)
    for length in np.unique(lengths).tolist():
        mask = lengths == length
        if length == 0:
            continue
        threads = sel if mask.all() else wave.narrow(sel, mask)
        start = address[mask]
        # Bytes in front of an odd length are checked one by one: no access has such a size.
        for offset, part in _parts(length):
            _, found = GLOBAL.open(wave, threads, start + np.uint64(offset), access.of_size(part))
            if offset == 0:
                index[mask] = found
    return index


def _parts(length: int) -> list[tuple[int, int]]:
    """A length as offsets and sizes that are powers of two, largest first."""
    parts, offset = [], 0
    while offset < length:
        part = 1 << (length - offset).bit_length() - 1
        parts.append((offset, part))
        offset += part
    return parts
