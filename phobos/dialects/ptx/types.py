"""Register types of the ptx dialect and the PTX type suffixes that live in them.

PTX registers are declared untyped by width (``.pred .b16 .b32 .b64 .b128``); the type suffix of an
instruction says how it reads the bits. So there is one register type per width, and a table from
type suffix to width.
"""

from __future__ import annotations

from enum import StrEnum

from xdsl.ir import Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


class RegisterClass(StrEnum):
    """The widths a PTX register is declared with."""

    PRED = "pred"
    B16 = "b16"
    B32 = "b32"
    B64 = "b64"
    B128 = "b128"

    @property
    def bits(self) -> int:
        """Bits that a register of this class holds (1 for a predicate)."""
        return _BITS[self]

    @property
    def prefix(self) -> str:
        """What the printer starts register names with, e.g. ``%rd``."""
        return _PREFIXES[self]


_BITS = {
    RegisterClass.PRED: 1,
    RegisterClass.B16: 16,
    RegisterClass.B32: 32,
    RegisterClass.B64: 64,
    RegisterClass.B128: 128,
}

_PREFIXES = {
    RegisterClass.PRED: "%p",
    RegisterClass.B16: "%h",
    RegisterClass.B32: "%r",
    RegisterClass.B64: "%rd",
    RegisterClass.B128: "%rq",
}


@irdl_attr_definition
class RegisterType(Data[RegisterClass], TypeAttribute):
    """A virtual register: ``!ptx.reg<b32>``."""

    name = "ptx.reg"

    @property
    def bits(self) -> int:
        """Bits that the register holds (1 for a predicate)."""
        return self.data.bits

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RegisterClass:
        """Parse ``<b32>``."""
        with parser.in_angle_brackets():
            return parser.parse_str_enum(RegisterClass)

    def print_parameter(self, printer: Printer) -> None:
        """Print ``<b32>``."""
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)


PRED = RegisterType(RegisterClass.PRED)
B16 = RegisterType(RegisterClass.B16)
B32 = RegisterType(RegisterClass.B32)
B64 = RegisterType(RegisterClass.B64)
B128 = RegisterType(RegisterClass.B128)

REGISTER_TYPES: dict[str, RegisterType] = {str(t.data): t for t in (PRED, B16, B32, B64, B128)}
"""Register type by the name of its class."""


def _rows(register: RegisterType, names: str) -> dict[str, RegisterType]:
    return dict.fromkeys(names.split(), register)


TYPE_SUFFIXES: dict[str, RegisterType] = {
    **_rows(PRED, "pred"),
    **_rows(B16, "b8 u8 s8 b16 u16 s16 f16 bf16 e4m3x2 e5m2x2"),
    **_rows(B32, "b32 u32 s32 f32 tf32 f16x2 bf16x2 u16x2 s16x2"),
    **_rows(B64, "b64 u64 s64 f64 f32x2"),
    **_rows(B128, "b128"),
}
"""The smallest register that holds a value of each PTX type suffix."""

NARROW_SUFFIXES: dict[str, int] = {
    **dict.fromkeys(("b8", "u8", "s8"), 8),
    **dict.fromkeys(("b16", "u16", "s16"), 16),
}
"""Bits of the types that memory accesses and cvt may keep in a wider register."""
