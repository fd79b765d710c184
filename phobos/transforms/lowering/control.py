"""Structured control flow as blocks with arguments.

A value that a branch or loop carries is as many block arguments as it has registers. Loops
are rotated: a test before the first iteration, and one at the end of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import gpu, scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from phobos.dialects import ptx, tile
from phobos.dialects.ptx import B32, RegisterType
from phobos.dialects.staging import only_starts_copies
from phobos.dialects.tile import layout_of
from phobos.layout.queries import register_coordinates
from phobos.record import Record, record
from phobos.transforms.lowering.registers import BOOL, WORD_BITS, Kind, Share
from phobos.transforms.lowering.state import Handler, Lowering


@record
class _Passed(Record):
    """How a value passes a branch: which of its registers, and whether packed into words.

    Registers that hold copies of others stay behind; `source` says for each register which of
    those that pass stands for it.
    """

    kind: Kind
    source: tuple[int, ...]
    words: int
    """How many words the value is passed as; 0 where it is passed by elements."""

    @property
    def chosen(self) -> list[int]:
        """The registers that pass, ascending."""
        return sorted(set(self.source))

    @property
    def count(self) -> int:
        """How many registers pass."""
        return self.words or len(set(self.source))


def _passed(low: Lowering, op: Operation, value: SSAValue) -> _Passed:
    kind, size = low.kind(value.type, op), low.share_size(value)
    layout = layout_of(value)
    source = tuple(range(size))
    if layout is not None:
        first_at: dict[tuple[int, ...], int] = {}
        places = enumerate(register_coordinates(layout))
        source = tuple(first_at.setdefault(place, register) for register, place in places)
    has_copies = len(set(source)) < size
    fills_words = size > 1 and size * kind.bits % WORD_BITS == 0
    packs = kind.bits < WORD_BITS and kind is not BOOL and fills_words and not has_copies
    return _Passed(kind, source, size * kind.bits // WORD_BITS if packs else 0)


def _register_types(low: Lowering, op: Operation, values: Sequence[SSAValue]) -> list[RegisterType]:
    """One register class for each register that a branch passes for each value."""
    types: list[RegisterType] = []
    for value in values:
        passed = _passed(low, op, value)
        types += [B32 if passed.words else passed.kind.register] * passed.count
    return types


def _flatten(low: Lowering, op: Operation, values: Sequence[SSAValue]) -> list[SSAValue]:
    """The registers that a branch passes."""
    registers: list[SSAValue] = []
    for value in values:
        passed = _passed(low, op, value)
        if passed.words:
            registers += low.words(value)
        else:
            elements = low.elements(value)
            registers += [elements[register] for register in passed.chosen]
    return registers


def _bind(
    low: Lowering, op: Operation, values: Sequence[SSAValue], registers: Sequence[SSAValue]
) -> None:
    """Says that `registers`, in order, hold `values`."""
    position = 0
    for value in values:
        passed = _passed(low, op, value)
        held = registers[position : position + passed.count]
        position += passed.count
        if passed.words:
            low.set_share(value, Share(words=held))
        else:
            by_register = dict(zip(passed.chosen, held, strict=True))
            low.set(value, *(by_register[register] for register in passed.source))


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return last.operands if last is not None else ()


def _if(low: Lowering, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    if only_starts_copies(op):
        # A branch would part what stands around it, and ptxas moves nothing over it.
        low.copies_if = low.scalar(op.cond)
        low.block(op.true_region.block)
        low.copies_if = None
        return
    build = low.build
    join = build.block(_register_types(low, op, op.results), "endif")
    then_block = build.block((), "then")
    has_else = bool(op.false_region.blocks)
    else_block = build.block((), "else") if has_else else join
    build.cond_bra(low.scalar(op.cond), then_block, else_block)
    for target, region in ((then_block, op.true_region), (else_block, op.false_region)):
        if not region.blocks:
            continue
        build.at(target)
        with low.branch():
            low.block(region.block)
            build.location = op.location
            build.bra(join, *_flatten(low, op, _yielded(region.block)))
    build.at(join)
    move_behind(join, low)
    _bind(low, op, op.results, join.args)


def move_behind(block: Block, low: Lowering) -> None:
    """Puts a block at the end, so that the text follows the program."""
    body = low.build.body
    body.detach_block(block)
    body.add_block(block)


def _for(low: Lowering, op: Operation) -> None:
    """for iv in [lb, ub) by step > 0, as `if (lb < ub) do { .. } while (iv < ub - step)`.

    The bound is lowered once instead of testing iv + step, which could wrap; it saturates.
    """
    assert isinstance(op, scf.ForOp)
    build = low.build
    kind = low.kind(op.lb.type, op)
    low_bound, high_bound = low.scalar(op.lb), low.scalar(op.ub)
    step = low.scalar(op.step)
    less = f"lt.{kind.name}"
    carried = op.body.block.args[1:]
    types = _register_types(low, op, carried)
    body = build.block([kind.register, *types], "loop")
    done = build.block(types, "endloop")
    initial = _flatten(low, op, op.iter_args)
    saturating = "sat.s32" if kind.bits == 32 else kind.name
    last = build.emit(ptx.SubOp, saturating, high_bound, step)
    enters = build.emit(ptx.SetpOp, less, low_bound, high_bound)
    build.cond_bra(enters, body, done, [low_bound, *initial], initial)
    build.at(body)
    low.set(op.body.block.args[0], body.args[0])
    _bind(low, op, carried, body.args[1:])
    with low.branch():
        low.block(op.body.block)
        build.location = op.location
        results = _flatten(low, op, _yielded(op.body.block))
    again = build.emit(ptx.SetpOp, less, body.args[0], last)
    following = build.emit(ptx.AddOp, kind.name, body.args[0], step)
    build.cond_bra(again, body, done, [following, *results], results)
    build.at(done)
    move_behind(done, low)
    _bind(low, op, op.results, done.args)


def _while(low: Lowering, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    build = low.build
    before, after = op.before_region.block, op.after_region.block
    head = build.block(_register_types(low, op, before.args), "while")
    body = build.block(_register_types(low, op, after.args), "do")
    done = build.block(_register_types(low, op, op.results), "endwhile")
    build.bra(head, *_flatten(low, op, op.arguments))
    build.at(head)
    _bind(low, op, before.args, head.args)
    with low.branch():
        low.block(before)
        build.location = op.location
        condition, *passed = _yielded(before)
        values = _flatten(low, op, passed)
        build.cond_bra(low.scalar(condition), body, done, values, values)
        build.at(body)
        move_behind(body, low)
        _bind(low, op, after.args, body.args)
        low.block(after)
        build.location = op.location
        build.bra(head, *_flatten(low, op, _yielded(after)))
    build.at(done)
    move_behind(done, low)
    _bind(low, op, op.results, done.args)


def _nothing(low: Lowering, op: Operation) -> None:
    """A terminator: the op around it reads its operands."""


def _return(low: Lowering, op: Operation) -> None:
    low.build.ret()


def _assert(low: Lowering, op: Operation) -> None:
    assert isinstance(op, tile.AssertOp)
    low.build.emit_multi(
        ptx.TrapOp, "", guard=low.scalar(op.condition), negate_guard=True, results=()
    )


def zero_of(low: Lowering, type_: Attribute, op: Operation) -> SSAValue:
    """The register constant 0 of a type."""
    return low.build.imm(0, low.kind(type_, op).register)


HANDLERS: dict[type[Operation], Handler] = {
    scf.IfOp: _if,
    scf.ForOp: _for,
    scf.WhileOp: _while,
    scf.YieldOp: _nothing,
    scf.ConditionOp: _nothing,
    gpu.ReturnOp: _return,
    tile.AssertOp: _assert,
}
