"""Types as they are written, and the extents in them."""

from __future__ import annotations

from phobos.diagnostics import Location, did_you_mean
from phobos.frontend import ast
from phobos.frontend.check_slices import check_tile_shape
from phobos.frontend.checker import Checker, declared_here
from phobos.frontend.foreign import TYPES
from phobos.frontend.scopes import NamedConstant, NamedExtent, Poisoned, Symbol
from phobos.frontend.typed import Variable
from phobos.frontend.types import (
    INDEX,
    NAMED,
    POISON,
    Dim,
    ScalarType,
    TensorType,
    TileType,
    ValueType,
)

MAX_TENSOR_RANK = 5


def resolve_scalar(checker: Checker, node: ast.ScalarType) -> ScalarType | None:
    """The scalar type that a name stands for, or None after an error."""
    type_ = NAMED.get(node.name)
    if type_ is None:
        foreign = TYPES.get(node.name)
        help = did_you_mean(node.name, NAMED) if foreign is None else f"did you mean `{foreign}`?"
        help = help or f"the types are {', '.join(NAMED)}"
        checker.error(node.span, f"there is no type `{node.name}`", help=help)
        return None
    return type_


def resolve_stored(checker: Checker, node: ast.ScalarType, what: str) -> ScalarType | None:
    """The type of a kernel's argument or of a tensor's elements, which has a fixed width."""
    type_ = resolve_scalar(checker, node)
    if type_ is INDEX:
        checker.error(
            node.span,
            f"{what} has a type of fixed width, which index is not",
            help="use i32 or i64",
        )
        return None
    return type_


def resolve_value_type(checker: Checker, node: ast.Type) -> ValueType | None:
    """The type of a variable or of a function's result, or None after an error."""
    if isinstance(node, ast.ScalarType):
        return resolve_scalar(checker, node)
    if node.kind is ast.ShapedKind.TENSOR:
        checker.error(
            node.span,
            "a variable holds a scalar or a tile; tensors are parameters only",
            help="a tile in the CTA is written `tile<f32>[64, 64]`",
        )
        return None
    element = resolve_tile_element(checker, node)
    shape = [constant_dim(checker, dim) for dim in node.dims]
    known = tuple(extent for extent in shape if extent is not None)
    if element is None or len(known) < len(shape):
        return None
    return TileType(element, known) if check_tile_shape(checker, known, node.span) else None


def resolve_tile_element(checker: Checker, node: ast.ShapedType) -> ScalarType | None:
    """The element type of a tile, or None after an error."""
    element = resolve_scalar(checker, node.element)
    if element is INDEX:
        checker.error(node.element.span, "a tile cannot hold index", help="use i32 or i64")
        return None
    return element


def constant_dim(checker: Checker, dim: ast.Dim) -> int | None:
    """The extent of a tile's axis, or None after an error."""
    if isinstance(dim, ast.DimSize):
        return _positive(checker, dim.value, dim.span)
    symbol = checker.scope.lookup(dim.name)
    known = _constant_of(symbol)
    if known is not None:
        return _positive(checker, known, dim.span)
    if symbol is None:
        checker.unknown_name(dim.name, dim.span)
    elif not isinstance(symbol, Poisoned) and getattr(symbol, "type", None) is not POISON:
        help = f"bind it with `@autotune({dim.name} in [64, 256])`"
        checker.error(
            dim.span,
            f"the extents of a tile are compile-time constants, which `{dim.name}` is not",
            notes=declared_here(dim.name, symbol),
            help=help if isinstance(symbol, NamedExtent) else None,
        )
    return None


def _constant_of(symbol: Symbol | None) -> int | None:
    """The value of a name that stands for a compile-time integer."""
    match symbol:
        case NamedConstant():
            return symbol.value
        case Variable(type=ScalarType() as type_) if type_.is_integer:
            return None if symbol.constant is None else int(symbol.constant)
        case _:
            return None


def _positive(checker: Checker, value: int, span: Location) -> int | None:
    if value >= 1:
        return value
    checker.error(span, f"an extent is at least 1, not {value}")
    return None


def resolve_tensor_type(checker: Checker, node: ast.ShapedType) -> TensorType | None:
    """The type of a tensor parameter; its dim names are declared by the caller."""
    element = resolve_stored(checker, node.element, "an element of a tensor")
    if len(node.dims) > MAX_TENSOR_RANK:
        checker.error(
            node.span, f"a tensor has at most {MAX_TENSOR_RANK} axes, this one {len(node.dims)}"
        )
        return None
    dims = [_tensor_dim(checker, dim) for dim in node.dims]
    known = tuple(dim for dim in dims if dim is not None)
    if element is None or len(known) < len(dims):
        return None
    return TensorType(element, known)


def _tensor_dim(checker: Checker, dim: ast.Dim) -> Dim | None:
    if isinstance(dim, ast.DimSize):
        extent = _positive(checker, dim.value, dim.span)
        return None if extent is None else Dim(None, extent)
    symbol = checker.scope.lookup(dim.name)
    if isinstance(symbol, NamedConstant):
        extent = _positive(checker, symbol.value, dim.span)
        return None if extent is None else Dim(dim.name, extent)
    return Dim(dim.name, None)
