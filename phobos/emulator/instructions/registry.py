"""The table of decoders: which function decodes which opcode on which kind of type."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from phobos.emulator.decode import Operands, Step
from phobos.emulator.types import TYPES, Kind

Decoder: TypeAlias = Callable[[Operands], Step]


class Family(Enum):
    """The kinds of type that an opcode is decoded apart for."""

    ANY = "any type"
    INTEGER = "integers, bits and predicates"
    FLOAT = "f32 and f64"
    HALF = "f16 and bf16, single and packed"
    PACKED = "packed 16-bit integers and f32 pairs"


_DECODERS: dict[tuple[str, Family], Decoder] = {}
_HALVES = frozenset({"f16", "bf16", "f16x2", "bf16x2"})
_PACKED = frozenset({"u16x2", "s16x2", "f32x2"})


def decodes(*opcodes: str, family: Family = Family.ANY) -> Callable[[Decoder], Decoder]:
    """Register a decoder for opcodes whose last type belongs to `family`."""

    def register(decoder: Decoder) -> Decoder:
        for opcode in opcodes:
            _DECODERS[opcode, family] = decoder
        return decoder

    return register


def find_decoder(opcode: str, suffix: tuple[str, ...]) -> Decoder | None:
    """The decoder of an instruction, or None if the emulator has none."""
    types = [part for part in suffix if part in TYPES]
    own = _DECODERS.get((opcode, family_of(types[-1]))) if types else None
    return own or _DECODERS.get((opcode, Family.ANY))


def is_known(opcode: str) -> bool:
    """Whether any decoder exists for an opcode."""
    return any((opcode, family) in _DECODERS for family in Family)


def family_of(name: str) -> Family:
    """The family of a type."""
    if name in _HALVES:
        return Family.HALF
    if name in _PACKED:
        return Family.PACKED
    return Family.FLOAT if TYPES[name].kind is Kind.FLOAT else Family.INTEGER
