"""From instruction records to steps: operands become closures that read and write a wave.

Every instruction is decoded once. Its step is called with a wave and the selected threads and
works on whole arrays, so the cost of Python is shared by all threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from phobos.diagnostics import Location, Note, PhobosError, SourceMap
from phobos.emulator.checks.registers import WatchedRegisters
from phobos.emulator.errors import EmulatorError, Finding, FindingKind
from phobos.emulator.special import special_register
from phobos.emulator.types import (
    B32,
    B64,
    PRED,
    TYPES,
    UNSIGNED,
    Kind,
    ScalarType,
    Selection,
    Value,
    scalar,
)
from phobos.emulator.wave import Wave
from phobos.targets.ptx.parse.records import (
    FloatImmediate,
    Function,
    Immediate,
    Instruction,
    Module,
    Negated,
    Operand,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from phobos.emulator.memory.layout import Layout
    from phobos.emulator.requirements import Requirements

Step: TypeAlias = Callable[[Wave, Selection], None]
Reader: TypeAlias = Callable[[Wave, Selection], Value]
Writer: TypeAlias = Callable[[Wave, Selection, Value], None]


_FITTING: dict[tuple[str, str], Callable[[Value], Value] | None] = {}
"""How a register of a type becomes values of another, for the pairs that were asked for."""


@dataclass
class Environment:
    """What decoding needs to know beside the instruction: the module and where things lie.

    `smallest_access` is the number of bytes that the narrowest memory access decoded so far has,
    `watched` the registers that products of warpgroups hold.
    """

    module: Module
    kernel: str
    layout: Layout
    checks: frozenset[str]
    sources: SourceMap
    requirements: Requirements
    register_bases: dict[str, int] = field(default_factory=dict)
    smallest_access: int = 16
    watched: WatchedRegisters = field(default_factory=WatchedRegisters)

    def note_access(self, size: int) -> None:
        """Take note of an access of `size` bytes."""
        self.smallest_access = min(self.smallest_access, size)


class Operands:
    """The operands of one instruction of one function, and the faults it may raise."""

    def __init__(
        self, environment: Environment, function: Function, instruction: Instruction
    ) -> None:
        self.environment = environment
        self.function = function
        self.instruction = instruction
        self._base = environment.register_bases.get(function.name, 0)
        self._check_undefined = "init" in environment.checks

    # Faults --------------------------------------------------------------------------------------

    @property
    def location(self) -> Location:
        """The source line of the instruction, or its line of PTX where no `.loc` is known."""
        source = self.instruction.source
        files = self.environment.module.files
        if source is not None and source.file in files and source.line > 0:
            return Location(files[source.file], source.line, max(1, source.column))
        return self.ptx_location

    @property
    def ptx_location(self) -> Location:
        """The place of the instruction in the PTX text."""
        place = self.instruction.position
        return Location(self.environment.module.name, place.line, place.column)

    def refuse(self, reason: str, help: str | None = None) -> NoReturn:
        """Raise a PhobosError: the instruction is malformed or cannot be emulated."""
        message = f"`{self.instruction.mnemonic}`: {reason}"
        error = PhobosError.at(self.ptx_location, message, help=help)
        raise error.with_sources(self.environment.sources)

    def report(
        self,
        kind: FindingKind,
        wave: Wave,
        thread: int,
        message: str,
        *,
        address: int | None = None,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
    ) -> NoReturn:
        """Raise the finding that `thread` (its number in the wave) meets at this instruction.

        `message` goes on from "kernel `k`, CTA (..), thread (..) ".
        """
        geometry = wave.geometry
        cta = geometry.cta_index(int(wave.ctas[thread // geometry.padded]))
        local = geometry.thread_index(thread % geometry.padded)
        kernel = self.environment.kernel
        finding = Finding(
            kind=kind,
            kernel=kernel,
            message=f"kernel `{kernel}`, CTA {cta}, thread {local} {message}",
            location=self.location,
            cta=cta,
            thread=local,
            address=address,
        )
        if self.location != self.ptx_location:
            notes = (
                *notes,
                Note(f"the instruction is `{self.instruction.mnemonic}`", self.ptx_location),
            )
        raise EmulatorError.of(finding, notes=notes, help=help, sources=self.environment.sources)

    def of_function(self, function: Function) -> Operands:
        """The same instruction seen from another function, whose names and registers it uses."""
        return Operands(self.environment, function, self.instruction)

    # Operand shapes ------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of operands."""
        return len(self.instruction.operands)

    def operand(self, index: int) -> Operand:
        """The operand at `index`, or a refusal if there are too few."""
        if index >= self.count:
            self.refuse(f"needs at least {index + 1} operands, got {self.count}")
        return self.instruction.operands[index]

    def expect_count(self, *allowed: int) -> None:
        """Refuse the instruction unless it has one of the allowed numbers of operands."""
        if self.count not in allowed:
            wanted = " or ".join(str(number) for number in allowed)
            self.refuse(f"takes {wanted} operands, got {self.count}")

    def part(self, index: int) -> str:
        """Part `index` of the suffix (from the end if negative), or a refusal if there is none."""
        suffix = self.instruction.suffix
        if not -len(suffix) <= index < len(suffix):
            self.refuse("its suffix is too short")
        return suffix[index]

    def elements(self, operand: Operand) -> tuple[Operand, ...]:
        """The elements of a vector operand, or the operand alone."""
        return operand.elements if isinstance(operand, Vector) else (operand,)

    def type(self, name: str) -> ScalarType:
        """The type called `name`, or a refusal."""
        found = TYPES.get(name)
        if found is None:
            self.refuse(f"`.{name}` is no type that the emulator knows")
        return found

    def unsigned(self, kind: ScalarType) -> ScalarType:
        """The unsigned integer type of the width of `kind`, or a refusal if there is none."""
        if kind.bits not in UNSIGNED:
            self.refuse(f"does not work on .{kind.name}")
        return TYPES[f"u{kind.bits}"]

    def register_type(self, register: Register) -> ScalarType:
        """The storage class of a register: a `.bN` type or the predicate type."""
        if register.type == "pred":
            return PRED
        return TYPES[f"b{TYPES[register.type].bits}"]

    def slot(self, register: Register) -> int:
        """The number of a register in the wave."""
        return self._base + register.index

    # Reading -------------------------------------------------------------------------------------

    def read(self, index: int, kind: ScalarType | str) -> Reader:
        """A reader of operand `index` as values of type `kind`."""
        return self.reader(self.operand(index), kind)

    def reader(
        self, operand: Operand, kind: ScalarType | str, *, undefined_ok: bool = False
    ) -> Reader:
        """A reader of `operand` as values of type `kind`.

        Reading a register that was never written is a finding, unless `undefined_ok`.
        """
        wanted = self.type(kind) if isinstance(kind, str) else kind
        match operand:
            case Register():
                return self._register_reader(operand, wanted, undefined_ok=undefined_ok)
            case Immediate() | FloatImmediate():
                return _constant_reader(self.constant(operand, wanted))
            case SpecialRegister():
                return self._special_reader(operand, wanted)
            case Negated():
                inner = self._register_reader(operand.operand, PRED)
                return lambda wave, sel: ~inner(wave, sel)
            case Symbol():
                address = self.environment.layout.address_of(self, operand)
                return _constant_reader(_as_type(address, wanted))
            case _:
                self.refuse(f"expected a register or constant, got {describe(operand)}")

    def _register_reader(
        self, register: Register, wanted: ScalarType, *, undefined_ok: bool = False
    ) -> Reader:
        slot = self.slot(register)
        key = (register.type, wanted.name)
        if key not in _FITTING:
            _FITTING[key] = self._fitting(register, self.register_type(register), wanted)
        fit = _FITTING[key]
        check = self._check_undefined and not undefined_ok

        def read(wave: Wave, sel: Selection) -> Value:
            value = wave.registers[slot]
            if value is None or slot in wave.undefined:
                if check:
                    self._report_undefined(wave, sel, slot, register)
                value = wave.poisoned(slot)
            if sel is not None and value.ndim:
                value = value[sel]
            return value if fit is None else fit(value)

        return read

    def _fitting(
        self, register: Register, held: ScalarType, wanted: ScalarType
    ) -> Callable[[Value], Value] | None:
        """How a register's storage becomes values of the wanted type; None where it is them."""
        if (held.kind is Kind.PREDICATE) != (wanted.kind is Kind.PREDICATE):
            self.refuse(f"`{register.name}` is .{register.type}, expected .{wanted.name}")
        if held.bits < wanted.bits:
            self.refuse(f"`{register.name}` has {held.bits} bits, expected {wanted.bits}")
        dtype, storage = wanted.dtype, wanted.storage
        if held.bits > wanted.bits:
            return lambda value: value.astype(storage).view(dtype)
        if dtype == held.storage:
            return None
        return lambda value: value.view(dtype)

    def undefined_mask(
        self, operand: Operand
    ) -> Callable[[Wave, Selection], npt.NDArray[np.bool_] | None]:
        """Which selected threads hold nothing in `operand`; None where all hold a value."""
        if not isinstance(operand, Register):
            return lambda wave, sel: None
        slot = self.slot(operand)
        return lambda wave, sel: wave.undefined_in(slot, sel)

    def undefine(
        self, operand: Operand
    ) -> Callable[[Wave, Selection, npt.NDArray[np.bool_]], None]:
        """Marks a written register as holding nothing in the selected threads of a mask."""
        if not isinstance(operand, Register):
            return lambda wave, sel, mask: None
        slot = self.slot(operand)

        def forget(wave: Wave, sel: Selection, mask: npt.NDArray[np.bool_]) -> None:
            wave.make_undefined(slot, wave.narrow(sel, mask))

        return forget

    def _report_undefined(self, wave: Wave, sel: Selection, slot: int, register: Register) -> None:
        mask = wave.undefined_in(slot, sel)
        if mask is None:
            return
        thread = int(wave.selected(sel)[int(np.argmax(mask))])
        self.report(
            FindingKind.UNINITIALISED,
            wave,
            thread,
            f"reads register {register.name}, which it never wrote",
        )

    def _special_reader(self, operand: SpecialRegister, wanted: ScalarType) -> Reader:
        found = special_register(operand.name)
        if found is None:
            self.refuse(f"special register `%{operand.name}` is not supported")
        self.environment.requirements.check_special_register(self, operand.name)
        dtype = wanted.dtype

        def read(wave: Wave, sel: Selection) -> Value:
            value = found(wave)
            if sel is not None and value.ndim:
                value = value[sel]
            return value.astype(dtype)

        return read

    def constant(self, operand: Immediate | FloatImmediate, wanted: ScalarType) -> np.generic:
        """A literal as a value of the wanted type; literals wrap to the type's width."""
        if isinstance(operand, Immediate):
            if wanted.kind is Kind.PREDICATE:
                return np.bool_(operand.value != 0)
            if wanted.is_float and wanted.bits >= 32:
                self.refuse(
                    f"integer literal {operand.value} cannot be .{wanted.name}",
                    "write it as 0f........ or with a decimal point",
                )
            return _as_type(operand.value, wanted)
        if wanted.bits == operand.width:
            return _as_type(operand.bits, wanted)
        if wanted.bits == 32 and operand.width == 64:
            double = np.uint64(operand.bits).view(np.float64)
            return double.astype(np.float32).view(wanted.dtype)
        if wanted.bits == 64 and operand.width == 32:
            single = np.uint32(operand.bits).view(np.float32)
            return single.astype(np.float64).view(wanted.dtype)
        self.refuse(f"a floating-point literal cannot be .{wanted.name}")

    def immediate(self, index: int, what: str) -> int:
        """Operand `index`, which must be an integer literal."""
        operand = self.operand(index)
        if not isinstance(operand, Immediate):
            self.refuse(f"{what} must be an integer literal, got {describe(operand)}")
        return operand.value

    # Writing -------------------------------------------------------------------------------------

    def write(self, index: int, kind: ScalarType | str) -> Writer:
        """A writer of operand `index` from values of type `kind`."""
        return self.writer(self.operand(index), kind)

    def writer(self, operand: Operand, kind: ScalarType | str) -> Writer:
        """A writer of `operand` from values of type `kind`.

        Values narrower than the register are extended: with their sign if `kind` is signed,
        else with zeros.
        """
        wanted = self.type(kind) if isinstance(kind, str) else kind
        if isinstance(operand, Sink):
            return lambda wave, sel, value: None
        if not isinstance(operand, Register):
            self.refuse(f"expected a register to write, got {describe(operand)}")
        slot = self.slot(operand)
        held = self.register_type(operand)
        widen = self._widening(operand, held, wanted)

        def write(wave: Wave, sel: Selection, value: Value) -> None:
            if widen is not None:
                value = widen(value)
            if sel is not None:
                wave.write_some(slot, sel, value)
                return
            wave.registers[slot] = value
            if wave.undefined:
                wave.undefined.pop(slot, None)

        return write

    def _widening(
        self, register: Register, held: ScalarType, wanted: ScalarType
    ) -> Callable[[Value], Value] | None:
        if (held.kind is Kind.PREDICATE) != (wanted.kind is Kind.PREDICATE):
            self.refuse(f"`{register.name}` is .{register.type}, expected .{wanted.name}")
        if held.bits < wanted.bits:
            self.refuse(f"`{register.name}` has {held.bits} bits, too few for .{wanted.name}")
        storage = held.storage
        if held.bits > wanted.bits:
            return lambda value: value.astype(storage)
        if wanted.dtype == storage:
            return None
        return lambda value: value.view(storage)


def describe(operand: Operand) -> str:
    """An operand, for messages."""
    match operand:
        case Register() | Symbol() | SpecialRegister():
            return f"`{operand.name}`"
        case Immediate():
            return f"the literal {operand.value}"
        case FloatImmediate():
            return "a floating-point literal"
        case Vector():
            return f"a vector of {len(operand.elements)}"
        case _:
            return f"an operand of kind {type(operand).__name__.lower()}"


def _as_type(value: int, wanted: ScalarType) -> np.generic:
    bits = value & ((1 << wanted.bits) - 1)
    return wanted.storage.type(bits).view(wanted.dtype)


def _constant_reader(value: np.generic) -> Reader:
    constant = scalar(value)
    return lambda wave, sel: constant


ADDRESS_TYPES: dict[int, ScalarType] = {32: B32, 64: B64}
"""The type of an address by its width in bits."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
