"""The rules of the built-ins by which threads share memory."""

from __future__ import annotations

from phobos.frontend import ast
from phobos.frontend.builtins import ATOMICS, SHARED_MEMORY
from phobos.frontend.check_slices import report_constant
from phobos.frontend.checker import Checker, any_poison, declared_here
from phobos.frontend.coerce import fit, to_index
from phobos.frontend.scopes import Poisoned
from phobos.frontend.typed import Expr, Memory, Poison, Role, Stmt, TensorParameter, Variable
from phobos.frontend.typed_atomics import (
    AtomicUpdate,
    CompareExchange,
    GridBarrier,
    LoadAcquire,
    StoreRelease,
)
from phobos.frontend.types import I32, POISON, ScalarType, TileType, element_of

STATEMENTS = frozenset({"store_release", "grid_barrier"})
"""The built-ins of this module that give no value."""

_VALUES = {"atomic_cas": 2, "load_acquire": 0}
_ATOMIC_TYPES = "i32, u32, i64, u64, f32, f64, f16 and bf16"
_STATE_EXTENT = 2


def check_shared_memory(checker: Checker, node: ast.Call, name: str) -> Expr:
    """A call of one of the built-ins that give a value."""
    found = _element(checker, node, name, _VALUES.get(name, 1))
    if found is None:
        return Poison(POISON, ast.anchor(node))
    tensor, indices, values = found
    element, place = element_of(tensor.type), ast.anchor(node)
    if name == "load_acquire":
        assert isinstance(tensor, TensorParameter)
        return LoadAcquire(element, place, tensor, indices)
    if not _has_atomics(checker, node, name, tensor, element):
        return Poison(POISON, place)
    if name == "atomic_cas":
        return CompareExchange(element, place, tensor, indices, *values)
    return AtomicUpdate(element, place, ATOMICS[name][element.kind], tensor, indices, values[0])


def check_shared_memory_statement(checker: Checker, node: ast.Call, name: str) -> list[Stmt]:
    """A call of one of the built-ins that are statements."""
    place = ast.anchor(node)
    if name == "grid_barrier":
        state = _state(checker, node)
        return [] if state is None else [GridBarrier(place, state)]
    found = _element(checker, node, name, 1)
    if found is None:
        return []
    tensor, indices, (value,) = found
    assert isinstance(tensor, TensorParameter)
    return [StoreRelease(place, tensor, indices, value)]


_Element = tuple[Memory, tuple[Expr, ...], list[Expr]]


def _element(checker: Checker, node: ast.Call, name: str, values: int) -> _Element | None:
    """The element that a call names, and the values behind its subscripts; None after an error."""
    if not node.args:
        checker.error(node.span, f"`{name}` takes an element", help=f"write `{_usage(name)}`")
        return None
    tensor = _memory(checker, node, name)
    arguments = [checker.expression(argument) for argument in node.args[1:]]
    if tensor is None or any_poison(arguments):
        return None
    rank = len(tensor.dims)
    if len(arguments) != rank + values:
        noun = f"{rank} subscript{'' if rank == 1 else 's'}"
        behind = "" if not values else f" and {values} value{'' if values == 1 else 's'}"
        checker.error(
            node.span,
            f"`{name}` of `{tensor.name}` takes {noun}{behind} behind its name, not"
            f" {len(arguments)} argument{'' if len(arguments) == 1 else 's'}",
            notes=declared_here(tensor.name, tensor),
            help=f"write `{_usage_of(name, tensor)}`",
        )
        return None
    indices = tuple(to_index(checker, index, "a subscript") for index in arguments[:rank])
    fitted = [
        fit(checker, value, element_of(tensor.type), what=f"an element of `{tensor.name}`")
        for value in arguments[rank:]
    ]
    return None if any_poison((*indices, *fitted)) else (tensor, indices, fitted)


def _usage(name: str) -> str:
    return SHARED_MEMORY[name]


def _usage_of(name: str, tensor: Memory) -> str:
    """The same with the tensor's name and a subscript for each of its axes."""
    subscripts = ", ".join("ijklm"[: len(tensor.dims)])
    return _usage(name).replace("(t, i", f"({tensor.name}, {subscripts}")


def _memory(checker: Checker, node: ast.Call, name: str) -> Memory | None:
    subject = node.args[0]
    symbol = checker.scope.lookup(subject.name) if isinstance(subject, ast.Name) else None
    is_tile = isinstance(symbol, Variable) and isinstance(symbol.type, TileType)
    if isinstance(symbol, TensorParameter):
        return symbol
    if symbol is None and isinstance(subject, ast.Name):
        checker.unknown_name(subject.name, subject.span)
    elif isinstance(symbol, Variable) and is_tile and name.startswith("atomic"):
        if symbol.role is Role.VAR:
            symbol.is_shared = symbol.is_rewritten = True
            return symbol
        report_constant(checker, symbol, subject.span)
    elif not isinstance(symbol, Poisoned):
        what = "a tensor or tile" if name.startswith("atomic") else "a tensor"
        checker.error(
            subject.span,
            f"the first argument of `{name}` is the name of {what}",
            help=f"write `{_usage(name)}`",
        )
    return None


def _has_atomics(
    checker: Checker, node: ast.Call, name: str, tensor: Memory, element: ScalarType
) -> bool:
    is_wide = element.bits >= 32 or (element.is_float and element.bits == 16)
    if not is_wide:
        checker.error(
            node.span,
            f"there is no atomic update of {element}",
            notes=declared_here(tensor.name, tensor),
            help=f"elements are {_ATOMIC_TYPES}",
        )
        return False
    if name in ATOMICS and element.kind not in ATOMICS[name]:
        checker.error(
            node.span,
            f"`{name}` works on the bits of integers, not on {element}",
            notes=declared_here(tensor.name, tensor),
        )
        return False
    return True


def _state(checker: Checker, node: ast.Call) -> TensorParameter | None:
    """The tensor in which a grid barrier counts; None after an error."""
    if len(node.args) != 1:
        checker.error(
            node.span,
            f"`grid_barrier` takes 1 argument, not {len(node.args)}",
            help=f"write `{_usage('grid_barrier')}`",
        )
        return None
    state = _memory(checker, node, "grid_barrier")
    if state is None:
        return None
    assert isinstance(state, TensorParameter)
    known = state.dims[0].extent
    is_small = known is not None and known < _STATE_EXTENT
    if len(state.dims) != 1 or element_of(state.type) is not I32 or is_small:
        checker.error(
            node.args[0].span,
            f"the state of a grid barrier is a tensor of at least 2 i32, but this is {state.type}",
            notes=declared_here(state.name, state),
        )
        return None
    if "persistent" not in checker.settings.flags:
        checker.error(
            node.span,
            "`grid_barrier` needs all CTAs of the grid to run at once",
            help="mark the kernel `@persistent`; its launch then takes as many CTAs as the GPU"
            " holds",
        )
        return None
    return state
