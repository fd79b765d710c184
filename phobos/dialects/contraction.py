"""Contractions of tiles: `tile.dot` and the instruction it is made of.

    %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>

`ph-select-contraction` writes the instruction on it, `ph-assign-layouts` the layouts that
follow, and operands that warps share become shared buffers: memrefs in the place of tiles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    MemRefType,
    TensorType,
    UnitAttr,
    VectorType,
    f16,
    f32,
    f64,
    i8,
    i32,
)
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect
from xdsl.utils.exceptions import VerifyException

from phobos.record import Record, record


@record
class OperandForm(Record):
    """How an instruction takes an operand: bits of an element, PTX type, and in how many parts.

    An operand of two parts is split into what its type can hold and what is left over.
    """

    bits: int
    ptx: str
    parts: int = 1


OPERAND_FORMS: dict[str, OperandForm] = {
    "f16": OperandForm(16, "f16"),
    "bf16": OperandForm(16, "bf16"),
    "f32": OperandForm(32, "f32"),
    "tf32": OperandForm(32, "tf32"),
    "tf32x3": OperandForm(32, "tf32", parts=2),
    "f64": OperandForm(64, "f64"),
    "e4m3": OperandForm(8, "e4m3"),
    "e5m2": OperandForm(8, "e5m2"),
    "s8": OperandForm(8, "s8"),
    "u8": OperandForm(8, "u8"),
    "s32": OperandForm(32, "s32"),
}
"""The operands that an `Instruction` can name."""


WGMMA = "wgmma"
"""The name of the instruction that a warpgroup executes and that reads shared memory by itself."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a contraction is made of, and how warps share the result tile.

    `name` is `fma` (multiply-adds of single elements), `mma`, `wmma` or `wgmma`; `shape` is
    (M, N, K) of one instruction, or what one thread holds side by side for `fma` with K = 1; `a`
    and `b` name the operands (`OPERAND_FORMS`), `accumulator` is the PTX type of the sum; `warps`
    the warps along M and N. If `part` is not 0, so much of K at a time is summed from zero, and the
    sums of the parts are added up as f32. `mma` rounds f32 operands to tf32, `wgmma` takes them as
    they are and cuts what is not rounded. If `turned`, a `wgmma` makes the product's transpose,
    C^T = B^T A^T: `shape`, `a`, `b` and `warps` are those of that product, whose M is the N of the
    contraction.
    """

    name: str
    shape: tuple[int, int, int]
    a: str
    b: str
    accumulator: str
    warps: tuple[int, int]
    part: int = 0
    turned: bool = False

    def __str__(self) -> str:
        m, n, k = self.shape
        along_m, along_n = self.warps
        operands = self.a if self.a == self.b else f"{self.a}*{self.b}"
        parts = f" parts {self.part}" if self.part else ""
        turned = " turned" if self.turned else ""
        made = f"{self.name} m{m}n{n}k{k} {operands} {self.accumulator}"
        return f"{made} warps {along_m}x{along_n}{parts}{turned}"


_TEXT = re.compile(
    r"(fma|mma|wmma|wgmma) m(\d+)n(\d+)k(\d+) (\w+)(?:\*(\w+))? (\w+)"
    r" warps (\d+)x(\d+)(?: parts (\d+))?( turned)?"
)


@irdl_attr_definition
class InstructionAttr(Data[Instruction]):
    """`#tile.instruction<"mma m16n8k16 f16 f32 warps 2x4">`."""

    name = "tile.instruction"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Instruction:
        """Parses the instruction's text in quotes."""
        with parser.in_angle_brackets():
            start = parser.pos
            found = _TEXT.fullmatch(parser.parse_str_literal("an instruction"))
            if found is None:
                parser.raise_error(
                    'expected text like "mma m16n8k16 f16 f32 warps 2x4"', start, parser.pos
                )
            m, n, k, along_m, along_n = (int(found[i]) for i in (2, 3, 4, 8, 9))
            a, b, total = found[5], found[6] or found[5], found[7]
            unknown = next((name for name in (a, b) if name not in OPERAND_FORMS), None)
            if unknown is not None:
                parser.raise_error(f"`{unknown}` is no operand of a contraction", start, parser.pos)
            part, turned = int(found[10] or 0), found[11] is not None
            return Instruction(found[1], (m, n, k), a, b, total, (along_m, along_n), part, turned)

    def print_parameter(self, printer: Printer) -> None:
        """Prints the instruction's text in quotes."""
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


_ACCUMULATORS: dict[type[Attribute], tuple[Attribute, ...]] = {
    Float16Type: (f32, f16),
    BFloat16Type: (f32,),
    Float32Type: (f32,),
    Float8E4M3FNType: (f32, f16),
    Float8E5M2Type: (f32, f16),
    Float64Type: (f64,),
}
_SMALL_FLOATS = (Float8E4M3FNType, Float8E5M2Type)


def accumulators_of(a: Attribute, b: Attribute) -> tuple[Attribute, ...]:
    """The element types that products of these elements can be summed in; none if none."""
    mixes = isinstance(a, _SMALL_FLOATS) and isinstance(b, _SMALL_FLOATS)
    if a != b and not mixes:
        return ()
    return (i32,) if a in (i8, i32) else _ACCUMULATORS.get(type(a), ())


@irdl_op_definition
class DotOp(IRDLOperation):
    """c + a b, over the last two axes: [.., M, K] x [.., K, N] + [.., M, N].

    Bytes are signed unless an operand is marked `unsigned`; the two 8-bit floats mix.
    Axes before the last two count the products of a stack. `a` and `b` are tiles, or shared
    buffers of the same shape (rounded up to powers of two); `c` is a tile, or a vector of `wmma`
    fragments. The sum runs over K in ascending order of the instruction's steps. With `in_flight`
    the product of a `wgmma` is only started: buffers that it reads and the registers of its sum are
    in use until a `tile.await_products`.
    """

    name = "tile.dot"

    a = operand_def()
    b = operand_def()
    c = operand_def()
    result = result_def()
    instruction = opt_prop_def(InstructionAttr)
    unsigned_a = opt_prop_def(UnitAttr)
    unsigned_b = opt_prop_def(UnitAttr)
    in_flight = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$a (`unsigned` $unsigned_a^)? `,` $b (`unsigned` $unsigned_b^)? `,` $c"
        " (`using` $instruction^)? (`in_flight` $in_flight^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `->` type($result)"
    )

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue):
        super().__init__(operands=[a, b, c], result_types=[c.type])

    def verify_(self) -> None:
        """Refuses operands whose shapes or element types do not go together."""
        in_fragments = isinstance(self.c.type, VectorType)
        summed = () if in_fragments else (self.c,)
        shapes = [_shape(value) for value in (self.a, self.b, *summed)]
        if any(len(shape) != len(shapes[0]) or len(shape) < 2 for shape in shapes):
            raise VerifyException("tile.dot takes tiles of one rank, at least 2")
        are_tiles = isinstance(self.a.type, TensorType) and isinstance(self.b.type, TensorType)
        if are_tiles and not in_fragments:
            a, b, c = shapes
            if (*a[:-1], b[-1]) != c or (*b[:-2], b[-2]) != (*a[:-2], a[-1]):
                raise VerifyException(f"tile.dot: {a} x {b} does not give {c}")
        element, other = _element(self.a), _element(self.b)
        sums = accumulators_of(element, other)
        if not sums:
            raise VerifyException(f"tile.dot does not multiply {element} by {other}")
        if _element(self.c) not in sums or self.result.type != self.c.type:
            wanted = " or ".join(map(str, sums))
            raise VerifyException(f"tile.dot of {element} sums in {wanted}, not {_element(self.c)}")
        bytes_only = self.unsigned_a is not None or self.unsigned_b is not None
        if bytes_only and element != i8:
            raise VerifyException(f"tile.dot: only bytes can be unsigned, not {element}")
        if self.in_flight is not None and not can_be_in_flight(self):
            raise VerifyException(
                "tile.dot: only a product by wgmma, of one part, can be in flight"
            )


def can_be_in_flight(op: DotOp) -> bool:
    """Whether a product can be started and waited for later: parts are added up right away."""
    return by_warpgroups(op) and op.instruction is not None and not op.instruction.data.part


def by_warpgroups(op: Operation) -> bool:
    """Whether an op is a product that warpgroups make, which read shared memory by themselves."""
    return (
        isinstance(op, DotOp) and op.instruction is not None and op.instruction.data.name == WGMMA
    )


def described_operand(made_of: Instruction) -> int:
    """Which operand, A or B, a `wgmma` can only read from shared memory itself: 0 or 1.

    The other one may be in registers; that of a product that is `turned` always is.
    """
    return 0 if made_of.turned else 1


def operands_by_descriptor(op: DotOp) -> tuple[SSAValue, ...]:
    """The operands in shared memory that a product by `wgmma` reads by itself; none of others."""
    if op.instruction is None or not by_warpgroups(op):
        return ()
    given = (op.a,) if op.instruction.data.turned else (op.a, op.b)
    return tuple(one for one in given if isinstance(one.type, MemRefType))


def _shape(value: SSAValue) -> tuple[int, ...]:
    if not isinstance(value.type, TensorType | MemRefType):
        raise VerifyException(f"tile.dot multiplies tiles or shared buffers, not {value.type}")
    return cast("TensorType | MemRefType", value.type).get_shape()


def _element(value: SSAValue) -> Attribute:
    assert isinstance(value.type, TensorType | MemRefType | VectorType)
    return cast("TensorType | MemRefType | VectorType", value.type).element_type
