"""Building ptx instructions quickly and with source locations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from struct import pack, unpack
from typing import cast

from xdsl.dialects.builtin import IntAttr, LocationAttr, SymbolRefAttr, UnitAttr, UnknownLoc
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from phobos.dialects.ptx.attributes import (
    GUARD_IF,
    GUARD_UNLESS,
    immediates_attr,
    suffix_attr,
)
from phobos.dialects.ptx.control import BraOp, CondBraOp, ExitOp, RetOp
from phobos.dialects.ptx.instruction import Instruction
from phobos.dialects.ptx.memory import CvtaOp
from phobos.dialects.ptx.moves import (
    ImmOp,
    ParamAddressOp,
    ParamOp,
    SregOp,
    SymbolOp,
    wrap_to_width,
)
from phobos.dialects.ptx.shape import OFFSET_NAMES
from phobos.dialects.ptx.types import B32, B64, PRED, RegisterType

UNKNOWN = UnknownLoc()
_offset_attr = cache(IntAttr)


class InstructionBuilder:
    """Appends instructions to the end of a block of a kernel.

    Constants are made once per kernel, at the top of its first block, so that they dominate every
    use. Python integers among the operands become constants of the class that the instruction
    wants there. ``location`` is put on every operation made; set it before building on behalf of
    another source line.
    """

    def __init__(self, body: Region, location: LocationAttr = UNKNOWN) -> None:
        self.body = body
        self.location = location
        self._block = body.blocks[0]
        self._constants: dict[tuple[int, str], SSAValue] = {}
        self._last_constant: Operation | None = None

    @property
    def insertion_block(self) -> Block:
        """The block that instructions go to."""
        return self._block

    def at(self, block: Block) -> None:
        """Continue at the end of a block."""
        self._block = block

    def block(self, arg_types: Sequence[RegisterType] = (), name: str | None = None) -> Block:
        """Add a block behind the others; a name makes its label readable."""
        block = Block(arg_types=arg_types)
        block.name_hint = name
        self.body.add_block(block)
        return block

    def insert(self, op: Operation) -> Operation:
        """Append an operation made elsewhere."""
        self._block.add_op(op)
        return op

    def emit(
        self,
        cls: type[Instruction],
        suffix: str,
        *operands: SSAValue | int,
        result: RegisterType | None = None,
        imm: int | tuple[int, ...] = (),
        offset: int = 0,
        guard: SSAValue | None = None,
        negate_guard: bool = False,
        otherwise: SSAValue | int | None = None,
    ) -> SSAValue:
        """Append an instruction with one result and return it.

        ``result`` is its register class where it is not the usual one, ``imm`` the literal-only
        operands, ``offset`` the constant added to the (first) address. A guarded instruction has
        the value ``otherwise`` when its guard is off.
        """
        op = self.emit_op(
            cls,
            suffix,
            operands,
            1,
            None if result is None else (result,),
            imm,
            (offset,) if offset else (),
            guard,
            negate_guard,
            () if otherwise is None else (otherwise,),
        )
        return op.results[0]

    def emit_multi(
        self,
        cls: type[Instruction],
        suffix: str,
        *operands: SSAValue | int,
        results: Sequence[RegisterType] | None = None,
        imm: int | tuple[int, ...] = (),
        offset: int = 0,
        offsets: tuple[int, ...] = (),
        guard: SSAValue | None = None,
        negate_guard: bool = False,
        otherwise: Sequence[SSAValue | int] = (),
    ) -> Sequence[SSAValue]:
        """Append an instruction with any number of results (none, too) and return them.

        ``offsets`` gives the constants of all addresses where there are several.
        """
        op = self.emit_op(
            cls,
            suffix,
            operands,
            None if results is None else len(results),
            results,
            imm,
            (offset,) if offset else offsets,
            guard,
            negate_guard,
            otherwise,
        )
        return op.results

    def emit_op(
        self,
        cls: type[Instruction],
        suffix: str,
        operands: Sequence[SSAValue | int],
        result_count: int | None = None,
        results: Sequence[RegisterType] | None = None,
        imm: int | tuple[int, ...] = (),
        offsets: tuple[int, ...] = (),
        guard: SSAValue | None = None,
        negate_guard: bool = False,
        otherwise: Sequence[SSAValue | int] = (),
    ) -> Instruction:
        """Append an instruction and return it; `emit` and `emit_multi` are shorthands."""
        plan = _plan(cls, suffix, len(operands), result_count)
        types = plan.result_types if results is None else results
        properties = plan.properties
        values: Sequence[SSAValue]
        if int in map(type, operands):
            values = self._values(operands, plan.operand_types)
        else:
            values = cast(Sequence[SSAValue], operands)
        if imm != () or offsets or guard is not None:
            properties = dict(properties)
            if imm != ():
                literals = imm if isinstance(imm, tuple) else (imm,)
                properties["immediates"] = immediates_attr(literals)
            for name, offset in zip(OFFSET_NAMES, offsets, strict=False):
                if offset:
                    properties[name] = _offset_attr(offset)
            if guard is not None:
                properties["guard"] = GUARD_UNLESS if negate_guard else GUARD_IF
                values = (*values, guard, *self._values(otherwise, types))
        op = cls.create(
            operands=values, result_types=types, properties=properties, location=self.location
        )
        self._block.add_op(op)
        return op

    def _values(
        self, operands: Sequence[SSAValue | int], types: Sequence[RegisterType]
    ) -> list[SSAValue]:
        """Operands with constants in place of integers."""
        return [
            self.imm(value, register) if isinstance(value, int) else value
            for value, register in zip(operands, types, strict=True)
        ]

    def imm(self, value: int, register: RegisterType) -> SSAValue:
        """A constant; negative values wrap to the register's width."""
        pattern = wrap_to_width(value, register)
        key = (pattern, register.data)
        found = self._constants.get(key)
        if found is not None:
            return found
        op = ImmOp.create(
            result_types=(register,),
            properties={"value": IntAttr(pattern)},
            location=self.location,
        )
        self._insert_constant(op)
        result = op.results[0]
        self._constants[key] = result
        return result

    def _insert_constant(self, op: Operation) -> None:
        entry = self.body.blocks[0]
        last = self._last_constant
        if last is not None and last.parent is entry:
            entry.insert_op_after(op, last)
        elif entry.first_op is not None:
            entry.insert_op_before(op, entry.first_op)
        else:
            entry.add_op(op)
        self._last_constant = op

    def imm_f32(self, value: float) -> SSAValue:
        """The bits of a 32-bit float."""
        return self.imm(unpack("<I", pack("<f", value))[0], B32)

    def imm_f64(self, value: float) -> SSAValue:
        """The bits of a 64-bit float."""
        return self.imm(unpack("<Q", pack("<d", value))[0], B64)

    def true(self) -> SSAValue:
        """The constant true predicate."""
        return self.imm(1, PRED)

    def false(self) -> SSAValue:
        """The constant false predicate."""
        return self.imm(0, PRED)

    def sreg(self, name: str) -> SSAValue:
        """Read a special register such as ``tid.x``."""
        return self.emit(SregOp, name)

    def param(self, index: int, suffix: str, result: RegisterType | None = None) -> SSAValue:
        """Load the kernel parameter at a position, as a type such as ``u32``."""
        return self.emit(ParamOp, suffix, imm=index, result=result)

    def param_address(self, index: int) -> SSAValue:
        """The generic address of the kernel parameter at a position."""
        return self.emit(CvtaOp, "param.u64", self.emit(ParamAddressOp, "", imm=index))

    def symbol(self, name: str, register: RegisterType = B32) -> SSAValue:
        """The address of a variable, 32-bit for shared memory."""
        op = SymbolOp.create(
            result_types=(register,),
            properties={"symbol": SymbolRefAttr(name)},
            location=self.location,
        )
        self._block.add_op(op)
        return op.results[0]

    def bra(self, target: Block, *values: SSAValue) -> None:
        """Branch to a block with the values it takes."""
        self._block.add_op(
            BraOp.create(operands=values, successors=(target,), location=self.location)
        )

    def cond_bra(
        self,
        condition: SSAValue,
        then_block: Block,
        else_block: Block,
        then_values: Sequence[SSAValue] = (),
        else_values: Sequence[SSAValue] = (),
        *,
        uniform: bool = False,
    ) -> None:
        """Branch on a predicate; ``uniform`` if all threads of a warp go the same way."""
        self._block.add_op(
            CondBraOp.create(
                operands=(condition, *then_values, *else_values),
                successors=(then_block, else_block),
                properties={"uniform": UnitAttr()} if uniform else {},
                location=self.location,
            )
        )

    def ret(self) -> None:
        """Leave the kernel."""
        self._block.add_op(RetOp.create(location=self.location))

    def exit(self) -> None:
        """End the thread."""
        self._block.add_op(ExitOp.create(location=self.location))


class _Plan:
    """What is the same for all instructions of one spelling."""

    __slots__ = ("operand_types", "properties", "result_types")

    def __init__(
        self,
        properties: Mapping[str, Attribute],
        result_types: tuple[RegisterType, ...],
        operand_types: tuple[RegisterType, ...],
    ) -> None:
        self.properties = properties
        self.result_types = result_types
        self.operand_types = operand_types


@cache
def _plan(cls: type[Instruction], suffix: str, operands: int, results: int | None) -> _Plan:
    """Find the form; without a result count the first form that takes the operands is meant."""
    for count in range(129) if results is None else (results,):
        shape = cls.shape_of(suffix, count, operands)
        if shape is not None:
            break
    else:
        raise ValueError(
            f"{cls.opcode}.{suffix} with {operands} operands"
            + (f" and {results} results" if results is not None else "")
            + " is no instruction"
        )
    properties = {"suffix": suffix_attr(suffix)} if suffix else {}
    usual = tuple(slot.classes[0] for slot in shape.operand_slots)
    return _Plan(properties, shape.result_types, usual)
