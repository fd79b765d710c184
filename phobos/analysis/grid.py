"""The grid that a kernel asks for, read off where it writes.

A CTA that writes `out[ctx.block.x * 16 :+ 16]` wants `ceildiv(N, 16)` CTAs along x. Each
subscript of each store is put into the form `coefficient * ctx.block.axis + rest`; the axis
then needs the extent over the coefficient, rounded up. A loop variable counts as where it
starts, which makes a grid-stride loop ask for one CTA a tile. Where CTAs form clusters,
`ctx.block.x / ctx.cluster.size` is one more such number, and takes that many CTAs for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType
from xdsl.ir import BlockArgument, Operation, SSAValue

from phobos.dialects import ctx, tile
from phobos.ir.kernel import argument_name, cluster_size_of, dim_name_of

Grid = tuple[str, str, str]


_CLUSTER = "cluster"


@dataclass(frozen=True)
class _Form:
    """constant + sum of coefficient * ctx.block.axis + something that no CTA index is in.

    `_CLUSTER` among the coefficients is the number of the cluster.
    """

    coefficients: dict[str, int] = field(default_factory=dict)
    constant: int | None = 0
    """The rest, if it is a known number."""


def infer_grid(kernel: gpu.FuncOp) -> Grid | None:
    """The grid as expressions over dim names, along x, y, z; None if it cannot be told.

    An axis that the kernel does not read has one CTA, or one cluster.
    """
    used = {op.axis.data.value for op in kernel.walk() if isinstance(op, ctx.BlockOp)}
    wanted: dict[str, list[str]] = {}
    size = cluster_size_of(kernel)
    forms = _Forms(size)
    for mem, indices in _stores(kernel):
        for axis, index in enumerate(indices):
            form = forms.of(index)
            if form is None or len(form.coefficients) != 1:
                continue
            ((grid_axis, coefficient),) = form.coefficients.items()
            if coefficient < 1:
                continue
            expression = _count(_extent(kernel, mem, axis), coefficient)
            if grid_axis == _CLUSTER:
                grid_axis, expression = "x", f"{expression} * {size}"
            known = wanted.setdefault(grid_axis, [])
            if expression not in known:
                known.append(expression)
    if not used <= wanted.keys():
        return None
    unread = {"x": str(size), "y": "1", "z": "1"}
    x, y, z = (_largest(wanted[axis]) if axis in used else one for axis, one in unread.items())
    return x, y, z


def _largest(expressions: list[str]) -> str:
    return expressions[0] if len(expressions) == 1 else f"max({', '.join(expressions)})"


def _stores(kernel: gpu.FuncOp) -> Iterator[tuple[SSAValue, Sequence[SSAValue]]]:
    yield from ((mem, at) for mem, at in _all_stores(kernel) if not tile.is_shared(mem))


def _all_stores(kernel: gpu.FuncOp) -> Iterator[tuple[SSAValue, Sequence[SSAValue]]]:
    for op in kernel.walk():
        match op:
            case tile.StoreOp():
                yield op.mem, op.indices
            case memref.StoreOp():
                yield op.memref, op.indices
            case vector.StoreOp():
                yield op.base, op.indices
            case _:
                continue


def _extent(kernel: gpu.FuncOp, mem: SSAValue, axis: int) -> str | int:
    assert isinstance(mem.type, MemRefType)
    extent = mem.type.get_shape()[axis]
    if extent != DYNAMIC_INDEX:
        return extent
    assert isinstance(mem, BlockArgument)
    return dim_name_of(mem, axis) or f"{argument_name(kernel, mem.index)}_size_{axis}"


def _count(extent: str | int, coefficient: int) -> str:
    if isinstance(extent, int):
        return str(-(-extent // coefficient))
    return extent if coefficient == 1 else f"ceildiv({extent}, {coefficient})"


class _Forms:
    """The form of each value, found once however often it is used."""

    def __init__(self, cluster_size: int) -> None:
        self._cluster_size = cluster_size
        self._known: dict[SSAValue, _Form | None] = {}

    def of(self, value: SSAValue) -> _Form | None:
        """The form of a value; None if CTA indices are in it in another way."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: SSAValue) -> _Form | None:
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if isinstance(loop, scf.ForOp) and value.index == 0:
                start = self.of(loop.lb)
                return _Form(start.coefficients, None) if start is not None else None
            return _Form(constant=None) if isinstance(loop, gpu.FuncOp) else None
        op = value.owner
        assert isinstance(op, Operation)
        match op:
            case ctx.BlockOp():
                return _Form({op.axis.data.value: 1})
            case arith.ConstantOp(value=IntegerAttr()):
                assert isinstance(op.value, IntegerAttr)
                return _Form(constant=op.value.value.data)
            case arith.AddiOp():
                return _sum(self.of(op.lhs), self.of(op.rhs), 1)
            case arith.SubiOp():
                return _sum(self.of(op.lhs), self.of(op.rhs), -1)
            case arith.MuliOp():
                return _product(self.of(op.lhs), self.of(op.rhs))
            case arith.DivSIOp() if self._is_cluster_number(op):
                return _Form({_CLUSTER: 1})
            case arith.DivSIOp() if self.of(op.rhs) == _Form(constant=1):
                return self.of(op.lhs)
            case arith.IndexCastOp() | arith.ExtSIOp():
                return self.of(op.operands[0])
            case _:
                return _Form(constant=None) if not self._reads_block(op) else None

    def _is_cluster_number(self, op: arith.DivSIOp) -> bool:
        block, divisor = op.lhs.owner, self.of(op.rhs)
        return (
            self._cluster_size > 1
            and isinstance(block, ctx.BlockOp)
            and block.axis.data is ctx.Axis.X
            and divisor == _Form(constant=self._cluster_size)
        )

    def _reads_block(self, op: Operation) -> bool:
        """Whether a CTA index is among what an op is computed from, as far as can be seen."""
        if op.regions:
            return True
        return any(
            form is None or bool(form.coefficients) for form in map(self.of, op.operands)
        ) and not isinstance(op, memref.DimOp)


def _sum(a: _Form | None, b: _Form | None, sign: int) -> _Form | None:
    if a is None or b is None:
        return None
    coefficients = dict(a.coefficients)
    for axis, coefficient in b.coefficients.items():
        coefficients[axis] = coefficients.get(axis, 0) + sign * coefficient
    known = a.constant is not None and b.constant is not None
    constant = (a.constant or 0) + sign * (b.constant or 0) if known else None
    return _Form({axis: c for axis, c in coefficients.items() if c}, constant)


def _product(a: _Form | None, b: _Form | None) -> _Form | None:
    if a is None or b is None:
        return None
    if not a.coefficients and not b.coefficients:
        known = a.constant is not None and b.constant is not None
        return _Form(constant=(a.constant or 0) * (b.constant or 0) if known else None)
    scaled, factor = (a, b) if a.coefficients else (b, a)
    if factor.coefficients or factor.constant is None:
        return None
    coefficients = {axis: c * factor.constant for axis, c in scaled.coefficients.items()}
    constant = None if scaled.constant is None else scaled.constant * factor.constant
    return _Form(coefficients, constant)
