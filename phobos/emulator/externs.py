"""The functions that every CUDA program may call without defining: `vprintf` and assertions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from phobos.emulator.blocks import Onward, Terminator
from phobos.emulator.decode import Operands
from phobos.emulator.errors import FindingKind
from phobos.emulator.memory.regions import GLOBAL_REGION, LOCAL_REGION, REGION_SHIFT
from phobos.emulator.types import Selection
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import Operand, Symbol

if TYPE_CHECKING:
    from phobos.emulator.control import Places
    from phobos.emulator.schedule import Scheduler

ASSERTIONS = frozenset({"__assertfail", "__assert_fail"})
_LONGEST_STRING = 4096
_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d*)?"
    r"(?P<size>hh|h|ll|l|j|z|t)?(?P<letter>[diouxXeEfFgGaAcsp%])"
)
_WIDE = frozenset({"l", "ll", "j", "z", "t"})


class ThreadMemory:
    """Memory as one thread reads it through generic addresses."""

    def __init__(self, wave: Wave, thread: int) -> None:
        self._wave = wave
        self._thread = thread

    def read(self, address: int, size: int) -> bytes:
        """Up to `size` bytes at a generic address; fewer at the end of a buffer."""
        region = address >> REGION_SHIFT
        memories = self._wave.memories
        if region == LOCAL_REGION:
            start = self._thread * memories.local.stride + (address & 0xFFFFFFFF)
            return memories.local.store.bytes[start : start + size].tobytes()
        buffer = memories.buffers.buffer_at(address) if region == GLOBAL_REGION else None
        if buffer is None:
            return b""
        offset = address - buffer.address
        return memories.buffers.bytes_of(buffer)[offset : offset + size].tobytes()

    def local(self, offset: int, size: int) -> int:
        """An integer of the thread's local memory."""
        start = self._thread * self._wave.memories.local.stride + offset
        raw = self._wave.memories.local.store.bytes[start : start + size]
        return int.from_bytes(raw.tobytes(), "little")

    def string(self, address: int) -> str:
        """The text of a C string."""
        return self.read(address, _LONGEST_STRING).split(b"\0")[0].decode(errors="replace")


def _offsets(ops: Operands, arguments: Sequence[Operand], count: int) -> list[int]:
    """Where the arguments of a call lie in local memory."""
    if len(arguments) != count:
        ops.refuse(f"takes {count} arguments, got {len(arguments)}")
    places = []
    for argument in arguments:
        if not isinstance(argument, Symbol):
            ops.refuse("takes arguments in `.param` space")
        places.append(ops.environment.layout.address_of(ops, argument))
    return places


def assertion_terminator(ops: Operands, arguments: Sequence[Operand]) -> Terminator:
    """`__assertfail(message, file, line, function, character size)`: a trap that says why."""
    places = _offsets(ops, arguments, 5)

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        wave = scheduler.wave
        thread = int(wave.selected(sel)[0])
        memory = ThreadMemory(wave, thread)
        message = memory.string(memory.local(places[0], 8))
        file, line = memory.string(memory.local(places[1], 8)), memory.local(places[2], 4)
        where = f" at {file.rsplit('/', 1)[-1]}:{line}" if file else ""
        ops.report(FindingKind.TRAP, wave, thread, f"fails the assertion `{message}`{where}")

    return terminate


def print_terminator(
    ops: Operands, results: Sequence[Operand], arguments: Sequence[Operand], places: Places
) -> Terminator:
    """`vprintf(format, values)`: the text of every thread, in thread order. It returns 0."""
    format_place, values_place = _offsets(ops, arguments, 2)
    result_places = _offsets(ops, results, len(results))

    def terminate(scheduler: Scheduler, sel: Selection) -> Onward:
        wave = scheduler.wave
        for thread in wave.selected(sel).tolist():
            memory = ThreadMemory(wave, thread)
            text = memory.string(memory.local(format_place, 8))
            wave.output(format_values(text, memory, memory.local(values_place, 8)))
            for place in result_places:
                start = np.array(thread * wave.memories.local.stride + place)
                wave.memories.local.store.store(start, 4, np.array(np.uint32(0)))
        return places.following, sel

    return terminate


def format_values(text: str, memory: ThreadMemory, address: int) -> str:
    """Format like C's printf, with the values packed behind `address`."""
    cursor = address

    def replace(match: re.Match[str]) -> str:
        nonlocal cursor
        letter = match["letter"]
        if letter == "%":
            return "%"
        size = 8 if letter in "eEfFgGaAsp" or match["size"] in _WIDE else 4
        cursor = -(-cursor // size) * size
        raw = memory.read(cursor, size)
        cursor += size
        return _format_one(match, letter, raw, memory)

    return _CONVERSION.sub(replace, text)


def _format_one(match: re.Match[str], letter: str, raw: bytes, memory: ThreadMemory) -> str:
    bits = int.from_bytes(raw, "little")
    spec = f"%{match['flags']}{match['width']}{match['precision'] or ''}"
    if letter in "eEfFgG":
        return (spec + letter) % float(np.frombuffer(raw, dtype=np.float64)[0])
    if letter in "di":
        return (spec + "d") % int.from_bytes(raw, "little", signed=True)
    if letter in "aA":
        return float(np.frombuffer(raw, dtype=np.float64)[0]).hex()
    if letter == "s":
        return (spec + "s") % memory.string(bits)
    if letter == "c":
        return (spec + "c") % chr(bits & 0xFF)
    if letter == "p":
        return f"{bits:#x}"
    return (spec + ("d" if letter == "u" else letter)) % bits
