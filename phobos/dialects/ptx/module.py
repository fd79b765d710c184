"""Containers: the PTX module, its kernels and its shared variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IntAttr, LocationAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, OpTraits, Region
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.ptx.attributes import (
    ImmediatesAttr,
    Parameter,
    ParametersAttr,
    format_parameters,
    immediates_attr,
    parse_parameters,
)

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


def _string(op: Operation, name: str) -> str:
    attr = op.properties.get(name)
    if not isinstance(attr, StringAttr):
        raise VerifyException(f"`{op.name}` needs a string property `{name}`")
    return attr.data


def _optional_int(op: Operation, name: str) -> int | None:
    attr = op.properties.get(name)
    return attr.data if isinstance(attr, IntAttr) else None


class PtxModuleOp(Operation):
    """One PTX file: ``ptx.module @saxpy sm_80 { ... }``.

    The version is what the printer finds necessary, and never below ``version 7.8`` if given.
    """

    name = "ptx.module"
    traits: ClassVar[OpTraits] = OpTraits(
        lambda: (NoTerminator(), SymbolOpInterface(), SymbolTable(), IsolatedFromAbove())
    )

    @staticmethod
    def make(
        name: str, chip: str, ops: Sequence[Operation] = (), version: tuple[int, int] | None = None
    ) -> PtxModuleOp:
        """Make a module for a chip, e.g. ``sm_80``."""
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "chip": StringAttr(chip),
        }
        if version is not None:
            properties["version"] = immediates_attr(version)
        return PtxModuleOp.create(properties=properties, regions=(Region(Block(ops)),))

    @property
    def sym_name(self) -> str:
        """The module's name."""
        return _string(self, "sym_name")

    @property
    def chip(self) -> str:
        """The chip it is for, e.g. ``sm_80``."""
        return _string(self, "chip")

    @property
    def version(self) -> tuple[int, int] | None:
        """The lowest PTX version to print, if one is asked for."""
        attr = self.properties.get("version")
        if not isinstance(attr, ImmediatesAttr):
            return None
        major, minor = attr.data
        return major, minor

    @property
    def body(self) -> Block:
        """The block with kernels and variables."""
        return self.regions[0].block

    def verify_(self) -> None:
        """Check name, chip, version, and that no two of its members have one name."""
        if len(self.regions) != 1 or len(self.regions[0].blocks) != 1:
            raise VerifyException("`ptx.module` has one region with one block")
        _ = self.sym_name, self.chip
        version = self.properties.get("version")
        if version is not None and not (
            isinstance(version, ImmediatesAttr) and len(version.data) == 2
        ):
            raise VerifyException("`ptx.module`: a version is two numbers")
        _verify_traits(self)

    @classmethod
    def parse(cls, parser: Parser) -> PtxModuleOp:
        """Parse name, chip, version and body."""
        name = parser.parse_symbol_name()
        properties: dict[str, Attribute] = {
            "sym_name": name,
            "chip": StringAttr(parser.parse_identifier()),
        }
        if parser.parse_optional_keyword("version"):
            text = str(parser.parse_number())
            major, _, minor = text.partition(".")
            properties["version"] = immediates_attr((int(major), int(minor or 0)))
        attributes = _parse_attributes(parser)
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls.create(properties=properties, attributes=attributes, regions=(region,))

    def print(self, printer: Printer) -> None:
        """Print name, chip, version and body."""
        printer.print_string(f" @{self.sym_name} {self.chip}")
        if self.version is not None:
            printer.print_string(" version {}.{}".format(*self.version))
        _print_attributes(printer, self.attributes)
        printer.print_string(" ")
        printer.print_region(self.regions[0], print_empty_block=False)


def _parse_attributes(parser: Parser) -> Mapping[str, Attribute]:
    attributes = parser.parse_optional_attr_dict_with_keyword()
    return attributes.data if attributes is not None else {}


def _print_attributes(printer: Printer, attributes: Mapping[str, Attribute]) -> None:
    if attributes:
        printer.print_op_attributes(dict(attributes), print_keyword=True)


def _verify_traits(op: Operation) -> None:
    for trait in op.traits:
        trait.verify(op)


def _verify_parameter(parameter: Parameter) -> None:
    if parameter.type not in _PARAMETER_TYPES:
        raise VerifyException(f"parameter `{parameter.name}`: `{parameter.type}` is no type for it")
    if parameter.count is not None and parameter.count < 1:
        raise VerifyException(f"parameter `{parameter.name}` has {parameter.count} elements")
    for align in (parameter.align, parameter.pointer_align):
        if align is not None and align.bit_count() != 1:
            raise VerifyException(
                f"parameter `{parameter.name}`: alignment {align} is no power of two"
            )


_PARAMETER_TYPES = frozenset(
    [f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)] + ["f32", "f64"]
)


class EntryOp(Operation):
    """A kernel: ``ptx.entry @k(x: u64, n: u32) maxntid 256 minnctapersm 1 { ... }``.

    Properties: ``maxntid`` (threads of the block along x, y, z), ``minnctapersm``, ``maxnreg``.
    The body's first block takes no arguments; parameters are read with ``ptx.param``.
    """

    name = "ptx.entry"
    traits: ClassVar[OpTraits] = OpTraits(lambda: (SymbolOpInterface(), IsolatedFromAbove()))

    @staticmethod
    def make(
        name: str,
        parameters: Sequence[Parameter],
        *,
        maxntid: tuple[int, ...] | None = None,
        minnctapersm: int | None = None,
        maxnreg: int | None = None,
        location: LocationAttr | None = None,
    ) -> EntryOp:
        """Make a kernel with one empty block."""
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "parameters": ParametersAttr(tuple(parameters)),
        }
        if maxntid is not None:
            properties["maxntid"] = immediates_attr(maxntid)
        for key, value in (("minnctapersm", minnctapersm), ("maxnreg", maxnreg)):
            if value is not None:
                properties[key] = IntAttr(value)
        return EntryOp.create(properties=properties, regions=(Region(Block()),), location=location)

    @property
    def sym_name(self) -> str:
        """The kernel's name."""
        return _string(self, "sym_name")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters in order."""
        attr = self.properties.get("parameters")
        if not isinstance(attr, ParametersAttr):
            raise VerifyException("`ptx.entry` needs `parameters`")
        return attr.data

    @property
    def maxntid(self) -> tuple[int, ...] | None:
        """The largest block that may be launched, along x, y, z."""
        attr = self.properties.get("maxntid")
        return attr.data if isinstance(attr, ImmediatesAttr) else None

    @property
    def minnctapersm(self) -> int | None:
        """How many blocks should fit a multiprocessor at once."""
        return _optional_int(self, "minnctapersm")

    @property
    def maxnreg(self) -> int | None:
        """How many registers a thread may use."""
        return _optional_int(self, "maxnreg")

    @property
    def body(self) -> Region:
        """The blocks of the kernel."""
        return self.regions[0]

    def verify_(self) -> None:
        """Check names, launch bounds and the first block."""
        if len(self.regions) != 1 or not self.body.blocks:
            raise VerifyException("`ptx.entry` has one region with at least one block")
        if self.body.blocks[0].args:
            raise VerifyException("the first block of a `ptx.entry` takes no arguments")
        names = [parameter.name for parameter in self.parameters]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise VerifyException(f"`ptx.entry @{self.sym_name}` has two parameters `{duplicate}`")
        if self.maxntid is not None and not 1 <= len(self.maxntid) <= 3:
            raise VerifyException("`ptx.entry`: maxntid has one to three numbers")
        for parameter in self.parameters:
            _verify_parameter(parameter)
        _verify_traits(self)

    @classmethod
    def parse(cls, parser: Parser) -> EntryOp:
        """Parse name, parameters, launch bounds and body."""
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        properties["parameters"] = ParametersAttr(parse_parameters(parser))
        if parser.parse_optional_keyword("maxntid"):
            properties["maxntid"] = immediates_attr(
                tuple(
                    parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_integer)
                )
            )
        for key in ("minnctapersm", "maxnreg"):
            if parser.parse_optional_keyword(key):
                properties[key] = IntAttr(parser.parse_integer())
        attributes = _parse_attributes(parser)
        return cls.create(
            properties=properties, attributes=attributes, regions=(parser.parse_region(),)
        )

    def print(self, printer: Printer) -> None:
        """Print name, parameters, launch bounds and body."""
        printer.print_string(f" @{self.sym_name}{format_parameters(self.parameters)}")
        if self.maxntid is not None:
            printer.print_string(" maxntid " + ", ".join(map(str, self.maxntid)))
        for key, value in (("minnctapersm", self.minnctapersm), ("maxnreg", self.maxnreg)):
            if value is not None:
                printer.print_string(f" {key} {value}")
        _print_attributes(printer, self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body)


class SharedOp(Operation):
    """A variable in shared memory: ``ptx.shared @tile 4096 align 16``.

    ``extern`` marks memory whose size the launch decides; its bytes are then 0.
    """

    name = "ptx.shared"
    traits: ClassVar[OpTraits] = OpTraits(lambda: (SymbolOpInterface(),))

    @staticmethod
    def make(
        name: str,
        size: int,
        align: int = 16,
        *,
        is_extern: bool = False,
        location: LocationAttr | None = None,
    ) -> SharedOp:
        """Make a variable of ``size`` bytes, or one whose size the launch decides."""
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "size": IntAttr(size),
            "align": IntAttr(align),
        }
        if is_extern:
            properties["extern"] = UnitAttr()
        return SharedOp.create(properties=properties, location=location)

    @property
    def sym_name(self) -> str:
        """The variable's name."""
        return _string(self, "sym_name")

    @property
    def size(self) -> int:
        """Bytes; 0 if the launch decides."""
        return _optional_int(self, "size") or 0

    @property
    def align(self) -> int:
        """Alignment in bytes."""
        return _optional_int(self, "align") or 1

    @property
    def is_extern(self) -> bool:
        """Whether the launch decides the size."""
        return "extern" in self.properties

    def verify_(self) -> None:
        """Check name, size and alignment."""
        _ = self.sym_name
        if self.align.bit_count() != 1:
            raise VerifyException(f"`ptx.shared`: alignment {self.align} is no power of two")
        if self.is_extern != (self.size == 0):
            raise VerifyException("`ptx.shared` has a size, or is extern")

    @classmethod
    def parse(cls, parser: Parser) -> SharedOp:
        """Parse ``@tile 4096 align 16`` or ``extern @memory align 16``."""
        is_extern = parser.parse_optional_keyword("extern") is not None
        name = parser.parse_symbol_name().data
        size = 0 if is_extern else parser.parse_integer(allow_boolean=False)
        align = parser.parse_integer() if parser.parse_optional_keyword("align") else 16
        op = SharedOp.make(name, size, align, is_extern=is_extern)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        """Print ``@tile 4096 align 16`` or ``extern @memory align 16``."""
        head = f" extern @{self.sym_name}" if self.is_extern else f" @{self.sym_name} {self.size}"
        printer.print_string(f"{head} align {self.align}")
        if self.attributes:
            printer.print_op_attributes(self.attributes)


def entries_in(op: Operation) -> Iterator[EntryOp]:
    """The kernels in an operation, in order; a walk would go through their instructions, too."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if isinstance(inner, EntryOp):
                    yield inner
                elif inner.regions:
                    yield from entries_in(inner)
