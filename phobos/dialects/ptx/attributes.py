"""Attributes of ptx operations: suffix, guard polarity, immediates, kernel parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


def parse_optional_suffix_text(parser: AttrParser, *, is_numbered: bool = False) -> str | None:
    """Read a bare suffix such as ``global.L2::128B.v4.b32``, or nothing.

    The MLIR lexer takes dots as part of an identifier; the colons of ``::`` and a number behind
    them are separate tokens and are glued back together here, and so is the number of ``2d.tile``
    where a suffix may begin with one.
    """
    text = parser.parse_optional_identifier()
    if text is None:
        if not is_numbered:
            return None
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        if number is None:
            return None
        text = f"{number}{parser.parse_identifier()}"
    while parser.parse_optional_punctuation(":") is not None:
        parser.parse_punctuation(":")
        digits = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        text += "::" + ("" if digits is None else str(digits)) + parser.parse_identifier()
    return text


@irdl_attr_definition
class SuffixAttr(Data[str]):
    """The suffix of an instruction exactly as PTX spells it, without the leading dot."""

    name = "ptx.suffix"

    @property
    def parts(self) -> tuple[str, ...]:
        """The qualifiers in order: ``("rn", "f32")``."""
        return tuple(self.data.split(".")) if self.data else ()

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Parse ``<rn.f32>``."""
        with parser.in_angle_brackets():
            return parse_optional_suffix_text(parser, is_numbered=True) or ""

    def print_parameter(self, printer: Printer) -> None:
        """Print ``<rn.f32>``."""
        with printer.in_angle_brackets():
            printer.print_string(self.data)


@cache
def suffix_attr(text: str) -> SuffixAttr:
    """Return the one SuffixAttr for this text."""
    return SuffixAttr(text)


class Polarity(StrEnum):
    """When a guarded instruction runs: if its predicate is true, or unless it is."""

    IF = "if"
    UNLESS = "unless"


@irdl_attr_definition
class GuardAttr(Data[Polarity]):
    """Marks an instruction as guarded, and says by which value of the predicate."""

    name = "ptx.guard"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Polarity:
        """Parse ``<if>``."""
        with parser.in_angle_brackets():
            return parser.parse_str_enum(Polarity)

    def print_parameter(self, printer: Printer) -> None:
        """Print ``<if>``."""
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)


GUARD_IF = GuardAttr(Polarity.IF)
GUARD_UNLESS = GuardAttr(Polarity.UNLESS)


@irdl_attr_definition
class ImmediatesAttr(Data[tuple[int, ...]]):
    """Operands that PTX wants as literals, in the order in which the instruction lists them."""

    name = "ptx.immediates"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        """Parse ``<1, 2>``."""
        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_integer)
        )

    def print_parameter(self, printer: Printer) -> None:
        """Print ``<1, 2>``."""
        with printer.in_angle_brackets():
            printer.print_string(", ".join(map(str, self.data)))


@cache
def immediates_attr(values: tuple[int, ...]) -> ImmediatesAttr:
    """Return the one ImmediatesAttr for these values."""
    return ImmediatesAttr(values)


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter.

    ``type`` is the PTX type without its dot. ``count`` makes it an array (``.b8 x[2]``), ``align``
    gives its own alignment in bytes. ``pointer_space`` and ``pointer_align`` print as the
    ``.ptr .global .align 16`` promise of a pointer parameter.
    """

    name: str
    type: str
    align: int | None = None
    count: int | None = None
    pointer_space: str | None = None
    pointer_align: int | None = None


@irdl_attr_definition
class ParametersAttr(Data[tuple[Parameter, ...]]):
    """The parameter list of a kernel in order."""

    name = "ptx.parameters"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Parameter, ...]:
        """Parse ``<(x: u64 ptr global align 16, n: u32)>``."""
        with parser.in_angle_brackets():
            return parse_parameters(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print ``<(x: u64 ptr global align 16, n: u32)>``."""
        with printer.in_angle_brackets():
            printer.print_string(format_parameters(self.data))


def parse_parameters(parser: AttrParser) -> tuple[Parameter, ...]:
    """Parse a parenthesised parameter list."""
    return tuple(
        parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_one_parameter(parser)
        )
    )


def _parse_one_parameter(parser: AttrParser) -> Parameter:
    name = parser.parse_identifier()
    parser.parse_punctuation(":")
    type_name = parser.parse_identifier()
    count = None
    if parser.parse_optional_punctuation("["):
        count = parser.parse_integer()
        parser.parse_punctuation("]")
    pointer_space = pointer_align = align = None
    if parser.parse_optional_keyword("ptr"):
        pointer_space = parser.parse_identifier()
        if parser.parse_optional_keyword("align"):
            pointer_align = parser.parse_integer()
    elif parser.parse_optional_keyword("align"):
        align = parser.parse_integer()
    return Parameter(name, type_name, align, count, pointer_space, pointer_align)


def format_parameters(parameters: tuple[Parameter, ...]) -> str:
    """Write a parameter list as ``parse_parameters`` reads it."""
    return "(" + ", ".join(map(_format_one_parameter, parameters)) + ")"


def _format_one_parameter(parameter: Parameter) -> str:
    text = f"{parameter.name}: {parameter.type}"
    if parameter.count is not None:
        text += f"[{parameter.count}]"
    if parameter.pointer_space is not None:
        text += f" ptr {parameter.pointer_space}"
        if parameter.pointer_align is not None:
            text += f" align {parameter.pointer_align}"
    elif parameter.align is not None:
        text += f" align {parameter.align}"
    return text
