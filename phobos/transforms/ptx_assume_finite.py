"""`ph-ptx-assume-finite`: round to bf16 as if no value were huge, and again where one was.

    %s = ptx.add rn.f32 %a, %b                  %s = ptx.add rn.f32 %a, %b
    %w = (%s rounded, in four instructions)     %w = (%s rounded, in two)
    %v = ptx.add rn.f32 %w, %c                  %v = ptx.add rn.f32 %w, %c
    %x = (%v rounded, in four)             -->  %x = (%v rounded, in two)
    ptx.st global.b32 [%p], %x                  %q = (whether %x is inf or NaN)
                                                ptx.cond_bra %q, ^again, ^rest(%x : b32)
                                              ^again:
                                                (all of it as it was, %y for %x)
                                                ptx.bra ^rest(%y : b32)
                                              ^rest(%z: b32):
                                                ptx.st global.b32 [%p], %z

For chips without bf16, whose results are rounded by f32 arithmetic (`lowering/bfloat16.py`, which
marks the last instruction of each rounding with what is known of the rounded value x):

* `"sum"`, a multiple of the least bf16: ``p = RN(65535 x + 0)``, and ``65536 x - p``, which is
  exact, is x rounded to 8 bits. 0 keeps its sign, as all terms of both sums are zeros of that
  sign (p is +0, and taken away). From 2^112 on p overflows; then the result is x rounded all the
  same, or inf or NaN.
* others: the rounding that is there, without its test for inf, which gives NaN. Where the result
  is added to a bf16, its last multiplication is part of that.

What is inf or NaN in this way, or by right, makes inf or NaN of all sums, differences and products
it gets into. So it is enough to look at the roundings whose results go elsewhere, two at a time:
``RN(x y + z)`` is inf or NaN if one of the three is. It also is for some pairs above 2^64, which
then are computed again for nothing, as is all with inf or NaN in the data.

Precondition: `ph-lower-to-ptx` made the kernel, and nothing changed it. Cost: linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx import B32, InstructionBuilder
from phobos.dialects.ptx.instruction import Effect
from phobos.transforms.lowering.bfloat16 import ROUNDS, Rounded, part_of, scaled, sum_in_range

_INFINITY = 0x7F800000
_UP = 0x47800000
"""2^16."""
_MINUS_UP = 0xC7800000

LEAST_SAVED = 12
"""Machine instructions to save, of a thread, so that a branch and a second copy pay."""
_SAVED = {Rounded.SUM: 2, Rounded.SQUARE: 1, Rounded.ANY: 1}
"""By a rounding; one more where a sum multiplies."""
_FOR_A_TEST = 4
"""Besides half an instruction for each rounding that is looked at."""

_PROPAGATING = (ptx.AddOp, ptx.SubOp, ptx.MulOp, ptx.FmaOp, ptx.NegOp, ptx.AbsOp)
_OF_F32 = ("f32", "rn.f32")


@dataclass(frozen=True)
class PtxAssumeFinitePass(ModulePass):
    """Shortens the roundings to bf16 of every kernel that is compiled for a chip without it."""

    name = "ph-ptx-assume-finite"

    least_saved: int = LEAST_SAVED
    """Machine instructions of a thread to save, at least, for roundings to be shortened."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every kernel."""
        for entry in op.walk():
            if isinstance(entry, ptx.EntryOp):
                assume_finite(entry, self.least_saved)


def assume_finite(entry: ptx.EntryOp, least_saved: int = LEAST_SAVED) -> bool:
    """Rewrite one kernel; whether that changed anything."""
    changed = False
    pending = [block for block in entry.body.blocks if any(map(_rounding_of, block.ops))]
    while pending:
        block = pending.pop()
        group = _Group.first_of(block)
        if group is None:
            continue
        if group.saves() >= least_saved:
            pending.append(_split(entry, block, group))
            changed = True
        else:
            group.forget()
            pending.append(block)
    return changed


def _rounding_of(op: Operation) -> Rounded | None:
    """What is known of what an instruction rounds, if it is the last one of a rounding."""
    mark = op.attributes.get(ROUNDS)
    return Rounded(mark.data) if isinstance(mark, StringAttr) else None


def _unrounded(op: Operation) -> SSAValue:
    """What is rounded: it stands for the result where that is inf."""
    return op.operands[1]


@dataclass
class _Group:
    """Roundings of a block and all that is computed from them, before a use that has an effect.

    What is computed for them alone belongs to it, too.
    """

    ops: dict[Operation, None]
    end: Operation
    """The first operation behind the group that needs something of it."""

    @classmethod
    def first_of(cls, block: Block) -> _Group | None:
        """The first group of a block; None if there is no rounding."""
        inside: set[Operation] = set()
        end = block.last_op
        for op in block.ops:
            is_needing = any(value.owner in inside for value in op.operands)
            if _is_pure(op):
                if is_needing or _rounding_of(op) is not None:
                    inside.add(op)
            elif is_needing:
                end = op
                break
        if not inside or end is None:
            return None
        op = end.prev_op
        while op is not None:
            if _is_pure(op) and all(
                use.operation in inside for result in op.results for use in result.uses
            ):
                inside.add(op)
            op = op.prev_op
        return cls({op: None for op in block.ops if op in inside}, end)

    def roundings(self) -> list[Operation]:
        """The last instructions of the roundings."""
        return [op for op in self.ops if _rounding_of(op) is not None]

    def saves(self) -> float:
        """Machine instructions of a thread that the short form does without."""
        saved = sum(_SAVED[known] for known in map(_rounding_of, self.ops) if known is not None)
        return saved - len(self.looked_at()) / 2 - _FOR_A_TEST

    def forget(self) -> None:
        """Leave the roundings as they are, for good."""
        for op in self.roundings():
            del op.attributes[ROUNDS]

    def outputs(self) -> list[SSAValue]:
        """The values that are needed behind the group."""
        return [
            result
            for op in self.ops
            for result in op.results
            if any(use.operation not in self.ops for use in result.uses)
        ]

    def inputs(self) -> list[SSAValue]:
        """The values that the group is computed from, constants apart."""
        found: dict[SSAValue, None] = {}
        for op in self.ops:
            for value in op.operands:
                if value.owner not in self.ops and not isinstance(value.owner, ptx.ImmOp):
                    found[value] = None
        return list(found)

    def looked_at(self) -> list[Operation]:
        """The roundings whose inf or NaN may not make inf or NaN of another that is looked at."""
        found: list[Operation] = []
        seen: set[Operation] = set()
        for op in reversed(self.ops):
            if any(self._shows_in(use.operation, op, seen) for use in op.results[0].uses):
                seen.add(op)
            elif _rounding_of(op) is not None:
                seen.add(op)
                found.append(op)
        return found[::-1]

    def _shows_in(self, user: Operation, op: Operation, seen: set[Operation]) -> bool:
        if user not in seen:
            return False
        if _rounding_of(user) is not None:
            return _unrounded(user) is op.results[0]
        return isinstance(user, _PROPAGATING) and user.suffix in _OF_F32


def _is_pure(op: Operation) -> bool:
    return isinstance(op, ptx.Instruction) and op.effect is Effect.NONE


def _split(entry: ptx.EntryOp, block: Block, group: _Group) -> Block:
    """Puts the short form of a group in its place and the group behind a branch; what follows."""
    outputs, inputs = group.outputs(), group.inputs()
    short = _ShortForm(InstructionBuilder(entry.body, group.end.location), group)
    again = Block()
    rest = Block(arg_types=[value.type for value in outputs])
    entry.body.insert_block_after([again, rest], block)
    is_behind = False
    for op in tuple(block.ops):
        is_behind |= op is group.end
        if is_behind or op in group.ops:
            op.detach()
            (rest if is_behind else again).add_op(op)
    for output, argument in zip(outputs, rest.args, strict=True):
        output.replace_uses_with_if(argument, lambda use: use.operation not in group.ops)
    test = short.put(block, outputs, again, rest)
    build = InstructionBuilder(entry.body, group.end.location)
    build.at(again)
    build.bra(rest, *outputs)
    for op in group.roundings():
        del op.attributes[ROUNDS]
    _hide(entry, again, test, inputs)
    return rest


def _hide(entry: ptx.EntryOp, again: Block, test: SSAValue, inputs: Sequence[SSAValue]) -> None:
    """Has a block compute all from the inputs themselves.

    Whatever it had in common with the short form would be kept in registers for it, by folding or
    by ptxas, though it hardly ever runs. So the inputs are combined with a zero that only the
    branch makes one: the exponent of the test's value is all ones here.
    """
    first = again.first_op
    assert first is not None
    start = Block()
    build = InstructionBuilder(entry.body, first.location)
    build.at(start)
    zero = build.emit(ptx.XorOp, "b32", build.emit(ptx.AndOp, "b32", test, _INFINITY), _INFINITY)
    for value in inputs:
        if value.type == B32:
            hidden = build.emit(ptx.OrOp, "b32", value, zero)
            value.replace_uses_with_if(hidden, lambda use: use.operation.parent is again)
    for op in tuple(start.ops):
        op.detach()
        again.insert_op_before(op, first)


class _ShortForm:
    """A group as it is if no value is huge, at the end of a block."""

    def __init__(self, build: InstructionBuilder, group: _Group):
        self._build, self._ops = build, group.ops
        looked_at = group.looked_at()
        self._looked_at = set(looked_at)
        self._needed = self._needed_for([*group.outputs(), *(op.results[0] for op in looked_at)])
        self._values: dict[SSAValue, SSAValue] = {}
        self._parts: dict[SSAValue, SSAValue] = {}
        """Results of roundings, still to be multiplied by 65536."""
        self._test: SSAValue | None = None
        self._single: SSAValue | None = None

    def put(self, block: Block, outputs: Sequence[SSAValue], again: Block, rest: Block) -> SSAValue:
        """Appends it to a block, which goes on with its outputs, or to the group itself.

        Gives the value that is inf or NaN in that case.
        """
        emit = self._build.emit
        self._build.at(block)
        late = self._only_rounded()
        for op in self._ops:
            if op in self._needed and op not in late:
                self._make(op)
            if op in self._looked_at:
                self._look_at(self._value(op.results[0]))
        values = [self._value(output) for output in outputs]
        test = self._test if self._single is None else self._with_test(self._single, 0)
        assert test is not None
        is_huge = emit(ptx.SetpOp, "geu.f32", emit(ptx.AbsOp, "f32", test), _INFINITY)
        self._build.cond_bra(is_huge, again, rest, (), values)
        return test

    def _needed_for(self, results: Sequence[SSAValue]) -> set[Operation]:
        """The operations of the group that the short form has, too."""
        needed: set[Operation] = set()
        pending = list(results)
        while pending:
            op = pending.pop().owner
            if isinstance(op, Operation) and op in self._ops and op not in needed:
                needed.add(op)
                pending += op.operands if _rounding_of(op) is None else [_unrounded(op)]
        return needed

    def _only_rounded(self) -> set[Operation]:
        """Sums and differences that are made with their roundings, being needed for these alone."""
        late: set[Operation] = set()
        for op in self._needed:
            if isinstance(op, ptx.AddOp | ptx.SubOp) and op.suffix == "rn.f32":
                users = {use.operation for use in op.results[0].uses}
                is_needed = [user for user in users if user in self._needed]
                if all(map(self._ops.__contains__, users)) and all(
                    _rounding_of(user) is Rounded.SUM for user in is_needed
                ):
                    late.add(op)
        return late

    def _value(self, old: SSAValue) -> SSAValue:
        """What stands for a value here."""
        if old not in self._values and old in self._parts:
            self._values[old] = scaled(self._build, self._parts[old])
        return self._values.get(old, old)

    def _make(self, op: Operation) -> None:
        self._build.location = op.location
        known = _rounding_of(op)
        if known is None:
            self._clone(op)
            return
        old, result = _unrounded(op), op.results[0]
        if known is Rounded.SUM:
            self._values[result] = sum_in_range(self._build, self._sum(old))
        else:
            self._parts[result] = part_of(self._build, self._value(old), known)

    def _clone(self, op: Operation) -> None:
        clone = op.clone({operand: self._value(operand) for operand in op.operands})
        self._build.insert(clone)
        self._values.update(zip(op.results, clone.results, strict=True))

    def _sum(self, old: SSAValue) -> SSAValue:
        """What a sum of two bf16 is here; an fma if one of them is still to be multiplied.

        That would give inf where it gives 2^128, and the fma then gives 2^120 or more.
        """
        op = old.owner
        if old not in self._values and isinstance(op, ptx.AddOp | ptx.SubOp) and op in self._ops:
            merged = self._sum_with_part(op)
            if merged is None:
                self._clone(op)
            else:
                self._values[old] = merged
        return self._value(old)

    def _sum_with_part(self, op: ptx.AddOp | ptx.SubOp) -> SSAValue | None:
        emit, (left, right) = self._build.emit, op.operands
        is_difference = isinstance(op, ptx.SubOp)
        if left in self._parts:
            addend = self._value(right)
            if is_difference:
                addend = emit(ptx.NegOp, "f32", addend)
            return emit(ptx.FmaOp, "rn.f32", self._parts[left], _UP, addend)
        if right in self._parts:
            factor = _MINUS_UP if is_difference else _UP
            return emit(ptx.FmaOp, "rn.f32", self._parts[right], factor, self._value(left))
        return None

    def _look_at(self, value: SSAValue) -> None:
        if self._single is None:
            self._single = value
            return
        self._test = self._with_test(self._single, value)
        self._single = None

    def _with_test(self, left: SSAValue, right: SSAValue | int) -> SSAValue:
        return self._build.emit(ptx.FmaOp, "rn.f32", left, right, self._test or 0)
