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
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
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
    ReduceKind.MUL: "prod",
    ReduceKind.MAX: "max",
    ReduceKind.MIN: "min",
    ReduceKind.UMIN: "min",
    ReduceKind.ALL: "all",
}
"""The folds that 0 is not neutral in, and the language's word for them."""


class WarnMaskedFoldsPass(ModulePass):
    """Warns of folds that elements outside a tensor may decide."""

    name = "ph-warn-masked-folds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks at every fold of every kernel of the module."""
        for kernel in kernels(op):
            for inner in kernel.walk():
                if isinstance(inner, ReduceOp) and inner.kind.data in _WORDS:
                    tell(*_warnings(inner, kernel))


def _warnings(fold: ReduceOp, kernel: gpu.FuncOp) -> Iterator[Diagnostic]:
    search = _Search(fold.kind.data)
    search.visit(fold.value, frozenset(fold.axes.data))
    for load, axis in search.found.items():
        name = _tensor_name(load.mem, kernel)
        yield Diagnostic.warning(
            f"`{_WORDS[fold.kind.data]}` may take in elements past the end of `{name}`, which"
            " read as 0",
            location_of(fold),
            notes=(Note(f"this slice may end past axis {axis} of `{name}`", location_of(load)),),
            help=_remedy(fold, name) + _promise(load, axis),
            group=GROUP,
        )


def _tensor_name(mem: SSAValue, kernel: gpu.FuncOp) -> str:
    if isinstance(mem, BlockArgument):
        return argument_name(kernel, mem.index)
    return mem.name_hint or "the tensor"


def _remedy(fold: ReduceOp, name: str) -> str:
    assert isinstance(fold.value.type, TensorType)
    element = fold.value.type.element_type
    if fold.kind.data is ReduceKind.ALL:
        return f"let them pass, as in `all<...>(!valid({name}[...]) || condition)`"
    return f"pad with what changes nothing, as in `pad({name}[...], {_neutral(fold, element)})`"


def _neutral(fold: ReduceOp, element: Attribute) -> str:
    """The number that a fold leaves alone, as a program writes it."""
    kind = fold.kind.data
    if kind is ReduceKind.MUL:
        return "1"
    if not isinstance(element, IntegerType):
        return "-inf" if kind is ReduceKind.MAX else "inf"
    bits = element.width.data
    limits = {
        ReduceKind.MAX: -(1 << bits - 1),
        ReduceKind.MIN: (1 << bits - 1) - 1,
        ReduceKind.UMIN: (1 << bits) - 1,
    }
    return str(limits[kind])


def _promise(load: tile.LoadOp, axis: int) -> str:
    name = dim_name_of(load.mem, axis)
    assert isinstance(load.result.type, TensorType)
    length = load.result.type.get_shape()[axis]
    return "" if name is None or length == 1 else f", or promise `@aligned({name} = {length})`"


@dataclass
class _Search:
    """Finds the slices that the operand of a fold is computed from."""

    kind: ReduceKind
    found: dict[tile.LoadOp, int] = field(default_factory=dict)
    """Each slice that may be cut, and the first axis along which it may be."""
    _seen: set[tuple[SSAValue, frozenset[int]]] = field(default_factory=set)

    def visit(self, value: SSAValue, axes: frozenset[int]) -> None:
        """Follows a value that is folded, in the end, along these of its axes."""
        if not axes or (value, axes) in self._seen or not isinstance(value.type, TensorType):
            return
        self._seen.add((value, axes))
        if isinstance(value, BlockArgument):
            self._argument(value, axes)
        elif isinstance(value, OpResult):
            self._operation(value.op, value.index, axes)

    def _operation(self, op: Operation, position: int, axes: frozenset[int]) -> None:
        match op:
            case tile.LoadOp():
                self._load(op, axes)
            case tile.SelectOp():
                pass
            case Operation(name="math.absf" | "math.absi") if self.kind is ReduceKind.MAX:
                pass  # 0 is the least of what is left
            case tile.BroadcastOp():
                assert isinstance(op.value.type, TensorType)
                shape = op.value.type.get_shape()
                self.visit(op.value, frozenset(axis for axis in axes if shape[axis] > 1))
            case TransposeOp():
                assert isinstance(op.value.type, TensorType)
                last = len(op.value.type.get_shape()) - 1
                turned = {last: last - 1, last - 1: last}
                self.visit(op.value, frozenset(turned.get(axis, axis) for axis in axes))
            case ReshapeOp():
                assert isinstance(op.value.type, TensorType)
                self.visit(op.value, frozenset(range(len(op.value.type.get_shape()))))
            case ReduceOp():
                self.visit(op.value, axes - frozenset(op.axes.data))
            case DotOp():
                self._contraction(op, axes)
            case scf.ForOp():
                self._both(op.iter_args[position], _yielded(op, 0)[position], axes)
            case scf.IfOp():
                self._both(_yielded(op, 0)[position], _yielded(op, 1)[position], axes)
            case _ if not op.regions:
                for operand in op.operands:
                    self.visit(operand, axes)

    def _argument(self, value: BlockArgument, axes: frozenset[int]) -> None:
        loop = value.block.parent_op()
        if isinstance(loop, scf.ForOp):
            position = value.index - 1
            self._both(loop.iter_args[position], _yielded(loop, 0)[position], axes)

    def _both(self, one: SSAValue, other: SSAValue, axes: frozenset[int]) -> None:
        self.visit(one, axes)
        self.visit(other, axes)

    def _load(self, op: tile.LoadOp, axes: frozenset[int]) -> None:
        if op.fill is not None or tile.is_shared(op.mem):
            return
        flags = op.in_bounds
        cut = [axis for axis in axes if flags is None or not flags.data[axis].value.data]
        assert isinstance(op.result.type, TensorType)
        # A single element that does not exist is a whole tile that does not.
        cut = [axis for axis in cut if op.result.type.get_shape()[axis] > 1]
        if cut:
            self.found[op] = min(cut)

    def _contraction(self, op: DotOp, axes: frozenset[int]) -> None:
        """Rows of the result are rows of `a`, its columns those of `b`."""
        self.visit(op.c, axes)
        assert isinstance(op.c.type, TensorType)
        last = len(op.c.type.get_shape()) - 1
        self.visit(op.a, axes & {last - 1})
        self.visit(op.b, axes & {last})


def _yielded(op: Operation, region: int) -> list[SSAValue]:
    last = op.regions[region].block.last_op
    return list(last.operands) if last is not None else []
