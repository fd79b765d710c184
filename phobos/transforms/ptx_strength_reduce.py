"""`ph-ptx-strength-reduce`: step a pointer instead of computing an address in every iteration.

      ptx.bra ^loop(%zero : b32)                   %p0 = ... the address for %zero ...
    ^loop(%i: b32):                                ptx.bra ^loop(%zero, %p0 : b32, b64)
      %o = ptx.mul wide.s32 %i, %pitch           ^loop(%i: b32, %p: b64):
      %b = ptx.shl b64 %o, %two            -->     %v = ptx.ld global.b32 [%p]
      %a = ptx.add s64 %base, %b                   %q = ptx.add s64 %p, %step
      %v = ptx.ld global.b32 [%a]                  ...

An address that is linear in a counter of its loop becomes an argument of the loop that grows by a
constant amount, if that saves instructions: a 64-bit addition costs two, a widening multiplication
one. Where the address widens a 32-bit counter, the counter must not wrap; it cannot without an
access far outside its buffer. Preconditions: no unreachable blocks, invariants hoisted
(`ph-ptx-licm`). Cost: linear in the instructions of loops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, LocationAttr, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx import B32, B64
from phobos.dialects.ptx.attributes import suffix_attr
from phobos.dialects.ptx.instruction import Effect
from phobos.ir.dominance import DominatorTree
from phobos.ir.loops import Loop, find_loops
from phobos.ir.views import operations
from phobos.transforms.ptx_branches import append_argument, edge_values
from phobos.transforms.ptx_evaluate import to_pattern, to_signed

_COSTS: dict[tuple[type[ptx.Instruction], int], int] = {
    (ptx.AddOp, 64): 2,
    (ptx.SubOp, 64): 2,
    (ptx.ShlOp, 64): 2,
    (ptx.MulOp, 64): 4,
    (ptx.MadOp, 64): 5,
}
"""Machine instructions that an instruction of this width becomes; 1 where none is given."""

_COUNTERS = ("s32", "s64", "u64")
"""Additions that count. Unsigned 32-bit ones are not widened as if they never wrapped."""

STEP_COST = 2
"""Machine instructions to step a 64-bit pointer."""


class PtxStrengthReducePass(ModulePass):
    """Steps pointers in the loops of every kernel."""

    name = "ph-ptx-strength-reduce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Reduce every kernel."""
        for entry in ptx.entries_in(op):
            reduce_strength(entry)


def reduce_strength(entry: ptx.EntryOp) -> bool:
    """Reduce one kernel; whether that changed anything."""
    tree = DominatorTree(entry.body)
    loops = dict.fromkeys(find_loops(tree).values())
    changed = False
    for loop in sorted(loops, key=lambda found: -found.depth):
        reduction = _LoopReduction.of(loop, tree)
        if reduction is not None:
            changed |= reduction.run()
    return changed


Step = SSAValue | int
"""By how much a value grows from one iteration to the next."""


@dataclass
class _LoopReduction:
    """The work on one loop with one way in and one way back."""

    loop: Loop
    before: Block
    """The block from which the loop is entered."""
    latch: Block
    """The block from which the next iteration starts."""
    _steps: dict[SSAValue, Step | None] = field(default_factory=dict)
    _starts: dict[SSAValue, SSAValue] = field(default_factory=dict)
    """Values of the first iteration, made before the loop."""

    @classmethod
    def of(cls, loop: Loop, tree: DominatorTree) -> _LoopReduction | None:
        """The work on a loop, if it has the right form."""
        predecessors = tree.predecessors[loop.header]
        inside = [block for block in predecessors if block in loop.blocks]
        outside = [block for block in predecessors if block not in loop.blocks]
        if len(inside) != 1 or len(outside) != 1 or not loop.header.args:
            return None
        return cls(loop, outside[0], inside[0])

    def run(self) -> bool:
        """Replace the addresses for which that pays."""
        self._find_counters()
        if not self._steps:
            return False
        changed = False
        for address in list(self._addresses()):
            if self._saved(address) <= STEP_COST:
                continue
            step = self._step(address)
            if step is not None and step != 0:
                self._replace(address, step)
                changed = True
        return changed

    # Linear values -------------------------------------------------------------------------------

    def _find_counters(self) -> None:
        """Arguments of the loop that grow by an invariant amount."""
        header = self.loop.header
        following = _values_passed(self.latch, header)
        for argument, value in zip(header.args, following, strict=True):
            if not isinstance(value.owner, ptx.AddOp) or value.owner.suffix not in _COUNTERS:
                continue
            left, right = value.owner.operands
            amount = right if left is argument else left if right is argument else None
            if amount is None or not self._is_invariant(amount):
                continue
            self._steps[argument] = _constant(amount, amount)

    def _is_invariant(self, value: SSAValue) -> bool:
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        return block not in self.loop.blocks

    def _step(self, value: SSAValue) -> Step | None:
        """How a value grows; 0 if it is invariant, None if it is not linear."""
        if value in self._steps:
            return self._steps[value]
        if self._is_invariant(value):
            return 0
        owner = value.owner
        step = self._step_of(owner) if isinstance(owner, ptx.Instruction) else None
        self._steps[value] = step
        return step

    def _step_of(self, op: ptx.Instruction) -> Step | None:
        match op:
            case ptx.AddOp(suffix="s32" | "s64" | "u64") | ptx.SubOp(suffix="s32" | "s64" | "u64"):
                left, right = (self._step(value) for value in op.operands)
                return None if left is None or right is None else self._join(op, left, right)
            case ptx.ShlOp(suffix="b64"):
                step, count = self._step(op.operands[0]), _constant(op.operands[1], None)
                if step is None or not isinstance(count, int):
                    return None
                return self._times(ptx.ShlOp, "b64", step, count, 1 << count)
            case ptx.CvtOp(suffix="s64.s32"):
                step = self._step(op.operands[0])
                return None if step is None else self._widened(step)
            case ptx.MulOp(suffix="wide.s32" | "lo.s64" | "lo.u64"):
                return self._product_step(op, op.operands[0], op.operands[1])
            case ptx.MadOp(suffix="wide.s32" | "lo.s64" | "lo.u64"):
                product = self._product_step(op, op.operands[0], op.operands[1])
                addend = self._step(op.operands[2])
                if product is None or addend is None:
                    return None
                return self._sum(product, addend)
            case _:
                return None

    def _product_step(self, op: ptx.Instruction, left: SSAValue, right: SSAValue) -> Step | None:
        if not self._is_invariant(right):
            left, right = right, left
        if not self._is_invariant(right):
            return None
        step = self._step(left)
        if step is None:
            return None
        suffix = op.suffix
        factor = _constant(right, right)
        if isinstance(factor, int):
            return self._times(ptx.MulOp, suffix, step, right, factor)
        if step == 0:
            return 0
        register = B32 if suffix == "wide.s32" else B64
        amount = self._constant(step, register) if isinstance(step, int) else step
        return self._make(ptx.MulOp, suffix, amount, right)

    def _times(
        self,
        cls: type[ptx.Instruction],
        suffix: str,
        step: Step,
        operand: SSAValue | int,
        factor: int,
    ) -> Step:
        """A step times a factor, which is also given as the operand of an instruction."""
        if isinstance(step, int):
            return step * factor
        if isinstance(operand, int):
            operand = self._constant(operand, B32)
        return self._make(cls, suffix, step, operand)

    def _widened(self, step: Step) -> Step:
        return step if isinstance(step, int) else self._make(ptx.CvtOp, "s64.s32", step)

    def _join(self, op: ptx.Instruction, left: Step, right: Step) -> Step:
        """The step of a sum or difference."""
        is_difference = isinstance(op, ptx.SubOp)
        if isinstance(left, int) and isinstance(right, int):
            return left - right if is_difference else left + right
        if right == 0:
            return left
        if left == 0 and not is_difference:
            return right
        register = op.results[0].type
        assert isinstance(register, ptx.RegisterType)
        terms = [
            self._constant(term, register) if isinstance(term, int) else term
            for term in (left, right)
        ]
        return self._make(type(op), op.suffix, *terms)

    def _sum(self, left: Step, right: Step) -> Step:
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0 or right == 0:
            return right if left == 0 else left
        terms = [self._constant(t, B64) if isinstance(t, int) else t for t in (left, right)]
        return self._make(ptx.AddOp, "s64", *terms)

    # What pays -----------------------------------------------------------------------------------

    def _addresses(self) -> Iterator[SSAValue]:
        """64-bit values made in the loop that memory accesses in it use as bases."""
        seen: set[SSAValue] = set()
        for block in self.latch.parent.blocks if self.latch.parent else ():
            if block not in self.loop.blocks:
                continue
            for op in operations(block):
                if not ptx.is_instruction(op) or op.effect is Effect.NONE:
                    continue
                for index in op.shape.addresses:
                    base = op.operands[index]
                    if base.type == B64 and base not in seen and isinstance(base.owner, Operation):
                        seen.add(base)
                        yield base

    def _saved(self, address: SSAValue) -> int:
        """Machine instructions that only this address needs."""
        if any(use.operation.parent not in self.loop.blocks for use in address.uses):
            return 0
        saved = 0
        pending = [address]
        counted: dict[Operation, int] = defaultdict(int)
        while pending:
            op = pending.pop().owner
            if not isinstance(op, ptx.Instruction) or op.parent not in self.loop.blocks:
                continue
            if op is not address.owner:
                counted[op] += 1
                if counted[op] < op.results[0].uses.get_length():
                    continue
            register = op.results[0].type
            assert isinstance(register, ptx.RegisterType)
            is_wide = op.suffix.startswith("wide")
            saved += 1 if is_wide else _COSTS.get((type(op), register.bits), 1)
            pending.extend(op.operands)
        return saved

    # Rewriting -----------------------------------------------------------------------------------

    def _replace(self, address: SSAValue, step: Step) -> None:
        header = self.loop.header
        start = self._start(address)
        owner = address.owner
        assert isinstance(owner, Operation)
        amount = self._constant(step, B64) if isinstance(step, int) else step
        pointer = header.insert_arg(B64, len(header.args), owner.location)
        self._steps[pointer] = step
        last = self.latch.last_op
        assert last is not None
        stepped = ptx.AddOp.create(
            operands=(pointer, amount),
            result_types=(B64,),
            properties={"suffix": suffix_attr("s64")},
            location=owner.location,
        )
        self.latch.insert_op_before(stepped, last)
        append_argument(header, {self.before: start, self.latch: stepped.results[0]})
        address.replace_all_uses_with(pointer)

    def _start(self, value: SSAValue) -> SSAValue:
        """A value as it is in the first iteration, made before the loop."""
        if self._is_invariant(value):
            return value
        found = self._starts.get(value)
        if found is not None:
            return found
        if isinstance(value, BlockArgument):
            start = _values_passed(self.before, self.loop.header)[value.index]
        else:
            op = value.owner
            assert isinstance(op, ptx.Instruction)
            start = self._make(type(op), op.suffix, *map(self._start, op.operands))
        self._starts[value] = start
        return start

    def _make(self, cls: type[ptx.Instruction], suffix: str, *operands: SSAValue) -> SSAValue:
        """An instruction before the loop."""
        shape = cls.shape_of(suffix, 1, len(operands))
        assert shape is not None
        return self._insert(
            cls.create(
                operands=operands,
                result_types=shape.result_types,
                properties={"suffix": suffix_attr(suffix)},
                location=self._location(),
            )
        )

    def _constant(self, value: int, register: ptx.RegisterType) -> SSAValue:
        return self._insert(
            ptx.ImmOp.create(
                result_types=(register,),
                properties={"value": IntAttr(to_pattern(value, register.bits))},
                location=self._location(),
            )
        )

    def _location(self) -> LocationAttr:
        last = self.before.last_op
        assert last is not None
        return last.location

    def _insert(self, op: Operation) -> SSAValue:
        last = self.before.last_op
        assert last is not None
        self.before.insert_op_before(op, last)
        return op.results[0]


def _values_passed(block: Block, target: Block) -> list[SSAValue]:
    """The values that the branch at the end of a block passes to a successor."""
    branch = block.last_op
    assert branch is not None
    index = next(i for i, successor in enumerate(branch.successors) if successor is target)
    return edge_values(branch, index)


def _constant(value: SSAValue, default: Step | None) -> Step | None:
    """The number that a value is, if it is constant."""
    if isinstance(value.owner, ptx.ImmOp):
        return to_signed(value.owner.pattern, value.owner.register.bits)
    return default
