"""Functions: each call is expanded into the kernel and checked with what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phobos.diagnostics import Location, Note
from phobos.frontend import ast
from phobos.frontend.check_types import (
    resolve_scalar,
    resolve_tensor_type,
    resolve_tile_element,
    resolve_value_type,
)
from phobos.frontend.checker import Checker, Frame, is_poison
from phobos.frontend.coerce import fit
from phobos.frontend.exits import always_leaves, structure
from phobos.frontend.scopes import NamedConstant, NamedExtent, Poisoned
from phobos.frontend.typed import (
    Block,
    Declare,
    Expansion,
    Expr,
    Literal,
    Poison,
    Role,
    Stmt,
    TensorParameter,
    Variable,
)
from phobos.frontend.types import POISON, VOID, TensorType, TileType, ValueType

MAX_CALL_DEPTH = 16


def expand_call(checker: Checker, node: ast.Call, function: ast.Function) -> Expr:
    """The call of a function, with its body in place of it."""
    place = ast.anchor(node)
    checker.called.add(id(function))
    if not _may_expand(checker, node, function):
        return Poison(POISON, place)
    arguments = _arguments(checker, node, function)
    if arguments is None:
        return Poison(POISON, place)
    with checker.nested_scope(checker.program_scope):
        stmts = _bind(checker, node, function, arguments)
        if stmts is None:
            return Poison(POISON, place)
        return _expand_body(checker, function, Frame(function, node.span), stmts)


def check_uncalled(checker: Checker, function: ast.Function) -> None:
    """Checks a function that no kernel calls, as far as its types say enough."""
    frame = Frame(function, function.name_span, is_call=False)
    with checker.nested_scope(checker.program_scope):
        for param in function.params:
            _declare_stand_in(checker, param)
        _expand_body(checker, function, frame, [])


def _may_expand(checker: Checker, node: ast.Call, function: ast.Function) -> bool:
    name = function.name
    if any(frame.function is function for frame in checker.frames):
        checker.error(
            node.span,
            f"`{name}` calls itself",
            notes=(Note(f"`{name}` is declared here", function.name_span),),
            help="functions are expanded at each call, so they cannot recurse; use a loop",
        )
        return False
    if len(checker.frames) >= MAX_CALL_DEPTH:
        checker.error(node.span, f"calls are nested more than {MAX_CALL_DEPTH} deep")
        return False
    wanted, got = len(function.params), len(node.args)
    if wanted != got:
        parameters = ", ".join(param.name for param in function.params)
        checker.error(
            node.span,
            f"`{name}` takes {wanted} argument{'' if wanted == 1 else 's'}, not {got}",
            notes=(Note(f"`{name}` is declared here", function.name_span),),
            help=f"write `{name}({parameters})`",
        )
        return False
    return True


# Arguments ---------------------------------------------------------------------------------------

_Argument = Expr | TensorParameter


def _arguments(checker: Checker, node: ast.Call, function: ast.Function) -> list[_Argument] | None:
    """The arguments as the caller gives them, or None if one of them is wrong."""
    found: list[_Argument | None] = []
    for param, written in zip(function.params, node.args, strict=True):
        if isinstance(param.type, ast.ShapedType) and param.type.kind is ast.ShapedKind.TENSOR:
            found.append(_tensor_argument(checker, param, written))
        else:
            value = checker.expression(written)
            found.append(None if is_poison(value) else value)
    known = [argument for argument in found if argument is not None]
    return known if len(known) == len(found) else None


def _tensor_argument(
    checker: Checker, param: ast.Param, written: ast.Expression
) -> TensorParameter | None:
    if isinstance(written, ast.Name):
        symbol = checker.scope.lookup(written.name)
        if isinstance(symbol, TensorParameter):
            return symbol
        if symbol is None:
            checker.unknown_name(written.name, written.span)
            return None
        if isinstance(symbol, Poisoned):
            return None
    checker.error(
        written.span,
        f"`{param.name}` takes a whole tensor, given by its name",
        notes=(Note(f"`{param.name}` is declared here", param.name_span),),
    )
    return None


def _bind(
    checker: Checker, node: ast.Call, function: ast.Function, arguments: Sequence[_Argument]
) -> list[Stmt] | None:
    """Gives the parameters their values; None if one does not take its argument."""
    stmts: list[Stmt] = []
    complete = True
    for param, written, argument in zip(function.params, node.args, arguments, strict=True):
        if isinstance(argument, TensorParameter):
            complete &= _bind_tensor(checker, param, argument, written.span)
            continue
        bound = _bind_value(checker, param, argument)
        complete &= bound is not None
        stmts += bound or ()
    return stmts if complete else None


def _bind_tensor(
    checker: Checker, param: ast.Param, argument: TensorParameter, written: Location
) -> bool:
    assert isinstance(param.type, ast.ShapedType)
    type_ = resolve_tensor_type(checker, param.type)
    if type_ is None:
        return False
    given = argument.type
    if type_.element is not given.element or len(type_.dims) != len(given.dims):
        checker.error(
            written,
            f"`{param.name}` is {type_}, but `{argument.name}` is {given}",
            notes=(Note(f"`{param.name}` is declared here", param.name_span),),
        )
        return False
    for axis, (dim, actual) in enumerate(zip(type_.dims, given.dims, strict=True)):
        if dim.name is None and actual.extent not in (None, dim.extent):
            checker.error(
                written,
                f"axis {axis} of `{param.name}` has extent {dim}, that of `{argument.name}`"
                f" {actual.extent}",
                notes=(Note(f"`{param.name}` is declared here", param.name_span),),
            )
            return False
        if dim.name is not None and checker.scope.local(dim.name) is None:
            declare_dim(checker, dim.name, argument, axis, param)
    checker.declare(param.name, argument, param.name_span)
    return True


def declare_dim(
    checker: Checker, name: str, tensor: TensorParameter, axis: int, param: ast.Param
) -> None:
    """Makes a dim name stand for the extent of an axis of a tensor."""
    extent, place = tensor.type.dims[axis].extent, param.type.span
    if isinstance(param.type, ast.ShapedType):
        place = param.type.dims[axis].span
    symbol = (
        NamedExtent(name, tensor, axis, place)
        if extent is None
        else NamedConstant(name, extent, place)
    )
    checker.scope.declare(name, symbol)


def _bind_value(checker: Checker, param: ast.Param, argument: Expr) -> list[Stmt] | None:
    target = _parameter_type(checker, param, argument)
    if target is None:
        return None
    notes = (Note(f"`{param.name}` is declared here", param.name_span),)
    value = fit(checker, argument, target, what=f"`{param.name}`", notes=notes)
    if is_poison(value):
        return None
    constant = value.value if isinstance(value, Literal) else None
    variable = Variable(param.name, target, Role.PARAMETER, param.name_span, constant)
    checker.declare(param.name, variable, param.name_span)
    return [] if constant is not None else [Declare(argument.place, variable, value)]


def _parameter_type(checker: Checker, param: ast.Param, argument: Expr) -> ValueType | None:
    """The type of a parameter; the dim names of a tile take their values from the argument."""
    if isinstance(param.type, ast.ScalarType):
        return resolve_scalar(checker, param.type)
    element = resolve_tile_element(checker, param.type)
    if element is None:
        return None
    shape = argument.type.shape if isinstance(argument.type, TileType) else None
    if shape is not None and len(shape) != len(param.type.dims):
        checker.error(
            argument.place,
            f"`{param.name}` is a tile with {len(param.type.dims)} axes, but this value is"
            f" {argument.type}",
            notes=(Note(f"`{param.name}` is declared here", param.name_span),),
        )
        return None
    for axis, dim in enumerate(param.type.dims):
        if isinstance(dim, ast.DimName) and checker.scope.local(dim.name) is None:
            # A scalar spreads over a tile of any extents, of which 1 will do.
            extent = 1 if shape is None else shape[axis]
            checker.scope.declare(dim.name, NamedConstant(dim.name, extent, dim.span))
    return resolve_value_type(checker, param.type)


def _declare_stand_in(checker: Checker, param: ast.Param) -> None:
    """Declares a parameter of a function that nothing calls."""
    symbol = Poisoned(param.name, param.name_span)
    match param.type:
        case ast.ScalarType():
            scalar = resolve_scalar(checker, param.type)
            if scalar is not None:
                symbol = Variable(param.name, scalar, Role.PARAMETER, param.name_span)
        case ast.ShapedType(kind=ast.ShapedKind.TENSOR):
            type_ = resolve_tensor_type(checker, param.type)
            if type_ is not None:
                symbol = TensorParameter(param.name, type_, param.name_span)
                _declare_dims(checker, symbol, type_, param)
        case ast.ShapedType(dims=dims):
            # The extents of a tile come from the call, so nothing that has them is known.
            for dim in dims:
                if isinstance(dim, ast.DimName) and checker.scope.lookup(dim.name) is None:
                    checker.scope.declare(dim.name, Poisoned(dim.name, dim.span))
    checker.declare(param.name, symbol, param.name_span)


def _declare_dims(
    checker: Checker, tensor: TensorParameter, type_: TensorType, param: ast.Param
) -> None:
    for axis, dim in enumerate(type_.dims):
        if dim.name is not None and checker.scope.local(dim.name) is None:
            declare_dim(checker, dim.name, tensor, axis, param)


# The body ----------------------------------------------------------------------------------------


def _expand_body(
    checker: Checker, function: ast.Function, frame: Frame, bound: Iterable[Stmt]
) -> Expr:
    result: Variable | None = None
    with checker.inside(frame):
        if function.result is not None:
            type_ = resolve_value_type(checker, function.result) or POISON
            result = Variable(function.name, type_, Role.TEMPORARY, function.name_span)
            checker.result = result
        body = checker.block(function.body)
        if result is not None and not always_leaves(body.statements):
            checker.error(
                function.name_span,
                f"`{function.name}` may end without a `return`",
                help=f"every way through it returns a value of type {result.type}",
            )
            return Poison(POISON, frame.call)
    if result is None:
        return Expansion(VOID, frame.call.start, Block((*bound, *structure(body).statements)), None)
    if result.type is POISON:
        return Poison(POISON, frame.call)
    declared = Declare(frame.call.start, result, None)
    structured = structure(body, result)
    return Expansion(
        result.type,
        frame.call.start,
        Block((*bound, declared, *structured.statements)),
        result,
    )
