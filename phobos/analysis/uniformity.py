"""How far each value differs between the threads of a CTA.

A value is uniform (the same in every thread), warp-uniform (the same in the lanes of a
warp) or varying. `analyze` walks a kernel's structured control flow once, repeating loop
bodies until nothing changes, and keeps for each value that is not uniform the value that
made it so, so that an error can tell the whole chain back to `ctx.lane` or `ctx.thread`.

`analyze_cluster` does the same for the CTAs of a cluster: what is not uniform there may differ
from one CTA to the next.

The cost is one dictionary update an op and a repetition a loop level: about 1 us an op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from phobos.dialects import cluster, collective, ctx, tile
from phobos.dialects.atomics import AtomicOp, CompareExchangeOp, LoadAcquireOp
from phobos.record import Record, record


class Variation(IntEnum):
    """How far a value differs; a larger member differs more."""

    UNIFORM = 0
    WARP_UNIFORM = 1
    VARYING = 2

    def __str__(self) -> str:
        """The word that users know it by."""
        return ("uniform", "warp-uniform", "varying")[self]


@record
class Cause(Record):
    """Why a value is not uniform: the value before it in the chain, None at a source.

    In the reason `{}` stands for how far the value before it differs.
    """

    origin: SSAValue | None
    reason: str


COMPUTED = "computed from a {} value"
"""The reason that needs no words where the value has no name: an expression of such values."""


@record
class Divergence(Record):
    """The condition that splits the threads around an op."""

    condition: SSAValue
    op: Operation
    level: Variation


@dataclass
class Uniformity:
    """The result of the analysis of one kernel."""

    levels: dict[SSAValue, Variation] = field(default_factory=dict)
    causes: dict[SSAValue, Cause] = field(default_factory=dict)
    control: dict[Operation, Divergence] = field(default_factory=dict)
    """For each op with regions: the worst condition that its regions run under, if any."""

    def level(self, value: SSAValue) -> Variation:
        """How far a value differs; values that nothing made vary are uniform."""
        return self.levels.get(value, Variation.UNIFORM)

    def divergence(self, op: Operation) -> Divergence | None:
        """The worst condition that splits the threads which reach `op`, if any does."""
        worst: Divergence | None = None
        parent = op.parent_op()
        while parent is not None:
            found = self.control.get(parent)
            if found is not None and (worst is None or found.level > worst.level):
                worst = found
            parent = parent.parent_op()
        return worst

    def chain(self, value: SSAValue) -> Iterator[tuple[SSAValue, Cause]]:
        """`value` and the values that made it vary, nearest first, each with the reason."""
        seen: set[SSAValue] = set()
        current: SSAValue | None = value
        while current is not None and current not in seen:
            seen.add(current)
            cause = self.causes.get(current)
            if cause is None:
                return
            yield current, cause
            current = cause.origin


def analyze(kernel: Operation) -> Uniformity:
    """Analyses one kernel (or any op with regions whose arguments are uniform)."""
    return _walk(kernel, _Walker(Uniformity(), _SOURCES))


def analyze_cluster(kernel: Operation, size: int) -> Uniformity:
    """Analyses which values may differ between the CTAs of a cluster of `size`.

    Every value that does is `varying`. How threads of one CTA differ is not looked at.
    """
    return _walk(kernel, _ClusterWalker(Uniformity(), size))


def _walk(kernel: Operation, walker: _Walker) -> Uniformity:
    for region in kernel.regions:
        for block in region.blocks:
            walker.block(block)
    return walker.result


_Source = tuple[Variation, str]
"""How far the results of an op differ, whatever its operands, and why."""

_ATOMIC: _Source = (Variation.VARYING, "each thread's atomic update finds another value")
_SOURCES: dict[type[Operation], _Source] = {
    ctx.WarpOp: (Variation.WARP_UNIFORM, "`ctx.warp` differs between warps"),
    ctx.ThreadOp: (Variation.VARYING, "`ctx.thread` differs between threads"),
    ctx.LaneOp: (Variation.VARYING, "`ctx.lane` differs between lanes"),
    collective.BallotOp: (Variation.WARP_UNIFORM, "a ballot differs between warps"),
    AtomicOp: _ATOMIC,
    CompareExchangeOp: _ATOMIC,
    LoadAcquireOp: (
        Variation.VARYING,
        "threads may read before and after the value is released",
    ),
}

_READ: _Source = (Variation.VARYING, "what CTAs read from memory may differ")
_CLUSTER_SOURCES: dict[type[Operation], _Source] = {
    cluster.RankOp: (Variation.VARYING, "`ctx.cluster.rank` differs between the CTAs of a cluster"),
    memref.LoadOp: _READ,
    vector.LoadOp: _READ,
    AtomicOp: (Variation.VARYING, "each CTA's atomic update finds another value"),
    CompareExchangeOp: (Variation.VARYING, "each CTA's atomic update finds another value"),
    LoadAcquireOp: _READ,
}


class _Walker:
    """One run of the analysis; `changed` drives the loops to their fixpoint."""

    def __init__(self, result: Uniformity, sources: Mapping[type[Operation], _Source]):
        self.result = result
        self.changed = False
        self._sources = sources
        self._rules: dict[type[Operation], Callable[[Operation], None]] = {
            scf.IfOp: self._if,
            scf.ForOp: self._for,
            scf.WhileOp: self._while,
            collective.ReduceOp: self._reduce,
            collective.ScanOp: self._scan,
            collective.ShuffleOp: self._shuffle,
            tile.LoadOp: self._uniform,
        }

    def block(self, block: Block) -> None:
        """Visits the ops of a block in order."""
        rules, sources = self._rules, self._sources
        for op in block.ops:
            kind = type(op)
            if kind in sources:
                level, reason = sources[kind]
                self._raise(op.results[0], level, None, reason)
            elif kind in rules:
                rules[kind](op)
            else:
                self._default(op)

    def _raise(
        self, value: SSAValue, level: Variation, origin: SSAValue | None, reason: str
    ) -> None:
        if level > self.result.level(value):
            self.result.levels[value] = level
            self.result.causes[value] = Cause(origin, reason)
            self.changed = True

    def _join(self, target: SSAValue, sources: Iterable[SSAValue], reason: str) -> None:
        for source in sources:
            level = self.result.levels.get(source)
            if level is not None:
                self._raise(target, level, source, reason)

    def _default(self, op: Operation) -> None:
        """An op has the largest variation of its operands; a read that of its subscripts."""
        if not self.result.levels or not op.operands:
            return
        for result in op.results:
            if not isinstance(result.type, TensorType):
                self._join(result, op.operands, _reason(op))
        for region in op.regions:
            for block in region.blocks:
                self.block(block)

    def _uniform(self, op: Operation) -> None:
        """A tile is one value of the whole CTA."""

    def _reduce(self, op: Operation) -> None:
        assert isinstance(op, collective.ReduceOp)
        level = self.result.level(op.value)
        match op.scope.data:
            case collective.Scope.THREAD:
                return
            case collective.Scope.LANE:
                # A warp-uniform operand folds to a warp-uniform result, a uniform one
                # too where warps differ in their number of lanes.
                level = Variation.WARP_UNIFORM
            case collective.Scope.WARP:
                level = Variation.VARYING if level is Variation.VARYING else Variation.UNIFORM
        if level:
            self._raise(op.result, level, None, f"a fold over ctx.{op.scope.data} is {level}")

    def _scan(self, op: Operation) -> None:
        """A sum up to here differs from thread to thread, over warps from warp to warp."""
        assert isinstance(op, collective.ScanOp)
        level = Variation.VARYING
        if op.scope.data is collective.Scope.WARP:
            level = max(self.result.level(op.value), Variation.WARP_UNIFORM)
        self._raise(op.result, level, None, f"a scan over ctx.{op.scope.data} is {level}")

    def _shuffle(self, op: Operation) -> None:
        assert isinstance(op, collective.ShuffleOp)
        source_lane_agrees = self.result.level(op.amount) < Variation.VARYING
        level = (
            Variation.WARP_UNIFORM
            if op.mode.data is collective.ShuffleMode.IDX and source_lane_agrees
            else Variation.VARYING
        )
        self._raise(op.result, level, None, f"a shuffle result is {level}")

    def _enter(self, op: Operation, conditions: Iterable[SSAValue]) -> Divergence | None:
        """Records the worst of the conditions that decide whether `op`'s regions run."""
        worst: Divergence | None = None
        for condition in conditions:
            level = self.result.level(condition)
            if level and (worst is None or level > worst.level):
                worst = Divergence(condition, op, level)
        if worst is not None:
            self.result.control[op] = worst
        return worst

    def _under(self, target: SSAValue, divergence: Divergence | None, reason: str) -> None:
        if divergence is not None:
            self._raise(target, divergence.level, divergence.condition, reason)

    def _if(self, op: Operation) -> None:
        assert isinstance(op, scf.IfOp)
        divergence = self._enter(op, (op.cond,))
        yields = [self._branch(block) for region in op.regions for block in region.blocks]
        for position, result in enumerate(op.results):
            if isinstance(result.type, TensorType):
                continue
            values = [values[position] for values in yields]
            self._join(result, values, "assigned a {} value in a branch")
            if any(value is not values[0] for value in values):
                self._under(result, divergence, "assigned under a {} condition")

    def _branch(self, block: Block) -> tuple[SSAValue, ...]:
        self.block(block)
        last = block.last_op
        return tuple(last.operands) if isinstance(last, scf.YieldOp) else ()

    def _for(self, op: Operation) -> None:
        assert isinstance(op, scf.ForOp)
        bounds = (op.lb, op.ub, op.step)
        body = op.body.block
        divergence = self._enter(op, bounds)
        variable, *carried = body.args
        self._join(variable, bounds, "counted between {} bounds")
        for _ in self._until_stable():
            for argument, initial in zip(carried, op.iter_args, strict=True):
                self._carry(argument, (initial,), divergence)
            yielded = self._branch(body)
            for argument, value in zip(carried, yielded, strict=True):
                self._carry(argument, (value,), divergence)
        for result, argument in zip(op.results, carried, strict=True):
            if not isinstance(result.type, TensorType):
                self._join(result, (argument,), "carried through a loop from a {} value")

    def _while(self, op: Operation) -> None:
        assert isinstance(op, scf.WhileOp)
        before, after = op.before_region.block, op.after_region.block
        for _ in self._until_stable():
            for argument, initial in zip(before.args, op.arguments, strict=True):
                self._carry(argument, (initial,), None)
            self.block(before)
            assert before.last_op is not None
            condition, *passed = before.last_op.operands
            divergence = self._enter(op, (condition,))
            for argument, value in zip(after.args, passed, strict=True):
                self._carry(argument, (value,), divergence)
            yielded = self._branch(after)
            for argument, value in zip(before.args, yielded, strict=True):
                self._carry(argument, (value,), divergence)
            for result, value in zip(op.results, passed, strict=True):
                self._carry(result, (value,), divergence)

    def _carry(
        self, target: SSAValue, sources: tuple[SSAValue, ...], divergence: Divergence | None
    ) -> None:
        """A loop-carried value: what flows in, and how far the trip count differs."""
        if isinstance(target.type, TensorType):
            return
        self._join(target, sources, "carried through a loop from a {} value")
        self._under(target, divergence, "changed by a loop that a {} condition ends")

    def _until_stable(self) -> Iterator[None]:
        """Repeats a loop's body while it changes anything; levels only rise, so it ends."""
        outer_changed = self.changed
        while True:
            self.changed = False
            yield
            if not self.changed:
                break
            outer_changed = True
        self.changed = outer_changed


class _ClusterWalker(_Walker):
    """One run of the analysis of how the CTAs of a cluster differ."""

    def __init__(self, result: Uniformity, size: int):
        super().__init__(result, _CLUSTER_SOURCES)
        self._size = size
        for kind in (collective.ReduceOp, collective.ScanOp, collective.ShuffleOp):
            # What threads of one CTA tell each other differs as what goes in does.
            del self._rules[kind]
        self._rules[ctx.BlockOp] = self._block
        self._rules[arith.DivSIOp] = self._rules[arith.DivUIOp] = self._quotient

    def _block(self, op: Operation) -> None:
        assert isinstance(op, ctx.BlockOp)
        if op.axis.data is ctx.Axis.X:
            reason = "`ctx.block.x` differs between the CTAs of a cluster"
            self._raise(op.result, Variation.VARYING, None, reason)

    def _quotient(self, op: Operation) -> None:
        """The number of the cluster, `ctx.block.x / ctx.cluster.size`, is the same in all."""
        block, divisor = op.operands
        by = getattr(divisor.owner, "value", None)
        if isinstance(block.owner, ctx.BlockOp) and isinstance(by, IntegerAttr):
            number = by.value.data
            if number > 0 and number % self._size == 0:
                return
        self._default(op)


def _reason(op: Operation) -> str:
    if isinstance(op, memref.LoadOp | vector.LoadOp):
        return "read at a {} subscript"
    return COMPUTED
