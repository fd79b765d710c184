"""The shape of an instruction: its form with one suffix and one number of operands.

A shape answers everything that is the same for all instructions of that spelling: register
classes, how to write the operands in IR and in PTX, what the chip must have. Shapes are computed
once and cached per opcode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.signatures import Item, ItemKind, Literal, Signature, Slot
from phobos.dialects.ptx.types import RegisterType
from phobos.record import Record, record

OFFSET_NAMES = ("offset", "source_offset", "barrier_offset")
"""Properties that hold the constant offsets of the first, second and third address."""


@record
class Spelling(Record):
    """How PTX writes an instruction: its mnemonic, and operands that are always the same."""

    mnemonic: str
    fixed_operands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shape:
    """A form filled in for one suffix and one count of results and operands."""

    form: Form
    signature: Signature
    template: str
    """The PTX line with a ``%s`` for each text, without guard, tab and line end."""

    result_slots: tuple[Slot, ...] = field(init=False)
    operand_slots: tuple[Slot, ...] = field(init=False)
    result_types: tuple[RegisterType, ...] = field(init=False)
    """The usual classes of the results."""
    literals: tuple[Literal | None, ...] = field(init=False)
    """For each operand how a constant may be written in its place."""
    immediates: tuple[Item, ...] = field(init=False)
    addresses: tuple[int, ...] = field(init=False)
    """Which operands are bases of addresses, in order."""
    is_plain: bool = field(init=False)
    """Whether the texts of the PTX line are just results and operands in order."""
    ties: tuple[tuple[int, int], ...] = field(init=False)
    """Operands and the results that have their registers, as indices."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        operands = tuple(s for item in self.signature.operands for s in item.slots)
        results = tuple(s for item in self.signature.results for s in item.slots)
        kinds = [item.kind for item in self.signature.operands]
        set_field(self, "result_slots", results)
        set_field(self, "operand_slots", operands)
        set_field(self, "result_types", tuple(slot.classes[0] for slot in results))
        set_field(self, "literals", tuple(slot.literal for slot in operands))
        set_field(
            self,
            "immediates",
            tuple(i for i in self.signature.operands if i.kind is ItemKind.IMMEDIATE),
        )
        set_field(
            self,
            "addresses",
            tuple(i for i, slot in enumerate(operands) if slot.literal is Literal.ADDRESS),
        )
        set_field(
            self,
            "is_plain",
            ItemKind.IMMEDIATE not in kinds
            and ItemKind.ADDRESS not in kinds
            and not any(item.tied for item in self.signature.operands),
        )
        tied = [item.tied for item in self.signature.operands for _ in item.slots]
        reads = (index for index, is_tied in enumerate(tied) if is_tied)
        set_field(self, "ties", tuple((index, result) for result, index in enumerate(reads)))


def find_shape(
    forms: Sequence[Form], spelling: Spelling, suffix: str, results: int, operands: int
) -> Shape | None:
    """The shape of the first form that has this suffix and these counts, or None."""
    for form in forms:
        if not form.matches(suffix):
            continue
        signature = form.resolve(suffix, results)
        if _count(signature.results) == results and _count(signature.operands) == operands:
            return Shape(form, signature, _template(spelling, signature))
    return None


def _count(items: Sequence[Item]) -> int:
    return sum(len(item.slots) for item in items)


def _template(spelling: Spelling, signature: Signature) -> str:
    destinations = ""
    for item in signature.results:
        if not item.is_written:
            continue
        separator = "" if not destinations else "|" if item.bar else ", "
        destinations += separator + _item_template(item)
    items = [destinations] if destinations else []
    items.extend(
        _item_template(item) for item in signature.operands if item.is_written and not item.tied
    )
    items.extend(text.replace("%", "%%") for text in spelling.fixed_operands)
    head = spelling.mnemonic
    return f"{head} {', '.join(items)};" if items else f"{head};"


def _item_template(item: Item) -> str:
    match item.kind:
        case ItemKind.VECTOR:
            return "{" + ", ".join(["%s"] * len(item.slots)) + "}"
        case ItemKind.ADDRESS:
            return "[%s]"
        case ItemKind.TENSOR:
            return "[%s, {" + ", ".join(["%s"] * (len(item.slots) - 1)) + "}]"
        case ItemKind.SINK:
            return "_"
        case _:
            return "%s"
