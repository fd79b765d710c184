"""`ph-infer-uniformity`: say how far each value differs, and refuse what that makes illegal.

    %l = ctx.lane                       %l = ctx.lane {ctx.uniformity = "varying"}
    %c = arith.cmpi eq, %l, %zero  -->  %c = arith.cmpi eq, %l, %zero {ctx.uniformity = "varying"}
    scf.if %c {                         error: `barrier()` needs uniform control flow
      collective.barrier                note: this condition is varying ...
    }                                   note: `ctx.lane` differs between lanes

Precondition: structured control flow (scf). Postcondition: every collective and every tile
op is reached by all threads that it needs. Ops whose results are uniform get no attribute.
Cost: one walk, about 2 us an op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.analysis.uniformity import Divergence, Uniformity, Variation, analyze
from phobos.diagnostics import MAX_ERRORS, Diagnostic, Note, PhobosError
from phobos.dialects import collective, tile
from phobos.dialects.atomics import GridBarrierOp
from phobos.dialects.gathering import GatherOp, ScatterOp
from phobos.ir.locations import location_of, location_of_value

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
    """The rules that a kernel breaks, in program order."""
    for op in kernel.walk():
        rule = _RULES.get(type(op))
        if rule is not None:
            yield from rule(op, result)
        elif any(isinstance(value.type, TensorType) for value in op.results):
            yield from _check_tile_op(op, result)


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
    needed = "uniform" if limit is Variation.UNIFORM else "at least warp-uniform"
    yield Diagnostic.error(
        f"{what} needs {needed} control flow, but only some threads get here",
        location_of(op),
        notes=_explain(divergence, result),
        help=_escape(divergence),
    )


def _escape(divergence: Divergence) -> str:
    return (
        "move it out of the code that only some threads run, or make the condition "
        "the same in every thread"
    )


def _explain(divergence: Divergence, result: Uniformity) -> tuple[Note, ...]:
    kind = {"scf.if": "`if`", "scf.for": "`for`", "scf.while": "loop"}.get(
        divergence.op.name, divergence.op.name
    )
    head = Note(
        f"this {kind} splits the threads: its condition is {divergence.level}",
        location_of(divergence.op),
    )
    return (head, *_chain_notes(divergence.condition, result))


def _chain_notes(value: SSAValue, result: Uniformity) -> Iterator[Note]:
    """The chain that made a value vary; its middle is left out where it is long."""
    notes: list[Note] = []
    for link, reason in result.chain(value):
        note = Note(f"{result.level(link)}, since {reason}", location_of_value(link))
        if not notes or note.location != notes[-1].location:
            notes.append(note)
    if result.causes and notes:
        # The source's own words matter most where several links share a line and column.
        source = list(result.chain(value))[-1]
        last = Note(source[1], location_of_value(source[0]))
        notes = [note for note in notes if note.location != last.location] + [last]
    if len(notes) > _CHAIN_NOTES:
        notes = notes[: _CHAIN_NOTES - 1] + notes[-1:]
    yield from notes


def _operand_error(
    op: Operation, value: SSAValue, result: Uniformity, message: str, help: str
) -> Diagnostic:
    return Diagnostic.error(
        f"{message}; this one is {result.level(value)}",
        location_of(op),
        notes=tuple(_chain_notes(value, result)),
        help=help,
    )
