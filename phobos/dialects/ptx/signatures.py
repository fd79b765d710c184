"""What registers, addresses and literals an instruction takes, as a small table language.

A signature is written as in the PTX manual, destinations first::

    t = t, t                 add: all of the class of the last type in the suffix
    t0 = t1                  cvt: class of the first and of the second type
    b32|pred = b32, b32      shfl: a second destination behind a bar
    m* = []                  ld: a vector as long as the suffix says (.v4, .x4), and an address
    f32{4} = b32!{4}, ...    mma: four registers in braces; `!` takes no literal
    b32{n/2} = &b32{n/2}, b64!     wgmma: half of the N of the shape m64nNkK; `&` is tied, see below
    b32{..} = &b32{..}       wgmma.fence: any number of registers, which PTX does not name
    [shared], [global], #4|8|16    cp.async: addresses in fixed spaces, a literal of three values
    #24..256/8               setmaxnreg: a literal of a range with steps
    _ = [shared]             mbarrier.arrive: a destination that PTX wants named and nobody needs
    [map]{2}                 cp.async.bulk.tensor: a tensor map and two coordinates, innermost first

Register words: ``t t0 t1 ..`` a type of the suffix, ``w`` twice as wide as ``t``, ``m`` (``m0`` ..)
like ``t`` but 8 and 16-bit types may sit in a wider register, ``n`` (``n0`` ..) the same for 8-bit
types only, or the name of a type.

A tied operand is in the register of a result, which PTX names once, as what is read and written:
the first results are those of the tied operands, in order.
"""

from __future__ import annotations

import re
from enum import Enum, StrEnum
from functools import cache

from phobos.dialects.ptx.types import (
    B16,
    B32,
    B64,
    NARROW_SUFFIXES,
    PRED,
    TYPE_SUFFIXES,
    RegisterType,
)
from phobos.record import Value, record


class Literal(StrEnum):
    """How the printer writes a constant that PTX takes in place of a register."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    BITS = "bits"
    F32 = "f32"
    F64 = "f64"
    PREDICATE = "predicate"
    ADDRESS = "address"


class ItemKind(Enum):
    """What one operand of an instruction is."""

    REGISTER = "register"
    VECTOR = "vector"
    ADDRESS = "address"
    TENSOR = "tensor"
    """The address of a tensor map, and coordinates."""
    IMMEDIATE = "immediate"
    SINK = "sink"
    """A destination that is not kept."""


@record
class Slot(Value):
    """One register operand or result: the classes it may have, the usual one first.

    ``literal`` says how a constant is written in its place, None if PTX wants a register there.
    """

    classes: tuple[RegisterType, ...]
    literal: Literal | None


@record
class Item(Value):
    """One operand of an instruction as it is written.

    Registers, vectors and addresses have slots (an address has one, its base; a tensor that of its
    map, which takes no offset, and those of its coordinates). An immediate has the set of values
    it may take (None: any). A tied operand is in the registers of results, and
    ``is_written`` says whether PTX names the item at all.
    """

    kind: ItemKind
    slots: tuple[Slot, ...] = ()
    values: range | tuple[int, ...] | None = None
    bar: bool = False
    tied: bool = False
    is_written: bool = True


@record
class Signature(Value):
    """A signature with the types of one concrete suffix filled in."""

    results: tuple[Item, ...]
    operands: tuple[Item, ...]


_LITERALS: dict[str, Literal | None] = {
    **dict.fromkeys(("s8", "s16", "s32", "s64"), Literal.SIGNED),
    **dict.fromkeys(("u8", "u16", "u32", "u64"), Literal.UNSIGNED),
    **dict.fromkeys(("b8", "b16", "b32", "b64"), Literal.BITS),
    "f32": Literal.F32,
    "f64": Literal.F64,
    "pred": Literal.PREDICATE,
}
"""Types whose operands may be literals; ptxas refuses them for f16, bf16 and packed types."""

_WIDER = {B16: B32, B32: B64}

_SPACES = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "const",
)

_LENGTHS = ("v2", "v4", "v8", "x1", "x2", "x4")
"""Qualifiers that say how many registers a vector has."""

_ITEM = re.compile(
    r"(?P<tied>&)?(?P<word>[a-z]\w*)(?P<only>!)?(?P<vector>\*|\{(?:\d+|n/\d|\.\.)\})?"
    r"|\[(?P<space>[a-z:]*)\]"
    r"|\[map\]\{(?P<coordinates>\d)\}"
    r"|#(?P<values>[-\d.|/]*)"
    r"|(?P<sink>_)"
)

_COLUMNS = re.compile(r"m\d+n(\d+)k\d+")
"""The N of a shape."""

TIED = "&"
"""Marks operands that are in the registers of results."""

ANY_NUMBER = "{..}"
"""Marks the registers of which there may be any number."""


def split_signature(text: str) -> tuple[list[tuple[str, bool]], list[str]]:
    """Cut a signature into result words (with: stands behind a bar) and operand words."""
    results_text, equals, operands_text = text.partition("=")
    if not equals:
        results_text, operands_text = "", text
    results: list[tuple[str, bool]] = []
    for group in _words(results_text):
        for index, word in enumerate(group.split("|")):
            results.append((word.strip(), index > 0))
    return results, _words(operands_text)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


@cache
def resolve_signature(text: str, suffix: str, many: int = 0) -> Signature:
    """Fill the types, vector length and state space of a suffix into a signature.

    ``many`` is how many registers there are where there may be any number; without any the item
    is missing.
    """
    parts = tuple(suffix.split("."))
    results, operands = split_signature(text)
    if not many:
        results = [(word, bar) for word, bar in results if not word.endswith(ANY_NUMBER)]
        operands = [word for word in operands if not word.endswith(ANY_NUMBER)]
    return Signature(
        tuple(_resolve_item(word, parts, bar, many) for word, bar in results),
        tuple(_resolve_item(word, parts, False, many) for word in operands),
    )


def _resolve_item(word: str, parts: tuple[str, ...], bar: bool, many: int) -> Item:
    match = _ITEM.fullmatch(word)
    assert match is not None, f"malformed signature item {word!r}"
    if match["values"] is not None:
        return Item(ItemKind.IMMEDIATE, values=_immediate_values(match["values"]))
    if match["sink"]:
        return Item(ItemKind.SINK)
    if match["coordinates"] is not None:
        coordinate = _register_slot("s32", parts)
        return Item(ItemKind.TENSOR, (_MAP, *(coordinate,) * int(match["coordinates"])))
    if match["space"] is not None:
        return Item(ItemKind.ADDRESS, (_address_slot(match["space"] or _space_of(parts)),))
    slot = _register_slot(match["word"], parts)
    if match["only"]:
        slot = Slot(slot.classes, None)
    vector = match["vector"]
    if vector is None:
        return Item(ItemKind.REGISTER, (slot,), bar=bar)
    if vector != "*":
        count = _count(vector[1:-1], parts, many)
        written = vector != ANY_NUMBER
        return Item(
            ItemKind.VECTOR, (slot,) * count, tied=match["tied"] is not None, is_written=written
        )
    length = _vector_length(parts)
    if length is None:
        return Item(ItemKind.REGISTER, (slot,))
    return Item(ItemKind.VECTOR, (slot,) * length)


def _count(text: str, parts: tuple[str, ...], many: int) -> int:
    """The number of registers that the text in braces stands for."""
    if text == "..":
        return many
    if not text.startswith("n/"):
        return int(text)
    columns = next(int(m[1]) for m in map(_COLUMNS.fullmatch, parts) if m is not None)
    return columns // int(text[2:])


def _immediate_values(text: str) -> range | tuple[int, ...] | None:
    if not text:
        return None
    if ".." in text:
        low, high, *step = map(int, re.split(r"\.\.|/", text))
        return range(low, high + 1, *step)
    return tuple(map(int, text.split("|")))


def _space_of(parts: tuple[str, ...]) -> str:
    return next((part for part in parts if part in _SPACES), "generic")


def _address_slot(space: str) -> Slot:
    base = B32 if space.startswith("shared") else B64
    return Slot((base,), Literal.ADDRESS)


def _vector_length(parts: tuple[str, ...]) -> int | None:
    lengths = (int(part[1:]) for part in parts if part in _LENGTHS)
    return next(lengths, None)


def _register_slot(word: str, parts: tuple[str, ...]) -> Slot:
    if word in TYPE_SUFFIXES:
        return Slot((TYPE_SUFFIXES[word],), _LITERALS.get(word))
    kind, index = word[0], word[1:]
    types = [part for part in parts if part in TYPE_SUFFIXES]
    type_name = types[int(index) if index else -1]
    register = TYPE_SUFFIXES[type_name]
    literal = _LITERALS.get(type_name)
    if kind == "t":
        return Slot((register,), literal)
    if kind == "w":
        return Slot((_WIDER[register],), literal)
    assert kind in "mn", f"malformed signature word {word!r}"
    narrow = NARROW_SUFFIXES.get(type_name)
    if narrow is None or (kind == "n" and narrow > 8):
        return Slot((register,), literal)
    return Slot((B16, B32, B64), literal)


_MAP = Slot((B64,), None)
"""The slot of the generic address of a tensor map."""

PREDICATE_SLOT = Slot((PRED,), None)
"""The slot of a guard."""
