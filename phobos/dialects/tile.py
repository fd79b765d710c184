"""The `tile` dialect: what a CTA does to tiles of tensors.

A tensor in global memory is a builtin `memref`, a tile is a builtin `tensor` of static
shape, and one thread's own run of elements a builtin `vector`; `arith` and `math` compute
on all three. This dialect adds what moves tiles and shapes them.

After `ph-assign-layouts` a tile's type carries its distribution over registers, lanes and
warps as the tensor's encoding: `tensor<1024xf32, #tile.layout<...>>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefLayoutAttr,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    VectorType,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Data, Dialect, ParametrizedAttribute, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from phobos.dialects.contraction import DotOp, InstructionAttr
from phobos.dialects.debugging import DEBUGGING
from phobos.dialects.elementwise import ELEMENTWISE, MORE
from phobos.dialects.fragments import FRAGMENTS
from phobos.dialects.gathering import GATHERING
from phobos.dialects.scanning import SCANNING
from phobos.dialects.shaping import (
    SHAPING,
    AxesAttr,
)
from phobos.dialects.staging import STAGING
from phobos.dialects.tensor_copies import TENSOR_COPIES
from phobos.layout import LinearLayout
from phobos.layout.build import ceil_pow2
from phobos.layout.shared import row_major

I1 = IntegerType(1)
MAX_RANK = 5


def _parse_layout(parser: AttrParser) -> LinearLayout:
    with parser.in_angle_brackets():
        position = parser.pos
        text = parser.parse_str_literal("the layout's text")
        try:
            return LinearLayout.parse(text)
        except ValueError as error:
            parser.raise_error(f"not a layout: {error}", position, parser.pos)


@irdl_attr_definition
class LayoutAttr(Data[LinearLayout]):
    """A linear layout: which register of which lane of which warp holds which element."""

    name = "tile.layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LinearLayout:
        """Parses `<"...">`, the layout's one-line text."""
        return _parse_layout(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Prints the layout's one-line text as a string."""
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


@irdl_attr_definition
class SharedLayoutAttr(MemRefLayoutAttr, Data[LinearLayout]):
    """Which element of a shared buffer is at which offset, in elements.

    `memref<8x8xf32, #tile.shared_layout<"offset=[[0, 1], ...] -> [8, 8]">, #tile.shared>`
    """

    name = "tile.shared_layout"

    def get_affine_map(self) -> AffineMap:
        """Not expressible: a swizzle is linear over bits, not over integers."""
        raise DiagnosticException("a shared layout is not an affine map")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LinearLayout:
        """Parses `<"...">`, the layout's one-line text."""
        return _parse_layout(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Prints the layout's one-line text as a string."""
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


@irdl_attr_definition
class SharedAttr(ParametrizedAttribute):
    """The memory space of a CTA's shared memory: `memref<8xf32, #tile.shared>`."""

    name = "tile.shared"


SHARED = SharedAttr()
POINTS = "tile.points"
"""The attribute of a shared buffer that holds a tile whose elements threads access."""


def is_shared(value: SSAValue) -> bool:
    """Whether a memref lives in shared memory."""
    return isinstance(value.type, MemRefType) and isinstance(value.type.memory_space, SharedAttr)


def shared_layout_of(value: SSAValue) -> LinearLayout:
    """Where the elements of a shared buffer are; row-major if its type does not say."""
    assert isinstance(value.type, MemRefType)
    if isinstance(value.type.layout, SharedLayoutAttr):
        return value.type.layout.data
    return row_major(tuple(ceil_pow2(extent) for extent in value.type.get_shape()))


def layout_of(value: SSAValue) -> LinearLayout | None:
    """The layout that a tile's type carries, or None before layouts are assigned."""
    encoding = getattr(value.type, "encoding", None)
    return encoding.data if isinstance(encoding, LayoutAttr) else None


def _check_access(kind: str, mem: Attribute, count: int, tile: Attribute) -> None:
    """Refuses an access whose tensor, subscripts and tile do not fit together."""
    if not isinstance(mem, MemRefType) or not isinstance(tile, TensorType):
        raise VerifyException(f"{kind} moves between a memref and a tensor")
    rank = len(mem.get_shape())
    if not 1 <= rank <= MAX_RANK:
        raise VerifyException(f"{kind}: a tensor has 1 to {MAX_RANK} axes, this one {rank}")
    if count != rank:
        raise VerifyException(f"{kind}: {rank} subscripts expected, got {count}")
    if len(tile.get_shape()) != rank:
        raise VerifyException(
            f"{kind}: the tile has {len(tile.get_shape())} axes, the tensor {rank}"
        )
    if any(extent < 1 for extent in tile.get_shape()):
        raise VerifyException(f"{kind}: a tile's extents are constants of at least 1")
    if mem.element_type != tile.element_type:
        raise VerifyException(
            f"{kind}: the tensor holds {mem.element_type}, the tile {tile.element_type}"
        )


def _check_in_bounds(kind: str, in_bounds: ArrayAttr[BoolAttr] | None, rank: int) -> None:
    if in_bounds is not None and len(in_bounds) != rank:
        raise VerifyException(f"{kind}: in_bounds names {len(in_bounds)} axes of {rank}")


def bounds_array(flags: Sequence[bool]) -> ArrayAttr[BoolAttr]:
    """The attribute that says, axis by axis, that an access stays inside its tensor."""
    return ArrayAttr([BoolAttr.from_bool(flag) for flag in flags])


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Reads a tile whose first element is at the given subscripts.

    An element outside the tensor's runtime extents reads as `fill`, or 0 without one, unless
    its axis is `in_bounds`, a proof that no element is outside along that axis. `vector` is
    the number of consecutive elements, from a multiple of that number within the tile, that
    are proven to be aligned as a whole and to lie inside or outside as a whole.

    `%t = tile.load %A[%i, %j] in_bounds [true, false] vector 4
        : memref<?x?xf32> -> tensor<8x64xf32>`
    """

    name = "tile.load"

    mem = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def(TensorType)
    in_bounds = opt_prop_def(ArrayAttr[BoolAttr])
    vector = opt_prop_def(IntegerAttr.constr(i64))
    fill = opt_prop_def(BaseAttr(IntegerAttr) | BaseAttr(FloatAttr))
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$mem `[` $indices `]` (`fill` $fill^)? (`in_bounds` $in_bounds^)?"
        " (`vector` $vector^)? attr-dict `:` type($mem) `->` type($result)"
    )

    def __init__(self, mem: SSAValue, indices: Sequence[SSAValue], result_type: TensorType):
        super().__init__(operands=[mem, indices], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses subscripts, ranks and element types that do not match."""
        _check_access("tile.load", self.mem.type, len(self.indices), self.result.type)
        _check_in_bounds("tile.load", self.in_bounds, len(self.indices))
        fill, element = self.fill, cast(TensorType, self.result.type).element_type
        if fill is not None and fill.type != element:
            raise VerifyException(f"tile.load: elements of {element} are filled with {fill.type}")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes a tile; elements outside the tensor's runtime extents are skipped.

    `ordered` is for a store to a `tile.stage`: the promise of the pass that made it that a barrier
    separates it from the last readers of the stage.

    `tile.store %t, %C[%i, %j] : tensor<8x64xf32>, memref<?x?xf32>`
    """

    name = "tile.store"

    value = operand_def(TensorType)
    mem = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    in_bounds = opt_prop_def(ArrayAttr[BoolAttr])
    vector = opt_prop_def(IntegerAttr.constr(i64))
    ordered = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $mem `[` $indices `]` (`in_bounds` $in_bounds^)? (`vector` $vector^)?"
        " (`ordered` $ordered^)? attr-dict `:` type($value) `,` type($mem)"
    )

    def __init__(self, value: SSAValue, mem: SSAValue, indices: Sequence[SSAValue]):
        super().__init__(operands=[value, mem, indices])

    def verify_(self) -> None:
        """Refuses subscripts, ranks and element types that do not match."""
        _check_access("tile.store", self.mem.type, len(self.indices), self.value.type)
        _check_in_bounds("tile.store", self.in_bounds, len(self.indices))


@irdl_op_definition
class SplatOp(IRDLOperation):
    """A tile whose elements all have the value of a scalar."""

    name = "tile.splat"

    value = operand_def()
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, result_type: TensorType):
        super().__init__(operands=[value], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses an element type other than the scalar's."""
        element = cast(TensorType, self.result.type).element_type
        if element != self.value.type:
            raise VerifyException(f"tile.splat of {self.value.type} into elements of {element}")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """Repeats a tile along its axes of extent 1, as NumPy does."""

    name = "tile.broadcast"

    value = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, result_type: TensorType):
        super().__init__(operands=[value], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses a change of rank, of element type or of an extent that is not 1."""
        source, result = cast(TensorType, self.value.type), cast(TensorType, self.result.type)
        if source.element_type != result.element_type:
            raise VerifyException("tile.broadcast does not convert elements")
        if len(source.get_shape()) != len(result.get_shape()):
            raise VerifyException("tile.broadcast keeps the rank")
        for axis, (old, new) in enumerate(zip(source.get_shape(), result.get_shape(), strict=True)):
            if old not in (1, new):
                raise VerifyException(
                    f"tile.broadcast: axis {axis} has extent {old}, which is neither 1 nor {new}"
                )


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Chooses element by element between two tiles or two runs."""

    name = "tile.select"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    condition = operand_def()
    if_true = operand_def(_T)
    if_false = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = (
        "$condition `,` $if_true `,` $if_false attr-dict `:` type($condition) `,` type($if_true)"
    )

    def __init__(self, condition: SSAValue, if_true: SSAValue, if_false: SSAValue):
        super().__init__(operands=[condition, if_true, if_false], result_types=[if_true.type])

    def verify_(self) -> None:
        """Refuses a condition that is not an i1 of the same shape."""
        condition, value = self.condition.type, self.if_true.type
        if not isinstance(value, TensorType | VectorType) or type(condition) is not type(value):
            raise VerifyException("tile.select chooses between tiles or runs of one shape")
        condition = cast("TensorType | VectorType", condition)
        if condition.element_type != I1 or condition.get_shape() != value.get_shape():
            raise VerifyException(
                f"tile.select of {value} by {condition}: an i1 of its shape expected"
            )


@irdl_op_definition
class ConvertLayoutOp(IRDLOperation):
    """The same tile, held by other registers, lanes and warps.

    `%u = tile.convert_layout %t : tensor<8x8xf32, #a> -> tensor<8x8xf32, #b>`
    """

    name = "tile.convert_layout"

    value = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, result_type: TensorType):
        super().__init__(operands=[value], result_types=[result_type])

    def verify_(self) -> None:
        """Refuses to change anything but the layout."""
        source, result = cast(TensorType, self.value.type), cast(TensorType, self.result.type)
        same_shape = source.get_shape() == result.get_shape()
        if not same_shape or source.element_type != result.element_type:
            raise VerifyException("tile.convert_layout keeps the shape and the elements")


@irdl_op_definition
class Dp4aOp(IRDLOperation):
    """`c` plus the dot product of four bytes of `a` and four bytes of `b`, in 32 bits.

    Without `unsigned_a` (`unsigned_b`) the bytes of `a` (`b`) are signed.
    """

    name = "tile.dp4a"

    a = operand_def(i32)
    b = operand_def(i32)
    c = operand_def(i32)
    result = result_def(i32)
    unsigned_a = opt_prop_def(UnitAttr)
    unsigned_b = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    assembly_format = (
        "$a (`unsigned` $unsigned_a^)? `,` $b (`unsigned` $unsigned_b^)? `,` $c attr-dict"
    )

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        *,
        unsigned_a: bool = False,
        unsigned_b: bool = False,
    ):
        super().__init__(
            operands=[a, b, c],
            result_types=[i32],
            properties={
                "unsigned_a": UnitAttr() if unsigned_a else None,
                "unsigned_b": UnitAttr() if unsigned_b else None,
            },
        )


@irdl_op_definition
class RunDotOp(IRDLOperation):
    """`c` plus the dot product of two runs of bytes, in 32 bits; wraps on overflow.

    The runs have a multiple of four elements. `%r = tile.run_dot %a, %b, %c : vector<16xi8>`
    """

    name = "tile.run_dot"
    _T: ClassVar = VarConstraint("T", AnyAttr())

    a = operand_def(_T)
    b = operand_def(_T)
    c = operand_def(i32)
    result = result_def(i32)
    unsigned_a = opt_prop_def(UnitAttr)
    unsigned_b = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    assembly_format = (
        "$a (`unsigned` $unsigned_a^)? `,` $b (`unsigned` $unsigned_b^)? `,` $c attr-dict"
        " `:` type($a)"
    )

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        *,
        unsigned_a: bool = False,
        unsigned_b: bool = False,
    ):
        super().__init__(
            operands=[a, b, c],
            result_types=[i32],
            properties={
                "unsigned_a": UnitAttr() if unsigned_a else None,
                "unsigned_b": UnitAttr() if unsigned_b else None,
            },
        )

    def verify_(self) -> None:
        """Refuses runs of anything but whole groups of four bytes."""
        run = self.a.type
        if not isinstance(run, VectorType) or run.element_type != i8:
            raise VerifyException(f"tile.run_dot takes runs of i8, not {run}")
        if len(run.get_shape()) != 1 or run.get_shape()[0] % 4:
            raise VerifyException(f"tile.run_dot takes a multiple of 4 bytes, got {run}")


@irdl_op_definition
class AssertOp(IRDLOperation):
    """Traps if the condition is false in any thread that gets here.

    A trap ends the launch with an error; the text is for readers of the IR.
    `tile.assert %ok, "N is a multiple of 16"`
    """

    name = "tile.assert"

    condition = operand_def(I1)
    text = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$condition `,` $text attr-dict"

    def __init__(self, condition: SSAValue, text: str):
        super().__init__(operands=[condition], properties={"text": StringAttr(text)})


Tile = Dialect(
    "tile",
    [
        LoadOp,
        StoreOp,
        SplatOp,
        BroadcastOp,
        SelectOp,
        ConvertLayoutOp,
        Dp4aOp,
        RunDotOp,
        AssertOp,
        *ELEMENTWISE.values(),
        *MORE,
        *DEBUGGING,
        *SHAPING,
        *GATHERING,
        *SCANNING,
        *STAGING,
        *TENSOR_COPIES,
        *FRAGMENTS,
        DotOp,
    ],
    [AxesAttr, InstructionAttr, LayoutAttr, SharedAttr, SharedLayoutAttr],
)
