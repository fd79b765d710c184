"""The base class of every PTX instruction, and what all of them share.

One class an opcode, one operation an instruction. The suffix is a property spelled exactly as in
PTX; register classes follow from it, so the assembly format prints none::

    %3 = ptx.fma rn.f32 %0, %1, %2
    %a, %b = ptx.ld global.nc.v2.b32 [%p + 16] guard %q else %z, %z
    ptx.st global.v4.b32 [%p + 16], {%a, %b, %c, %d} guard not %q

Where a narrow value sits in another register than usual, the class stands behind: results after
``->``, operands after ``:``.

Operands are laid out as: the instruction's own in the order of its signature, then the guard if
there is one, then one value per result that the result has when the guard is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeGuard

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, OpTrait, Pure
from xdsl.utils.exceptions import VerifyException

from phobos.dialects.ptx.attributes import GuardAttr, ImmediatesAttr, Polarity, SuffixAttr
from phobos.dialects.ptx.forms import Form
from phobos.dialects.ptx.shape import OFFSET_NAMES, Shape, Spelling, find_shape
from phobos.dialects.ptx.signatures import TIED, Slot
from phobos.dialects.ptx.types import PRED, RegisterType

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

OFFSET_LIMIT = 1 << 31
"""Constant offsets of addresses are signed 32-bit."""


class Effect(Enum):
    """What an instruction does besides computing its results."""

    NONE = "none"
    """Nothing: may be moved, merged, duplicated and dropped."""
    CONVERGENT = "convergent"
    """Works with other lanes: may be dropped if unused, never moved or merged."""
    READ = "read"
    """Reads memory or a changing register: may be dropped if unused."""
    WRITE = "write"
    """Writes memory, orders it, or changes control: stays where it is."""


_TRAITS: dict[Effect, tuple[OpTrait, ...]] = {
    Effect.NONE: (Pure(),),
    Effect.CONVERGENT: (MemoryReadEffect(),),
    Effect.READ: (MemoryReadEffect(),),
    Effect.WRITE: (MemoryReadEffect(), MemoryWriteEffect()),
}


class Instruction(Operation):
    """Base class of PTX instructions; a subclass is a table of forms."""

    opcode: ClassVar[str]
    """The opcode as PTX spells it; the operation's name without ``ptx.`` unless given."""
    forms: ClassVar[tuple[Form, ...]]
    """The legal forms; the first that fits a suffix and its operand counts is meant."""
    effect: ClassVar[Effect] = Effect.NONE
    commutative: ClassVar[bool] = False
    """Whether the first two operands may change places."""
    guardable: ClassVar[bool] = False
    """Whether the instruction may carry a guard."""
    has_ties: ClassVar[bool] = False
    """Whether operands of some form are in the registers of results."""
    is_numbered: ClassVar[bool] = False
    """Whether the suffix of some form begins with a digit, as in ``2d``."""
    traits: ClassVar[OpTraits] = OpTraits(lambda: ())

    _shapes: ClassVar[dict[tuple[str, int, int], Shape | None]]

    def __init_subclass__(cls) -> None:
        """Derive opcode and traits from what the subclass declares."""
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            return
        if "opcode" not in cls.__dict__:
            cls.opcode = cls.name.removeprefix("ptx.")
        effect = cls.effect
        cls._shapes = {}
        cls.is_numbered = any(form.pattern[:1].isdigit() for form in cls.forms)
        cls.has_ties = any(TIED in form.signature for form in cls.forms)
        cls.traits = OpTraits(lambda: _TRAITS[effect])

    @classmethod
    def spelling(cls, suffix: str) -> Spelling:
        """How PTX writes the instruction with this suffix."""
        return Spelling(f"{cls.opcode}.{suffix}" if suffix else cls.opcode)

    @classmethod
    def shape_of(cls, suffix: str, results: int, operands: int) -> Shape | None:
        """The shape for a suffix and the counts of results and own operands (cached)."""
        key = (suffix, results, operands)
        try:
            return cls._shapes[key]
        except KeyError:
            shape = find_shape(cls.forms, cls.spelling(suffix), suffix, results, operands)
            cls._shapes[key] = shape
            return shape

    @property
    def has_side_effect(self) -> bool:
        """Whether the instruction matters even if nothing uses its results."""
        return self.effect is Effect.WRITE

    @property
    def suffix(self) -> str:
        """The suffix without its leading dot, empty if there is none."""
        attr = self.properties.get("suffix")
        return attr.data if type(attr) is SuffixAttr else ""

    @property
    def own_count(self) -> int:
        """How many operands are the instruction's own (without guard and alternatives)."""
        count = len(self.operands)
        return count - 1 - len(self.results) if "guard" in self.properties else count

    @property
    def own_operands(self) -> Sequence[SSAValue]:
        """The instruction's operands in the order of its signature."""
        return self.operands[: self.own_count]

    @property
    def guard(self) -> SSAValue | None:
        """The predicate under which the instruction runs, if it is guarded."""
        return self.operands[self.own_count] if "guard" in self.properties else None

    @property
    def negate_guard(self) -> bool:
        """Whether the instruction runs when its guard is false."""
        attr = self.properties.get("guard")
        return type(attr) is GuardAttr and attr.data is Polarity.UNLESS

    @property
    def otherwise(self) -> Sequence[SSAValue]:
        """For a guarded instruction, what its results are when the guard is off."""
        return self.operands[self.own_count + 1 :] if "guard" in self.properties else ()

    @property
    def immediates(self) -> tuple[int, ...]:
        """The literal-only operands in order."""
        attr = self.properties.get("immediates")
        return attr.data if type(attr) is ImmediatesAttr else ()

    def offset(self, address: int = 0) -> int:
        """The constant offset in bytes of the address with this index."""
        attr = self.properties.get(OFFSET_NAMES[address])
        return attr.data if type(attr) is IntAttr else 0

    @property
    def shape(self) -> Shape:
        """The shape of this instruction; VerifyException if there is none."""
        shape = self.shape_of(self.suffix, len(self.results), self.own_count)
        if shape is None:
            raise VerifyException(self._why_no_shape())
        return shape

    @property
    def ties(self) -> tuple[tuple[int, int], ...]:
        """Operands and the results that have their registers, as indices; none if malformed."""
        if not self.has_ties:
            return ()
        shape = self.shape_of(self.suffix, len(self.results), self.own_count)
        return () if shape is None else shape.ties

    def _why_no_shape(self) -> str:
        mnemonic = self.spelling(self.suffix).mnemonic
        matching = [form for form in self.forms if form.matches(self.suffix)]
        if not matching:
            known = ", ".join(f"`{form.pattern}`" for form in self.forms)
            return f"`{mnemonic}` is no form of `{self.opcode}`; its forms are {known}"
        wanted = " or ".join(f"`{form.signature}`" for form in matching)
        return (
            f"`{mnemonic}` takes {wanted}, got {len(self.results)} results and "
            f"{self.own_count} operands"
        )

    def verify_(self) -> None:
        """Check suffix, counts, register classes, literals, offsets and guard."""
        if self.own_count < 0:
            raise VerifyException(
                f"`{self.name}`: a guard is an operand, and so is an `else` value per result"
            )
        shape = self.shape
        mnemonic = self.spelling(self.suffix).mnemonic
        _check_classes(mnemonic, "operand", self.own_operands, shape.operand_slots)
        _check_classes(mnemonic, "result", self.results, shape.result_slots)
        self._verify_immediates(shape, mnemonic)
        for index, name in enumerate(OFFSET_NAMES):
            if name not in self.properties:
                continue
            if index >= len(shape.addresses):
                raise VerifyException(f"`{mnemonic}` has no address for the property `{name}`")
            if not -OFFSET_LIMIT <= self.offset(index) < OFFSET_LIMIT:
                raise VerifyException(f"`{mnemonic}`: offset {self.offset(index)} is not 32-bit")
        if "guard" in self.properties:
            self._verify_guard(mnemonic)

    def _verify_immediates(self, shape: Shape, mnemonic: str) -> None:
        values = self.immediates
        if len(values) != len(shape.immediates):
            raise VerifyException(
                f"`{mnemonic}` takes {len(shape.immediates)} literal operands, got {len(values)}"
            )
        for value, item in zip(values, shape.immediates, strict=True):
            if item.values is not None and value not in item.values:
                raise VerifyException(
                    f"`{mnemonic}`: literal {value} is not one of {_describe(item.values)}"
                )

    def _verify_guard(self, mnemonic: str) -> None:
        if not self.guardable:
            raise VerifyException(f"`{mnemonic}` cannot be guarded")
        guard = self.guard
        if guard is None or guard.type != PRED:
            raise VerifyException(f"`{mnemonic}`: a guard is a predicate")
        for result, value in zip(self.results, self.otherwise, strict=True):
            if result.type != value.type:
                raise VerifyException(
                    f"`{mnemonic}`: a result of {result.type} has an `else` value of {value.type}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Instruction:
        """Parse suffix, operands, guard and register classes."""
        from phobos.dialects.ptx.assembly import parse_instruction

        return parse_instruction(cls, parser)

    def print(self, printer: Printer) -> None:
        """Print suffix, operands, guard and register classes."""
        from phobos.dialects.ptx.assembly import print_instruction

        print_instruction(self, printer)


def is_instruction(op: Operation) -> TypeGuard[Instruction]:
    """`isinstance(op, Instruction)` in a sixth of the time, as operations have abstract bases."""
    return hasattr(op, "opcode")


def _describe(values: range | tuple[int, ...]) -> str:
    if isinstance(values, range):
        steps = f" in steps of {values.step}" if values.step > 1 else ""
        return f"{values[0]} to {values[-1]}{steps}"
    return ", ".join(map(str, values))


def _check_classes(
    mnemonic: str, what: str, values: Sequence[SSAValue[Attribute]], slots: Sequence[Slot]
) -> None:
    for index, (value, slot) in enumerate(zip(values, slots, strict=True)):
        classes = slot.classes
        if value.type not in classes:
            wanted = " or ".join(c.data for c in classes)
            got = value.type.data if isinstance(value.type, RegisterType) else value.type
            raise VerifyException(f"`{mnemonic}`: {what} {index} is {got}, expected {wanted}")
