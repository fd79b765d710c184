"""The checked program: what the checker makes of the syntax tree and the emitter of IR.

Names are resolved to `Variable`, `TensorParameter` and constants, every expression has a type,
conversions and broadcasts are explicit, calls of functions are expanded and constants folded.
The operands of an operation have equal types, so the emitter decides nothing about types and
reports no errors. Nodes are compared by identity.

`place` is the node's anchor in the source, which becomes the location of its IR.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from phobos.diagnostics import Location
from phobos.frontend.builtins import Elementwise
from phobos.frontend.constants import Constant
from phobos.frontend.operators import BinaryOp, UnaryOp
from phobos.frontend.types import Dim, ScalarType, TensorType, TileType, ValueType
from phobos.record import Record, record


class Role(StrEnum):
    """What a variable is in the program; the value is the word for it in messages."""

    LET = "a `let`"
    VAR = "a `var`"
    PARAMETER = "a parameter"
    COUNTER = "the variable of a loop"
    TEMPORARY = "a temporary"


@dataclass(slots=True, eq=False)
class Variable:
    """A name for a value; only a `var` and the compiler's temporaries are assigned again."""

    name: str
    type: ValueType
    role: Role
    declared: Location
    constant: Constant | None = None
    """Its value if it is a compile-time constant."""
    sign: int = 0
    """1 or -1 if its value is known to be above or below zero, else 0."""
    unused: bool = False
    """Whether it is a flag that nothing tests, whose assignments are not emitted."""
    is_shared: bool = False
    """Whether elements or slices of it are accessed, so that shared memory holds it too."""
    is_rewritten: bool = False
    """Whether elements or slices are written, so that shared memory alone holds it."""

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The axes of a tile."""
        assert isinstance(self.type, TileType)
        return tuple(Dim(None, extent) for extent in self.type.shape)


@dataclass(slots=True, eq=False)
class TensorParameter:
    """A tensor parameter of the kernel."""

    name: str
    type: TensorType
    declared: Location

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The axes of the tensor."""
        return self.type.dims


Memory = TensorParameter | Variable
"""What has elements: a tensor, or a variable that holds a tile."""


# Expressions -------------------------------------------------------------------------------------


@record
class Expr(Record):
    """A value; its type is that of a scalar, a tile or a run."""

    type: ValueType
    place: Location


@record
class Poison(Expr):
    """What became of an expression that an error was reported for."""


@record
class Literal(Expr):
    """A compile-time constant; its scalar type may be weak until it meets another."""

    value: Constant


@record
class Read(Expr):
    """The value that a variable has here."""

    variable: Variable


@record
class ContextField(Expr):
    """`ctx.name` or `ctx.name.axis`; only the fields that are no compile-time constants.

    `rank` is that of `ctx.cluster`.
    """

    name: str
    axis: str | None


@record
class Extent(Expr):
    """The size of an axis of a tensor, read from the launch."""

    tensor: TensorParameter
    axis: int


@record
class Prefix(Expr):
    """A unary operator on a value of the result's type."""

    operator: UnaryOp
    operand: Expr


@record
class Arithmetic(Expr):
    """An arithmetic or bitwise operator on two values of the result's type."""

    operator: BinaryOp
    left: Expr
    right: Expr


@record
class Compare(Expr):
    """A comparison of two values of one type, element by element."""

    operator: BinaryOp
    left: Expr
    right: Expr


@record
class Logic(Expr):
    """`&&` or `||` of two bools, element by element.

    `lazy` says that the right side may only be evaluated when the left leaves the answer open.
    """

    operator: BinaryOp
    left: Expr
    right: Expr
    lazy: bool


@record
class Convert(Expr):
    """The elements of a value in another scalar type; the shape stays."""

    value: Expr


@record
class Bitcast(Expr):
    """The bits of a value read as another type of the same width."""

    value: Expr


@record
class Spread(Expr):
    """A scalar in every element of a tile or run, or a tile repeated along axes of extent 1."""

    value: Expr


@record
class Apply(Expr):
    """A built-in on values of one type, element by element."""

    builtin: Elementwise
    arguments: tuple[Expr, ...]


@record
class Select(Expr):
    """`if_true` where the condition holds, else `if_false`, element by element."""

    condition: Expr
    if_true: Expr
    if_false: Expr


@record
class PointRead(Expr):
    """One element of a tensor or tile."""

    tensor: Memory
    indices: tuple[Expr, ...]


@record
class TileRead(Expr):
    """The tile of a tensor whose first element is at `starts`.

    Elements outside are 0, or `fill` where that is given.
    """

    tensor: Memory
    starts: tuple[Expr, ...]
    fill: Constant | None = None


@record
class RunRead(Expr):
    """Neighbouring elements along the last axis, read by one thread."""

    tensor: Memory
    starts: tuple[Expr, ...]


@record
class RunSum(Expr):
    """The sum of a run's elements, in their type."""

    run: Expr


@record
class RunWord(Expr):
    """The 32 bits of a run, the first element lowest."""

    run: Expr


@record
class DotFourBytes(Expr):
    """`c` plus the dot product of the four bytes of `a` and those of `b`."""

    a: Expr
    b: Expr
    c: Expr
    unsigned_a: bool
    unsigned_b: bool


@record
class Collective(Expr):
    """A fold of one value of each thread; `kind` and `scope` are the dialect's words."""

    kind: str
    scope: str
    value: Expr


@record
class Shuffle(Expr):
    """A value as another lane has it; `mode` is the dialect's word."""

    mode: str
    value: Expr
    amount: Expr


@record
class Ballot(Expr):
    """The mask of the lanes whose predicate holds."""

    predicate: Expr


@record
class Binding(Expr):
    """An expression in which a variable stands for a value."""

    variable: Variable
    value: Expr
    inner: Expr


@record
class Expansion(Expr):
    """A call of a function, expanded; the value is what `result` holds after `body`.

    `result` is None where the function returns nothing.
    """

    body: Block
    result: Variable | None


# Statements --------------------------------------------------------------------------------------


@record
class Stmt(Record):
    """Something to do."""

    place: Location


@record
class Declare(Stmt):
    """Brings a variable into being; without a value, a tile whose elements nothing wrote."""

    variable: Variable
    value: Expr | None


@record
class Assign(Stmt):
    """Gives a variable that is already declared another value."""

    variable: Variable
    value: Expr


@record
class PointWrite(Stmt):
    """Writes one element of a tensor."""

    tensor: Memory
    indices: tuple[Expr, ...]
    value: Expr


@record
class TileWrite(Stmt):
    """Writes a tile whose first element goes to `starts`; elements outside are skipped."""

    tensor: Memory
    starts: tuple[Expr, ...]
    value: Expr


@record
class RunWrite(Stmt):
    """Writes neighbouring elements along the last axis, by one thread."""

    tensor: Memory
    starts: tuple[Expr, ...]
    value: Expr


@record
class Evaluate(Stmt):
    """Evaluates an expression for its effect."""

    value: Expr


@record
class Barrier(Stmt):
    """Waits for all threads of the CTA."""


@record
class Block(Record):
    """Statements in order."""

    statements: tuple[Stmt, ...]


@record
class If(Stmt):
    """Does one of two blocks."""

    condition: Expr
    then: Block
    otherwise: Block


@record
class For(Stmt):
    """Counts `variable` from `start` by `step` to before `stop`.

    `direction` is 1 if `step` is known to be positive, -1 if negative, 0 if its sign is known
    at run time only. `counter` is the type that the loop counts in, at least 32 bits wide; the
    variable may be narrower. `unroll` is a factor, -1 for all iterations, None if not asked for.
    """

    variable: Variable
    start: Expr
    stop: Expr
    step: Expr
    direction: int
    counter: ScalarType
    body: Block
    unroll: int | None


@record
class While(Stmt):
    """Does `body` as long as `condition` holds."""

    condition: Expr
    body: Block


@record
class Break(Stmt):
    """Leaves the innermost loop."""


@record
class Continue(Stmt):
    """Goes on with the next iteration of the innermost loop."""


@record
class Return(Stmt):
    """Leaves the kernel, or the function after giving its result variable a value."""

    value: Expr | None


# Declarations ------------------------------------------------------------------------------------


@record
class Launch(Record):
    """What `@launch` declares; absent parts are None."""

    threads: int
    min_ctas: int | None
    max_regs: int | None


@dataclass(slots=True, eq=False)
class KernelSettings:
    """What the attributes of a kernel say, with every expression evaluated.

    `grid` holds, for each axis, an expression over dim names with all constants filled in.
    """

    threads: int = 256
    launch: Launch | None = None
    constants: dict[str, int] = field(default_factory=dict)
    autotune: dict[str, tuple[int, ...]] = field(default_factory=dict)
    aligned: dict[str, int] = field(default_factory=dict)
    requirements: list[str] = field(default_factory=list)
    grid: dict[str, str] = field(default_factory=dict)
    pipeline: int | None = None
    tensorcore: str | None = None
    cluster: int | None = None
    flags: list[str] = field(default_factory=list)


Parameter = Variable | TensorParameter


@record
class Kernel(Record):
    """A kernel that was checked."""

    name: str
    place: Location
    parameters: tuple[Parameter, ...]
    settings: KernelSettings
    body: Block


@record
class Program(Record):
    """The kernels to emit, in the order of the source."""

    kernels: tuple[Kernel, ...]
