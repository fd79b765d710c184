"""How values of the tile IR live in registers.

| type            | register | bits above the value's own                       |
|-----------------|----------|--------------------------------------------------|
| i1              | pred     |                                                  |
| i8, i16         | b32      | anything: `clean` extends before they matter     |
| i32, f32        | b32      |                                                  |
| 8-bit floats    | b32      | anything                                         |
| i64, f64        | b64      |                                                  |
| f16, bf16       | b16      |                                                  |
| index           | b32, b64 | by the module's index width                      |

A run or a thread's share of a tile is several such registers, or, where it moves through
memory, 32-bit words that each hold two halves or four bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, SSAValue

from phobos.dialects.ptx import B16, B32, B64, PRED, RegisterType

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Kind:
    """An element type as instructions see it.

    `name` is the PTX type of arithmetic on it (`s32`, `f16`, ...), `bits` its width in memory,
    `register` where one value lives.
    """

    name: str
    bits: int
    register: RegisterType
    is_float: bool = False

    @property
    def bytes(self) -> int:
        """The size in memory."""
        return max(1, self.bits // 8)

    @property
    def is_narrow_int(self) -> bool:
        """Whether the register has bits above the value's own."""
        return not self.is_float and self.bits in (8, 16)

    @property
    def is_half(self) -> bool:
        """Whether it is one of the 16-bit floats."""
        return self.is_float and self.bits == 16

    @property
    def is_small_float(self) -> bool:
        """Whether it is one of the 8-bit floats, which are moved and converted only."""
        return self.is_float and self.bits == 8

    @property
    def untyped(self) -> str:
        """The PTX type of moves and bit operations on the register."""
        return str(self.register.data)


BOOL = Kind("pred", 1, PRED)
I8 = Kind("s8", 8, B32)
I16 = Kind("s16", 16, B32)
I32 = Kind("s32", 32, B32)
I64 = Kind("s64", 64, B64)
F8E4M3 = Kind("e4m3", 8, B32, is_float=True)
F8E5M2 = Kind("e5m2", 8, B32, is_float=True)
F16 = Kind("f16", 16, B16, is_float=True)
BF16 = Kind("bf16", 16, B16, is_float=True)
F32 = Kind("f32", 32, B32, is_float=True)
F64 = Kind("f64", 64, B64, is_float=True)

_INTEGERS = {1: BOOL, 8: I8, 16: I16, 32: I32, 64: I64}
_FLOATS: dict[type[Attribute], Kind] = {
    Float8E4M3FNType: F8E4M3,
    Float8E5M2Type: F8E5M2,
    Float16Type: F16,
    BFloat16Type: BF16,
    Float32Type: F32,
    Float64Type: F64,
}


@cache
def kind_of(type_: Attribute, index_bits: int) -> Kind | None:
    """The kind of a scalar type or of the elements of a run or tile; None if there is none."""
    if isinstance(type_, TensorType | VectorType):
        return kind_of(type_.element_type, index_bits)
    if isinstance(type_, IndexType):
        return _INTEGERS[index_bits]
    if isinstance(type_, IntegerType):
        return _INTEGERS.get(type_.width.data)
    return _FLOATS.get(type(type_))


class Share:
    """One thread's registers of a value: as elements, as packed words, or both.

    `per_word` elements are in a word, the first in its lowest bits. Either form is made from
    the other when it is first asked for (by `Lowering`), and kept.
    """

    __slots__ = ("elements", "words")

    def __init__(
        self,
        elements: Sequence[SSAValue] | None = None,
        words: Sequence[SSAValue] | None = None,
    ):
        self.elements = tuple(elements) if elements is not None else None
        self.words = tuple(words) if words is not None else None
