"""Register types of the ptx dialect and the PTX type suffixes that live in them.

PTX registers are declared untyped by width (``.pred .b16 .b32 .b64 .b128``); the type suffix of an
instruction says how it reads the bits. So there is one register type per width, and a table from
type suffix to width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

_BITS = {"pred": 1, "b16": 16, "b32": 32, "b64": 64, "b128": 128}


@irdl_attr_definition
class RegisterType(Data[str], TypeAttribute):
    """A virtual register of one of the widths that PTX declares: ``!ptx.reg<b32>``."""

    name = "ptx.reg"

    @property
    def bits(self) -> int:
        """Bits that the register holds (1 for a predicate)."""
        return _BITS[self.data]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Parse ``<b32>``."""
        with parser.in_angle_brackets():
            return parser.parse_keyword_in(_BITS)

    def print_parameter(self, printer: Printer) -> None:
        """Print ``<b32>``."""
        with printer.in_angle_brackets():
            printer.print_string(self.data)


PRED = RegisterType("pred")
B16 = RegisterType("b16")
B32 = RegisterType("b32")
B64 = RegisterType("b64")
B128 = RegisterType("b128")

REGISTER_TYPES: dict[str, RegisterType] = {t.data: t for t in (PRED, B16, B32, B64, B128)}
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
