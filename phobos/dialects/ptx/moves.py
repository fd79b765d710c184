"""Where values come from: constants, symbols, parameters, special registers; and plain moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IntAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, OpTraits
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.ptx.assembly import parse_register_class
from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.instruction import Effect, Instruction
from phobos.dialects.ptx.shape import Spelling
from phobos.dialects.ptx.types import B32, B64, RegisterType

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


def wrap_to_width(value: int, register: RegisterType) -> int:
    """The bit pattern of a Python integer in a register, as an unsigned number."""
    return value & ((1 << register.bits) - 1)


def format_constant(pattern: int, register: RegisterType) -> str:
    """Write a bit pattern for a reader: small numbers in decimal with sign, others in hex."""
    bits = register.bits
    if bits == 1:
        return str(pattern)
    signed = pattern - (1 << bits) if pattern >> (bits - 1) else pattern
    return str(signed) if -65536 < signed < 65536 else hex(pattern)


class ImmOp(Operation):
    """A constant: ``ptx.imm 5 : b32``. The value is a bit pattern of the register's width.

    The PTX printer writes it where it is used, in the notation of the place.
    """

    name = "ptx.imm"
    traits: ClassVar[OpTraits] = OpTraits(lambda: (Pure(),))

    @property
    def pattern(self) -> int:
        """The bits as an unsigned number."""
        attr = self.properties["value"]
        assert isinstance(attr, IntAttr)
        return attr.data

    @property
    def register(self) -> RegisterType:
        """The register class of the constant."""
        register = self.results[0].type
        assert isinstance(register, RegisterType)
        return register

    def verify_(self) -> None:
        """Check that there is one result of a register class, and that the value fits it."""
        register = _single_register(self)
        value = self.properties.get("value")
        if not isinstance(value, IntAttr):
            raise VerifyException("`ptx.imm` needs an integer property `value`")
        if not 0 <= value.data < (1 << register.bits):
            raise VerifyException(f"`ptx.imm`: {value.data} is no {register.bits}-bit pattern")

    @classmethod
    def parse(cls, parser: Parser) -> ImmOp:
        """Parse ``5 : b32``; negative numbers wrap to the width."""
        start = parser.pos
        value = parser.parse_integer(allow_boolean=False)
        end = parser.pos
        parser.parse_punctuation(":")
        register = parse_register_class(parser)
        if not -(1 << (register.bits - 1)) <= value < (1 << register.bits):
            parser.raise_error(f"{value} does not fit {register.bits} bits", start, end)
        properties: dict[str, Attribute] = {"value": IntAttr(wrap_to_width(value, register))}
        return cls.create(
            result_types=(register,),
            properties=properties,
            attributes=parser.parse_optional_attr_dict(),
        )

    def print(self, printer: Printer) -> None:
        """Print ``5 : b32``."""
        register = self.register
        printer.print_string(f" {format_constant(self.pattern, register)} : {register.data}")
        if self.attributes:
            printer.print_op_attributes(self.attributes)


class SymbolOp(Operation):
    """The address of a variable: ``ptx.symbol @tile : b32``.

    A shared variable has a 32-bit address in its window, everything else a 64-bit one.
    """

    name = "ptx.symbol"
    traits: ClassVar[OpTraits] = OpTraits(lambda: (Pure(),))

    @property
    def symbol(self) -> str:
        """The name of the variable."""
        attr = self.properties["symbol"]
        assert isinstance(attr, SymbolRefAttr)
        return attr.string_value()

    def verify_(self) -> None:
        """Check that a symbol is named and that its address is 32 or 64 bits."""
        register = _single_register(self)
        if not isinstance(self.properties.get("symbol"), SymbolRefAttr):
            raise VerifyException("`ptx.symbol` needs a symbol reference")
        if register not in (B32, B64):
            raise VerifyException(f"`ptx.symbol`: an address is b32 or b64, not {register.data}")

    @classmethod
    def parse(cls, parser: Parser) -> SymbolOp:
        """Parse ``@tile : b32``."""
        symbol = SymbolRefAttr(parser.parse_symbol_name())
        parser.parse_punctuation(":")
        register = parse_register_class(parser)
        return cls.create(
            result_types=(register,),
            properties={"symbol": symbol},
            attributes=parser.parse_optional_attr_dict(),
        )

    def print(self, printer: Printer) -> None:
        """Print ``@tile : b32``."""
        register = _single_register(self)
        printer.print_string(f" @{self.symbol} : {register.data}")
        if self.attributes:
            printer.print_op_attributes(self.attributes)


def _single_register(op: Operation) -> RegisterType:
    if len(op.results) != 1 or op.operands:
        raise VerifyException(f"`{op.name}` takes no operands and gives one result")
    register = op.results[0].type
    if not isinstance(register, RegisterType):
        raise VerifyException(f"`{op.name}` gives a register, not {register}")
    return register


class ParamOp(Instruction):
    """Load a kernel parameter by its position: ``ptx.param u32 3``."""

    name = "ptx.param"
    opcode = "ld.param"
    forms = (
        Form(
            "{b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64}",
            "m = #0..4095",
        ),
    )


class ParamAddressOp(Instruction):
    """The address of a kernel parameter by its position: ``ptx.param_address 3``.

    An address in the parameter space; ``ptx.cvta param.u64`` makes a generic one of it.
    """

    name = "ptx.param_address"
    opcode = "mov.b64"
    forms = (Form("", "b64 = #0..4095"),)


_DIMENSION = "{x|y|z}"


class SregOp(Instruction):
    """Read a special register that does not change while a thread runs: ``ptx.sreg tid.x``."""

    name = "ptx.sreg"
    forms = (
        Form(f"{{tid|ntid|ctaid|nctaid}}.{_DIMENSION}", "u32 ="),
        Form("{laneid|nwarpid|nsmid}", "u32 ="),
        Form("{lanemask_eq|lanemask_lt|lanemask_le|lanemask_gt|lanemask_ge}", "b32 ="),
        Form("{dynamic_smem_size|total_smem_size}", "u32 ="),
        Form("aggr_smem_size", "u32 =", "has_clusters", (8, 1)),
        Form(f"{{clusterid|nclusterid}}.{_DIMENSION}", "u32 =", "has_clusters", (7, 8)),
        Form(f"{{cluster_ctaid|cluster_nctaid}}.{_DIMENSION}", "u32 =", "has_clusters", (7, 8)),
        Form("{cluster_ctarank|cluster_nctarank}", "u32 =", "has_clusters", (7, 8)),
        Form("gridid", "u64 ="),
    )

    @classmethod
    def spelling(cls, suffix: str) -> Spelling:
        """A ``mov`` from the register."""
        return _read_register(suffix)


_WIDE_REGISTERS = frozenset({"gridid", "clock64", "globaltimer"})


def _read_register(name: str) -> Spelling:
    return Spelling("mov.u64" if name in _WIDE_REGISTERS else "mov.u32", (f"%{name}",))


class ClockOp(Instruction):
    """Read a special register that changes from one moment to the next: ``ptx.clock clock64``."""

    name = "ptx.clock"
    effect = Effect.WRITE
    forms = (
        Form("{clock|clock_hi|globaltimer_lo|globaltimer_hi|warpid|smid}", "u32 ="),
        Form("{clock64|globaltimer}", "u64 ="),
    )

    @classmethod
    def spelling(cls, suffix: str) -> Spelling:
        """A ``mov`` from the register."""
        return _read_register(suffix)


class MovOp(Instruction):
    """Copy a register."""

    name = "ptx.mov"
    forms = (Form("{pred|b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}", "t = t"),)


class PackOp(Instruction):
    """Put registers side by side into a wider one, the first lowest."""

    name = "ptx.pack"
    opcode = "mov"
    forms = (
        Form("b32", "b32 = b16{2}"),
        Form("b64", "b64 = b32{2}"),
        Form("b64", "b64 = b16{4}"),
        Form("b128", "b128 = b64!{2}", since=(8, 3)),
    )


class UnpackOp(Instruction):
    """Cut a register into narrower ones, the lowest first."""

    name = "ptx.unpack"
    opcode = "mov"
    forms = (
        Form("b32", "b16{2} = b32!"),
        Form("b64", "b32{2} = b64!"),
        Form("b64", "b16{4} = b64!"),
        Form("b128", "b64{2} = b128", since=(8, 3)),
    )
