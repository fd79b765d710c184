"""The types of the language and the rules by which they mix.

A literal is *weak*: it has the type `WEAK_INT` or `WEAK_FLOAT` until it meets a value, whose
type it then takes; alone an int becomes `index` and a float `f32` (`default_of`). `promote`
is the one place that says what type two scalars have together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from phobos.record import Record, record


class Kind(Enum):
    """What a scalar type is at heart."""

    BOOL = auto()
    SIGNED = auto()
    UNSIGNED = auto()
    INDEX = auto()
    FLOAT = auto()
    WEAK_INT = auto()
    WEAK_FLOAT = auto()
    VOID = auto()
    POISON = auto()


_INTEGERS = frozenset({Kind.SIGNED, Kind.UNSIGNED, Kind.INDEX, Kind.WEAK_INT})
_FLOATS = frozenset({Kind.FLOAT, Kind.WEAK_FLOAT})


@record
class ScalarType(Record):
    """One of the scalar types; there is one object for each, compared by identity.

    `bits` is 0 where the type alone does not say: `index` and the weak types.
    """

    name: str
    kind: Kind
    bits: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def is_integer(self) -> bool:
        """Whether it counts: signed, unsigned, index or an int literal."""
        return self.kind in _INTEGERS

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type or a float literal."""
        return self.kind in _FLOATS

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined on it."""
        return self.is_integer or self.is_float

    @property
    def is_weak(self) -> bool:
        """Whether it is the type of a literal that has met no value yet."""
        return self.kind is Kind.WEAK_INT or self.kind is Kind.WEAK_FLOAT

    @property
    def is_unsigned(self) -> bool:
        """Whether it is one of u8, u16, u32, u64."""
        return self.kind is Kind.UNSIGNED


BOOL = ScalarType("bool", Kind.BOOL, 1)
I8 = ScalarType("i8", Kind.SIGNED, 8)
U8 = ScalarType("u8", Kind.UNSIGNED, 8)
I16 = ScalarType("i16", Kind.SIGNED, 16)
U16 = ScalarType("u16", Kind.UNSIGNED, 16)
I32 = ScalarType("i32", Kind.SIGNED, 32)
U32 = ScalarType("u32", Kind.UNSIGNED, 32)
I64 = ScalarType("i64", Kind.SIGNED, 64)
U64 = ScalarType("u64", Kind.UNSIGNED, 64)
F16 = ScalarType("f16", Kind.FLOAT, 16)
BF16 = ScalarType("bf16", Kind.FLOAT, 16)
F32 = ScalarType("f32", Kind.FLOAT, 32)
F64 = ScalarType("f64", Kind.FLOAT, 64)
F8E4M3 = ScalarType("f8e4m3", Kind.FLOAT, 8)
F8E5M2 = ScalarType("f8e5m2", Kind.FLOAT, 8)
INDEX = ScalarType("index", Kind.INDEX)
WEAK_INT = ScalarType("an integer literal", Kind.WEAK_INT)
WEAK_FLOAT = ScalarType("a float literal", Kind.WEAK_FLOAT)
VOID = ScalarType("nothing", Kind.VOID)
POISON = ScalarType("an erroneous value", Kind.POISON)
"""The type of an expression that an error was already reported for; it silences the rest."""

STORABLE: dict[str, ScalarType] = {
    scalar.name: scalar
    for scalar in (
        *(BOOL, I8, U8, I16, U16, I32, U32, I64, U64),
        *(F16, BF16, F32, F64, F8E4M3, F8E5M2),
    )
}
"""The scalar types of parameters and of the elements of tensors and tiles, by name."""

NAMED: dict[str, ScalarType] = {**STORABLE, INDEX.name: INDEX}
"""The scalar types that a program can name: as a variable's type and as a conversion."""


@dataclass(frozen=True, slots=True)
class Dim:
    """One axis of a tensor: its name where it has one, and its extent where it is constant."""

    name: str | None
    extent: int | None

    def __str__(self) -> str:
        return self.name if self.name is not None else str(self.extent)


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor in global memory."""

    element: ScalarType
    dims: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"tensor<{self.element}>[{', '.join(map(str, self.dims))}]"


@dataclass(frozen=True, slots=True)
class TileType:
    """A value of the whole CTA with constant extents."""

    element: ScalarType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"tile<{self.element}>[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class RunType:
    """Neighbouring elements that one thread holds."""

    element: ScalarType
    length: int

    def __str__(self) -> str:
        return f"run<{self.element}>[{self.length}]"


ValueType = ScalarType | TileType | RunType
Type = ValueType | TensorType


def element_of(type_: Type) -> ScalarType:
    """The scalar type of an element; of a scalar type, itself."""
    return type_ if isinstance(type_, ScalarType) else type_.element


def with_element(type_: ValueType, element: ScalarType) -> ValueType:
    """The type of the same shape with other elements."""
    match type_:
        case TileType():
            return TileType(element, type_.shape)
        case RunType():
            return RunType(element, type_.length)
        case ScalarType():
            return element


def default_of(scalar: ScalarType) -> ScalarType:
    """The type that a literal has when it meets nothing; other types stay."""
    match scalar.kind:
        case Kind.WEAK_INT:
            return INDEX
        case Kind.WEAK_FLOAT:
            return F32
        case _:
            return scalar


@record
class Mismatch(Record):
    """Why two types do not go together, and what to write instead."""

    reason: str
    help: str | None = None


def promote(left: ScalarType, right: ScalarType) -> ScalarType | Mismatch:
    """The type in which an operation on two scalars computes.

    The wider float wins, f16 with bf16 gives f32, an integer with a float gives the float, the
    wider integer wins and index wins over signed integers of any width. Signed with unsigned
    of one width has no answer, and neither has bool with a number.
    """
    if left is right:
        return left
    if not (left.is_numeric and right.is_numeric):
        return _not_numbers(left, right)
    if left.is_weak or right.is_weak:
        return _promote_weak(left, right)
    if left.is_float and right.is_float:
        return _promote_floats(left, right)
    if left.is_float or right.is_float:
        return left if left.is_float else right
    return _promote_integers(left, right)


def _not_numbers(left: ScalarType, right: ScalarType) -> Mismatch:
    other = right if left is BOOL else left
    number = I32 if other.is_weak else other
    return Mismatch(
        f"{left} and {right} do not mix",
        f"convert the bool to a number, as in `{number}(condition)`",
    )


def _promote_weak(left: ScalarType, right: ScalarType) -> ScalarType:
    if left.is_weak and right.is_weak:
        return WEAK_FLOAT
    weak, strong = (left, right) if left.is_weak else (right, left)
    return F32 if weak is WEAK_FLOAT and strong.is_integer else strong


def _promote_floats(left: ScalarType, right: ScalarType) -> ScalarType | Mismatch:
    if left.bits != right.bits:
        return left if left.bits > right.bits else right
    if left.bits == 16:
        return F32
    return Mismatch(f"{left} and {right} do not mix", "convert both to f16 or f32")


def _promote_integers(left: ScalarType, right: ScalarType) -> ScalarType | Mismatch:
    if INDEX in (left, right):
        other = right if left is INDEX else left
        if not other.is_unsigned or other.bits < 32:
            return INDEX
        return Mismatch(
            f"{left} and {right} do not mix: one is signed, the other is not",
            f"convert the {other}, as in `index(value)`",
        )
    if left.bits != right.bits:
        return left if left.bits > right.bits else right
    return Mismatch(
        f"{left} and {right} do not mix: one is signed, the other is not",
        f"convert one of them, as in `{left}(value)` or `{right}(value)`",
    )


def broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of two tiles together: axes of extent 1 repeat; None if they do not fit."""
    if left == right:
        return left
    if len(left) != len(right):
        return None
    out = []
    for one, other in zip(left, right, strict=True):
        if one != other and 1 not in (one, other):
            return None
        out.append(other if one == 1 else one)
    return tuple(out)
