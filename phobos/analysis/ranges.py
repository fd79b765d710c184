"""Ranges and divisibility of integer values: what masks and vector widths are proven from.

Each integer or index value gets an interval of its signed value and a number that divides
it. `analyze` walks a kernel once, repeating a loop's body at most a few times: an interval
that a loop changes is given up at once, a divisor only shrinks, so the fixpoint is near.

Arithmetic wraps at its width. Where it may wrap, the interval is given up and of the divisor
the power of two stays, which wrapping cannot break.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import gcd, lcm

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from phobos.dialects import ctx
from phobos.ir.kernel import dim_name_of, extent_multiples_of, int_dict

_MAX_GRID_X = 2**31 - 1
_MAX_GRID_YZ = 65535


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one value: `low <= value <= high` and `divisor` divides it.

    A divisor of 0 belongs to the constant 0, which everything divides.
    """

    low: int
    high: int
    divisor: int = 1

    @property
    def constant(self) -> int | None:
        """The value, if only one is possible."""
        return self.low if self.low == self.high else None

    def divisible_by(self, number: int) -> bool:
        """Whether the value is a multiple of `number` in every run."""
        return self.divisor % number == 0

    def join(self, other: Facts) -> Facts:
        """What holds of a value that is one or the other."""
        return Facts(
            min(self.low, other.low),
            max(self.high, other.high),
            gcd(self.divisor, other.divisor),
        )


def exactly(value: int) -> Facts:
    """The facts of a constant."""
    return Facts(value, value, abs(value))


def _power_of_two_part(number: int) -> int:
    return number & -number if number else 0


@dataclass
class Ranges:
    """The result of the analysis of one kernel."""

    index_bits: int
    extent_multiple: int = 1
    aligned: dict[str, int] = field(default_factory=dict)
    multiples: dict[str, int] = field(default_factory=dict)
    """What stands for `extent_multiple` for the extents of some dims, by their names."""
    facts: dict[SSAValue, Facts] = field(default_factory=dict)

    def of(self, value: SSAValue) -> Facts:
        """What is known of a value; for an unknown one, the limits of its type."""
        found = self.facts.get(value)
        return found if found is not None else self.limits(value.type)

    def extent(self, mem: SSAValue, axis: int) -> Facts:
        """What is known of a tensor's extent along an axis.

        A launch extent is a multiple of what the module promises and `@aligned` checks.
        """
        assert isinstance(mem.type, MemRefType)
        extent = mem.type.get_shape()[axis]
        if extent != DYNAMIC_INDEX:
            return exactly(extent)
        promised = self.aligned.get(dim_name_of(mem, axis) or "", 1)
        high = (1 << self.index_bits - 1) - 1
        return Facts(0, high, lcm(self.multiple_of(mem, axis), promised))

    def multiple_of(self, mem: SSAValue, axis: int) -> int:
        """What the module promises to divide a launch extent along an axis."""
        return self.multiples.get(dim_name_of(mem, axis) or "", self.extent_multiple)

    def limits(self, type_: Attribute) -> Facts:
        """The interval of a type."""
        if isinstance(type_, IndexType):
            bits = self.index_bits
        elif isinstance(type_, IntegerType):
            bits = type_.width.data
        else:
            bits = 64
        return Facts(-(1 << bits - 1), (1 << bits - 1) - 1) if bits > 1 else Facts(-1, 1)


def analyze(kernel: gpu.FuncOp, index_bits: int, extent_multiple: int) -> Ranges:
    """Analyses one kernel.

    `index_bits` is the width of `index`, `extent_multiple` a promise about every extent
    that is read from the launch; what the module says of single dims goes before it.
    """
    aligned = int_dict(kernel, "phobos.aligned")
    result = Ranges(index_bits, extent_multiple, aligned, extent_multiples_of(kernel))
    walker = _Walker(kernel, result)
    for block in kernel.body.blocks:
        walker.block(block)
    return walker.result


class _Walker:
    def __init__(self, kernel: gpu.FuncOp, result: Ranges):
        self.result = result
        block_size = kernel.known_block_size
        self.threads = block_size.get_values()[0] if block_size is not None else 1024

    def block(self, block: Block) -> None:
        rules, facts = _RULES, self.result.facts
        for op in block.ops:
            rule = rules.get(type(op))
            if rule is not None:
                for result in op.results:
                    facts.pop(result, None)  # of an earlier visit of a loop's body
                rule(self, op)

    def set(self, value: SSAValue, low: int, high: int, divisor: int) -> None:
        """Records facts, weakened where the exact result may not fit the value's type."""
        limits = self.result.limits(value.type)
        if low < limits.low or high > limits.high:
            self.result.facts[value] = Facts(limits.low, limits.high, _power_of_two_part(divisor))
        else:
            self.result.facts[value] = Facts(low, high, divisor)

    def binary(self, op: Operation) -> tuple[Facts, Facts]:
        return self.result.of(op.operands[0]), self.result.of(op.operands[1])


def _constant(walker: _Walker, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    if isinstance(op.value, IntegerAttr):
        walker.result.facts[op.result] = exactly(op.value.value.data)


def _add(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    walker.set(op.results[0], a.low + b.low, a.high + b.high, gcd(a.divisor, b.divisor))


def _sub(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    walker.set(op.results[0], a.low - b.high, a.high - b.low, gcd(a.divisor, b.divisor))


def _mul(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    walker.set(op.results[0], min(corners), max(corners), a.divisor * b.divisor)


def _shift_left(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    if b.constant is None or not 0 <= b.constant < 63:
        return
    factor = 1 << b.constant
    walker.set(op.results[0], a.low * factor, a.high * factor, a.divisor * factor)


def _divide(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    number = b.constant
    if number is None or number <= 0:
        return
    divisor = a.divisor // number if a.divisor % number == 0 else 1
    quotients = (_truncated(a.low, number), _truncated(a.high, number))
    walker.set(op.results[0], *quotients, divisor)


def _truncated(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def _remainder(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    largest = max(abs(b.low), abs(b.high)) - 1
    if largest < 0:
        return
    low = 0 if a.low >= 0 else -largest
    high = min(largest, a.high) if a.high >= 0 else 0
    walker.set(op.results[0], low, high, gcd(a.divisor, b.divisor))


def _min(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    divisor = gcd(a.divisor, b.divisor)
    walker.set(op.results[0], min(a.low, b.low), min(a.high, b.high), divisor)


def _max(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    divisor = gcd(a.divisor, b.divisor)
    walker.set(op.results[0], max(a.low, b.low), max(a.high, b.high), divisor)


def _and(walker: _Walker, op: Operation) -> None:
    a, b = walker.binary(op)
    if a.low >= 0 and b.low >= 0:
        # A bit that is 0 in either is 0 in the result, so the larger power of two divides.
        powers = (_power_of_two_part(a.divisor), _power_of_two_part(b.divisor))
        divisor = 0 if 0 in powers else max(powers)
        walker.set(op.results[0], 0, min(a.high, b.high), divisor)


def _select(walker: _Walker, op: Operation) -> None:
    a, b = walker.result.of(op.operands[1]), walker.result.of(op.operands[2])
    joined = a.join(b)
    walker.set(op.results[0], joined.low, joined.high, joined.divisor)


def _same(walker: _Walker, op: Operation) -> None:
    a = walker.result.of(op.operands[0])
    walker.set(op.results[0], a.low, a.high, a.divisor)


def _dim(walker: _Walker, op: Operation) -> None:
    assert isinstance(op, memref.DimOp)
    axis = walker.result.of(op.index).constant
    assert isinstance(op.source.type, MemRefType)
    if axis is not None and 0 <= axis < len(op.source.type.get_shape()):
        walker.result.facts[op.result] = walker.result.extent(op.source, axis)


def _block_index(walker: _Walker, op: Operation) -> None:
    assert isinstance(op, ctx.BlockOp)
    limit = _MAX_GRID_X if op.axis.data is ctx.Axis.X else _MAX_GRID_YZ
    walker.set(op.result, 0, limit - 1, 1)


def _blocks(walker: _Walker, op: Operation) -> None:
    assert isinstance(op, ctx.BlocksOp)
    limit = _MAX_GRID_X if op.axis.data is ctx.Axis.X else _MAX_GRID_YZ
    walker.set(op.result, 1, limit, 1)


def _thread(walker: _Walker, op: Operation) -> None:
    walker.set(op.results[0], 0, walker.threads - 1, 1)


def _warp(walker: _Walker, op: Operation) -> None:
    walker.set(op.results[0], 0, (walker.threads - 1) // ctx.LANES_PER_WARP, 1)


def _lane(walker: _Walker, op: Operation) -> None:
    walker.set(op.results[0], 0, min(walker.threads, ctx.LANES_PER_WARP) - 1, 1)


def _if(walker: _Walker, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    yields: list[tuple[SSAValue, ...]] = []
    for region in op.regions:
        for block in region.blocks:
            walker.block(block)
            if block.last_op is not None:
                yields.append(tuple(block.last_op.operands))
    for position, result in enumerate(op.results):
        _join(walker, result, [values[position] for values in yields])


def _join(walker: _Walker, target: SSAValue, sources: list[SSAValue]) -> None:
    if not sources or not isinstance(target.type, IndexType | IntegerType):
        return
    joined = walker.result.of(sources[0])
    for source in sources[1:]:
        joined = joined.join(walker.result.of(source))
    walker.result.facts[target] = joined


def _for(walker: _Walker, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    low, high, step = (walker.result.of(value) for value in (op.lb, op.ub, op.step))
    variable, *carried = op.body.block.args
    # The step of an scf.for is positive by definition, whatever is known of its value.
    walker.set(variable, low.low, max(low.low, high.high - 1), gcd(low.divisor, step.divisor))
    _loop(walker, op.body.block, carried, list(op.iter_args))
    for result, argument in zip(op.results, carried, strict=True):
        _join(walker, result, [argument])


def _loop(
    walker: _Walker, body: Block, carried: Sequence[SSAValue], initial: Sequence[SSAValue]
) -> None:
    """Runs a loop's body until the facts of what it carries hold for every iteration."""
    facts = walker.result.facts
    for argument, value in zip(carried, initial, strict=True):
        _join(walker, argument, [value])
    while True:
        walker.block(body)
        yielded = list(body.last_op.operands) if body.last_op is not None else []
        stable = True
        for argument, value in zip(carried, yielded[-len(carried) :], strict=True):
            if argument not in facts:
                continue
            joined = facts[argument].join(walker.result.of(value))
            if joined != facts[argument]:
                limits = walker.result.limits(argument.type)
                facts[argument] = Facts(limits.low, limits.high, joined.divisor)
                stable = False
        if stable:
            return


def _while(walker: _Walker, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    before, after = op.before_region.block, op.after_region.block
    # What a while loop carries is unknown: its condition is not looked at.
    walker.block(before)
    passed = list(before.last_op.operands)[1:] if before.last_op is not None else []
    for argument, value in zip(after.args, passed, strict=True):
        _join(walker, argument, [value])
    walker.block(after)
    for result, argument in zip(op.results, after.args, strict=True):
        _join(walker, result, [argument])


_RULES: dict[type[Operation], Callable[[_Walker, Operation], None]] = {
    arith.ConstantOp: _constant,
    arith.AddiOp: _add,
    arith.SubiOp: _sub,
    arith.MuliOp: _mul,
    arith.ShLIOp: _shift_left,
    arith.DivSIOp: _divide,
    arith.RemSIOp: _remainder,
    arith.MinSIOp: _min,
    arith.MaxSIOp: _max,
    arith.AndIOp: _and,
    arith.SelectOp: _select,
    arith.IndexCastOp: _same,
    arith.ExtSIOp: _same,
    arith.TruncIOp: _same,
    memref.DimOp: _dim,
    ctx.BlockOp: _block_index,
    ctx.BlocksOp: _blocks,
    ctx.ThreadOp: _thread,
    ctx.WarpOp: _warp,
    ctx.LaneOp: _lane,
    scf.IfOp: _if,
    scf.ForOp: _for,
    scf.WhileOp: _while,
}
