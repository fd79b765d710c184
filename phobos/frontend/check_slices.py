"""Subscripts of tensors and tiles: points, tiles and a thread's own runs."""

from __future__ import annotations

from phobos.diagnostics import Location, Note
from phobos.frontend import ast
from phobos.frontend.checker import Checker, any_poison, constant_int, declared_here, is_poison
from phobos.frontend.coerce import convert, to_index
from phobos.frontend.linear import difference
from phobos.frontend.scopes import Poisoned, describe
from phobos.frontend.typed import (
    Binding,
    Expr,
    Literal,
    Memory,
    PointRead,
    Poison,
    Role,
    RunRead,
    TensorParameter,
    TileRead,
    Variable,
)
from phobos.frontend.typed_tiles import GatherRead, Reshape
from phobos.frontend.types import (
    I32,
    I64,
    INDEX,
    POISON,
    U32,
    Dim,
    RunType,
    ScalarType,
    TileType,
    element_of,
)
from phobos.record import Record, record

_WIDE_BITS = 64
MAX_TILE_RANK = 5
MAX_TILE_ELEMENTS = 1 << 20
MAX_RUN_LENGTH = 256
"""A run lives in one thread's registers, of which there are at most 255."""


@record
class Axis(Record):
    """What a subscript takes along one axis: `length` elements from `start`, or one point.

    Where `start` is a tile it holds the subscripts of `length` elements.
    """

    start: Expr
    length: int | None

    @property
    def is_gathered(self) -> bool:
        """Whether a tile holds the subscripts."""
        return isinstance(self.start.type, TileType)


@record
class Access(Record):
    """A subscript of a tensor or tile, with everything about it checked.

    `value` is that of a tile that has no name; `tensor` stands for it.
    """

    tensor: Memory
    axes: tuple[Axis, ...]
    place: Location
    span: Location
    value: Expr | None = None

    @property
    def element(self) -> ScalarType:
        """The type of an element."""
        return element_of(self.tensor.type)

    @property
    def starts(self) -> tuple[Expr, ...]:
        """The subscripts of the first element."""
        return tuple(axis.start for axis in self.axes)

    @property
    def is_point(self) -> bool:
        """Whether it names one element."""
        return all(axis.length is None for axis in self.axes)

    @property
    def is_gathered(self) -> bool:
        """Whether a tile of subscripts names the elements along an axis."""
        return any(axis.is_gathered for axis in self.axes)

    @property
    def tile_type(self) -> TileType:
        """The type of the tile it names; a point axis among spans has extent 1."""
        shape = tuple(axis.length or 1 for axis in self.axes)
        return TileType(self.element, shape)


def check_subscript(checker: Checker, node: ast.Subscript) -> Expr:
    """A read of a tensor or tile."""
    access = check_access(checker, node)
    if access is None:
        return Poison(POISON, ast.anchor(node))
    read = _read(checker, access)
    if access.value is None or is_poison(read):
        return read
    assert isinstance(access.tensor, Variable)
    return Binding(read.type, access.place, access.tensor, access.value, read)


def _read(checker: Checker, access: Access) -> Expr:
    if access.is_point:
        return PointRead(access.element, access.place, access.tensor, access.starts)
    if checker.in_run_form:
        run = run_type(checker, access)
        if run is None:
            return Poison(POISON, access.place)
        return RunRead(run, access.place, access.tensor, access.starts)
    if not check_tile(checker, access):
        return Poison(POISON, access.place)
    if access.is_gathered:
        return GatherRead(access.tile_type, access.place, access.tensor, access.starts)
    return TileRead(access.tile_type, access.place, access.tensor, access.starts)


def check_access(checker: Checker, node: ast.Subscript) -> Access | None:
    """What a subscript names, for a read or a write; None if an error was reported."""
    with checker.run_form(False):
        tensor, value = _subject(checker, node)
        if tensor is None:
            _check_indices_anyway(checker, node)
            return None
        dims = tensor.dims
        if len(node.indices) != len(dims):
            _wrong_rank(checker, node, tensor)
            return None
        axes = [
            _axis(checker, index, tensor, number, dim)
            for number, (index, dim) in enumerate(zip(node.indices, dims, strict=True))
        ]
    checked = [axis for axis in axes if axis is not None]
    if len(checked) < len(axes) or any_poison(axis.start for axis in checked):
        return None
    if sum(axis.is_gathered for axis in checked) > 1:
        checker.error(
            node.bracket_span,
            "at most one subscript is a tile",
            help="`gather(A, t, axis)` takes a subscript for each element of its result",
        )
        return None
    return Access(tensor, tuple(checked), ast.anchor(node), node.span, value)


def check_target(checker: Checker, node: ast.Subscript) -> Access | None:
    """What a subscript on the left of an assignment names; None if an error was reported."""
    access = check_access(checker, node)
    if access is None or isinstance(access.tensor, TensorParameter):
        return access
    variable = access.tensor
    if access.value is not None:
        checker.error(node.span, "a value that has no name cannot be written")
        return None
    if variable.role is not Role.VAR:
        report_constant(checker, variable, node.base.span)
        return None
    variable.is_rewritten = True
    return access


def report_constant(checker: Checker, variable: Variable, span: Location) -> None:
    """Reports an assignment to what cannot be assigned to."""
    name = variable.name
    help = (
        f"declare it with `var {name} = ...`"
        if variable.role is Role.LET
        else f"copy it first: `var my_{name} = {name}`"
    )
    checker.error(
        span,
        f"`{name}` is {variable.role.value} and cannot be assigned to",
        notes=declared_here(name, variable),
        help=help,
    )


def _check_indices_anyway(checker: Checker, node: ast.Subscript) -> None:
    """Reports what is wrong inside the brackets although what is before them is wrong too."""
    for index in node.indices:
        match index:
            case ast.Point():
                checker.expression(index.index)
            case ast.Range():
                if index.start is not None:
                    checker.expression(index.start)
                checker.expression(index.stop)
            case ast.Span():
                checker.expression(index.start)
                checker.expression(index.length)
            case ast.FullAxis():
                pass


def _subject(checker: Checker, node: ast.Subscript) -> tuple[Memory | None, Expr | None]:
    """What a subscript is of, with its value if it has no name; None after an error."""
    base = node.base
    if isinstance(base, ast.Name):
        return _named_subject(checker, node, base), None
    value = checker.expression(base)
    if is_poison(value):
        return None, None
    if not isinstance(value.type, TileType):
        checker.error(base.span, f"a value of type {value.type} has no elements")
        return None, None
    variable = Variable("tile", value.type, Role.TEMPORARY, ast.anchor(base), is_shared=True)
    return variable, value


def _named_subject(checker: Checker, node: ast.Subscript, base: ast.Name) -> Memory | None:
    symbol = checker.scope.lookup(base.name)
    match symbol:
        case TensorParameter():
            return symbol
        case None:
            checker.unknown_name(base.name, base.span)
        case Poisoned():
            pass
        case Variable() if symbol.type is POISON:
            pass
        case Variable(type=TileType()):
            symbol.is_shared = True
            return symbol
        case Variable(type=RunType()):
            checker.error(
                node.span,
                f"`{base.name}` is a run, which is used as a whole",
                notes=declared_here(base.name, symbol),
                help=f"add its elements up with `sum({base.name})`",
            )
        case _:
            is_value = isinstance(symbol, Variable)
            what = f"a value of type {symbol.type}" if is_value else describe(symbol)
            checker.error(
                base.span,
                f"`{base.name}` is {what} and has no elements",
                notes=declared_here(base.name, symbol),
            )
    return None


def _wrong_rank(checker: Checker, node: ast.Subscript, tensor: Memory) -> None:
    wanted, got = len(tensor.dims), len(node.indices)
    example = ", ".join(["i", "j", "k", "l", "m"][:wanted])
    checker.error(
        node.bracket_span,
        f"`{tensor.name}` has {_count(wanted, 'axis', 'axes')}, but there"
        f" {'is' if got == 1 else 'are'} {_count(got, 'subscript', 'subscripts')}",
        notes=declared_here(tensor.name, tensor),
        help=f"give one for each axis, as in `{tensor.name}[{example}]`; `:` takes a whole axis",
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


# One axis ----------------------------------------------------------------------------------------


def _axis(checker: Checker, index: ast.Index, tensor: Memory, number: int, dim: Dim) -> Axis | None:
    match index:
        case ast.Point():
            return _point(checker, index, tensor, number, dim)
        case ast.FullAxis():
            return _full_axis(checker, index, tensor, number, dim)
        case ast.Range():
            return _range(checker, index)
        case ast.Span():
            start = to_index(checker, checker.expression(index.start), "the start of a slice")
            length = to_index(checker, checker.expression(index.length), "the length of a slice")
            return _sized(checker, start, length, index.length.span)


def _point(
    checker: Checker, index: ast.Point, tensor: Memory, number: int, dim: Dim
) -> Axis | None:
    value = checker.expression(index.index)
    if isinstance(value.type, TileType):
        return _gathered(checker, index, value, number, len(tensor.dims))
    start = to_index(checker, value, "a subscript")
    known = constant_int(start)
    if known is not None and (known < 0 or (dim.extent is not None and known >= dim.extent)):
        size = (
            "" if dim.extent is None else f", which has {_count(dim.extent, 'element', 'elements')}"
        )
        checker.error(
            index.span,
            f"subscript {known} is outside axis {number} of `{tensor.name}`{size}",
            notes=declared_here(tensor.name, tensor),
            help="subscripts count from 0",
        )
        return None
    return Axis(start, None)


def _gathered(
    checker: Checker, index: ast.Point, value: Expr, number: int, rank: int
) -> Axis | None:
    """An axis with a tile of subscripts, which lies along that axis whatever axis it came from."""
    subscripts = to_subscripts(checker, value, index.span)
    if subscripts is None:
        return None
    assert isinstance(subscripts.type, TileType)
    shape = subscripts.type.shape
    if sum(extent != 1 for extent in shape) > 1:
        checker.error(
            index.span,
            f"the subscripts along an axis are a tile with one axis, but this is {value.type}",
            help="`flat(t)` makes one axis of several; `gather(A, t, axis)` takes a subscript for"
            " each element",
        )
        return None
    length = max(shape)
    line = TileType(
        subscripts.type.element, tuple(length if i == number else 1 for i in range(rank))
    )
    if line != subscripts.type:
        subscripts = Reshape(line, subscripts.place, subscripts)
    return Axis(subscripts, length)


def to_subscripts(checker: Checker, value: Expr, span: Location) -> Expr | None:
    """A tile of integers as signed subscripts of 32 or 64 bits, or None after an error."""
    element = element_of(value.type)
    if not element.is_integer:
        checker.error(
            span,
            f"subscripts are integers, but this is {value.type}",
            help="convert them, as in `i32(t)`",
        )
        return None
    is_wide = element.bits == _WIDE_BITS or element is U32
    return convert(checker, value, I64 if is_wide else I32)


def _full_axis(
    checker: Checker, index: ast.FullAxis, tensor: Memory, number: int, dim: Dim
) -> Axis | None:
    if dim.extent is not None:
        return Axis(Literal(INDEX, index.span.start, 0), dim.extent)
    checker.error(
        index.span,
        f"`:` takes all of axis {number} of `{tensor.name}`, whose extent `{dim}` is known only"
        " at launch",
        notes=declared_here(tensor.name, tensor),
        help=f"take a length, as in `start :+ 64`, or make `{dim}` a constant with"
        f" `@autotune({dim} in [64, 256])`",
    )
    return None


def _range(checker: Checker, index: ast.Range) -> Axis | None:
    start: Expr = Literal(INDEX, index.span.start, 0)
    if index.start is not None:
        start = to_index(checker, checker.expression(index.start), "the start of a slice")
    stop = to_index(checker, checker.expression(index.stop), "the end of a slice")
    if any_poison((start, stop)):
        return None
    length = difference(stop, start)
    if length is None:
        checker.error(
            index.span,
            "the length of this slice is known only at run time",
            help="write `start :+ length` with a constant length; elements past the end of the"
            " tensor read as 0 and are not written",
        )
        return None
    return _sized(checker, start, Literal(INDEX, stop.place, length), index.span)


def _sized(checker: Checker, start: Expr, length: Expr, span: Location) -> Axis | None:
    if any_poison((start, length)):
        return None
    known = constant_int(length)
    if known is None:
        checker.error(
            span,
            "the length of a slice is a compile-time constant",
            help="use a number or a name bound by `@autotune`; elements past the end of the"
            " tensor are masked, so a tile need not end where the tensor does",
        )
        return None
    if known < 1:
        checker.error(span, f"a slice has at least 1 element, this one {known}")
        return None
    return Axis(start, known)


# What the axes make together ---------------------------------------------------------------------


def check_tile(checker: Checker, access: Access) -> bool:
    """Whether a slice makes a tile that can be translated; reports what is wrong with it."""
    shape = access.tile_type.shape
    return check_tile_shape(
        checker, shape, access.span, declared_here(access.tensor.name, access.tensor)
    )


def check_tile_shape(
    checker: Checker, shape: tuple[int, ...], span: Location, notes: tuple[Note, ...] = ()
) -> bool:
    """Whether a tile of this shape can be translated."""
    if len(shape) > MAX_TILE_RANK:
        checker.error(span, f"a tile has at most {MAX_TILE_RANK} axes, this one {len(shape)}")
        return False
    elements = 1
    for extent in shape:
        elements *= extent
    if elements > MAX_TILE_ELEMENTS:
        checker.error(
            span,
            f"a tile of {elements} elements is too large: a CTA holds at most {MAX_TILE_ELEMENTS}",
            notes=notes,
        )
        return False
    return True


def run_type(checker: Checker, access: Access) -> RunType | None:
    """The type of a thread's own run, or None after an error."""
    *leading, last = access.axes
    if access.is_gathered:
        checker.error(
            access.span,
            "a thread's run has no tile of subscripts",
            help="outside `sum`, `elem`, `word` and `store` this is a tile",
        )
        return None
    if last.length is None or any(axis.length is not None for axis in leading):
        checker.error(
            access.span,
            "a thread's run lies along the last axis alone",
            notes=declared_here(access.tensor.name, access.tensor),
            help="make the last subscript `start :+ length` and the others points; outside"
            " `sum`, `elem`, `word` and `store` a slice is a tile",
        )
        return None
    if last.length > MAX_RUN_LENGTH:
        checker.error(
            access.span,
            f"a run has at most {MAX_RUN_LENGTH} elements, this one {last.length}",
        )
        return None
    return RunType(access.element, last.length)
