"""Assembly format of instructions: one parser and one printer for all, driven by their shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, SSAValue

from phobos.dialects.ptx.attributes import (
    GUARD_IF,
    GUARD_UNLESS,
    immediates_attr,
    parse_optional_suffix_text,
    suffix_attr,
)
from phobos.dialects.ptx.instruction import Instruction
from phobos.dialects.ptx.shape import OFFSET_NAMES
from phobos.dialects.ptx.signatures import ItemKind, Signature, Slot
from phobos.dialects.ptx.types import PRED, REGISTER_TYPES, RegisterType

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand
    from xdsl.printer import Printer

InstructionT = TypeVar("InstructionT", bound=Instruction)

Structure = list[tuple[ItemKind, int]]
"""Kind and register count of each operand, all that the text of an instruction shows."""


@dataclass
class _Operands:
    """Operands as read from text, before their classes are known."""

    structure: Structure = field(default_factory=list)
    registers: list[UnresolvedOperand] = field(default_factory=list)
    immediates: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)


def parse_instruction(cls: type[InstructionT], parser: Parser) -> InstructionT:
    """Parse an instruction behind its name."""
    start = parser.pos
    suffix = _parse_suffix(cls, parser)
    if not any(form.matches(suffix) for form in cls.forms):
        known = ", ".join(f"`{form.pattern}`" for form in cls.forms)
        parser.raise_error(
            f"`{cls.spelling(suffix).mnemonic}` is no form of `{cls.opcode}`; these are: {known}",
            start,
            parser.pos,
        )
    items = _parse_operands(cls, suffix, parser)
    guard = _parse_guard(parser)
    operand_classes = _parse_classes(parser, ":")
    result_classes = _parse_classes(parser, "->")
    signature = _signature_for(cls, suffix, items.structure, result_classes)
    if signature is None:
        wanted = " or ".join(f"`{f.signature}`" for f in cls.forms if f.matches(suffix))
        parser.raise_error(f"`{cls.spelling(suffix).mnemonic}` takes {wanted}", start, parser.pos)
    if operand_classes is None:
        operand_classes = _usual_operands(signature)
    if result_classes is None:
        result_classes = _usual_results(signature)
    if len(operand_classes) != len(items.registers):
        parser.raise_error(
            f"{len(items.registers)} operands but {len(operand_classes)} register classes", start
        )
    operands: list[SSAValue] = [
        parser.resolve_operand(operand, register)
        for operand, register in zip(items.registers, operand_classes, strict=True)
    ]
    properties = _properties(suffix, items)
    if guard is not None:
        predicate, negated, otherwise = guard
        if len(otherwise) != len(result_classes):
            parser.raise_error(
                f"a guarded instruction has one `else` value per result: {len(result_classes)}, "
                f"got {len(otherwise)}"
            )
        properties["guard"] = GUARD_UNLESS if negated else GUARD_IF
        operands.append(parser.resolve_operand(predicate, PRED))
        operands.extend(map(parser.resolve_operand, otherwise, result_classes))
    attributes = parser.parse_optional_attr_dict()
    return cls.create(
        operands=operands,
        result_types=result_classes,
        properties=properties,
        attributes=attributes,
    )


def _parse_suffix(cls: type[Instruction], parser: Parser) -> str:
    if all(form.pattern == "" for form in cls.forms):
        return ""
    return parse_optional_suffix_text(parser, is_numbered=cls.is_numbered) or ""


def _parse_operands(cls: type[Instruction], suffix: str, parser: Parser) -> _Operands:
    """Operands if the instruction has any; if not, a register starts the next operation."""
    forms = [form for form in cls.forms if form.matches(suffix)]
    if any(form.resolve(suffix).operands for form in forms):
        return _parse_items(parser)
    items = _Operands()
    if any(form.takes_any_number for form in forms):
        _parse_optional_vector(parser, items)
    return items


def _properties(suffix: str, items: _Operands) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {}
    if suffix:
        properties["suffix"] = suffix_attr(suffix)
    if items.immediates:
        properties["immediates"] = immediates_attr(tuple(items.immediates))
    for name, offset in zip(OFFSET_NAMES, items.offsets, strict=False):
        if offset:
            properties[name] = IntAttr(offset)
    return properties


def _parse_items(parser: Parser) -> _Operands:
    items = _Operands()
    if not _parse_optional_item(parser, items):
        return items
    while parser.parse_optional_punctuation(","):
        if not _parse_optional_item(parser, items):
            parser.raise_error("expected an operand")
    return items


def _parse_optional_item(parser: Parser, items: _Operands) -> bool:
    register = parser.parse_optional_unresolved_operand()
    if register is not None:
        items.structure.append((ItemKind.REGISTER, 1))
        items.registers.append(register)
        return True
    literal = parser.parse_optional_integer(allow_boolean=False)
    if literal is not None:
        items.structure.append((ItemKind.IMMEDIATE, 0))
        items.immediates.append(literal)
        return True
    if parser.parse_optional_punctuation("["):
        _parse_address(parser, items)
        parser.parse_punctuation("]")
        return True
    return _parse_optional_vector(parser, items)


def _parse_address(parser: Parser, items: _Operands) -> None:
    """A base with an offset, or a tensor map with coordinates."""
    items.registers.append(parser.parse_unresolved_operand())
    if parser.parse_optional_punctuation(","):
        parser.parse_punctuation("{")
        coordinates = _parse_vector(parser)
        items.structure.append((ItemKind.TENSOR, 1 + len(coordinates)))
        items.registers.extend(coordinates)
    else:
        items.structure.append((ItemKind.ADDRESS, 1))
        items.offsets.append(_parse_offset(parser))


def _parse_optional_vector(parser: Parser, items: _Operands) -> bool:
    if not parser.parse_optional_punctuation("{"):
        return False
    vector = _parse_vector(parser)
    items.structure.append((ItemKind.VECTOR, len(vector)))
    items.registers.extend(vector)
    return True


def _parse_vector(parser: Parser) -> list[UnresolvedOperand]:
    """The registers of a vector and the brace that closes it."""
    vector = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation("}")
    return vector


def _parse_offset(parser: Parser) -> int:
    if parser.parse_optional_punctuation("+"):
        return parser.parse_integer(allow_boolean=False)
    return parser.parse_optional_integer(allow_boolean=False) or 0


def _parse_guard(
    parser: Parser,
) -> tuple[UnresolvedOperand, bool, list[UnresolvedOperand]] | None:
    if parser.parse_optional_keyword("guard") is None:
        return None
    negated = parser.parse_optional_keyword("not") is not None
    predicate = parser.parse_unresolved_operand()
    otherwise: list[UnresolvedOperand] = []
    if parser.parse_optional_keyword("else"):
        otherwise = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
    return predicate, negated, otherwise


def _parse_classes(parser: Parser, introducer: str) -> tuple[RegisterType, ...] | None:
    mark = ":" if introducer == ":" else "->"
    if parser.parse_optional_punctuation(mark) is None:
        return None
    return tuple(
        parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: parse_register_class(parser)
        )
    )


def parse_register_class(parser: Parser) -> RegisterType:
    """Parse a bare register class such as ``b32``."""
    name = parser.parse_identifier()
    register = REGISTER_TYPES.get(name)
    if register is None:
        parser.raise_error(f"expected a register class ({', '.join(REGISTER_TYPES)})")
    return register


def _signature_for(
    cls: type[Instruction],
    suffix: str,
    structure: Structure,
    results: Sequence[Attribute] | None,
) -> Signature | None:
    """The signature of the first form with this suffix, these operands and these results."""
    many = next((count for kind, count in structure if kind is ItemKind.VECTOR), 0)
    for form in cls.forms:
        if not form.matches(suffix):
            continue
        signature = form.resolve(suffix, many)
        if [(item.kind, len(item.slots)) for item in signature.operands] != structure:
            continue
        if results is None or _accepts_results(signature, results):
            return signature
    return None


def _accepts_results(signature: Signature, results: Sequence[Attribute]) -> bool:
    slots = [slot for item in signature.results for slot in item.slots]
    return len(slots) == len(results) and all(
        result in slot.classes for result, slot in zip(results, slots, strict=True)
    )


def _usual_operands(signature: Signature) -> tuple[RegisterType, ...]:
    return tuple(slot.classes[0] for item in signature.operands for slot in item.slots)


def _usual_results(signature: Signature) -> tuple[RegisterType, ...]:
    return tuple(slot.classes[0] for item in signature.results for slot in item.slots)


def print_instruction(op: Instruction, printer: Printer) -> None:
    """Print an instruction behind its name; the op must have a shape."""
    suffix = op.suffix
    if suffix:
        printer.print_string(" " + suffix)
    signature = op.shape.signature
    _print_items(op, signature, printer)
    if op.guard is not None:
        printer.print_string(" guard not " if op.negate_guard else " guard ")
        printer.print_ssa_value(op.guard)
        if op.otherwise:
            printer.print_string(" else ")
            printer.print_list(op.otherwise, printer.print_ssa_value)
    operand_types = tuple(value.type for value in op.own_operands)
    if operand_types != _usual_operands(signature):
        printer.print_string(" : " + format_classes(operand_types))
    structure = [(item.kind, len(item.slots)) for item in signature.operands]
    usual = _signature_for(type(op), suffix, structure, None)
    if usual is None or op.result_types != _usual_results(usual):
        printer.print_string(" -> " + format_classes(op.result_types))
    if op.attributes:
        printer.print_op_attributes(op.attributes)


def format_classes(types: Sequence[Attribute]) -> str:
    """Write register types as bare classes, ``b32, pred``."""
    return ", ".join(t.data if isinstance(t, RegisterType) else str(t) for t in types)


def _print_items(op: Instruction, signature: Signature, printer: Printer) -> None:
    registers = iter(op.own_operands)
    immediates = iter(op.immediates)
    address = 0
    separator = " "
    for item in signature.operands:
        printer.print_string(separator)
        separator = ", "
        match item.kind:
            case ItemKind.REGISTER:
                printer.print_ssa_value(next(registers))
            case ItemKind.IMMEDIATE:
                printer.print_string(str(next(immediates)))
            case ItemKind.VECTOR:
                _print_vector(item.slots, registers, printer)
            case ItemKind.TENSOR:
                printer.print_string("[")
                printer.print_ssa_value(next(registers))
                printer.print_string(", ")
                _print_vector(item.slots[1:], registers, printer)
                printer.print_string("]")
            case ItemKind.SINK:
                raise AssertionError("a sink is no operand")
            case ItemKind.ADDRESS:
                printer.print_string("[")
                printer.print_ssa_value(next(registers))
                offset = op.offset(address)
                address += 1
                if offset:
                    printer.print_string(f" + {offset}")
                printer.print_string("]")


def _print_vector(slots: Sequence[Slot], registers: Iterator[SSAValue], printer: Printer) -> None:
    printer.print_string("{")
    printer.print_list([next(registers) for _ in slots], printer.print_ssa_value)
    printer.print_string("}")
