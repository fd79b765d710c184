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

from collections.abc import Container, Iterable, Mapping, Sequence
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

LEAST_SAVED = 10
"""Machine instructions to save, of a thread, so that a branch and a second copy pay."""
_SAVED = {Rounded.SUM: 2, Rounded.SQUARE: 1, Rounded.ANY: 0}
"""By a rounding. One of a product saves its test for inf, but may have to be looked at for that."""
_FOR_A_TEST = 4
"""Besides half an instruction for each rounding that is looked at."""
MAX_KEPT = 64
"""Registers of a thread that may be kept until the branch: what it computes from, and what is."""

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
        if group.pays(least_saved):
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


def _is_pure(op: Operation) -> bool:
    return isinstance(op, ptx.Instruction) and op.effect is Effect.NONE


# Groups ------------------------------------------------------------------------------------------


class _Group:
    """Roundings of a block and all that is computed from them, before a use that has an effect.

    What is computed for them alone belongs to it, too.
    """

    def __init__(self, ops: dict[Operation, None], end: Operation):
        self.ops = ops
        self.end = end
        """The first operation behind the group that needs something of it."""
        self.outputs = [
            result
            for op in ops
            for result in op.results
            if any(use.operation not in ops for use in result.uses)
        ]
        self.needed = self._cone(self.outputs)
        """The operations that the short form has, too."""
        self.late: dict[Operation, Operation] = {}
        """Roundings that are as well made of the smaller or larger of two: that, and of which."""
        late = self._late()
        if len(self._looked_at(late)) <= len(self._looked_at({})):
            self.late = late
        self.looked_at = self._looked_at(self.late)
        """What may be inf or NaN without that something else is, at which one looks."""

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

    def pays(self, least_saved: int) -> bool:
        """Whether the short form does without so many machine instructions of a thread."""
        known = [_rounding_of(op) for op in self.needed]
        saved = sum(_SAVED[one] for one in known if one is not None)
        saved -= len(self.looked_at) / 2 + _FOR_A_TEST
        return saved >= least_saved and len(self.inputs()) + len(self.outputs) <= MAX_KEPT

    def forget(self) -> None:
        """Leave the roundings as they are, for good."""
        for op in self.roundings():
            del op.attributes[ROUNDS]

    def inputs(self) -> list[SSAValue]:
        """The values that the group is computed from, constants apart."""
        found: dict[SSAValue, None] = {}
        for op in self.ops:
            for value in op.operands:
                if value.owner not in self.ops and not isinstance(value.owner, ptx.ImmOp):
                    found[value] = None
        return list(found)

    def users(self, value: SSAValue) -> set[Operation]:
        """The operations that read a value in the short form, or behind it."""
        users = {use.operation for use in value.uses}
        return {user for user in users if user in self.needed or user not in self.ops}

    def in_turn(self, ops: Iterable[Operation], *, in_full: bool) -> list[Operation]:
        """Operations of the group in an order in which few values are alive at one time.

        The outputs are computed one behind the other; ptxas has some of them overlap.
        """
        wanted, place = set(ops), {op: place for place, op in enumerate(self.ops)}
        order: dict[Operation, None] = {}
        for output in self.outputs:
            cone = self._cone([output], in_full=in_full, without=order)
            order.update((op, None) for op in sorted(cone, key=place.__getitem__))
        order.update((op, None) for op in self.ops)
        return [op for op in order if op in wanted]

    def _cone(
        self,
        values: Iterable[SSAValue],
        *,
        in_full: bool = False,
        without: Container[Operation] = (),
    ) -> set[Operation]:
        """What values are computed from, with all that the roundings are made of or without."""
        found: set[Operation] = set()
        pending = list(values)
        while pending:
            op = pending.pop().owner
            if isinstance(op, Block) or op not in self.ops or op in without:
                continue
            if op not in found:
                found.add(op)
                is_short = _rounding_of(op) is not None and not in_full
                pending += [_unrounded(op)] if is_short else op.operands
        return found

    def _late(self) -> dict[Operation, Operation]:
        """Sums that are rounded for one choice of the smaller or larger of it and a bf16.

        Rounding keeps the order of numbers, and a bf16 as it is.
        """
        late: dict[Operation, Operation] = {}
        for op in self.needed:
            if _rounding_of(op) is not Rounded.SUM:
                continue
            users = list(self.users(op.results[0]))
            user = users[0] if len(users) == 1 else None
            if isinstance(user, ptx.MinOp | ptx.MaxOp) and user.suffix == "f32":
                others = [value for value in user.operands if value is not op.results[0]]
                if len(others) == 1 and _is_bf16(others[0]):
                    late[op] = user
        return late

    def _looked_at(self, late: Mapping[Operation, Operation]) -> dict[Operation, None]:
        """What rounds so that inf or NaN of it need not show in another of these, in order."""
        rounding = {op for op in self.needed if _rounding_of(op) is not None and op not in late}
        rounding.update(late.values())
        found: list[Operation] = []
        seen: set[Operation] = set()
        for op in reversed(self.ops):
            if op not in self.needed or op in late:
                continue
            users = self.users(op.results[0])
            if any(user in seen and self._shows_in(user, op.results[0]) for user in users):
                seen.add(op)
            elif op in rounding:
                seen.add(op)
                found.append(op)
        return dict.fromkeys(reversed(found))

    def _shows_in(self, user: Operation, value: SSAValue) -> bool:
        """Whether inf and NaN of a value make inf or NaN of what is computed from it."""
        if _rounding_of(user) is not None:
            return _unrounded(user) is value
        return isinstance(user, _PROPAGATING) and user.suffix in _OF_F32


def _is_bf16(value: SSAValue) -> bool:
    """Whether an f32 is known to be a bf16."""
    op = value.owner
    match op:
        case ptx.ImmOp():
            return op.pattern & 0xFFFF == 0
        case ptx.ShlOp(suffix="b32"):
            return _pattern(op.operands[1]) == 16
        case ptx.AndOp(suffix="b32"):
            return _pattern(op.operands[1]) == 0xFFFF0000
        case ptx.MaxOp(suffix="f32") | ptx.MinOp(suffix="f32"):
            return all(map(_is_bf16, op.operands))
        case ptx.NegOp(suffix="f32") | ptx.AbsOp(suffix="f32"):
            return _is_bf16(op.operands[0])
        case ptx.MulOp(suffix="rn.f32"):
            # Any f32 times 2^16 is a multiple of the least bf16.
            return _pattern(op.operands[1]) == _UP and _has_few_bits(op.operands[0])
        case ptx.SelpOp():
            return _rounding_of(op) is not None
        case _:
            return False


def _has_few_bits(value: SSAValue) -> bool:
    """Whether an f32 has at most the 8 significant bits of a bf16."""
    op = value.owner
    if isinstance(op, ptx.MulOp) and op.suffix == "rn.f32":
        factor = _pattern(op.operands[1])
        if factor is not None and factor & 0x7FFFFF == 0:
            return _has_few_bits(op.operands[0])
    return _is_bf16(value)


def _pattern(value: SSAValue) -> int | None:
    return value.owner.pattern if isinstance(value.owner, ptx.ImmOp) else None


# Rewriting ---------------------------------------------------------------------------------------


def _split(entry: ptx.EntryOp, block: Block, group: _Group) -> Block:
    """Puts the short form of a group in its place and the group behind a branch; what follows."""
    again = Block()
    rest = Block(arg_types=[value.type for value in group.outputs])
    entry.body.insert_block_after([again, rest], block)
    full = group.in_turn(group.ops, in_full=True)
    is_behind = False
    for op in tuple(block.ops):
        is_behind |= op is group.end
        if is_behind:
            op.detach()
            rest.add_op(op)
    for op in full:
        op.detach()
        again.add_op(op)
    short = _ShortForm(InstructionBuilder(entry.body, group.end.location), group)
    test = short.put(block, again, rest)
    for output, argument in zip(group.outputs, rest.args, strict=True):
        # Blocks that follow may need it, too.
        output.replace_uses_with_if(argument, lambda use: use.operation.parent is not again)
    build = InstructionBuilder(entry.body, group.end.location)
    build.at(again)
    build.bra(rest, *group.outputs)
    inputs = group.inputs()
    group.forget()
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
        self._build, self._group = build, group
        self._values: dict[SSAValue, SSAValue] = {}
        self._parts: dict[SSAValue, SSAValue] = {}
        """Results of roundings, still to be multiplied by 65536."""
        self._test: SSAValue | None = None
        self._single: SSAValue | None = None
        self._rounds_late = set(group.late.values())

    def put(self, block: Block, again: Block, rest: Block) -> SSAValue:
        """Appends it to a block, which goes on with its outputs, or to the group itself.

        Gives the value that is inf or NaN in that case.
        """
        emit, group = self._build.emit, self._group
        self._build.at(block)
        skipped = self._only_rounded()
        for op in group.in_turn(group.needed, in_full=False):
            if op not in skipped:
                self._make(op)
            if op in group.looked_at:
                self._look_at(self._value(op.results[0]))
        values = [self._value(output) for output in group.outputs]
        test = self._test if self._single is None else self._with_test(self._single, 0)
        assert test is not None
        is_huge = emit(ptx.SetpOp, "geu.f32", emit(ptx.AbsOp, "f32", test), _INFINITY)
        self._build.cond_bra(is_huge, again, rest, (), values)
        return test

    def _only_rounded(self) -> set[Operation]:
        """Sums and differences that are made with their roundings, being needed for these alone."""
        return {
            op
            for op in self._group.needed
            if isinstance(op, ptx.AddOp | ptx.SubOp)
            and op.suffix == "rn.f32"
            and all(_rounding_of(user) is Rounded.SUM for user in self._group.users(op.results[0]))
        }

    def _value(self, old: SSAValue) -> SSAValue:
        """What stands for a value here."""
        if old not in self._values and old in self._parts:
            self._values[old] = scaled(self._build, self._parts[old])
        return self._values.get(old, old)

    def _make(self, op: Operation) -> None:
        self._build.location = op.location
        result, known = op.results[0], _rounding_of(op)
        if known is None:
            self._clone(op)
            if op in self._rounds_late:
                self._values[result] = sum_in_range(self._build, self._values[result])
        elif known is Rounded.SUM:
            total = self._sum(_unrounded(op))
            is_late = op in self._group.late
            self._values[result] = total if is_late else sum_in_range(self._build, total)
        else:
            if known is Rounded.ANY and self._needs_no_sign(op):
                known = Rounded.SIGNLESS
            self._parts[result] = part_of(self._build, self._value(_unrounded(op)), known)

    def _clone(self, op: Operation) -> None:
        clone = op.clone({operand: self._value(operand) for operand in op.operands})
        self._build.insert(clone)
        self._values.update(zip(op.results, clone.results, strict=True))

    def _needs_no_sign(self, op: Operation) -> bool:
        """Whether a product, rounded to 0, is but added to what is not 0 or is one of its factors.

        If that is 0, the product is exact.
        """
        product, result = _unrounded(op).owner, op.results[0]
        factors = product.operands if isinstance(product, ptx.MulOp) else ()

        def suits(value: SSAValue) -> bool:
            is_number = (_pattern(value) or 0) & 0x7FFFFFFF != 0
            return is_number or any(_is_same(value, factor) for factor in factors)

        def is_fine_in(user: Operation) -> bool:
            if not isinstance(user, ptx.AddOp | ptx.SubOp) or user.suffix != "rn.f32":
                return False
            # Twice a product that is rounded to -0 is -0.
            others = [value for value in user.operands if value is not result]
            return len(others) == 1 and suits(others[0])

        return all(map(is_fine_in, self._group.users(result)))

    def _sum(self, old: SSAValue) -> SSAValue:
        """What a sum of two bf16 is here; an fma if one of them is still to be multiplied.

        That would give inf where it gives 2^128, and the fma then gives 2^120 or more.
        """
        op = old.owner
        if old in self._values or not isinstance(op, ptx.AddOp | ptx.SubOp):
            return self._value(old)
        if op in self._group.ops:
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


def _is_same(left: SSAValue, right: SSAValue) -> bool:
    """Whether values are known to be equal, as the f32 of one bf16 that was made twice is."""
    one, other = left.owner, right.owner
    if left is right:
        return True
    return (
        isinstance(one, ptx.Instruction)
        and isinstance(other, ptx.Instruction)
        and type(one) is type(other)
        and _is_pure(one)
        and len(one.results) == 1
        and one.properties == other.properties
        and tuple(one.operands) == tuple(other.operands)
    )
