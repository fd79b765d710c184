"""`ph-infer-uniformity`: say how far each value differs, and refuse what that makes illegal.

    %l = ctx.lane                       %l = ctx.lane {ctx.uniformity = "varying"}
    %c = arith.cmpi eq, %l, %zero  -->  %c = arith.cmpi eq, %l, %zero {ctx.uniformity = "varying"}
    scf.if %c {                         error: `barrier()` needs uniform control flow
      collective.barrier                note: this `if` splits the threads ...
    }                                   note: `ctx.lane` differs between lanes

Precondition: structured control flow (scf). Postcondition: every collective and every tile
op is reached by all threads that it needs, and every sum over a cluster by all its CTAs. Ops whose
results are uniform get no attribute. Cost: one walk, about 2 us an op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.uniformity import (
    COMPUTED,
    Cause,
    Divergence,
    Uniformity,
    Variation,
    analyze,
    analyze_cluster,
)
from phobos.diagnostics import MAX_ERRORS, Diagnostic, Note, PhobosError
from phobos.dialects import cluster, collective, tile
from phobos.dialects.atomics import GridBarrierOp
from phobos.dialects.gathering import GatherOp, ScatterOp
from phobos.ir.kernel import cluster_size_of
from phobos.ir.locations import location_of, location_of_value
from phobos.record import Record, record

ATTRIBUTE = "ctx.uniformity"
_NAMES = {level: StringAttr(str(level)) for level in Variation}
_CHAIN_NOTES = 6


@dataclass(frozen=True)
class InferUniformityPass(ModulePass):
    """Checks the rules of uniformity and, with `annotate`, marks what is not uniform."""

    name = "ph-infer-uniformity"

    annotate: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Checks every kernel; raises PhobosError with all violations."""
        errors: list[Diagnostic] = []
        for kernel in op.walk():
            if not isinstance(kernel, gpu.FuncOp):
                continue
            result = analyze(kernel)
            errors.extend(violations(kernel, result))
            errors.extend(_cluster_violations(kernel))
            if self.annotate:
                annotate(kernel, result)
        if errors:
            raise PhobosError(errors[:MAX_ERRORS])


def annotate(kernel: Operation, result: Uniformity) -> None:
    """Marks each op whose first result is not uniform."""
    for op in kernel.walk():
        level = result.level(op.results[0]) if op.results else Variation.UNIFORM
        if level:
            op.attributes[ATTRIBUTE] = _NAMES[level]
        else:
            op.attributes.pop(ATTRIBUTE, None)


def violations(kernel: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    """The rules that a kernel breaks, in program order.

    The operations of one line that break the same rule for the same reason are one violation,
    of the one that stands first there: for the user they are one statement.
    """
    first: dict[tuple[object, ...], Diagnostic] = {}
    for found in _violations_of_ops(kernel, result):
        place = found.location
        key = (found.message, found.notes, place and (place.file, place.line))
        first[key] = min(found, first.get(key, found), key=_column)
    yield from first.values()


def _column(diagnostic: Diagnostic) -> int:
    return 0 if diagnostic.location is None else diagnostic.location.column


def _violations_of_ops(kernel: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    for op in kernel.walk():
        rule = _RULES.get(type(op))
        if rule is not None:
            yield from rule(op, result)
        elif any(isinstance(value.type, TensorType) for value in op.results):
            yield from _check_tile_op(op, result)


def _cluster_violations(kernel: gpu.FuncOp) -> Iterator[Diagnostic]:
    """What not all CTAs of a cluster reach equally often, though they do it together."""
    meetings = [op for op in kernel.walk() if isinstance(op, cluster.MEETINGS)]
    if not meetings:
        return
    result = analyze_cluster(kernel, cluster_size_of(kernel))
    for op in meetings:
        divergence = result.divergence(op)
        if divergence is None:
            continue
        splitter = SPLITTERS[divergence.op.name]
        head = Note(
            f"this {splitter.name} splits the cluster: {splitter.reason} not the same in all its"
            " CTAs",
            location_of(divergence.op),
        )
        yield Diagnostic.error(
            f"{_cluster_word(op)} needs all CTAs of the cluster, but only some may get here",
            location_of(op),
            notes=(head, *chain_notes(divergence.condition, result)),
            help="decide by what all CTAs of a cluster agree on: parameters, extents and"
            " `ctx.block.x / ctx.cluster.size`",
        )


def _cluster_word(op: Operation) -> str:
    return "`cluster_sum`" if isinstance(op, cluster.SumOp) else f"`{op.name}`"


def _check_meeting(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    yield from _control(op, result, _cluster_word(op), Variation.UNIFORM)


def _check_barrier(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    yield from _control(op, result, "`barrier()`", Variation.UNIFORM)


def _check_grid_barrier(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    yield from _control(op, result, "`grid_barrier`", Variation.UNIFORM)


def _check_reduce(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    assert isinstance(op, collective.ReduceOp | collective.ScanOp)
    scope = op.scope.data
    limit = Variation.WARP_UNIFORM if scope is collective.Scope.LANE else Variation.UNIFORM
    yield from _control(op, result, f"a collective over `ctx.{scope}`", limit)


def _check_shuffle(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    yield from _control(op, result, "a shuffle", Variation.WARP_UNIFORM)


def _check_ballot(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    yield from _control(op, result, "`ballot`", Variation.WARP_UNIFORM)


def _check_slice(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    assert isinstance(op, tile.LoadOp | tile.StoreOp | GatherOp | ScatterOp)
    yield from _control(op, result, "a tile operation", Variation.UNIFORM)
    for index in op.indices:
        if result.level(index):
            yield _operand_error(
                op,
                index,
                result,
                "a slice that makes a tile needs a uniform start",
                "for one thread's own elements use elem(..), sum(..) or store(..)",
            )


def _check_splat(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    assert isinstance(op, tile.SplatOp)
    yield from _control(op, result, "a tile operation", Variation.UNIFORM)
    if result.level(op.value):
        yield _operand_error(
            op,
            op.value,
            result,
            "a scalar that meets a tile must be uniform, since the tile is one value of the CTA",
            "fold it over the threads first, for example with sum<over ctx.thread>(..)",
        )


def _check_tile_op(op: Operation, result: Uniformity) -> Iterator[Diagnostic]:
    if not op.regions:
        yield from _control(op, result, "a tile operation", Variation.UNIFORM)


_RULES: dict[type[Operation], Callable[[Operation, Uniformity], Iterator[Diagnostic]]] = {
    **dict.fromkeys(cluster.MEETINGS, _check_meeting),
    collective.BarrierOp: _check_barrier,
    GridBarrierOp: _check_grid_barrier,
    collective.ReduceOp: _check_reduce,
    collective.ScanOp: _check_reduce,
    collective.ShuffleOp: _check_shuffle,
    collective.BallotOp: _check_ballot,
    tile.LoadOp: _check_slice,
    tile.StoreOp: _check_slice,
    GatherOp: _check_slice,
    ScatterOp: _check_slice,
    tile.SplatOp: _check_splat,
}


def _control(
    op: Operation, result: Uniformity, what: str, limit: Variation
) -> Iterator[Diagnostic]:
    divergence = result.divergence(op)
    if divergence is None or divergence.level <= limit:
        return
    if limit is Variation.UNIFORM:
        needed, reached_by = "uniform", "some threads"
    else:
        needed, reached_by = "at least warp-uniform", "some lanes of a warp"
    yield Diagnostic.error(
        f"{what} needs {needed} control flow, but only {reached_by} get here",
        location_of(op),
        notes=_explain(divergence, result),
        help=SPLITTERS[divergence.op.name].help,
    )


@record
class Splitter(Record):
    """The words for a construct that splits the threads."""

    name: str
    reason: str
    help: str


_LOOP_HELP = (
    "let every thread go round equally often, with an `if` around what only some of them do, "
    "or move it behind the loop"
)
SPLITTERS = {
    "scf.if": Splitter(
        "`if`",
        "its condition is",
        "move it to where all threads get, or make the condition the same in every thread",
    ),
    "scf.for": Splitter("`for`", "its bounds are", _LOOP_HELP),
    "scf.while": Splitter("loop", "its condition is", _LOOP_HELP),
}


def _explain(divergence: Divergence, result: Uniformity) -> tuple[Note, ...]:
    splitter = SPLITTERS[divergence.op.name]
    head = Note(
        f"this {splitter.name} splits the threads: {splitter.reason} {divergence.level}",
        location_of(divergence.op),
    )
    return (head, *chain_notes(divergence.condition, result))


def chain_notes(value: SSAValue, result: Uniformity) -> Iterator[Note]:
    """The chain that made a value vary; its middle is left out where it is long."""
    notes = [
        Note(_words(link, cause, result), location_of_value(link))
        for link, cause in result.chain(value)
        if cause.origin is None or link.name_hint is not None or cause.reason is not COMPUTED
    ]
    if len(notes) > _CHAIN_NOTES:
        notes = notes[: _CHAIN_NOTES - 1] + notes[-1:]
    yield from notes


def _words(value: SSAValue, cause: Cause, result: Uniformity) -> str:
    if cause.origin is None:
        return cause.reason
    subject = "this value" if value.name_hint is None else f"`{value.name_hint}`"
    reason = cause.reason.format(result.level(cause.origin))
    return f"{subject} is {result.level(value)}: {reason}"


def _operand_error(
    op: Operation, value: SSAValue, result: Uniformity, message: str, help: str
) -> Diagnostic:
    return Diagnostic.error(
        f"{message}; this one is {result.level(value)}",
        location_of(op),
        notes=tuple(chain_notes(value, result)),
        help=help,
    )
