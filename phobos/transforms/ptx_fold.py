"""`ph-ptx-fold`: constants, identities and common subexpressions, in one forward sweep.

    %a = ptx.add u64 %base, %c16              %b = ptx.add u64 %base, %i
    %b = ptx.add u64 %a, %i             -->   %x = ptx.ld global.b32 [%b + 16]
    %c = ptx.add u64 %a, %i                   %y = ptx.ld global.b32 [%b + 20]
    %x = ptx.ld global.b32 [%b]
    %y = ptx.ld global.b32 [%c + 4]

Blocks are visited so that a block comes after those that dominate it. An instruction whose
operands are constants is computed (`ptx_evaluate`), one that an identity covers is replaced
(`ptx_identities`), and one that was computed before on every path is reused. Loads are reused only
if nothing writes what they read (``.nc`` and parameters). What becomes unused stays for
`ph-ptx-dead-code`. Precondition: no unreachable blocks. Cost: linear, about 6 us an instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from phobos.dialects import ptx
from phobos.dialects.ptx.attributes import GUARD_IF, GUARD_UNLESS, suffix_attr
from phobos.dialects.ptx.instruction import OFFSET_LIMIT, Effect
from phobos.dialects.ptx.shape import OFFSET_NAMES
from phobos.ir.dominance import DominatorTree
from phobos.ir.views import operands_of, operations
from phobos.transforms.ptx_evaluate import evaluate, to_pattern, to_signed
from phobos.transforms.ptx_identities import RULES
from phobos.transforms.ptx_workbench import Candidate

Operands = Sequence[SSAValue]
Key = tuple[object, ...]


class PtxFoldPass(ModulePass):
    """Folds every kernel of every ptx module."""

    name = "ph-ptx-fold"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold every kernel."""
        for entry in ptx.entries_in(op):
            fold_entry(entry)


def fold_entry(entry: ptx.EntryOp) -> None:
    """Fold one kernel in place."""
    Folder(entry).run()


@dataclass
class Folder:
    """The state of the sweep over one kernel, and what identities build with."""

    entry: ptx.EntryOp
    _constants: dict[int, int] = field(default_factory=dict)
    """Bit patterns by the identity of the value."""
    _pool: dict[tuple[int, str], SSAValue] = field(default_factory=dict)
    _last_constant: Operation | None = None
    _replaced: dict[int, SSAValue] = field(default_factory=dict)
    _known: dict[Key, Sequence[SSAValue]] = field(default_factory=dict)
    """Results by what computes them, for all blocks that dominate the current one."""
    _scope: list[Key] = field(default_factory=list)
    """Keys that the current block added to `_known`."""
    _point: Operation | None = None
    """Where new instructions go: before this operation."""

    def run(self) -> None:
        """Visit all blocks, each after those that dominate it."""
        scopes: list[list[Key]] = []
        for block, depth in DominatorTree(self.entry.body).preorder():
            while len(scopes) > depth:
                for key in scopes.pop():
                    del self._known[key]
            self._scope = []
            scopes.append(self._scope)
            # What is made on the way goes before the operation, so the next one stays.
            for op in operations(block):
                self._visit(op)

    # What identities ask and make ----------------------------------------------------------------

    def constant(self, value: SSAValue) -> int | None:
        """The bit pattern of a value if it is a constant."""
        return self._constants.get(id(value))

    def imm(self, value: int, register: ptx.RegisterType) -> SSAValue:
        """A constant, at the top of the kernel."""
        pattern = to_pattern(value, register.bits)
        found = self._pool.get((pattern, register.data))
        if found is not None:
            return found
        op = ptx.ImmOp.create(
            result_types=(register,),
            properties={"value": IntAttr(pattern)},
            location=self._point.location if self._point else None,
        )
        self._place_constant(op)
        return op.results[0]

    def definition(
        self, value: SSAValue, cls: type[ptx.Instruction]
    ) -> tuple[str, Operands] | None:
        """Suffix and operands of the instruction that makes a value, if it is of a class."""
        owner = value.owner
        if type(owner) is not cls:
            return None
        instruction = cast(ptx.Instruction, owner)
        return instruction.suffix, operands_of(instruction)

    def make(
        self,
        cls: type[ptx.Instruction],
        suffix: str,
        *operands: SSAValue | int,
        result: ptx.RegisterType | None = None,
    ) -> SSAValue:
        """The result of an instruction: folded, found, or made before the current one."""
        shape = cls.shape_of(suffix, 1, len(operands))
        assert shape is not None, f"{cls.opcode}.{suffix}"
        values = [
            self.imm(value, slot.classes[0]) if type(value) is int else cast(SSAValue, value)
            for value, slot in zip(operands, shape.operand_slots, strict=True)
        ]
        candidate = Candidate(cls, suffix, values, result or shape.result_types[0])
        found = self._simplified(candidate)
        if found is not None:
            return found
        key = _key(cls, suffix, values, candidate.result)
        known = self._known.get(key)
        if known is not None:
            return known[0]
        assert self._point is not None
        assert self._point.parent is not None
        op = cls.create(
            operands=values,
            result_types=(candidate.result,),
            properties={"suffix": suffix_attr(suffix)},
            location=self._point.location,
        )
        self._point.parent.insert_op_before(op, self._point)
        self._remember(key, op.results)
        return op.results[0]

    # The sweep -----------------------------------------------------------------------------------

    def _visit(self, op: Operation) -> None:
        self._point = op
        self._map_operands(op)
        cls = type(op)
        if cls is ptx.ImmOp:
            self._pool_constant(cast(ptx.ImmOp, op))
        elif cls is ptx.SymbolOp:
            symbol = cast(ptx.SymbolOp, op)
            self._reuse(op, (cls, symbol.symbol, _register_of(symbol.results[0]).data))
        elif ptx.is_instruction(op):
            if op.effect is not Effect.NONE:
                self._visit_effect(op)
            elif len(op.results) == 1:
                self._visit_pure(op)
            else:
                self._visit_pure_many(op)

    def _map_operands(self, op: Operation) -> None:
        """Put replacements in the place of operands that were replaced."""
        replaced, values = self._replaced, operands_of(op)
        for value in values:
            if id(value) in replaced:
                op.operands = [replaced.get(id(value), value) for value in values]
                return

    def _visit_effect(self, op: ptx.Instruction) -> None:
        """Memory accesses, and what works with other lanes."""
        if "guard" in op.properties and self._settle_guard(op):
            return
        self._fold_offsets(op)
        if op.effect is Effect.READ and "nc" in op.suffix.split("."):
            self._reuse(op, _memory_key(op))

    def _visit_pure(self, op: ptx.Instruction) -> None:
        cls, result, suffix, immediates = type(op), op.results[0], op.suffix, op.immediates
        operands, register = operands_of(op), _register_of(result)
        # Most instructions are of floats, for which there is no rule.
        if cls in RULES or self._are_constants(operands):
            candidate = Candidate(cls, suffix, operands, register, immediates)
            value = self._simplified(candidate)
            if value is not None:
                self._replaced[id(result)] = value
                return
        self._reuse(op, _key(cls, suffix, operands, register, immediates))

    def _visit_pure_many(self, op: ptx.Instruction) -> None:
        """Instructions such as unpack and setp with two results."""
        operands = operands_of(op)
        registers = [_register_of(result) for result in op.results]
        patterns = [self.constant(value) for value in operands]
        folded = None
        if None not in patterns:
            known = [p for p in patterns if p is not None]
            folded = evaluate(type(op), op.suffix, [r.bits for r in registers], known)
        if folded is not None:
            for result, pattern, register in zip(op.results, folded, registers, strict=True):
                self._replaced[id(result)] = self.imm(pattern, register)
            return
        packed = self.definition(operands[0], ptx.PackOp)
        if isinstance(op, ptx.UnpackOp) and packed is not None:
            sources = packed[1]
            if [s.type for s in sources] == registers:
                for result, source in zip(op.results, sources, strict=True):
                    self._replaced[id(result)] = source
                return
        kinds = tuple(register.data for register in registers)
        self._reuse(op, (type(op), op.suffix, kinds, *map(id, operands)))

    def _are_constants(self, operands: Operands) -> bool:
        constants = self._constants
        for value in operands:
            if id(value) not in constants:
                return False
        return bool(operands)

    def _simplified(self, candidate: Candidate) -> SSAValue | None:
        """A value that an instruction always equals, if there is a simpler one."""
        operands, constants = candidate.operands, self._constants
        if self._are_constants(operands):
            patterns = [constants[id(value)] for value in operands]
            register = candidate.result
            folded = evaluate(
                candidate.cls, candidate.suffix, (register.bits,), patterns, candidate.immediates
            )
            if folded is not None:
                return self.imm(folded[0], register)
        rule = RULES.get(candidate.cls)
        return None if rule is None else rule(self, candidate)

    def _reuse(self, op: Operation, key: Key) -> None:
        """Replace an operation by an equal one that dominates it, or remember it."""
        known = self._known.get(key)
        if known is None:
            self._remember(key, op.results)
            return
        for result, value in zip(op.results, known, strict=True):
            self._replaced[id(result)] = value

    def _remember(self, key: Key, results: Sequence[SSAValue]) -> None:
        self._known[key] = results
        self._scope.append(key)

    def _pool_constant(self, op: ptx.ImmOp) -> None:
        key = (op.pattern, op.register.data)
        found = self._pool.get(key)
        if found is not None:
            self._replaced[id(op.results[0])] = found
            return
        self._place_constant(op)

    def _place_constant(self, op: ptx.ImmOp) -> None:
        """Put a constant at the top of the kernel, where it dominates everything."""
        result = op.results[0]
        self._pool[op.pattern, op.register.data] = result
        self._constants[id(result)] = op.pattern
        first_block = self.entry.body.blocks[0]
        last = self._last_constant
        self._last_constant = op
        if op.parent is first_block and op.prev_op is last:
            return
        if op.parent is not None:
            op.detach()
        if last is not None:
            first_block.insert_op_after(op, last)
        elif first_block.first_op is not None:
            first_block.insert_op_before(op, first_block.first_op)
        else:
            first_block.add_op(op)

    # Memory --------------------------------------------------------------------------------------

    def _settle_guard(self, op: ptx.Instruction) -> bool:
        """Simplify the guard; True if the instruction turns out never to run."""
        guard = op.guard
        assert guard is not None
        negation = self.definition(guard, ptx.NotOp)
        if negation is not None:
            count = op.own_count
            op.operands = (*op.own_operands, negation[1][0], *op.operands[count + 1 :])
            op.properties["guard"] = GUARD_IF if op.negate_guard else GUARD_UNLESS
            guard = negation[1][0]
        pattern = self.constant(guard)
        if pattern is None:
            return False
        if bool(pattern) != op.negate_guard:
            op.operands = tuple(op.own_operands)
            del op.properties["guard"]
            return False
        for result, value in zip(op.results, op.otherwise, strict=True):
            self._replaced[id(result)] = value
        if not op.results:
            op.detach()
            op.erase()
        return True

    def _fold_offsets(self, op: ptx.Instruction) -> None:
        """Move constants that were added to an address into the instruction's offset."""
        shape = op.shape
        for index, name in zip(shape.addresses, OFFSET_NAMES, strict=False):
            base = operands_of(op)[index]
            total = offset = _offset_of(op, name)
            while (step := self._constant_step(base)) is not None:
                base, total = step[0], total + step[1]
            if total == offset or not -OFFSET_LIMIT <= total < OFFSET_LIMIT:
                continue
            op.operands[index] = base
            op.properties.pop(name, None)
            if total:
                op.properties[name] = IntAttr(total)

    def _constant_step(self, value: SSAValue) -> tuple[SSAValue, int] | None:
        """If a value is another plus a constant: that value, and the constant as signed."""
        found = self.definition(value, ptx.AddOp)
        if found is None or found[0] not in _ADDRESS_ADDS:
            return None
        pattern = self.constant(found[1][1])
        if pattern is None:
            return None
        return found[1][0], to_signed(pattern, _ADDRESS_ADDS[found[0]])


_ADDRESS_ADDS = {"u64": 64, "s64": 64, "u32": 32, "s32": 32}


def _register_of(value: SSAValue) -> ptx.RegisterType:
    return cast(ptx.RegisterType, value.type)


def _offset_of(op: ptx.Instruction, name: str) -> int:
    attr: Attribute | None = op.properties.get(name)
    return attr.data if isinstance(attr, IntAttr) else 0


def _key(
    cls: type[ptx.Instruction],
    suffix: str,
    operands: Operands,
    result: ptx.RegisterType,
    immediates: tuple[int, ...] = (),
) -> Key:
    """What a pure instruction computes, for finding equal ones."""
    ids = list(map(id, operands))
    if cls.commutative and ids[0] > ids[1]:
        ids[0], ids[1] = ids[1], ids[0]
    return (cls, suffix, result.data, immediates, *ids)


def _memory_key(op: ptx.Instruction) -> Key:
    """What a load reads; guard and alternatives are among the operands."""
    properties = op.properties
    kinds = tuple(_register_of(result).data for result in op.results)
    polarity = properties.get("guard")
    return (type(op), op.suffix, kinds, op.offset(), polarity, *map(id, operands_of(op)))
