"""`ph-warn-masked-folds`: warn where elements past a tensor's end may decide a fold.

    %t = tile.load %x[%i, %c0] in_bounds [true, false] : memref<?x?xf32> -> tensor<1x64xf32>
    %m = tile.reduce max %t over [1]    // warning: elements past the end, which read as 0

Elements outside a tensor read as 0, which changes nothing in a sum. In a fold whose neutral
element is another it may decide the result. The pass follows the operand of such a fold
backwards to slices that are not proven to be inside along an axis that is folded. A slice
with a `fill` and a select are the author's word that he has thought of it.

Precondition: `ph-analyze-extents`. The IR stays as it is. Cost: one walk, and a visit of what
a fold is computed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.diagnostics import Diagnostic, Note, tell
from phobos.dialects import tile
from phobos.dialects.collective import ReduceKind
from phobos.dialects.contraction import DotOp
from phobos.dialects.shaping import ReduceOp, ReshapeOp, TransposeOp
from phobos.ir.kernel import argument_name, dim_name_of, kernels
from phobos.ir.locations import location_of

GROUP = "masked-fold"
"""What `-W` calls these warnings."""

_WORDS = {
    ReduceKind.MUL: ("prod", "1"),
    ReduceKind.MAX: ("max", "-inf"),
    ReduceKind.MIN: ("min", "inf"),
    ReduceKind.UMIN: ("min", "255"),
    ReduceKind.AND: ("and", "-1"),
    ReduceKind.ALL: ("all", "1"),
}
"""The folds that 0 is not neutral in: the language's word, and a value to pad with."""


@dataclass(frozen=True)
class WarnMaskedFoldsPass(ModulePass):
    """Warns of folds that elements outside a tensor may decide."""

    name = "ph-warn-masked-folds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks at every fold of every kernel of the module."""
        for kernel in kernels(op):
            for inner in kernel.walk():
                if isinstance(inner, ReduceOp) and inner.kind.data in _WORDS:
                    tell(*_warnings(inner))


def _warnings(fold: ReduceOp) -> Iterator[Diagnostic]:
    search = _Search(fold.kind.data)
    search.visit(fold.value, frozenset(fold.axes.data))
    for load, axes in search.found.items():
        word, value = _WORDS[fold.kind.data]
        axis = min(axes)
        name = _tensor_name(load.mem)
        yield Diagnostic.warning(
            f"`{word}` may take in elements past the end of `{name}`, which read as 0",
            location_of(fold),
            notes=(
                Note(
                    f"this slice is not known to end inside axis {axis} of `{name}`",
                    location_of(load),
                ),
            ),
            help=f"give them a value that changes nothing, as in `pad({name}[...], {value})`"
            + _promise(load, axis),
            group=GROUP,
        )


def _tensor_name(mem: SSAValue) -> str:
    kernel = mem.block.parent_op() if isinstance(mem, BlockArgument) else None
    for one in () if kernel is None else (kernel,):
        return argument_name(one, mem.index)  # pyright: ignore
    return mem.name_hint or "the tensor"


def _promise(load: tile.LoadOp, axis: int) -> str:
    name = dim_name_of(load.mem, axis)
    assert isinstance(load.result.type, TensorType)
    length = load.result.type.get_shape()[axis]
    return "" if name is None or length == 1 else f", or promise `@aligned({name} = {length})`"
