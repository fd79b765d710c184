"""The abstract syntax tree of a Phobos program.

The tree keeps what was written and decides nothing: names are not resolved, types not checked,
literals not typed. Nodes are immutable. Equality is structural and ignores places, so that the
trees of two layouts of one program are equal; a table keyed by node must therefore use `id(node)`.

The grammar, with the class of each form:

    Program     declarations                                Kernel | Function
    Kernel      attributes "kernel" name (Param...) Block
    Function    "fn" name (Param...) [-> Type] Block
    Attribute   "@" name (ChoiceArgument | NamedArgument | PositionalArgument ...)
    Type        ScalarType | ShapedType [dims: DimName | DimSize]
    Statement   Declaration | Assign | For | While | If | Break | Continue | Return | Evaluate
    Expression  IntLiteral | FloatLiteral | BoolLiteral | StringLiteral | Name | Unary | Binary
                | Member | Subscript | Call
    Index       Point | FullAxis | Range | Span             what a subscript's brackets hold
    Generic     OverScope | OverAxes | TypeArgument | IntArgument      what `name<...>(` holds
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields
from enum import StrEnum

from phobos.diagnostics import Location
from phobos.frontend.operators import AssignOp as AssignOp
from phobos.frontend.operators import BinaryOp as BinaryOp
from phobos.frontend.operators import UnaryOp as UnaryOp
from phobos.record import Value, record

NOWHERE = Location("<unknown>", 1, 1)
"""The place of a node that no source text stands behind."""


@record
class Node(Value):
    """A piece of the program; `span` is the text it was read from, without enclosing ( )."""

    span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# Types -------------------------------------------------------------------------------------------


@record
class ScalarType(Node):
    """The name of a scalar type as written; whether there is such a type is checked later."""

    name: str


@record
class DimName(Node):
    """An extent given by name."""

    name: str


@record
class DimSize(Node):
    """An extent given as a number."""

    value: int


Dim = DimName | DimSize


class ShapedKind(StrEnum):
    """The types that have a shape; the value is the spelling."""

    TENSOR = "tensor"
    TILE = "tile"


@record
class ShapedType(Node):
    """`tensor<element>[dims]` or `tile<element>[dims]`; there is at least one dim."""

    kind: ShapedKind
    element: ScalarType
    dims: tuple[Dim, ...]


Type = ScalarType | ShapedType


# Expressions -------------------------------------------------------------------------------------


@record
class IntLiteral(Node):
    """A non-negative integer below 2**64."""

    value: int


@record
class FloatLiteral(Node):
    """A finite non-negative number, rounded to f64."""

    value: float


@record
class BoolLiteral(Node):
    """`true` or `false`."""

    value: bool


@record
class StringLiteral(Node):
    """A text for `print` and `assert`, with its escapes decoded."""

    value: str


@record
class Name(Node):
    """A use of a name: variable, extent, built-in, `ctx`, `inf`, `nan`, type used as conversion."""

    name: str


@record
class Unary(Node):
    """A prefix operator and its operand."""

    op: UnaryOp
    operand: Expression


@record
class Binary(Node):
    """Two operands with an operator between them."""

    op: BinaryOp
    left: Expression
    right: Expression
    operator_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Member(Node):
    """`base.name`, as in `ctx.block.x`."""

    base: Expression
    name: str
    name_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Point(Node):
    """One element along an axis: `i`."""

    index: Expression


@record
class FullAxis(Node):
    """All of an axis: `:`."""


@record
class Range(Node):
    """The elements from `start` up to and without `stop`: `a : b`, or `: b` from 0."""

    start: Expression | None
    stop: Expression


@record
class Span(Node):
    """`length` elements from `start`: `a :+ n`."""

    start: Expression
    length: Expression


Index = Point | FullAxis | Range | Span


@record
class Subscript(Node):
    """`base[indices]`; there is at least one index. `bracket_span` is `[...]`."""

    base: Expression
    indices: tuple[Index, ...]
    bracket_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


class Scope(StrEnum):
    """The threads that a collective works over; the value is the spelling."""

    LANE = "ctx.lane"
    WARP = "ctx.warp"
    THREAD = "ctx.thread"


@record
class OverScope(Node):
    """`<over ctx.lane>`."""

    scope: Scope


@record
class OverAxes(Node):
    """`<over 0, 1>`; there is at least one axis."""

    axes: tuple[int, ...]


@record
class TypeArgument(Node):
    """`<f32>`; also what a name that is no type parses to."""

    type: Type


@record
class IntArgument(Node):
    """`<1>`."""

    value: int


Generic = OverScope | OverAxes | TypeArgument | IntArgument


@record
class Call(Node):
    """`callee(args)` or `callee<generic>(args)`; with a generic the callee is a Name."""

    callee: Expression
    args: tuple[Expression, ...]
    generic: Generic | None = None


Expression = (
    IntLiteral
    | FloatLiteral
    | BoolLiteral
    | StringLiteral
    | Name
    | Unary
    | Binary
    | Member
    | Subscript
    | Call
)


# Statements --------------------------------------------------------------------------------------


@record
class Block(Node):
    """Statements between braces; the span includes the braces."""

    statements: tuple[Statement, ...]


@record
class Declaration(Node):
    """`let` (not `mutable`) or `var` (`mutable`), with optional type and initial value."""

    mutable: bool
    name: str
    type: Type | None = None
    value: Expression | None = None
    name_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Assign(Node):
    """`target op value`; the target is a Name or a Subscript of anything."""

    target: Name | Subscript
    op: AssignOp
    value: Expression
    operator_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Unroll(Node):
    """`<unroll>` or `<unroll n>` of a loop; no factor means all iterations."""

    factor: int | None = None


@record
class For(Node):
    """`for variable in range(start, stop, step)`; start and step are None where not written."""

    variable: str
    start: Expression | None
    stop: Expression
    step: Expression | None
    body: Block
    unroll: Unroll | None = None
    variable_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    range_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class While(Node):
    """`while condition { ... }`."""

    condition: Expression
    body: Block


@record
class If(Node):
    """`if condition { ... }`; `otherwise` is the block or the `if` behind `else`."""

    condition: Expression
    then: Block
    otherwise: Block | If | None = None


@record
class Break(Node):
    """Leaves the innermost loop."""


@record
class Continue(Node):
    """Goes on with the next iteration of the innermost loop."""


@record
class Return(Node):
    """Leaves the kernel or function, with a value where the function has one."""

    value: Expression | None = None


@record
class Evaluate(Node):
    """An expression on its own, for its effect: `barrier()`."""

    expression: Expression


Statement = Declaration | Assign | For | While | If | Break | Continue | Return | Evaluate


# Declarations ------------------------------------------------------------------------------------


@record
class ChoiceArgument(Node):
    """`name in [a, b, ...]`, as in `@autotune(BLOCK in [16, 8192])`."""

    name: str
    values: tuple[IntLiteral, ...]
    name_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class NamedArgument(Node):
    """`name = expression`, as in `@aligned(N = BLOCK)`."""

    name: str
    value: Expression
    name_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class PositionalArgument(Node):
    """An expression, as in `@launch(256, 2)` or `@tensorcore(wmma)`."""

    value: Expression


AttributeArgument = ChoiceArgument | NamedArgument | PositionalArgument


@record
class Attribute(Node):
    """`@name` with its arguments."""

    name: str
    args: tuple[AttributeArgument, ...] = ()
    name_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Param(Node):
    """`name: type`."""

    name: str
    type: Type
    name_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Kernel(Node):
    """A function that a host launches on a grid. The span goes from the first attribute to `}`."""

    name: str
    params: tuple[Param, ...]
    body: Block
    attributes: tuple[Attribute, ...] = ()
    name_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Function(Node):
    """A function that kernels call; it is expanded at each call."""

    name: str
    params: tuple[Param, ...]
    result: Type | None
    body: Block
    name_span: Location = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Program(Node):
    """All that one source file declares, in order."""

    declarations: tuple[Kernel | Function, ...]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, in order."""
        return tuple(d for d in self.declarations if isinstance(d, Kernel))

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions, in order."""
        return tuple(d for d in self.declarations if isinstance(d, Function))


# Helpers -----------------------------------------------------------------------------------------


def anchor(node: Node) -> Location:
    """The place that stands for a node where only a line and a column can be kept.

    The start of the span will not do for that: in `a[i] + b` the sum, the read and the name all
    start at `a`. The anchor is the operator of a Binary or Assign, the bracket of a Subscript,
    the name of a Member, and the start of anything else. No two expressions of a program that
    do something share one. The parser records the span behind each anchor in its SourceMap.
    """
    match node:
        case Binary() | Assign():
            return node.operator_span.start
        case Subscript():
            return node.bracket_span.start
        case Member():
            return node.name_span.start
        case _:
            return node.span.start


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in the order of its fields."""
    for entry in fields(node):
        value = getattr(node, entry.name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it, parents first, without recursion."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(tuple(children(current))))
