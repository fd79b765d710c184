"""Branches and the ends of a kernel. Blocks take arguments; the PTX printer turns them to moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, OpTraits, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.ptx.assembly import format_classes, parse_register_class
from phobos.dialects.ptx.types import PRED

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

_TERMINATOR = OpTraits(lambda: (IsTerminator(),))


def _parse_edge(parser: Parser) -> tuple[Block, list[SSAValue]]:
    """Parse ``^bb1(%a, %b : b32, b64)``."""
    block = parser.parse_successor()
    if parser.parse_optional_punctuation("(") is None:
        return block, []
    start = parser.pos
    names = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, lambda: parse_register_class(parser)
    )
    parser.parse_punctuation(")")
    return block, list(parser.resolve_operands(names, types, start))


def _print_edge(printer: Printer, block: Block, values: Sequence[SSAValue]) -> None:
    printer.print_block_name(block)
    if not values:
        return
    printer.print_string("(")
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(f" : {format_classes([value.type for value in values])})")


def _verify_edge(op: Operation, block: Block, values: Sequence[SSAValue]) -> None:
    got, wanted = [v.type for v in values], list(block.arg_types)
    if got != wanted:
        raise VerifyException(
            f"`{op.name}` passes ({format_classes(got)}) to a block that takes "
            f"({format_classes(wanted)})"
        )


def _verify_position(op: Operation) -> None:
    if op.parent is not None and op.parent.last_op is not op:
        raise VerifyException(f"`{op.name}` ends a block, but more follows it")


class BraOp(Operation):
    """Branch: ``ptx.bra ^loop(%i : b32)``."""

    name = "ptx.bra"
    traits: ClassVar[OpTraits] = _TERMINATOR

    @property
    def target(self) -> Block:
        """Where the branch goes."""
        return self.successors[0]

    def verify_(self) -> None:
        """Check that the values passed are those the block takes."""
        if len(self.successors) != 1 or self.results:
            raise VerifyException("`ptx.bra` has one successor and no results")
        _verify_edge(self, self.target, self.operands)
        _verify_position(self)

    @classmethod
    def parse(cls, parser: Parser) -> BraOp:
        """Parse the edge."""
        block, values = _parse_edge(parser)
        return cls.create(
            operands=values, successors=(block,), attributes=parser.parse_optional_attr_dict()
        )

    def print(self, printer: Printer) -> None:
        """Print the edge."""
        printer.print_string(" ")
        _print_edge(printer, self.target, self.operands)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


class CondBraOp(Operation):
    """Branch on a predicate: ``ptx.cond_bra %p, ^then(%a : b32), ^else``.

    ``uniform`` says that all threads of a warp go the same way.
    """

    name = "ptx.cond_bra"
    traits: ClassVar[OpTraits] = _TERMINATOR

    @property
    def condition(self) -> SSAValue:
        """The predicate."""
        return self.operands[0]

    @property
    def is_uniform(self) -> bool:
        """Whether all threads of a warp are known to go the same way."""
        return "uniform" in self.properties

    @property
    def then_block(self) -> Block:
        """Where the branch goes if the predicate is true."""
        return self.successors[0]

    @property
    def else_block(self) -> Block:
        """Where the branch goes if the predicate is false."""
        return self.successors[1]

    @property
    def then_values(self) -> Sequence[SSAValue]:
        """The values passed to ``then_block``."""
        return self.operands[1 : 1 + len(self.then_block.args)]

    @property
    def else_values(self) -> Sequence[SSAValue]:
        """The values passed to ``else_block``."""
        return self.operands[1 + len(self.then_block.args) :]

    def verify_(self) -> None:
        """Check the predicate and the values passed along both edges."""
        if len(self.successors) != 2 or self.results or not self.operands:
            raise VerifyException("`ptx.cond_bra` has a predicate, two successors and no results")
        if self.condition.type != PRED:
            raise VerifyException("`ptx.cond_bra` branches on a predicate")
        _verify_edge(self, self.then_block, self.then_values)
        _verify_edge(self, self.else_block, self.else_values)
        _verify_position(self)

    @classmethod
    def parse(cls, parser: Parser) -> CondBraOp:
        """Parse the predicate and both edges."""
        properties: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("uniform"):
            properties["uniform"] = UnitAttr()
        condition = parser.resolve_operand(parser.parse_unresolved_operand(), PRED)
        parser.parse_punctuation(",")
        then_block, then_values = _parse_edge(parser)
        parser.parse_punctuation(",")
        else_block, else_values = _parse_edge(parser)
        return cls.create(
            operands=(condition, *then_values, *else_values),
            successors=(then_block, else_block),
            properties=properties,
            attributes=parser.parse_optional_attr_dict(),
        )

    def print(self, printer: Printer) -> None:
        """Print the predicate and both edges."""
        printer.print_string(" uniform " if self.is_uniform else " ")
        printer.print_ssa_value(self.condition)
        printer.print_string(", ")
        _print_edge(printer, self.then_block, self.then_values)
        printer.print_string(", ")
        _print_edge(printer, self.else_block, self.else_values)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


class _EndOp(Operation):
    """A terminator without operands and successors."""

    traits: ClassVar[OpTraits] = _TERMINATOR

    def verify_(self) -> None:
        """Check that there is nothing beside the opcode."""
        if self.operands or self.results or self.successors:
            raise VerifyException(f"`{self.name}` takes and gives nothing")
        _verify_position(self)

    @classmethod
    def parse(cls, parser: Parser) -> _EndOp:
        """Parse what follows the name: attributes at most."""
        return cls.create(attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        """Print what follows the name: attributes at most."""
        if self.attributes:
            printer.print_op_attributes(self.attributes)


class RetOp(_EndOp):
    """Leave the kernel."""

    name = "ptx.ret"


class ExitOp(_EndOp):
    """End the thread."""

    name = "ptx.exit"
