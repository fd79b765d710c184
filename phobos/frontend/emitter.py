"""The state of emitting one kernel: where operations go and what values variables have.

Operations are collected in a list for each block and added to it at once. Constants stand at
the kernel's entry, one for each value. Every operation gets the location of the piece of the
program that it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, FileLineColLoc, UnitAttr, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation

from phobos.diagnostics import Diagnostic, Location, Note, tell
from phobos.dialects import tile
from phobos.dialects.elementwise import elementwise_class
from phobos.frontend.constants import Constant
from phobos.frontend.emit_types import buffer_attr, number_attr, scalar_attr, type_attr
from phobos.frontend.typed import (
    Assign,
    Expr,
    For,
    If,
    Memory,
    Role,
    Stmt,
    TensorParameter,
    Variable,
    While,
)
from phobos.frontend.typed import Block as TypedBlock
from phobos.frontend.types import (
    BOOL,
    INDEX,
    RunType,
    ScalarType,
    TileType,
    ValueType,
    element_of,
)
from phobos.ir.locations import location_attr

_NOTHING: dict[str, Attribute] = {}
_NO_SIZES: dict[str, Attribute] = {"operandSegmentSizes": DenseArrayBase.from_list(i32, [0, 0])}
_UNIT = UnitAttr()


class Emitter:
    """Emits one kernel; the rules of expressions and statements are handed in."""

    def __init__(
        self,
        index_bits: int | None,
        expression: Callable[[Emitter, Expr], SSAValue],
        statement: Callable[[Emitter, Stmt], None],
        *,
        assertions: bool = False,
    ) -> None:
        self.index_bits = index_bits
        self.assertions = assertions
        self.ops: list[Operation] = []
        self.constants: list[Operation] = []
        self.tensors: dict[TensorParameter, SSAValue] = {}
        self.buffers: dict[Variable, SSAValue] = {}
        """The shared memory of variables that elements or slices are accessed of."""
        self.values: dict[Variable, SSAValue] = {}
        self.unwritten: dict[Variable, Location] = {}
        """Variables that are declared and have no value yet."""
        self._constant_values: dict[tuple[Constant, ScalarType, bool], SSAValue] = {}
        self._assigned: dict[TypedBlock, tuple[Variable, ...]] = {}
        self._expression = expression
        self._statement = statement

    # Operations ----------------------------------------------------------------------------------

    def add(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        place: Location,
        properties: Mapping[str, Attribute] = _NOTHING,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Appends an operation; properties that have a default get it."""
        op = kind.create(
            operands=operands,
            result_types=results,
            properties={**default_properties(kind), **properties},
            regions=regions,
            location=location(place),
        )
        self.ops.append(op)
        return op

    def value(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        place: Location,
        properties: Mapping[str, Attribute] = _NOTHING,
    ) -> SSAValue:
        """Appends an operation with one result and gives that.

        Comparisons and integer casts of tiles and runs are our own: xDSL's take scalars only.
        """
        if operands:
            kind = elementwise_class(kind, operands[0].type)
        return self.add(kind, operands, (result,), place, properties).results[0]

    def constant(self, value: Constant, type_: ValueType, place: Location) -> SSAValue:
        """A constant; of a tile or run, in all elements."""
        scalar = element_of(type_)
        negative_zero = value == 0 and math.copysign(1.0, value) < 0
        key = (value, scalar, negative_zero)
        # NaN equals nothing, so it is not found again; a second constant does no harm.
        found = self._constant_values.get(key)
        if found is None:
            op = arith.ConstantOp.create(
                result_types=(scalar_attr(scalar),),
                properties={"value": number_attr(value, scalar, negative_zero)},
                location=location(place),
            )
            self.constants.append(op)
            found = self._constant_values[key] = op.results[0]
        return self.spread(found, type_, place)

    def spread(self, value: SSAValue, type_: ValueType, place: Location) -> SSAValue:
        """A scalar in all elements of a tile or run; of a scalar type, itself."""
        match type_:
            case TileType():
                return self.value(tile.SplatOp, (value,), type_attr(type_), place)
            case RunType():
                return self.value(vector.BroadcastOp, (value,), type_attr(type_), place)
            case ScalarType():
                return value

    # The program ---------------------------------------------------------------------------------

    def expression(self, expr: Expr) -> SSAValue:
        """Emits an expression and gives its value."""
        return self._expression(self, expr)

    def statements(self, block: TypedBlock) -> None:
        """Emits the statements of a block where emission stands."""
        for stmt in block.statements:
            self._statement(self, stmt)

    def region(
        self,
        arguments: Sequence[tuple[Attribute, str | None]],
        place: Location,
        fill: Callable[[Sequence[SSAValue]], None],
    ) -> Region:
        """A region of one block, whose operations `fill` emits, given the block's arguments."""
        block = Block(arg_types=[type_ for type_, _ in arguments])
        for argument, (_, hint) in zip(block.args, arguments, strict=True):
            set_argument(argument, hint, place)
        outer, self.ops = self.ops, []
        fill(block.args)
        block.add_ops(self.ops)
        self.ops = outer
        return Region(block)

    # Variables -----------------------------------------------------------------------------------

    def memory(self, symbol: Memory) -> SSAValue:
        """Where the elements of a tensor or of a variable that holds a tile are."""
        return self.tensors[symbol] if isinstance(symbol, TensorParameter) else self.buffers[symbol]

    def buffer(self, type_: TileType, place: Location) -> SSAValue:
        """Shared memory for a tile."""
        return self.value(memref.AllocaOp, (), buffer_attr(type_), place, _NO_SIZES)

    def declare(self, variable: Variable, place: Location) -> None:
        """Brings a variable into being that has no value yet."""
        if variable.is_shared:
            assert isinstance(variable.type, TileType)
            buffer = self.buffers[variable] = self.buffer(variable.type, place)
            buffer.name_hint = variable.name
            assert isinstance(buffer.owner, Operation)
            buffer.owner.attributes[tile.POINTS] = _UNIT
        # A body that is emitted for a second time starts over.
        self.values.pop(variable, None)
        if not variable.is_rewritten:
            self.unwritten[variable] = place

    def write(self, variable: Variable, value: SSAValue, place: Location) -> None:
        """Gives a variable a value, in shared memory too where that is needed."""
        if variable.is_shared:
            self.add(tile.StoreOp, (value, *self._whole(variable, place)), (), place)
        if not variable.is_rewritten:
            self.assign(variable, value)

    def read(self, variable: Variable, place: Location) -> SSAValue:
        """The value that a variable has here."""
        if variable in self.unwritten and variable.role is Role.VAR:
            self._warn_unwritten(variable, place)
        if not variable.is_rewritten:
            return self.current(variable)
        return self.value(
            tile.LoadOp, self._whole(variable, place), type_attr(variable.type), place
        )

    def _warn_unwritten(self, variable: Variable, place: Location) -> None:
        tell(
            Diagnostic.warning(
                f"`{variable.name}` is read before anything is written to it",
                place,
                notes=(Note(f"`{variable.name}` is declared here", variable.declared),),
                help=f"give it a first value: `var {variable.name}: {variable.type} = 0`",
                group="unwritten",
            )
        )

    def _whole(self, variable: Variable, place: Location) -> tuple[SSAValue, ...]:
        zero = self.constant(0, INDEX, place)
        return (self.buffers[variable], *([zero] * len(variable.dims)))

    def assign(self, variable: Variable, value: SSAValue) -> None:
        """Gives a variable another value from here on."""
        self.values[variable] = value
        self.unwritten.pop(variable, None)
        if value.name_hint is None and not isinstance(value.owner, arith.ConstantOp):
            value.name_hint = variable.name

    def current(self, variable: Variable) -> SSAValue:
        """The value that a variable has here; one that nothing wrote gets some value now."""
        place = self.unwritten.get(variable)
        if place is None:
            return self.values[variable]
        if isinstance(variable.type, TileType) and variable.role is Role.VAR:
            from xdsl.dialects import tensor  # imported by few programs

            value = self.value(tensor.EmptyOp, (), type_attr(variable.type), place)
        else:
            # The result of a function before its `return`, which always comes.
            value = self.constant(_zero(variable.type), variable.type, place)
        self.assign(variable, value)
        return value

    def carried(self, *blocks: TypedBlock) -> list[Variable]:
        """The variables declared outside that one of the blocks assigns."""
        found: dict[Variable, None] = {}
        for block in blocks:
            found.update(dict.fromkeys(self._assigned_in(block)))
        return [v for v in found if v in self.unwritten or v in self.values]

    def _assigned_in(self, block: TypedBlock) -> tuple[Variable, ...]:
        known = self._assigned.get(block)
        if known is None:
            found: dict[Variable, None] = {}
            for stmt in block.statements:
                match stmt:
                    case Assign() if not stmt.variable.unused:
                        found[stmt.variable] = None
                    case If():
                        found.update(dict.fromkeys(self._assigned_in(stmt.then)))
                        found.update(dict.fromkeys(self._assigned_in(stmt.otherwise)))
                    case For() | While():
                        found.update(dict.fromkeys(self._assigned_in(stmt.body)))
                    case _:
                        pass
            known = self._assigned[block] = tuple(found)
        return known


def location(place: Location) -> FileLineColLoc:
    """The location attribute of a place."""
    return location_attr(place.file, place.line, place.column)


def set_argument(argument: BlockArgument, hint: str | None, place: Location) -> None:
    """Names a block argument and says where it comes from."""
    argument.name_hint = hint
    argument.location = location(place)


@cache
def default_properties(kind: type[Operation]) -> Mapping[str, Attribute]:
    """The properties of an operation that have a default, such as fast-math flags."""
    assert issubclass(kind, IRDLOperation)
    definition = kind.get_irdl_definition()
    defaults = {
        name: getattr(prop, "default_value", None) for name, prop in definition.properties.items()
    }
    return {name: value for name, value in defaults.items() if value is not None}


def _zero(type_: ValueType) -> Constant:
    return False if element_of(type_) is BOOL else 0
